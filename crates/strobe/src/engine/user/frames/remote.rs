// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which remote has a service, and who gives an endpoint to it: as sysfs says.

use std::fs;
use std::path::{Path, PathBuf};

use strobe_hw::rpmsg::{self, Control};

/// Of sysfs, or of what is like it.
pub const SYSFS: &str = "/sys";

/// A service on one of the remotes.
#[derive(Debug, PartialEq, Eq)]
pub struct Remote {
    /// The control node that leads there.
    pub control: PathBuf,
    /// The service's address.
    pub address: u32,
}

/// The remote that announces the service; `address` is for one that announces nothing, and goes before what is announced.
///
/// # Errors
/// There is none, or it cannot be told which one it is: what to do.
pub fn find(sysfs: &Path, service: &str, address: Option<u32>) -> Result<Remote, String> {
    let controls = Control::of_class(&sysfs.join("class/strobe_rpmsg"));
    let announced = announced(sysfs, service);
    for control in &controls {
        let processor = processor_of(sysfs, control);
        let here = announced
            .iter()
            .find(|service| Some(&service.processor) == processor.as_ref());
        if let Some(service) = here {
            return Ok(Remote {
                control: control.clone(),
                address: address.unwrap_or(service.address),
            });
        }
    }
    match (&controls[..], address) {
        ([], _) => Err(rpmsg::Error::NoControl.to_string()),
        ([control], Some(address)) => Ok(Remote {
            control: control.clone(),
            address,
        }),
        (controls, _) => Err(format!(
            "no remote behind {} announces the service {service}; {}",
            names(controls),
            remedy(&announced, controls.len(), sysfs)
        )),
    }
}

fn names(controls: &[PathBuf]) -> String {
    let names = controls.iter().map(|control| control.display().to_string());
    names.collect::<Vec<_>>().join(" or ")
}

/// What to do if nobody who can be reached announces the service.
fn remedy(announced: &[Announced], controls: usize, sysfs: &Path) -> String {
    if let Some(service) = announced.first() {
        return format!(
            "{} announces it but has no control node: give one of its channels to strobe_rpmsg \
             (docs/reference/rpmsg.md)",
            service.processor.display()
        );
    }
    let bus = sysfs.join("bus/rpmsg");
    match controls {
        1 => format!(
            "start the remote ({}), or give its address in the board file: [match] address = 0x400",
            bus.join("devices").display()
        ),
        _ => format!(
            "let the remote announce it, or unbind the others (echo CHANNEL > {})",
            bus.join("drivers/strobe_rpmsg/unbind").display()
        ),
    }
}

/// A service that is on the bus.
struct Announced {
    /// The device of the remote that it is on.
    processor: PathBuf,
    address: u32,
}

/// Those of this name, in the order of their devices' names.
fn announced(sysfs: &Path, service: &str) -> Vec<Announced> {
    let entries = fs::read_dir(sysfs.join("bus/rpmsg/devices"));
    let entries = entries.into_iter().flatten().flatten();
    let mut devices: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    devices.sort();
    let text = |device: &Path, name: &str| fs::read_to_string(device.join(name)).ok();
    let one = |device: PathBuf| {
        let name = text(&device, "name")?;
        let dst = text(&device, "dst")?;
        let address = dst.trim().strip_prefix("0x")?;
        let found = Announced {
            processor: device.canonicalize().ok()?.parent()?.to_owned(),
            address: u32::from_str_radix(address, 16).ok()?,
        };
        (name.trim() == service).then_some(found)
    };
    devices.into_iter().filter_map(one).collect()
}

/// The device of the remote that a control node is for: its channel is one of it, as services are.
fn processor_of(sysfs: &Path, control: &Path) -> Option<PathBuf> {
    let node = sysfs.join("class/strobe_rpmsg").join(control.file_name()?);
    let channel = node.join("device").canonicalize().ok()?;
    Some(channel.parent()?.to_owned())
}

/// How much memory the messages of an endpoint have, if the module tells.
pub fn queue_kib(sysfs: &Path) -> Option<usize> {
    let path = sysfs.join("module/strobe_rpmsg/parameters/queue_kib");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Makes channels of remotes as sysfs has them.
    struct Sysfs(tempfile::TempDir);

    impl Sysfs {
        fn new() -> Sysfs {
            let sysfs = tempfile::tempdir().expect("a directory");
            for path in ["bus/rpmsg/devices", "class/strobe_rpmsg"] {
                fs::create_dir_all(sysfs.path().join(path)).expect("to make it");
            }
            Sysfs(sysfs)
        }

        fn channel(&self, processor: &str, name: &str, dst: u32) -> PathBuf {
            let id = format!("{processor}.{name}");
            let device = self.0.path().join("devices").join(processor).join(&id);
            fs::create_dir_all(&device).expect("to make it");
            fs::write(device.join("name"), format!("{name}\n")).expect("to write");
            fs::write(device.join("dst"), format!("0x{dst:x}\n")).expect("to write");
            let link = self.0.path().join("bus/rpmsg/devices").join(id);
            symlink(&device, link).expect("a link");
            device
        }

        fn control(&self, processor: &str, number: u32) {
            let channel = self.channel(processor, "rpmsg_ctrl", u32::MAX);
            let name = format!("strobe_rpmsg{number}");
            let node = channel.join("strobe_rpmsg").join(&name);
            fs::create_dir_all(&node).expect("to make it");
            symlink(&channel, node.join("device")).expect("a link");
            let link = self.0.path().join("class/strobe_rpmsg").join(name);
            symlink(&node, link).expect("a link");
        }

        fn find(&self, address: Option<u32>) -> Result<Remote, String> {
            find(self.0.path(), "adc-frames", address)
        }
    }

    fn remote(control: &str, address: u32) -> Result<Remote, String> {
        Ok(Remote {
            control: control.into(),
            address,
        })
    }

    #[test]
    fn of_several_remotes_the_one_that_announces_the_service_is_taken() {
        let sysfs = Sysfs::new();
        sysfs.control("dsp", 0);
        sysfs.control("m4", 1);
        sysfs.channel("dsp", "other", 0x400);
        sysfs.channel("m4", "adc-frames", 0x401);
        assert_eq!(sysfs.find(None), remote("/dev/strobe_rpmsg1", 0x401));
        assert_eq!(sysfs.find(Some(0x500)), remote("/dev/strobe_rpmsg1", 0x500));
    }

    #[test]
    fn the_only_control_node_needs_nobody_to_announce_anything() {
        let sysfs = Sysfs::new();
        sysfs.control("m4", 3);
        assert_eq!(sysfs.find(Some(0x400)), remote("/dev/strobe_rpmsg3", 0x400));
        let why = sysfs.find(None).expect_err("no address");
        assert!(
            why.contains("adc-frames") && why.contains("address"),
            "{why}"
        );
    }

    #[test]
    fn a_service_of_a_processor_without_a_control_node_is_not_looked_for_on_another() {
        let sysfs = Sysfs::new();
        sysfs.control("dsp", 0);
        sysfs.channel("m4", "adc-frames", 0x401);
        let why = sysfs.find(None).expect_err("it is of another");
        for word in [
            "strobe_rpmsg0",
            "/m4",
            "adc-frames",
            "give one of its channels",
        ] {
            assert!(why.contains(word), "{word}: {why}");
        }
        assert_eq!(sysfs.find(Some(0x400)), remote("/dev/strobe_rpmsg0", 0x400));
    }

    #[test]
    fn which_of_several_it_is_is_not_guessed() {
        let sysfs = Sysfs::new();
        let why = sysfs.find(Some(0x400)).expect_err("no control node");
        assert!(why.contains("driver_override"), "{why}");
        sysfs.control("dsp", 0);
        sysfs.control("m4", 1);
        let why = sysfs.find(Some(0x400)).expect_err("two of them");
        for word in ["strobe_rpmsg0", "strobe_rpmsg1", "adc-frames", "unbind"] {
            assert!(why.contains(word), "{word}: {why}");
        }
    }

    #[test]
    fn the_memory_of_a_queue_is_the_modules_or_not_known() {
        let sysfs = Sysfs::new();
        assert_eq!(queue_kib(sysfs.0.path()), None);
        let parameters = sysfs.0.path().join("module/strobe_rpmsg/parameters");
        fs::create_dir_all(&parameters).expect("to make it");
        fs::write(parameters.join("queue_kib"), "128\n").expect("to write");
        assert_eq!(queue_kib(sysfs.0.path()), Some(128));
    }
}
