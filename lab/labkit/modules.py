# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest's /lib/modules: the stock modules asked for, the ones of this tree, and what both depend on."""

import lzma
import re
import shutil
import subprocess
from pathlib import Path

from . import LabError, tool
from .kernel import Kernel

INDEXES = ("modules.builtin", "modules.builtin.modinfo", "modules.order")


def stage(kernel: Kernel, names: list[str], root: Path) -> None:
    """Makes root/lib/modules/RELEASE, complete with indexes, so that modprobe works in the guest.

    A name may be a stock module's or a path to a .ko file; every module built from this tree is always there.
    """
    place = root / "lib/modules" / kernel.release
    (place / "updates").mkdir(parents=True)
    for index in INDEXES:
        if (kernel.modules / index).exists():
            shutil.copy(kernel.modules / index, place)
    wanted = [name for name in names if not name.endswith(".ko")]
    files = own(kernel) | {normal(Path(name).stem): Path(name) for name in names if name.endswith(".ko")}
    for file in files.values():
        copy = place / "updates" / file.name
        if not file.exists():
            raise LabError(f"the module {file} does not exist")
        subprocess.run(["strip", "--strip-debug", "-o", copy, file], check=True)
        wanted += depends(copy)
    for path in stock(kernel, [name for name in wanted if normal(name) not in files]):
        target = (place / path).with_suffix("") if path.endswith(".xz") else place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        packed = (kernel.modules / path).read_bytes()
        target.write_bytes(lzma.decompress(packed) if path.endswith(".xz") else packed)
    subprocess.run([tool("depmod"), "-b", root, kernel.release], check=True)


def own(kernel: Kernel) -> dict[str, Path]:
    """The modules built for the kernel, by name: those of this tree, and the stock drivers it lacks."""
    return {normal(path.stem): path for part in ("kernel", "modules", "examples", "rpmsg", "iio", "counter") for path in sorted((kernel.built / part).rglob("*.ko"))}


def stock(kernel: Kernel, names: list[str]) -> list[str]:
    """The files of stock modules, and of all they depend on, relative to the kernel's module directory."""
    lines = (line.partition(":") for line in (kernel.modules / "modules.dep").read_text().splitlines())
    known = {normal(path): [path, *needs.split()] for path, _, needs in lines}
    builtin = {normal(path) for path in (kernel.modules / "modules.builtin").read_text().split()}
    files: dict[str, None] = {}
    for name in map(normal, names):
        if name in known:
            files |= dict.fromkeys(known[name])
        elif name not in builtin:
            raise LabError(f"no module is called {name}: neither in {kernel.release} nor in build/kernel/; "
                           "if it is one of this tree, run `make build`")
    return list(files)


def depends(file: Path) -> list[str]:
    """What a .ko file says that it depends on."""
    said = re.search(rb"\0depends=([^\0]*)\0", file.read_bytes())
    return said[1].decode().replace(",", " ").split() if said else []


def normal(name: str) -> str:
    """a/b-c.ko.xz, b-c and b_c are one module: b_c."""
    return Path(name).name.partition(".ko")[0].replace("-", "_")
