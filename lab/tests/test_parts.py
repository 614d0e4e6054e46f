# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parts of the lab that can be tested without a guest."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import shutil
import subprocess
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from labkit import LabError, cache, kernel, modules, programs, qemu, rpmsg, sanitizer, suite
from labkit.cpio import Archive
from labkit.jobs import Job, count, run_all


def program(name: str) -> types.ModuleType:
    """A program of the lab, as a module."""
    path = str(Path(__file__).parents[1] / name)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class InTemporaryDirectory(unittest.TestCase):
    def setUp(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = Path(self.directory.name)


class Archives(InTemporaryDirectory):
    def listing(self, archive: Path) -> list[str]:
        done = subprocess.run(["cpio", "-itv", "--quiet"], stdin=open(archive, "rb"), capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def test_cpio_reads_back_what_was_written(self) -> None:
        with Archive(self.path / "a") as archive:
            archive.data("/etc/passwd", "root\n")
            archive.link("/bin/sh", "/bin/busybox")
            archive.directory("/tmp", 0o1777)
        (self.path / "out").mkdir()
        subprocess.run(["cpio", "-id", "--quiet"], stdin=open(self.path / "a", "rb"), cwd=self.path / "out", check=True)
        self.assertEqual((self.path / "out/etc/passwd").read_text(), "root\n")
        self.assertEqual(os.readlink(self.path / "out/bin/sh"), "/bin/busybox")
        self.assertEqual((self.path / "out/tmp").stat().st_mode & 0o7777, 0o1777)

    def test_everything_belongs_to_root_and_comes_after_its_directory(self) -> None:
        with Archive(self.path / "a") as archive:
            archive.data("/a/b/c", "x")
        lines = self.listing(self.path / "a")
        self.assertEqual([line.split()[-1] for line in lines], ["a", "a/b", "a/b/c"])
        self.assertTrue(all(line.split()[2:4] == ["root", "root"] for line in lines))

    def test_what_is_put_below_a_link_goes_to_where_it_leads(self) -> None:
        with Archive(self.path / "a") as archive:
            archive.directory("/usr/lib")
            archive.link("/lib", "usr/lib")
            archive.data("/lib/x", "x")
        lines = self.listing(self.path / "a")
        self.assertEqual([line.split()[8] for line in lines], ["usr", "usr/lib", "lib", "lib/x"])

    def test_the_same_files_make_the_same_bytes(self) -> None:
        for name in ("source", "other"):
            (self.path / name).mkdir()
            (self.path / name / "f").write_text("x")
            os.utime(self.path / name / "f", (hash(name) % 1000, 5))
            with Archive(self.path / f"{name}.cpio") as archive:
                archive.copy(self.path / name, "/d")
        self.assertEqual((self.path / "source.cpio").read_bytes(), (self.path / "other.cpio").read_bytes())


class Modules(InTemporaryDirectory):
    def setUp(self) -> None:
        super().setUp()
        self.kernel = kernel.Kernel("amd64", self.path)
        place = self.path / "lib/modules/6.12.0"
        place.mkdir(parents=True)
        (place / "modules.dep").write_text("kernel/a-b.ko.xz: kernel/c.ko.xz\nkernel/c.ko.xz:\nkernel/d.ko:\n")
        (place / "modules.builtin").write_text("kernel/built-in.ko\n")

    def test_a_module_comes_with_what_it_depends_on_once(self) -> None:
        self.assertEqual(modules.stock(self.kernel, ["a_b", "c", "d"]), ["kernel/a-b.ko.xz", "kernel/c.ko.xz", "kernel/d.ko"])

    def test_what_is_built_into_the_kernel_needs_no_file(self) -> None:
        self.assertEqual(modules.stock(self.kernel, ["built_in"]), [])

    def test_an_unknown_module_is_named_with_the_remedy(self) -> None:
        with self.assertRaisesRegex(LabError, "nonsense.*make build"):
            modules.stock(self.kernel, ["nonsense"])

    def test_dashes_and_underscores_are_one(self) -> None:
        self.assertEqual(modules.normal("kernel/a-b_c.ko.xz"), "a_b_c")


class Kernels(InTemporaryDirectory):
    def test_a_kernel_that_does_not_exist_is_refused_by_name(self) -> None:
        with self.assertRaisesRegex(LabError, "'nonsense'; there are amd64, rt, newest, debug, kcsan"):
            kernel.kernel("nonsense")

    def test_a_kernel_with_a_sanitizer_gets_what_it_needs_and_a_stock_one_no_more(self) -> None:
        def words(flavour: str) -> str:
            (self.path / flavour / "lib/modules/6.12").mkdir(parents=True)
            return " ".join(qemu.command(qemu.Machine(), kernel.Kernel(flavour, self.path / flavour), self.path))
        self.assertIn("-cpu max,-erms,-cx16 -smp 2 -m 1024 ", words("amd64"))
        self.assertIn("hung_task_timeout_secs=60 ", words("rt"))
        self.assertIn("-cpu max,la57=off,-erms,-cx16 -smp 2 -m 2048 ", words("debug"))
        self.assertIn("hung_task_timeout_secs=480 ", words("kcsan"))

    def test_a_guest_that_suspends_itself_unpacks_its_kernel(self) -> None:
        (self.path / "lib/modules/6.12").mkdir(parents=True)
        (self.path / "boot").mkdir()
        (self.path / "boot/vmlinux-6.12").touch()
        stock = kernel.Kernel("amd64", self.path)
        self.assertIn(f"-kernel {self.path}/boot/vmlinux-6.12 ", " ".join(qemu.command(qemu.Machine(), stock, self.path)))
        self.assertIn(f"-kernel {self.path}/boot/vmlinuz-6.12 ", " ".join(qemu.command(qemu.Machine(wake=True), stock, self.path)))

    def test_only_a_deterministic_guest_is_a_batch_job_of_the_host(self) -> None:
        (self.path / "lib/modules/6.12").mkdir(parents=True)
        stock = kernel.Kernel("amd64", self.path)
        timed = qemu.command(qemu.Machine(cpus=1, icount=0), stock, self.path)
        self.assertEqual(timed[:4], ["chrt", "--batch", "0", qemu.PROGRAM])
        self.assertEqual(qemu.command(qemu.Machine(), stock, self.path)[0], qemu.PROGRAM)

    def test_only_a_guest_that_counts_no_instructions_starts_without_self_tests(self) -> None:
        (self.path / "lib/modules/6.12").mkdir(parents=True)
        stock = kernel.Kernel("amd64", self.path)
        self.assertIn(" initcall_blacklist=jent_mod_init,", qemu.cmdline(qemu.Machine(), stock))
        self.assertNotIn("initcall_blacklist", qemu.cmdline(qemu.Machine(cpus=1, icount=0), stock))

    def test_a_guest_that_counts_instructions_has_all_that_the_emulated_cpu_can_do(self) -> None:
        (self.path / "lib/modules/6.12").mkdir(parents=True)
        timed = qemu.command(qemu.Machine(cpus=1, icount=0), kernel.Kernel("amd64", self.path), self.path)
        self.assertEqual(timed[timed.index("-cpu") + 1], "max")

    def test_several_cpus_take_time_from_instructions_but_cannot_be_recorded(self) -> None:
        (self.path / "lib/modules/6.12").mkdir(parents=True)

        def words(cpus: int) -> str:
            return " ".join(qemu.command(qemu.Machine(cpus=cpus, icount=0), kernel.Kernel("amd64", self.path), self.path))
        self.assertIn("-icount shift=0,sleep=off,rr=record,", words(1))
        self.assertIn("-icount shift=0,sleep=off -rtc ", words(2))

    def test_only_a_guest_with_the_monitor_can_reach_it_and_has_slots(self) -> None:
        (self.path / "rt/lib/modules/6.12").mkdir(parents=True)

        def words(machine: qemu.Machine) -> str:
            return " ".join(qemu.command(machine, kernel.Kernel("rt", self.path / "rt"), self.path))
        self.assertNotIn("mode=control", words(qemu.Machine()))
        self.assertNotIn("pcie-root-port", words(qemu.Machine()))
        self.assertIn("virtserialport,chardev=monitor,name=lab.monitor", words(qemu.Machine(monitor=True)))
        self.assertEqual(words(qemu.Machine(monitor=True)).count("pcie-root-port"), len(qemu.SLOTS))
        self.assertEqual((self.path / "void").read_bytes(), b"\xff" * qemu.VOID)

    def test_versions_compare_as_numbers(self) -> None:
        self.assertGreater(kernel.version("6.12.117-1~deb12u1"), kernel.version("6.1.170-3"))


    def test_what_newer_packages_have_below_usr_is_found_where_the_older_ones_have_it(self) -> None:
        modules_, headers = self.path / "usr/lib/modules/7.3.4", self.path / "usr/src/linux-headers-7.3.4"
        modules_.mkdir(parents=True)
        headers.mkdir(parents=True)
        for link in ("build", "source"):
            (modules_ / link).symlink_to("../../../src/linux-headers-7.3.4")
        for name in ("vmlinuz", "config", *modules.INDEXES):
            (modules_ / name).write_text(name if name in ("vmlinuz", "config") else "")
        (headers / "Makefile").write_text("KBUILD_OUTPUT=/usr/src/linux-headers-7.3.4\nall:\n\t@echo $(KBUILD_OUTPUT)\n")
        kernel.finish(self.path)
        newest = kernel.Kernel("newest", self.path)
        self.assertEqual(newest.image.read_text(), "vmlinuz")
        self.assertTrue((newest.modules / "modules.dep").exists())
        made = subprocess.run(["make", "-s", "-C", newest.headers], capture_output=True, text=True, check=True)
        self.assertEqual(made.stdout.strip(), str(headers))


class Suites(InTemporaryDirectory):
    def test_a_program_of_a_newer_suite_is_started_by_that_suites_loader_wherever_it_lies(self) -> None:
        loader = self.path / "a" / suite.LOADER
        loader.parent.mkdir(parents=True)
        loader.write_text('#!/bin/sh\necho "$@"\n')
        loader.chmod(0o755)
        (self.path / "a/bin").mkdir()
        shutil.copy("/bin/true", self.path / "a/bin/program")
        (self.path / "a/bin/script").write_text("#!/bin/sh\n")
        (self.path / "a/bin/script").chmod(0o755)
        suite.wrap(self.path / "a")
        (self.path / "a").rename(self.path / "b")
        said = subprocess.run([self.path / "b/bin/program", "x y"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, rf"--library-path \S+/{suite.LIBRARIES} --argv0 \S+/b/bin/program \S+/bin/program.elf x y\n")
        self.assertEqual((self.path / "b/bin/script").read_text(), "#!/bin/sh\n")


class Programs(unittest.TestCase):
    def test_a_program_of_this_machine_comes_with_its_libraries_and_the_loader(self) -> None:
        program, *files = programs.linked(Path("/bin/ls"))
        self.assertEqual(program, "/bin/ls:/usr/local/bin/ls")
        places = [file.partition(":")[2] for file in files]
        self.assertIn("/lib64/ld-linux-x86-64.so.2", places)
        self.assertIn("/lib/x86_64-linux-gnu/libc.so.6", places)
        self.assertTrue(all(Path(file.partition(":")[0]).is_file() for file in files))


class Sanitizers(unittest.TestCase):
    def test_a_line_of_a_fragment_without_effect_is_named(self) -> None:
        wanted = "# CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=n\nCONFIG_D=n\nCONFIG_E=m\nCONFIG_F=\"f\"\n"
        got = "CONFIG_B=y\n# CONFIG_C is not set\nCONFIG_D=y\nCONFIG_E=y\nCONFIG_F=\"f\"\n"
        self.assertEqual(sanitizer.without_effect(wanted, got), ["CONFIG_D=n", "CONFIG_E=m"])

    def test_no_option_is_named_twice(self) -> None:
        for flavour in sanitizer.FLAVOURS:
            names = re.findall(r"^(CONFIG_\w+)=", sanitizer.config(flavour), re.MULTILINE)
            self.assertEqual([name for name in names if names.count(name) > 1], [])

    def test_what_a_build_says_is_shown_when_it_fails(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            tree = Path(directory) / "source"
            tree.mkdir()
            (tree / "Makefile").write_text("all:\n\t@echo broken here; exit 3\n")
            said = io.StringIO()
            with self.assertRaisesRegex(LabError, "make all failed"), contextlib.redirect_stderr(said):
                sanitizer.make(tree, "all")
            self.assertIn("broken here", said.getvalue())


class Caches(InTemporaryDirectory):
    def setUp(self) -> None:
        super().setUp()
        before = os.environ.get("STROBE_CACHE")
        os.environ["STROBE_CACHE"] = self.directory.name
        self.addCleanup(lambda: os.environ.pop("STROBE_CACHE") if before is None else os.environ.update(STROBE_CACHE=before))

    def test_a_package_comes_with_what_it_depends_on_before_and_after_its_installation(self) -> None:
        known = {"a": {"Version": "1", "Depends": "libb (>= 2) | libc, other"}, "libb": {"Version": "2", "Pre-Depends": "libd"},
                 "libd": {"Version": "4", "Depends": "a"}}
        with mock.patch.object(cache, "packages", lambda names, options: {name: known[name] for name in names if name in known}):
            self.assertEqual(cache.closure(["a"], "lib|a"), ["a=1", "libb=2", "libd=4"])
            with self.assertRaisesRegex(LabError, "other"):
                cache.closure(["a"], "")

    def test_what_is_in_the_cache_is_not_asked_for_again(self) -> None:
        (self.path / "thing").mkdir()
        self.assertEqual(cache.unpacked("thing", self.fail, self.fail), self.path / "thing")

    def test_what_fails_to_arrive_leaves_nothing_behind(self) -> None:
        def failing() -> list[str]:
            raise LabError("no network")
        with self.assertRaises(LabError):
            cache.unpacked("thing", failing, self.fail)
        self.assertFalse((self.path / "thing").exists())


class Copies(InTemporaryDirectory):
    def setUp(self) -> None:
        super().setUp()
        self.sync = program("kmod").sync
        (self.path / "from").mkdir()
        (self.path / "from/a.c").write_text("1")
        (self.path / "from/b.c").write_text("1")
        self.sync(self.path / "from", self.path / "to")

    def test_an_unchanged_file_is_left_alone(self) -> None:
        before = (self.path / "to/a.c").stat()
        self.sync(self.path / "from", self.path / "to")
        after = (self.path / "to/a.c").stat()
        self.assertEqual((before.st_ctime_ns, before.st_mtime_ns), (after.st_ctime_ns, after.st_mtime_ns))

    def test_a_file_that_is_gone_goes_and_what_make_has_built_stays(self) -> None:
        (self.path / "to/a.o").write_text("object")
        (self.path / "from/b.c").unlink()
        self.sync(self.path / "from", self.path / "to")
        self.assertEqual(sorted(path.name for path in (self.path / "to").glob("[ab].*")), ["a.c", "a.o"])


class StockRpmsg(InTemporaryDirectory):
    def kernel(self, release: str, packages: str, config: str = "") -> kernel.Kernel:
        (self.path / "lib/modules" / release).mkdir(parents=True)
        (self.path / "boot").mkdir()
        (self.path / "boot" / f"config-{release}").write_text(config)
        (self.path / "packages").write_text(packages)
        return kernel.Kernel("x", self.path)

    def test_its_source_has_the_version_of_the_kernels_package(self) -> None:
        words = "linux-headers-6.12-amd64=6.12.9-2\nlinux-image-6.12-amd64=6.12.9-2\n"
        self.assertEqual(rpmsg.version(self.kernel("6.12.9+deb12-amd64", words)), "6.12.9-2")

    def test_a_kernel_that_was_built_here_has_the_version_of_its_source(self) -> None:
        self.assertEqual(rpmsg.version(self.kernel("6.12.9-debug", "linux-source-6.12=6.12.9-2~deb12u1\n")), "6.12.9-2~deb12u1")

    def test_a_kernel_of_another_version_than_its_packages_is_refused(self) -> None:
        with self.assertRaisesRegex(LabError, "delete"):
            rpmsg.version(self.kernel("6.12.9-debug", "linux-source-6.12=6.12.8-1\n"))

    def test_a_kernel_that_has_rpmsg_keeps_its_own(self) -> None:
        self.assertIsNone(rpmsg.sources(self.kernel("6.12.9-arm64", "", "CONFIG_RPMSG=m\n# CONFIG_RPMSG_CHAR is not set\n")))


class Jobs(unittest.TestCase):
    def test_tests_of_cargo_and_of_python_are_counted(self) -> None:
        self.assertEqual(count("test result: ok. 3 passed; 0 failed; 1 ignored\ntest result: FAILED. 2 passed; 1 failed; 0"), (5, 1))
        self.assertEqual(count("Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n"), (3, 3))
        self.assertEqual(count("Ran 1 test in 0.1s\n\nOK\n"), (1, 0))

    def test_a_job_that_fails_without_naming_a_test_is_one_failure(self) -> None:
        (result,) = run_all(([Job("x", ["sh", "-c", "echo 'test result: ok. 2 passed; 0 failed'; exit 70"], Path("/"))], 1))
        self.assertEqual((result.passed, result.failed), (2, 1))

    def test_a_job_that_runs_no_test_is_a_failure(self) -> None:
        (result,) = run_all(([Job("x", ["true"], Path("/"))], 1))
        self.assertEqual(result.failed, 1)


if __name__ == "__main__":
    unittest.main()
