# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether /dev/kvm can be trusted: some can be opened and yet hang a stock kernel, so a probe guest must boot."""

import os
import tempfile
from pathlib import Path

from . import LabError, cache, initramfs, qemu, say
from .kernel import Kernel

PATIENCE = 15  # seconds; a guest that works needs one or two


def accelerator(wish: str, kernel: Kernel) -> str:
    """tcg or kvm, of the wish tcg, kvm or auto."""
    if wish == "tcg" or kvm_works(kernel):
        return "tcg" if wish == "tcg" else "kvm"
    if wish == "kvm":
        raise LabError("--accel kvm: no probe guest boots with /dev/kvm here; leave --accel out", 71)
    return "tcg"


def kvm_works(kernel: Kernel) -> bool:
    """Boots a guest, once for each boot of this machine; the answer is kept in the cache."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    note = cache.cache_dir() / "kvm"
    known = note.read_text().split() if note.exists() else []
    if known[:1] != [boot]:
        say("trying whether a guest boots with /dev/kvm")
        known = [boot, "works" if probe(kernel) else "fails"]
        note.write_text(" ".join(known))
    return known[1] == "works"


def probe(kernel: Kernel) -> bool:
    machine = qemu.Machine(accel="kvm")
    with tempfile.TemporaryDirectory(prefix="strobe-lab.") as directory:
        work = Path(directory)
        initramfs.build(initramfs.Guest(kernel, ["true"]), work / "initramfs")
        try:
            with open(os.devnull, "wb") as nowhere:
                qemu.run(qemu.command(machine, kernel, work), work, PATIENCE, nowhere, nowhere)
        except LabError:
            return False
        return (work / "status").read_text() == "exit 0\n"
