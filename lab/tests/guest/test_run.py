# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/run promises, shown with real guests."""

import functools
import hashlib
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

LAB = Path(__file__).resolve().parents[2]
MODULE = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
static int boom;
module_param(boom, int, 0644);
static int __init toy_init(void)
{
	WARN_ON(boom);
	return 0;
}
static void __exit toy_exit(void)
{
	WARN_ON(boom);
}
module_init(toy_init);
module_exit(toy_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A module that warns when told to");
"""


class Guest(unittest.TestCase):
    path: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.begin()

    @classmethod
    def begin(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.path = Path(directory.name)
        # The lab's own temporary files go where leftovers can be seen.
        (cls.path / "tmp").mkdir()

    @classmethod
    def run_lab(cls, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([LAB / "run", "--no-strobe", *words], env=cls.environment(), capture_output=True, stdin=subprocess.DEVNULL)

    @classmethod
    def environment(cls) -> dict[str, str]:
        return os.environ | {"TMPDIR": str(cls.path / "tmp")}


# What a guest does of which most is asked. The process that it leaves behind holds its stdout.
SCRIPT = """
sleep 1000 &
echo one; echo two >&2; echo three >/dev/stderr
cat data
printf '<%s>' "$@"; echo
mkdir $OUT/d; head -c 100000 /dev/urandom >$OUT/d/f; sha256sum <$OUT/d/f
grep -il 0x11e8 /sys/bus/pci/devices/*/device | wc -l; test -d /sys/bus/pci/drivers/uio_pci_generic; echo $?
exit 7
"""
WORDS = ("--cpus", "--", "a b", "it's", '"$HOME"', "", "*", "\\n")
DATA = random.Random(1).randbytes(1 << 20) + b"\r\n\r\0\xff\n\n"


class Command(Guest):
    """One guest, for each takes seconds."""

    done: subprocess.CompletedProcess[bytes]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        (cls.path / "data").write_bytes(DATA)
        cls.done = cls.run_lab("--timeout", "200", "--file", cls.path / "data", "--out", cls.path / "out", "--device", "edu", "--device", "edu",
                               "--module", "uio_pci_generic", "--", "sh", "-c", SCRIPT, "sh", *WORDS)

    def after_the_data(self) -> list[str]:
        return self.done.stdout[len(b"one\n" + DATA):].decode().splitlines()

    def test_stdout_stderr_and_status_pass_through_and_are_not_mixed(self) -> None:
        self.assertEqual((self.done.stdout[:4], self.done.stderr, self.done.returncode), (b"one\n", b"two\nthree\n", 7))

    def test_every_byte_of_a_big_output_arrives_unchanged(self) -> None:
        self.assertTrue(self.done.stdout.startswith(b"one\n" + DATA + b"<"))

    def test_words_with_spaces_and_quotes_stay_words(self) -> None:
        self.assertEqual(self.after_the_data()[0], "".join(f"<{word}>" for word in WORDS))

    def test_a_process_left_behind_does_not_hold_up_the_end(self) -> None:
        self.assertEqual((len(self.after_the_data()), self.done.returncode), (4, 7))

    def test_files_come_back_also_when_the_command_fails(self) -> None:
        here = hashlib.sha256((self.path / "out/d/f").read_bytes()).hexdigest()
        self.assertEqual(self.after_the_data()[1], f"{here}  -")

    def test_the_cards_asked_for_are_there(self) -> None:
        self.assertEqual(self.after_the_data()[2:], ["2", "0"])

    def test_a_command_that_does_not_exist_is_127(self) -> None:
        self.assertEqual(self.run_lab("--", "nonsense").returncode, 127)


class Faults(Guest):
    @classmethod
    @functools.cache
    def toy(cls, kernel: str) -> Path:
        source = cls.path / "source"
        source.mkdir(exist_ok=True)
        (source / "toy.c").write_text(MODULE)
        (source / "Kbuild").write_text("obj-m := toy.o\n")
        subprocess.run([LAB / "kmod", "--kernel", kernel, "--source", source, "--out", cls.path / kernel, "W=1"], check=True)
        (module,) = (cls.path / kernel).glob("*/kernel/toy.ko")
        return module

    def test_a_warning_of_the_kernel_is_status_70_whatever_the_command_says(self) -> None:
        done = self.run_lab("--kernel", "rt", "--module", f"{self.toy('rt')} boom=1", "--", "true")
        self.assertEqual(done.returncode, 70)
        self.assertRegex(done.stderr, rb"kernel complains: WARNING: .*toy_init")

    def test_a_warning_in_the_very_last_moment_is_seen(self) -> None:
        done = self.run_lab("--module", self.toy("amd64"), "--", "sh", "-c", "echo 1 >/sys/module/toy/parameters/boom; rmmod toy")
        self.assertEqual(done.returncode, 70)

    def test_a_module_without_a_fault_passes_and_can_be_removed_and_loaded_again(self) -> None:
        done = self.run_lab("--module", self.toy("amd64"), "--", "sh", "-c", "rmmod toy && modprobe toy && grep -o ^toy /proc/modules")
        self.assertEqual((done.stdout, done.returncode), (b"toy\n", 0))

    def test_a_panic_is_status_70_at_once(self) -> None:
        done = self.run_lab("--timeout", "200", "--", "sh", "-c", "echo c >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(done.returncode, 70)

    def test_a_guest_that_goes_off_early_is_status_71(self) -> None:
        done = self.run_lab("--", "poweroff", "-f")
        self.assertEqual(done.returncode, 71)
        self.assertIn(b"went off before", done.stderr)

    def test_what_qemu_refuses_is_status_71_with_its_words(self) -> None:
        done = self.run_lab("--device", "nonsense", "--", "true")
        self.assertEqual(done.returncode, 71)
        self.assertIn(b"nonsense", done.stderr)

    def test_a_module_that_does_not_load_is_status_71_with_its_name(self) -> None:
        done = self.run_lab("--module", "uio nonsense=1", "--module", "uio_pci_generic", "--append", "module.sig_enforce=1",
                            "--module", self.toy("amd64"), "--", "true")
        self.assertEqual(done.returncode, 71)
        self.assertIn(b"modprobe toy", done.stderr)


class Ends(Guest):
    def setUp(self) -> None:
        self.begin()  # what one leaves behind is not another's

    def leftovers(self) -> list[str]:
        ours = [path.name for path in (self.path / "tmp").iterdir()]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.path).encode() in process.read_bytes():
                    ours.append(str(process))
            except OSError:
                pass  # it has ended meanwhile
        return ours

    def test_a_timeout_is_status_124_and_leaves_nothing_behind(self) -> None:
        done = self.run_lab("--timeout", "6", "--", "sleep", "1000")
        self.assertEqual(done.returncode, 124)
        self.assertEqual(self.leftovers(), [])

    def start(self) -> subprocess.Popen[bytes]:
        """A guest that would sleep for ever, booting."""
        lab = subprocess.Popen([LAB / "run", "--no-strobe", "--", "sleep", "1000"], env=self.environment())
        self.wait_until(lambda: any(log.stat().st_size for log in (self.path / "tmp").glob("*/log")))
        return lab

    def wait_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not happen in a minute")
            time.sleep(0.05)

    def test_an_interrupt_leaves_nothing_behind(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                lab = self.start()
                self.assertEqual(len(self.leftovers()), 2)  # one directory, one QEMU
                lab.send_signal(number)
                self.assertEqual(lab.wait(60), 128 + number)
                self.assertEqual(self.leftovers(), [])

    def test_even_a_killed_lab_leaves_no_guest(self) -> None:
        lab = self.start()
        lab.kill()
        lab.wait()
        self.wait_until(lambda: not [name for name in self.leftovers() if name.startswith("/proc/")])


if __name__ == "__main__":
    unittest.main()
