# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels with sanitizers, built of Debian's source: what they find, no stock kernel looks for.

A kernel is what lab/kernels/common.config and its own fragment make of allnoconfig. It lies in the cache under a name
with a digest of both, so that it is built once, and again only when they change.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from . import TREE, LabError, cache, say, source, tool

FRAGMENTS = TREE / "lab/kernels"
FLAVOURS = ("debug", "kcsan")
BREATH = 60  # seconds between words about a build that goes on


def built(flavour: str) -> Path:
    """The directory of a kernel with a sanitizer, laid out as packages would be below /."""
    text = config(flavour)
    name = f"linux-{flavour}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return cache.unpacked(name, source.package, lambda root: build(flavour, text, root))


def config(flavour: str) -> str:
    """What is wanted, without the reasons: who mends a comment builds no kernel anew."""
    lines = [line for name in ("common", flavour) for line in (FRAGMENTS / f"{name}.config").read_text().splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith("#"))


def build(flavour: str, text: str, root: Path) -> None:
    """Makes the kernel of the package unpacked below root, and leaves only what runs it and builds modules for it."""
    (archive,) = (root / "usr/src").glob("linux-source-*.tar.xz")
    tree = root.parent / "source"
    tree.mkdir()
    say(f"building the {flavour} kernel, once: some ten minutes on two idle CPUs, 3 GB of disk until it is done")
    subprocess.run(["tar", "-xf", archive, "-C", tree, "--strip-components=1"], check=True)
    archive.unlink()
    (tree / "lab.config").write_text(text)
    make(tree, "allnoconfig", f"KCONFIG_ALLCONFIG={tree}/lab.config")
    if ignored := without_effect(text, (tree / ".config").read_text()):
        raise LabError(f"lab/kernels: of the {flavour} kernel, without effect: {', '.join(ignored)}")
    make(tree, f"-j{os.cpu_count()}", "bzImage", "modules", says=f"{flavour} kernel")
    install(tree, root)


def install(tree: Path, root: Path) -> None:
    """Takes out of a built tree what Debian's packages would have."""
    release = (tree / "include/config/kernel.release").read_text().strip()
    make(tree, "modules_install", f"INSTALL_MOD_PATH={root}", "DEPMOD=true")
    headers = root / "usr/src" / f"linux-headers-{release}"
    make(tree, "run-command", f"KBUILD_RUN_COMMAND=$(srctree)/scripts/package/install-extmod-build {headers}")
    (root / "boot").mkdir()
    (tree / "arch/x86/boot/bzImage").rename(root / "boot" / f"vmlinuz-{release}")
    (tree / ".config").rename(root / "boot" / f"config-{release}")
    modules = root / "lib/modules" / release
    (modules / "build").unlink(missing_ok=True)
    (modules / "build").symlink_to(Path("../../..") / headers.relative_to(root))
    subprocess.run([tool("depmod"), "-b", root, release], check=True)


def without_effect(wanted: str, got: str) -> list[str]:
    """The lines that kconfig has not followed, because something else forbids it or the option is gone."""
    have = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", got, re.MULTILINE))
    lines = re.findall(r"^(CONFIG_\w+)=(.*)$", wanted, re.MULTILINE)
    return [f"{name}={value}" for name, value in lines if have.get(name, "n") != value]


def make(tree: Path, *words: str, says: str = "") -> None:
    """Runs make in a kernel's tree; with `says`, a word now and then about how far it is."""
    log = tree.parent / "make.log"
    with open(log, "w") as output:
        process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "make", "-C", tree, *words],
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        begin = told = time.monotonic()
        while process.poll() is None:
            time.sleep(0.1)
            if says and time.monotonic() > told + BREATH:
                told = time.monotonic()
                files = sum(line.startswith("  ") for line in open(log, errors="replace"))
                say(f"{says}: {files} files after {(told - begin) / 60:.0f} min")
    if process.returncode:
        print("\n".join(log.read_text(errors="replace").splitlines()[-40:]), file=sys.stderr)
        raise LabError(f"make {' '.join(words)} failed in {tree.name}; its messages are above")
