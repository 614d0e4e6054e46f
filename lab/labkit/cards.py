# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's own cards: lab/cards/*.c, built against the headers of the installed QEMU, for QEMU to load before it starts."""

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import unquote

from . import BUILD, TREE, LabError, cache, say

PROGRAM = "qemu-system-x86_64"
SOURCES = TREE / "lab/cards"
LIBRARY = BUILD / "lab/cards.so"
WANTED = ("include", "qapi", "scripts", "linux-headers")
# What the headers look at of that which QEMU's own configure finds out, on a 64-bit x86 machine with a recent libc.
CONFIG = ("CONFIG_LINUX", "CONFIG_POSIX", "CONFIG_TCG", "HOST_X86_64", "CONFIG_ATOMIC64", "CONFIG_INT128",
          "CONFIG_BYTESWAP_H", "CONFIG_IOVEC", "CONFIG_CPUID_H")
HELPER = "/usr/lib/apt/apt-helper"


def wanted(words: list[str]) -> bool:
    """Whether QEMU's command line names one of these cards."""
    return any(re.match(r"lab-\w", word) for word in words)


def library() -> Path:
    """The cards as a shared object, built anew if they or QEMU have changed."""
    version = installed()
    tree = headers()
    sources = sorted(SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(f"{version}\0{tree}\0".encode())
    for source in [*sources, Path(__file__)]:
        digest.update(source.read_bytes())
    mark = LIBRARY.with_suffix(".digest")
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    with cache.locked(LIBRARY.with_suffix(".lock")):
        if not LIBRARY.exists() or not mark.exists() or mark.read_text() != digest.hexdigest():
            build(tree, [source for source in sources if source.suffix == ".c"])
            mark.write_text(digest.hexdigest())
    return LIBRARY


def build(tree: Path, sources: list[Path]) -> None:
    flags = subprocess.run(["pkg-config", "--cflags", "glib-2.0"], capture_output=True, text=True)
    if flags.returncode:
        raise LabError("the headers of GLib are not installed: run `make setup`")
    # Renamed into its place: a guest that runs has the old one open.
    with tempfile.TemporaryDirectory(dir=LIBRARY.parent) as directory:
        product = Path(directory) / LIBRARY.name
        command = ["gcc", "-shared", "-fPIC", "-O2", "-std=gnu11", "-Wall", "-Werror", f"-I{tree}/generated",
                   f"-I{tree}/generated/qapi", f"-isystem{tree}/include", f"-isystem{tree}/linux-headers",
                   *flags.stdout.split(), "-o", str(product), *map(str, sources)]
        if subprocess.run(command).returncode:
            raise LabError("the lab's cards do not compile; gcc's messages are above")
        product.rename(LIBRARY)


def installed() -> str:
    """The version of the package that QEMU comes from, as QEMU says it."""
    try:
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise LabError(f"{PROGRAM} is not installed: run `make setup`", 71) from None
    if not (found := re.search(r"\(Debian ([^)]+)\)", said)):
        raise LabError(f"{PROGRAM} is not Debian's, so its headers are not known, and the lab's own cards cannot be "
                       f"built for it; it says: {said.splitlines()[0] if said else 'nothing'}", 71)
    return found[1]


def headers() -> Path:
    """The headers of exactly the installed QEMU, from its source package: they say how its structures lie in memory."""
    version = installed()
    return cache.unpacked(f"qemu-headers-{version.partition(':')[2] or version}", list, lambda root: fetch(version, root))


def fetch(version: str, root: Path) -> None:
    say(f"fetching the source of QEMU {version} into {cache.cache_dir()}")
    # Rebuilt packages, +bN, come of the same source.
    source = re.sub(r"\+b\d+$", "", version.partition(":")[2] or version)
    upstream = source.rpartition("-")[0] or source
    pool, description = pool_of(version), f"qemu_{source}.dsc"
    with tempfile.TemporaryDirectory(dir=cache.cache_dir(), prefix=".qemu.") as directory:
        work = Path(directory)
        download(pool, description, work)
        text = (work / description).read_text()
        for name in (f"qemu_{upstream}.orig.tar.xz", f"qemu_{source}.debian.tar.xz"):
            download(pool, name, work)
            check(work / name, text)
        tree = work / "tree"
        run(["dpkg-source", "--no-check", "-x", description, str(tree)], work)
        for part in WANTED:
            (tree / part).rename(root / part)
    generated = root / "generated"
    generated.mkdir()
    run(["python3", "scripts/qapi-gen.py", "-b", "-o", "generated/qapi", "qapi/qapi-schema.json"], root)
    for file in generated.glob("qapi/*.c"):
        file.unlink()
    (generated / "config-host.h").write_text("".join(f"#define {name} 1\n" for name in CONFIG))
    (generated / "config-poison.h").touch()


def pool_of(version: str) -> str:
    """Where the mirror keeps what was built of QEMU's source."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["apt-get", "--print-uris", "download", f"qemu-system-x86={version}"]
        said = subprocess.run(words, capture_output=True, text=True, cwd=directory)
    if not (found := re.match(r"'(.*)/[^/']+'", said.stdout)):
        raise LabError(f"apt has no QEMU {version}, which is installed, so its source is not found: run `apt-get update` "
                       f"and `apt-get install qemu-system-x86` as root; apt says: {said.stderr.strip()}")
    return unquote(found[1])


def download(pool: str, name: str, work: Path) -> None:
    # apt's own, as it knows the proxies and the mirrors' kinds. Who is root would become another user, who cannot write here.
    run([HELPER, "-o", "APT::Sandbox::User=root", "download-file", f"{pool}/{name.replace('+', '%2b')}", name], work)


def check(file: Path, description: str) -> None:
    sums = re.search(r"^Checksums-Sha256:\n((?: .*\n)+)", description, re.MULTILINE)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if not sums or f" {digest} {file.stat().st_size} {file.name}\n" not in sums[1]:
        raise LabError(f"{file.name} is not what QEMU's source package says; the mirror may be changing: try again later")


def run(words: list[str], directory: Path) -> None:
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(words)} failed:\n{done.stderr.strip() or done.stdout.strip()}\n"
                       "check the network; `make setup` installs what is missing")
