# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a guest: QEMU's command line, the guest's ports, and the end of everything in every case."""

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from . import LabError, cards
from .cards import PROGRAM
from .kernel import Kernel
from .waker import Waker

PORTS = ("stdout", "stderr", "status", "out", "symbols")
# Where cards can be plugged in while the guest runs: ports of PCI Express. Name, address, and the address of its void.
SLOTS = (("slot1", 0x08, 0x0a), ("slot2", 0x09, 0x0b))
VOID = 2 << 20  # bytes: what the firmware gives a port for cards
TICK = 0.02  # seconds between looks at what the guest has written
CMDLINE = (
    "console=ttyS0 loglevel=7 printk.time=1 log_buf_len=4M"  # the whole log is the evidence
    " panic=-1 oops=panic sysctl.kernel.hung_task_timeout_secs={hung}"  # a dead guest ends at once
    " nokaslr norandmaps"  # the same addresses in every run; at others QEMU would translate a program again
    " tsc=reliable clocksource=tsc"  # one clock
    " no_timer_check"  # else the kernel counts ticks as it boots, and panics if the host stood still for them
    " cryptomgr.notests random.trust_cpu=on"  # no self-tests behind the back of a measurement
)

# How long a kernel waits before it calls a CPU stuck. What is stuck for good, a test's own bound finds.
PATIENT = ("rcupdate.rcu_cpu_stall_timeout=120", "watchdog_thresh=60")

# What a guest's kernel leaves out as it starts: two self-tests that `cryptomgr.notests` does not reach, of a source of entropy and
# of a derivation of keys. Not for counted guests: as with a file more in the guest, all their points in time would move.
LEFT_OUT = "initcall_blacklist=jent_mod_init,crypto_kdf108_init"

# One host thread for all CPUs of a guest: with one each, a CPU may run into code that another is just patching (the
# kernel's static keys), and QEMU 7.2 then raises int3 where no hardware does.
ACCELERATORS = {"tcg": "tcg,thread=single", "kvm": "kvm"}

# What an emulated CPU is better without. erms: the kernel would copy and clear memory with one instruction, which QEMU
# repeats for each byte. cx16: after cmpxchg16b QEMU 7.2 may have wrong flags. Counted guests keep both: their counts of
# instructions are compared with earlier ones.
WITHOUT = ",-erms,-cx16"


@dataclass
class Machine:
    """The computer that the guest sees."""

    cpus: int = 2
    memory: int | None = None  # MB; None: what the kernel needs
    accel: str = "tcg"
    icount: int | None = None
    devices: list[str] = field(default_factory=list)
    monitor: bool = False
    wake: bool = False  # it suspends itself
    plugins: list[str] = field(default_factory=list)
    append: list[str] = field(default_factory=list)
    qemu: list[str] = field(default_factory=list)


def cmdline(machine: Machine, kernel: Kernel) -> str:
    # Not stuck is who is slow, nor who has a clock of his own while the host stands still.
    patient = PATIENT if machine.icount is None or kernel.needs.slowness > 1 else ()
    left_out = (LEFT_OUT,) if machine.icount is None else ()
    return " ".join([CMDLINE.format(hung=60 * kernel.needs.slowness), *patient, *left_out, *kernel.needs.append, *machine.append])


def command(machine: Machine, kernel: Kernel, work: Path) -> list[str]:
    """QEMU's command line. The guest's initramfs is work/initramfs; its ports are files in work."""
    # When a guest wakes, QEMU puts an unpacked kernel into its memory once more, over the one that runs.
    image = kernel.packed if machine.wake else kernel.image
    cpu = "host" if machine.accel == "kvm" else kernel.needs.cpu + (WITHOUT if machine.icount is None else "")
    words = [PROGRAM, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-nic", "none",
             "-machine", "q35", "-accel", ACCELERATORS[machine.accel], "-cpu", cpu,
             "-smp", str(machine.cpus), "-m", str(machine.memory or kernel.needs.memory),
             "-kernel", str(image), "-initrd", str(work / "initramfs"),
             "-append", cmdline(machine, kernel), "-serial", f"file:{work}/log"]
    if machine.icount is not None:
        # rr=record, though nobody wants the record: only then do the CPU and QEMU's main loop exclude each other. Else
        # the main loop may see a CPU that has just halted, before the instructions that it ran are counted, and skip
        # to the next timer by that much too far: about once in 1e5 halts, and no two runs are alike. QEMU cannot do it
        # with several CPUs, which take turns in one thread: time is made of instructions there too, but no more than that.
        record = ",rr=record,rrfile=/dev/null" if machine.cpus == 1 else ""
        words += ["-icount", f"shift={machine.icount},sleep=off{record}", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1"]
    # A slot far from those of the user's devices. ioeventfd=off: what the guest writes is taken at that very
    # instruction, not when the host gets round to it; otherwise two --icount runs differ.
    words += ["-device", "virtio-serial-pci,addr=0x10,ioeventfd=off"]
    for port in PORTS:
        # Files, because a pipe may be full, and then the guest would see the speed of the host.
        words += ["-chardev", f"file,id={port},path={work}/{port}",
                  "-device", f"virtserialport,chardev={port},name=lab.{port}"]
    if machine.monitor:
        words += monitor(work)
    for device in machine.devices:
        words += ["-device", device]
    for plugin in machine.plugins:
        words += ["-plugin", plugin]
    words += machine.qemu
    words = [*preload(words), *words]
    if machine.icount is not None:
        # QEMU's threads take turns, thousands of times a second. Who is woken shall wait for who wakes, else the host
        # switches between them twice as often as they need it.
        words = ["chrt", "--batch", "0", *words]
    return words


def monitor(work: Path) -> list[str]:
    """Gives the guest QEMU's monitor, as the port lab.monitor, and SLOTS: QEMU is at both ends of the socket.

    Where no card is, QEMU answers 0, and a bus all ones. So each slot has a void: a ROM of ones, on a card that does
    nothing else. lab/cases/src/monitor.rs puts it under the slot.
    """
    words = ["-chardev", f"socket,id=qmp,path={work}/monitor,server=on,wait=off", "-mon", "chardev=qmp,mode=control",
             "-chardev", f"socket,id=monitor,path={work}/monitor",
             "-device", "virtserialport,chardev=monitor,name=lab.monitor"]
    (work / "void").write_bytes(b"\xff" * VOID)
    for chassis, (name, port, void) in enumerate(SLOTS, 1):
        words += ["-device", f"pcie-root-port,id={name},chassis={chassis},addr={port:#x}",
                  "-device", f"pci-testdev,addr={void:#x},romfile={work}/void"]
    return words


def run(words: list[str], work: Path, timeout: float, stdout: BinaryIO, stderr: BinaryIO, waker: Waker | None = None) -> None:
    """Runs QEMU until the guest is off, passing on what the guest's command writes.

    Raises LabError if it takes too long (status 124) or if QEMU fails (status 71). Leaves no process behind.
    """
    if not shutil.which(PROGRAM):
        raise LabError(f"{PROGRAM} is not installed: run `make setup`", 71)
    for port in ("stdout", "stderr"):
        (work / port).touch()
    end = time.monotonic() + timeout
    with open(work / "qemu", "wb") as messages, open(work / "stdout", "rb") as out, open(work / "stderr", "rb") as err:
        # The guest dies with this program, also when that is killed and can do nothing about it.
        guest = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdin=subprocess.DEVNULL,
                                 stdout=messages, stderr=messages, start_new_session=True)
        try:
            while guest.poll() is None:
                pass_on(out, stdout)
                pass_on(err, stderr)
                if waker:
                    waker.look()
                if time.monotonic() > end:
                    raise LabError(f"the guest was not done after {timeout:g} s and was switched off", 124)
                time.sleep(TICK)
        finally:
            guest.kill()
            guest.wait()
            if waker:
                waker.close()
            pass_on(out, stdout)
            pass_on(err, stderr)
    if guest.returncode:
        said = (work / "qemu").read_text(errors="replace").strip()
        raise LabError(f"QEMU failed with status {guest.returncode}: {said}", 71)


def preload(words: list[str]) -> list[str]:
    """What has QEMU know the lab's own cards, if they are asked for: env loads them into QEMU, and into nothing else."""
    return ["env", f"LD_PRELOAD={cards.library()}"] if cards.wanted(words) else []


def pass_on(source: BinaryIO, target: BinaryIO) -> None:
    while data := source.read(1 << 20):
        target.write(data)
        target.flush()


def binary_streams() -> tuple[BinaryIO, BinaryIO]:
    return sys.stdout.buffer, sys.stderr.buffer
