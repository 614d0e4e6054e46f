// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device behind a UIO device: a card of a bus.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Attributes that say which card it is. All others are left alone: to read some of them touches the hardware.
const ATTRIBUTES: [&str; 8] = [
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "class",
    "irq",
    "modalias",
];

/// The device that a UIO device belongs to, as sysfs has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// Its name on its bus, such as `0000:00:04.0`.
    pub name: String,
    /// Its bus, such as `pci`; empty if it has none.
    pub bus: String,
    /// Its driver; empty if it has none.
    pub driver: String,
    /// What sysfs says of it: name and value, such as `vendor` and `0x1234`.
    pub attributes: Vec<(String, String)>,
}

impl Parent {
    /// That of the UIO device of this directory; `None` if it has none. What goes meanwhile is left out.
    pub(super) fn of(uio: &Path) -> Option<Parent> {
        let path = fs::canonicalize(uio.join("device")).ok()?;
        let last = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        let behind = |link: &str| fs::read_link(path.join(link)).ok().and_then(|to| last(&to));
        let attribute = |name: &&str| {
            let text = fs::read_to_string(path.join(name)).ok()?;
            Some(((*name).to_owned(), text.trim_end().to_owned()))
        };
        Some(Parent {
            name: last(&path)?,
            bus: behind("subsystem").unwrap_or_default(),
            driver: behind("driver").unwrap_or_default(),
            attributes: ATTRIBUTES.iter().filter_map(attribute).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Uio;
    use super::super::fake::Fake;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_card_behind_a_device_is_named_with_its_bus_and_driver() {
        let fake = Fake::new();
        fake.device(0, "card", 0);
        fake.device(1, "orphan", 0);
        let place = fake.roots.dev.join("0000:00:04.0");
        fs::create_dir(&place).expect("a directory");
        for (name, value) in [("vendor", "0x1234\n"), ("irq", "24\n"), ("rom", "?")] {
            fs::write(place.join(name), value).expect("an attribute");
        }
        symlink("../../bus/pci", place.join("subsystem")).expect("a link");
        symlink("../../bus/pci/drivers/uio_edu", place.join("driver")).expect("a link");
        symlink(&place, fake.roots.class.join("uio0/device")).expect("a link");
        let parent = |name| Uio::find_in(&fake.roots, name).expect("the device").parent;
        let card = parent("card").expect("a parent");
        assert_eq!(
            (card.name.as_str(), card.bus.as_str(), card.driver.as_str()),
            ("0000:00:04.0", "pci", "uio_edu")
        );
        let told = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            card.attributes,
            [told("vendor", "0x1234"), told("irq", "24")]
        );
        assert_eq!(parent("orphan"), None);
    }
}
