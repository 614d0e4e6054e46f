// SPDX-License-Identifier: MIT OR Apache-2.0

use State::{Advice, Ok, Unknown};
use strobe_board::Board;

use super::*;

const RELEASE: &str = "6.12.1-amd64";
const LIVE: &str = "/sys/module/strobe/initstate";
const BOARD: &str = include_str!("../../../../../boards/edu.toml");

fn released(check: &'static str, state: State, sentence: &'static str) -> Case {
    case(check, state, sentence)
        .file("/proc/sys/kernel/osrelease", "6.12.1-amd64\n")
        .file("/sys/module/printk/parameters/time", "Y\n")
}

fn in_modules(name: &str) -> String {
    format!("/lib/modules/{RELEASE}/{name}")
}

fn signed(state: State, enforce: &str, lockdown: &str, sentence: &'static str) -> Case {
    released("signature", state, sentence)
        .file("/sys/module/module/parameters/sig_enforce", enforce)
        .file("/sys/kernel/security/lockdown", lockdown)
}

/// A machine that does not say whether it is locked down.
fn booted(state: State, words: &str, sentence: &'static str) -> Case {
    released("signature", state, sentence)
        .file("/sys/module/module/parameters/sig_enforce", "N\n")
        .file("/proc/cmdline", words)
        .file("/sys/firmware/acpi/pm_profile", "0\n")
}

const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

fn answered(
    state: State,
    sentence: &'static str,
    control: fn() -> Result<usize, engine::Error>,
) -> Case {
    case("device", state, sentence).answering(Answers { control, ..DEAF })
}

const PATH: &str = "/dev/strobe";

/// A user with the number 1000.
fn member(state: State, groups: &str, line: &str, sentence: &'static str) -> Case {
    let status =
        format!("Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t{groups}\n");
    case("group", state, sentence)
        .file("/proc/self/status", &status)
        .file(
            "/etc/passwd",
            "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/:/bin/sh\n",
        )
        .file("/etc/group", &format!("root:x:0:\n{line}"))
}

fn rings(state: State, most: &str, sentence: &'static str) -> Case {
    case("ring-memory", state, sentence)
        .file("/sys/module/strobe/parameters/ring_bytes_max", most)
        .file("/proc/meminfo", "MemTotal:    1048576 kB\n")
}

fn board(state: State, text: &str, sentence: &'static str) -> Case {
    let blob = Board::from_toml("edu.toml", BOARD)
        .expect("a board")
        .compile()
        .expect("a board of a card");
    case("boards", state, sentence)
        .file("/lib/firmware/strobe/edu.toml", text)
        .bytes("/lib/firmware/strobe/edu.board", &blob)
        .file("/sys/module/strobe_board/initstate", "live\n")
}

fn uio(state: State, sentence: &'static str) -> Case {
    case("uio", state, sentence)
        .with_status()
        .file("/sys/class/uio/uio0/name", "uio_dummy\n")
}

pub fn cases() -> Vec<Case> {
    let dep = in_modules("modules.dep");
    let kernel_release = in_modules("build/include/config/kernel.release");
    let blob = "/lib/firmware/strobe/edu.board";
    vec![
        released("module", Ok, "it is loaded").file(LIVE, "live\n"),
        released("module", Advice, "it is installed")
            .file(&dep, "updates/strobe/strobe.ko:\n")
            .says("modprobe strobe"),
        released("module", Advice, "it is for another kernel")
            .file(&dep, "kernel/a.ko:\n")
            .says("make install"),
        released("module", Advice, "no module is there at all").says("make install"),
        released("module", Unknown, "it is in a state that is none").file(LIVE, "dead\n"),
        case("module", Unknown, "/sys is not to be seen")
            .file("/proc/sys/kernel/osrelease", "6.12.1-amd64\n"),
        signed(
            Ok,
            "N\n",
            "[none] integrity confidentiality\n",
            "nothing need be signed",
        ),
        signed(
            Ok,
            "Y\n",
            "[none] integrity confidentiality\n",
            "signed and loaded",
        )
        .file(LIVE, "live\n"),
        signed(
            Advice,
            "Y\n",
            "[none] integrity confidentiality\n",
            "all must be signed",
        )
        .says("sign-file"),
        signed(
            Advice,
            "N\n",
            "none [integrity] confidentiality\n",
            "the kernel is locked down",
        )
        .says("lockdown is integrity"),
        signed(Unknown, "?\n", "[none]\n", "another word"),
        booted(Ok, "quiet\n", "no EFI"),
        booted(Ok, "quiet\n", "EFI without Secure Boot").bytes(SECURE_BOOT, &[6, 0, 0, 0, 0]),
        booted(Unknown, "quiet\n", "Secure Boot, and no word of lockdown")
            .bytes(SECURE_BOOT, &[6, 0, 0, 0, 1]),
        booted(
            Unknown,
            "lockdown=integrity\n",
            "it was told to be locked down",
        ),
        booted(Unknown, "quiet\n", "a variable that is too short").bytes(SECURE_BOOT, &[6]),
        released("headers", Ok, "they are there").file(&kernel_release, "6.12.1-amd64\n"),
        released("headers", Advice, "they are of another kernel")
            .file(&kernel_release, "6.1.0-9\n")
            .says("apt install linux-headers-6.12.1-amd64"),
        released("headers", Advice, "they are not there")
            .file(&dep, "")
            .says("linux-headers-6.12.1-amd64"),
        released("headers", Unknown, "a container").file("/lib/modules/5.10.0/modules.dep", ""),
        released("dkms", Ok, "it has built it").file(&dep, "updates/dkms/strobe.ko.xz:\n"),
        released("dkms", Advice, "it has not built it for this kernel")
            .file(&dep, "kernel/a.ko:\n")
            .file("/var/lib/dkms/strobe/0.1.0/source", "")
            .says("dkms autoinstall -k 6.12.1-amd64"),
        released("dkms", Advice, "it does not know it")
            .file(&dep, "updates/strobe/strobe.ko:\n")
            .file("/var/lib/dkms/other/1/source", "")
            .says("for each new kernel"),
        released("dkms", Unknown, "a container").file("/var/lib/dkms/other/1/source", ""),
        answered(Ok, "it answers", || Result::Ok(30)).says("30 channels"),
        answered(Advice, "it is not there", || {
            Err(engine::Error::NoModule { path: PATH.into() })
        })
        .says("modprobe strobe"),
        answered(Advice, "it may not be opened", || {
            Err(engine::Error::NoPermission { path: PATH.into() })
        })
        .says("usermod -aG strobe"),
        answered(Advice, "it is of another version", || {
            Err(engine::Error::Version {
                path: PATH.into(),
                call: "STROBE_LIST",
                module: "0.9".into(),
                source: error(libc::EINVAL),
            })
        })
        .says("STROBE_LIST was refused"),
        case("device", Unknown, "it fails in another way"),
        member(Ok, "27 500", "strobe:x:500:\n", "a member"),
        member(Advice, "27", "strobe:x:500:ada\n", "a member since today").says("log in again"),
        member(Advice, "27", "strobe:x:500:bob\n", "not a member").says("usermod -aG strobe ada"),
        member(Advice, "27", "", "no such group").says("groupadd --system strobe"),
        member(
            Unknown,
            "27",
            "strobe:x:many:\n",
            "a group without a number",
        ),
        case("group", Ok, "root")
            .with_status()
            .file("/etc/group", "strobe:x:500:\n")
            .says("root needs no group"),
        case("group", Unknown, "the root of a container")
            .with_status()
            .file("/proc/self/uid_map", "0 1000 1\n")
            .file("/etc/group", "strobe:x:500:\n")
            .says("another user outside"),
        rings(Ok, "0\n", "a quarter").says("256 MiB of 1024"),
        rings(Advice, "1048576\n", "very little").says("echo 536870912"),
        rings(Advice, "1000000000\n", "nearly all").says("echo 0 >"),
        rings(Unknown, "much\n", "no number"),
        board(Ok, BOARD, "one that is right").says("installed: edu"),
        board(Advice, "[device]\n", "one that is wrong")
            .says("strobe board check /lib/firmware/strobe/edu.toml"),
        board(Advice, BOARD, "one whose blob is old")
            .bytes(blob, b"old")
            .says("strobe board install"),
        board(Advice, BOARD, "one without its driver")
            .file("/sys/module/strobe_board/initstate", "going\n")
            .says("modprobe strobe_board"),
        board(Unknown, BOARD, "one whose driver does not say")
            .file("/sys/module/strobe_board/initstate", "\n"),
        case("boards", Ok, "none")
            .file("/lib/firmware/other.bin", "")
            .says("none is installed"),
        case("boards", Unknown, "/lib is not to be seen"),
        uio(Ok, "a device of root").file("/dev/uio0", ""),
        uio(Unknown, "a device without a node"),
        uio(Advice, "a device of another user")
            .file(
                "/proc/self/status",
                "Uid:\t77777\t77777\t7\t7\nGid:\t77777\t77777\t7\t7\nGroups:\t\n",
            )
            .file("/dev/uio0", "")
            .says("chgrp strobe /dev/uio0"),
        case("uio", Advice, "no driver")
            .with_status()
            .file("/sys/class/net/lo", "")
            .says("modprobe uio_pci_generic"),
        case("ptp", Ok, "a network card")
            .file("/sys/class/ptp/ptp0/clock_name", "igb\n")
            .says("ptp0 (igb)"),
        case("ptp", Advice, "none")
            .file("/sys/class/net/lo", "")
            .says("ethtool -T"),
        case("ptp", Unknown, "/sys is not to be seen"),
    ]
}
