// SPDX-License-Identifier: MIT OR Apache-2.0
//! strobe's own: the module and the way to it, boards, and what the user engine can use.

use std::fs;
use std::os::unix::fs::MetadataExt;

use strobe::engine;
use strobe_board::Board;

use super::system::{System, Unknown, not_understood, some_of};
use super::{Finding, Intent, Verdict};

/// Where the kernel looks for boards.
const BOARDS: &str = "/lib/firmware/strobe";
/// Less than this for all rings is soon used up.
const RINGS_MIN: u64 = 64 << 20;

/// Whether a module is loaded, and ready.
fn is_live(system: &System, module: &str) -> Result<bool, Unknown> {
    let place = format!("/sys/module/{module}");
    if !system.is_there(&place)? {
        return Ok(false);
    }
    let file = format!("{place}/initstate");
    match system.text(&file)?.as_str() {
        "live" => Ok(true),
        "coming" | "going" => Ok(false),
        other => Err(not_understood(&file, other)),
    }
}

/// Where the module for this kernel is, of those that modprobe finds.
fn installed(system: &System) -> Result<Option<String>, Unknown> {
    let release = system.release()?;
    let file = format!("/lib/modules/{release}/modules.dep");
    let text = system.text(&file)?;
    let paths = text
        .lines()
        .map(|line| line.split_once(':').map(|(path, _)| path));
    let paths: Option<Vec<&str>> = paths.collect();
    let paths = paths.ok_or_else(|| not_understood(&file, &text))?;
    let found = paths.into_iter().find(|path| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("strobe.ko"))
    });
    Ok(found.map(str::to_owned))
}

pub fn module(system: &System, _: &Intent) -> Verdict {
    if is_live(system, "strobe")? {
        let version = system.text("/sys/module/strobe/version");
        let version = version.map_or(String::new(), |version| format!(", version {version}"));
        return Ok(Finding::ok(format!("strobe is loaded{version}")));
    }
    let release = system.release()?;
    Ok(match installed(system) {
        Ok(Some(path)) => Finding::advice(
            format!("{path} is installed for {release} but not loaded"),
            "modprobe strobe (as root)",
        ),
        Ok(None) | Err(_) => Finding::advice(
            format!("no strobe.ko is installed for {release}; the user engine needs none"),
            "sudo make install, in strobe's source; then: modprobe strobe (as root)",
        ),
    })
}

/// Whether modules must be signed, and why.
fn enforcement(system: &System) -> Result<Option<String>, Unknown> {
    const ENFORCE: &str = "/sys/module/module/parameters/sig_enforce";
    const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
    match system.text(ENFORCE)?.as_str() {
        "Y" => return Ok(Some("sig_enforce is Y".to_owned())),
        "N" => {}
        other => return Err(not_understood(ENFORCE, other)),
    }
    match system.chosen(LOCKDOWN) {
        Ok(mode) if mode == "none" => Ok(None),
        Ok(mode) if mode == "integrity" || mode == "confidentiality" => {
            Ok(Some(format!("lockdown is {mode}")))
        }
        Ok(other) => Err(not_understood(LOCKDOWN, &other)),
        // Without it a kernel is locked down only by Secure Boot, or if it was told to be.
        Err(unknown) => {
            let is_told = system
                .command_line()?
                .iter()
                .any(|word| word.starts_with("lockdown="));
            match is_told || secure_boot(system)? {
                true => Err(unknown),
                false => Ok(None),
            }
        }
    }
}

fn secure_boot(system: &System) -> Result<bool, Unknown> {
    const FILE: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    if !system.is_there("/sys/firmware/efi")? {
        return Ok(false);
    }
    // Four bytes of attributes, and one that says it.
    match system.bytes(FILE)?.as_slice() {
        [_, _, _, _, on @ 0..=1] => Ok(*on == 1),
        _ => Err(not_understood(FILE, "not five bytes")),
    }
}

pub fn signature(system: &System, _: &Intent) -> Verdict {
    let Some(why) = enforcement(system)? else {
        return Ok(Finding::ok(
            "modules need no signature: sig_enforce is N, and there is no lockdown",
        ));
    };
    if is_live(system, "strobe")? {
        return Ok(Finding::ok(format!(
            "modules must be signed ({why}), and strobe is loaded"
        )));
    }
    let release = system.release()?;
    Ok(Finding::advice(
        format!("modules must be signed: {why}"),
        format!(
            "mokutil --import KEY.der && reboot; then, for each strobe*.ko: /lib/modules/{release}/build/scripts/sign-file \
             sha256 KEY.priv KEY.der strobe.ko (as root)"
        ),
    ))
}

pub fn headers(system: &System, _: &Intent) -> Verdict {
    let release = system.release()?;
    let place = format!("/lib/modules/{release}");
    let install = format!("apt install linux-headers-{release}");
    if !system.is_there(&place)? {
        return Err(Unknown(format!(
            "{place} does not exist, as in a container"
        )));
    }
    if !system.is_there(&format!("{place}/build"))? {
        return Ok(Finding::advice(
            format!("{place}/build does not exist"),
            install,
        ));
    }
    let found = system.text(&format!("{place}/build/include/config/kernel.release"));
    Ok(match found {
        Ok(found) => Finding::ok_if(
            found == release,
            format!("{place}/build belongs to {found}"),
            install,
        ),
        Err(Unknown(why)) => Finding::advice(why, install),
    })
}

pub fn dkms(system: &System, _: &Intent) -> Verdict {
    let release = system.release()?;
    let path = installed(system)?;
    if let Some(path) = path
        .as_ref()
        .filter(|path| path.starts_with("updates/dkms/"))
    {
        return Ok(Finding::ok(format!("{path} is installed for {release}")));
    }
    let is_known = system.is_there("/var/lib/dkms")? && system.is_there("/var/lib/dkms/strobe")?;
    if is_known {
        return Ok(Finding::advice(
            format!("DKMS knows strobe but has not built it for {release}"),
            format!("dkms autoinstall -k {release} (as root)"),
        ));
    }
    Ok(Finding::advice(
        match path {
            Some(path) => {
                format!("{path} is installed for {release} only: DKMS does not know strobe")
            }
            None => {
                format!("no strobe.ko is installed for {release}, and DKMS does not know strobe")
            }
        },
        "sudo make install, in strobe's source, for each new kernel",
    ))
}

pub fn device(system: &System, _: &Intent) -> Verdict {
    let error = match system.trial().control() {
        Ok(channels) => {
            return Ok(Finding::ok(format!(
                "/dev/strobe was opened, and has {channels} channels"
            )));
        }
        Err(error) => error,
    };
    let remedy = match &error {
        engine::Error::NoModule { .. } => "modprobe strobe (as root)".to_owned(),
        engine::Error::NoPermission { .. } => {
            format!(
                "usermod -aG strobe {} (as root), and log in again",
                user(system)
            )
        }
        engine::Error::Version { .. } => {
            "make install, so that program and module come from one source; then: \
                                             modprobe -r strobe && modprobe strobe (as root)"
                .to_owned()
        }
        _ => return Err(Unknown(error.to_string())),
    };
    let seen = format!("{}: {}", error.object(), error.reason());
    Ok(Finding::advice(seen, remedy))
}

/// A number of the lines of /proc/self/status that have several: the effective one.
fn effective(system: &System, field: &str) -> Result<u32, Unknown> {
    const STATUS: &str = "/proc/self/status";
    let text = system.field(STATUS, field)?;
    let number = text
        .split_whitespace()
        .nth(1)
        .and_then(|id| id.parse().ok());
    number.ok_or_else(|| not_understood(STATUS, &text))
}

/// Whether this is root; the root of a container may be another user outside of it, who may what that one may.
fn is_root(system: &System) -> Result<bool, Unknown> {
    const MAP: &str = "/proc/self/uid_map";
    if effective(system, "Uid")? != 0 {
        return Ok(false);
    }
    let map = system.text(MAP)?;
    match map.split_whitespace().eq(["0", "0", "4294967295"]) {
        true => Ok(true),
        false => Err(Unknown(format!(
            "root is another user outside of this container: {MAP}"
        ))),
    }
}

/// The name of who runs this; its number, if it has none.
fn user(system: &System) -> String {
    let Ok(id) = effective(system, "Uid") else {
        return "USER".to_owned();
    };
    let accounts = system.text("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| id.to_string())
}

pub fn group(system: &System, _: &Intent) -> Verdict {
    let is_root = is_root(system)?;
    let mut own: Vec<u32> = vec![effective(system, "Gid")?];
    let others = system.field("/proc/self/status", "Groups")?;
    own.extend(
        others
            .split_whitespace()
            .filter_map(|id| id.parse::<u32>().ok()),
    );
    let groups = system.text("/etc/group")?;
    let Some(line) = groups.lines().find_map(|line| line.strip_prefix("strobe:")) else {
        return Ok(Finding::advice(
            "/etc/group has no strobe",
            "groupadd --system strobe (as root)",
        ));
    };
    let mut parts = line.split(':').skip(1);
    let number: Option<u32> = parts.next().and_then(|id| id.parse().ok());
    let number = number.ok_or_else(|| not_understood("/etc/group", line))?;
    let name = user(system);
    let is_listed = parts
        .next()
        .unwrap_or_default()
        .split(',')
        .any(|member| member == name);
    Ok(match (own.contains(&number), is_listed) {
        (true, _) => Finding::ok("this user is in the group strobe"),
        _ if is_root => Finding::ok("root needs no group; there is the group strobe"),
        (false, true) => Finding::advice(
            format!("{name} is in the group strobe since the last login"),
            "log in again",
        ),
        (false, false) => Finding::advice(
            format!("{name} is not in the group strobe"),
            format!("usermod -aG strobe {name} (as root), and log in again"),
        ),
    })
}

pub fn ring_memory(system: &System, _: &Intent) -> Verdict {
    const FILE: &str = "/sys/module/strobe/parameters/ring_bytes_max";
    let asked: u64 = system.number(FILE)?;
    let all = system
        .kib("/proc/meminfo", "MemTotal")?
        .saturating_mul(1024);
    let most = match asked {
        0 => all / 4,
        asked => asked,
    };
    let mib = |bytes: u64| bytes >> 20;
    Ok(Finding::ok_if(
        (RINGS_MIN..=all / 2).contains(&most),
        format!(
            "all rings together may take {} MiB of {}",
            mib(most),
            mib(all)
        ),
        match most < RINGS_MIN {
            true => format!("echo {} > {FILE} (as root)", all / 2),
            false => format!("echo 0 > {FILE} (as root): a quarter of the memory"),
        },
    ))
}

pub fn boards(system: &System, _: &Intent) -> Verdict {
    if !system.is_there("/lib/firmware")? || !system.is_there(BOARDS)? {
        return Ok(Finding::ok("none is installed"));
    }
    let files = system.list(BOARDS)?;
    let mut names = Vec::new();
    for file in files.iter().filter_map(|file| file.strip_suffix(".toml")) {
        let text = format!("{BOARDS}/{file}.toml");
        let board = match Board::read(&system.path(&text)) {
            Ok(board) => board,
            Err(faults) => {
                let first = faults
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                return Ok(Finding::advice(
                    format!("an installed board has a fault: {first}"),
                    format!("strobe board check {text} shows every fault; then install it again"),
                ));
            }
        };
        let blob = format!("{BOARDS}/{file}.board");
        let compiled = board.compile().ok();
        if compiled.is_none() || system.bytes(&blob).ok() != compiled {
            return Ok(Finding::advice(
                format!("{blob} does not match {text}"),
                format!("strobe board install {text} (as root)"),
            ));
        }
        names.push(board.name);
    }
    if names.is_empty() {
        return Ok(Finding::ok("none is installed"));
    }
    let seen = format!("installed: {}", some_of(&names));
    Ok(match is_live(system, "strobe_board")? {
        true => Finding::ok(seen),
        false => Finding::advice(
            format!("{seen}; the driver is not loaded"),
            "modprobe strobe_board (as root)",
        ),
    })
}

pub fn uio(system: &System, _: &Intent) -> Verdict {
    const CLASS: &str = "/sys/class/uio";
    const BIND: &str = "modprobe uio_pci_generic; then, for a PCI card: echo 'VENDOR DEVICE' > \
                        /sys/bus/pci/drivers/uio_pci_generic/new_id (as root)";
    if !system.is_there(CLASS)? {
        return Ok(Finding::advice("no driver for UIO is loaded", BIND));
    }
    let (id, group) = (effective(system, "Uid")?, effective(system, "Gid")?);
    let is_root = is_root(system)?;
    let groups = system.field("/proc/self/status", "Groups")?;
    let is_ours = |gid: u32| {
        gid == group
            || groups
                .split_whitespace()
                .any(|word| word.parse() == Ok(gid))
    };
    let mut seen = Vec::new();
    for device in system.list(CLASS)? {
        let name = system.text(&format!("{CLASS}/{device}/name"))?;
        let node = format!("/dev/{device}");
        let about = fs::metadata(system.path(&node));
        let about = about.map_err(|error| Unknown(format!("{node}: {error}")))?;
        let (mode, owner) = (about.mode(), about.uid());
        let is_open = |shift: u32| mode >> shift & 6 == 6;
        let may = is_root
            || (owner == id && is_open(6))
            || (is_ours(about.gid()) && is_open(3))
            || is_open(0);
        if !may {
            return Ok(Finding::advice(
                format!("{node} ({name}) may not be opened by this user"),
                format!("chgrp strobe {node} && chmod 660 {node} (as root)"),
            ));
        }
        seen.push(format!("{device} ({name})"));
    }
    Ok(match seen.is_empty() {
        true => Finding::advice("there is no UIO device", BIND),
        false => Finding::ok(some_of(&seen)),
    })
}

pub fn ptp(system: &System, _: &Intent) -> Verdict {
    const CLASS: &str = "/sys/class/ptp";
    let mut clocks = Vec::new();
    if system.is_there(CLASS)? {
        for clock in system.list(CLASS)? {
            clocks.push(format!(
                "{clock} ({})",
                system.text(&format!("{CLASS}/{clock}/clock_name"))?
            ));
        }
    }
    Ok(match clocks.is_empty() {
        false => Finding::ok(some_of(&clocks)),
        true => Finding::advice(
            "this machine has no hardware clock for PTP: its time is as accurate as NTP, some milliseconds",
            "ethtool -T INTERFACE shows whether a network card has one; in a guest of KVM: modprobe ptp_kvm (as root)",
        ),
    })
}
