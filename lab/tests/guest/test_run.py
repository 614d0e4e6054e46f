# SPDX-License-Identifier: MIT OR Apache-2.0
"""What lab/run promises, shown with real guests."""

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
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)
        # The lab's own temporary files go where leftovers can be seen.
        (self.path / "tmp").mkdir()
        self.environment = os.environ | {"TMPDIR": str(self.path / "tmp")}

    def run_lab(self, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([LAB / "run", "--no-strobe", *words], env=self.environment, capture_output=True, stdin=subprocess.DEVNULL)

    def toy(self, kernel: str) -> Path:
        source = self.path / "source"
        source.mkdir(exist_ok=True)
        (source / "toy.c").write_text(MODULE)
        (source / "Kbuild").write_text("obj-m := toy.o\n")
        subprocess.run([LAB / "kmod", "--kernel", kernel, "--source", source, "--out", self.path / "built", "W=1"], check=True)
        (module,) = (self.path / "built").glob(f"*{'-rt' if kernel == 'rt' else ''}-amd64/kernel/toy.ko")
        return module


class Command(Guest):
    def test_stdout_stderr_and_status_pass_through_and_are_not_mixed(self) -> None:
        done = self.run_lab("--", "sh", "-c", "echo one; echo two >&2; echo three >/dev/stderr; exit 7")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"one\n", b"two\nthree\n", 7))

    def test_every_byte_of_a_big_output_arrives_unchanged(self) -> None:
        data = random.Random(1).randbytes(1 << 20) + b"\r\n\r\0\xff\n\n"
        (self.path / "data").write_bytes(data)
        done = self.run_lab("--file", self.path / "data", "--", "cat", "data")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout == data)

    def test_words_with_spaces_and_quotes_stay_words(self) -> None:
        words = ("--cpus", "--", "a b", "it's", '"$HOME"', "", "*", "\\n")
        done = self.run_lab("--", "printf", "<%s>", *words)
        self.assertEqual(done.stdout.decode(), "".join(f"<{word}>" for word in words))

    def test_a_command_that_does_not_exist_is_127(self) -> None:
        self.assertEqual(self.run_lab("--", "nonsense").returncode, 127)

    def test_a_process_left_behind_does_not_hold_up_the_end(self) -> None:
        done = self.run_lab("--timeout", "200", "--", "sh", "-c", "sleep 1000 & echo started")
        self.assertEqual((done.stdout, done.returncode), (b"started\n", 0))

    def test_files_come_back_also_when_the_command_fails(self) -> None:
        script = 'mkdir $OUT/d; head -c 100000 /dev/urandom >$OUT/d/f; sha256sum <$OUT/d/f; exit 3'
        done = self.run_lab("--out", self.path / "out", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 3)
        here = hashlib.sha256((self.path / "out/d/f").read_bytes()).hexdigest()
        self.assertEqual(done.stdout.decode(), f"{here}  -\n")

    def test_the_cards_asked_for_are_there(self) -> None:
        done = self.run_lab("--device", "edu", "--device", "edu", "--module", "uio_pci_generic", "--",
                            "sh", "-c", "grep -il 0x11e8 /sys/bus/pci/devices/*/device | wc -l; test -d /sys/bus/pci/drivers/uio_pci_generic")
        self.assertEqual((done.stdout, done.returncode), (b"2\n", 0))


class Faults(Guest):
    def test_a_warning_of_the_kernel_is_status_70_whatever_the_command_says(self) -> None:
        for kernel in ("amd64", "rt"):
            with self.subTest(kernel):
                done = self.run_lab("--kernel", kernel, "--module", f"{self.toy(kernel)} boom=1", "--", "true")
                self.assertEqual(done.returncode, 70)
                self.assertRegex(done.stderr, rb"kernel complains: WARNING: .*toy_init")

    def test_a_warning_in_the_very_last_moment_is_seen(self) -> None:
        for kernel in ("amd64", "rt"):
            with self.subTest(kernel):
                done = self.run_lab("--kernel", kernel, "--module", self.toy(kernel), "--",
                                    "sh", "-c", "echo 1 >/sys/module/toy/parameters/boom; rmmod toy")
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
        lab = subprocess.Popen([LAB / "run", "--no-strobe", "--", "sleep", "1000"], env=self.environment)
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
