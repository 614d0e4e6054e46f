# SPDX-License-Identifier: MIT OR Apache-2.0
"""The guest's file system: one archive, built for each run, unpacked into memory by the kernel."""

import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import BUILD, TREE, LabError, debian, modules, programs, tool
from .cpio import Archive
from .kernel import Kernel

PROGRAMS = BUILD / "guest/bin"
LIBRARIES = BUILD / "guest/lib"
CASES = "cases"
DIRECTORIES = ("proc", "sys", "dev", "run", "out", "root", "mnt", "lib/firmware/strobe", "var/tmp")
ACCOUNTS = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n",
    "/etc/group": "root:x:0:\nstrobe:x:500:\nuser:x:1000:\n",
}


@dataclass
class Guest:
    """What is in a guest, and what it does."""

    kernel: Kernel
    command: list[str]
    load: list[str] = field(default_factory=list)  # "NAME" or "NAME parameter=value", in order
    modules: list[str] = field(default_factory=list)  # present, but not loaded
    files: list[str] = field(default_factory=list)  # "PATH" or "PATH:PATH IN THE GUEST"
    settle: int = 0  # seconds from the end of the boot to the command
    out: bool = False
    symbols: bool = False
    debian: bool = False  # with Debian's root and systemd


def build(guest: Guest, archive: Path) -> None:
    """Writes the archive. Needs a directory of its own around it for temporary files."""
    staged = archive.parent / "modules"
    names = [line.split()[0] for line in guest.load]
    modules.stage(guest.kernel, names + guest.modules + ["configfs"], staged)
    with Archive(archive) as root:
        if guest.debian:
            add_debian(root)  # first: in it /lib is a link
        for name in DIRECTORIES:
            root.directory(f"/{name}")
        root.directory("/tmp", 0o1777)
        if not guest.debian:
            for path, text in ACCOUNTS.items():
                root.data(path, text)
            add_busybox(root)
            root.copy(TREE / "lab/guest/init", "/init")
        root.copy(staged / "lib/modules", "/lib/modules")
        for program in chosen(guest.command):
            root.copy(program, f"/usr/local/bin/{program.name}")
        # First: a file of the guest that is a library takes its place. Debian's root has them all.
        for library in [] if guest.debian else sorted(LIBRARIES.glob("*")):
            root.copy(library, programs.place(library.name))
        if (TREE / "boards").exists():
            root.copy(TREE / "boards", "/boards")
        for word in guest.files:
            add_file(root, word)
        add_orders(root, guest)


def chosen(command: list[str]) -> list[Path]:
    """The programs of build/guest/bin; that of the test cases, which is big, only if the command names it."""
    return [path for path in sorted(PROGRAMS.glob("*")) if path.name != CASES or any(CASES in word for word in command)]


def add_debian(root: Archive) -> None:
    """All of Debian's root; systemd starts what is the first process of other guests."""
    for child in sorted(debian.root().iterdir()):
        if child.name not in (*DIRECTORIES, "tmp"):
            root.copy(child, f"/{child.name}")
    root.link("/init", "/lib/systemd/systemd")
    root.copy(TREE / "lab/guest/init", "/lab/init")
    root.copy(TREE / "lab/guest/lab.service", "/etc/systemd/system/lab.service")
    root.link("/etc/systemd/system/multi-user.target.wants/lab.service", "../lab.service")
    root.link("/etc/systemd/system/default.target", "/lib/systemd/system/multi-user.target")


def add_busybox(root: Archive) -> None:
    busybox = tool("busybox")
    root.copy(Path(busybox).resolve(), "/bin/busybox")
    applets = subprocess.run([busybox, "--list-full"], check=True, capture_output=True, text=True)
    for applet in applets.stdout.split():
        if applet not in ("bin/busybox", "init", "linuxrc"):
            root.link(f"/{applet}", "/bin/busybox")


def add_file(root: Archive, word: str) -> None:
    host, _, path = word.partition(":")
    source = Path(host).resolve()
    if not source.exists():
        raise LabError(f"--file {host}: there is no such file")
    root.copy(source, path or f"/root/{source.name}")


def add_orders(root: Archive, guest: Guest) -> None:
    """What lab/guest/init reads: see there."""
    root.data("/lab/command", f"exec {shlex.join(guest.command)}\n")
    root.data("/lab/modules", "".join(f"{modules.normal(name)} {parameters}\n" for name, _, parameters
                                      in (line.partition(" ") for line in guest.load)))
    root.data("/lab/orders", f"kernel={guest.kernel.flavour}\nslowness={guest.kernel.needs.slowness}\nsettle={guest.settle}\n"
                             f"out={int(guest.out)}\nsymbols={int(guest.symbols)}\n")
