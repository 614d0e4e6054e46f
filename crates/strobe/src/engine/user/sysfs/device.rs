// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of a class or a bus in /sys, by their names.

use std::fs;
use std::path::{Path, PathBuf};

/// A class or a bus.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Group {
    /// What begins the names of its channels, before `:`.
    pub(in super::super) prefix: &'static str,
    /// Its directory below /sys.
    directory: &'static str,
    /// The file in which a device has a name of its own; `None`: it has none but that of its directory.
    name: Option<&'static str>,
}

impl Group {
    pub(in super::super) const fn new(
        prefix: &'static str,
        directory: &'static str,
        name: Option<&'static str>,
    ) -> Self {
        Group {
            prefix,
            directory,
            name,
        }
    }

    /// The directory of the device of this name: its own name, or that of its directory, which no other has.
    ///
    /// # Errors
    /// There is none, or there are several; which there are.
    pub(in super::super) fn find(&self, root: &Path, name: &str) -> Result<PathBuf, String> {
        let all = named(self, root);
        let found: Vec<_> = all.iter().filter(|(_, own, _)| own == name).collect();
        let by_directory = all.iter().find(|(directory, ..)| directory == name);
        match (by_directory, found.as_slice()) {
            (Some((_, _, path)), _) | (None, [(_, _, path)]) => Ok(path.clone()),
            (None, []) => Err(match devices(self, root).as_slice() {
                [] => format!(
                    "there is no device in /sys/{}; is its driver loaded?",
                    self.directory
                ),
                there => {
                    let names: Vec<_> = there.iter().map(|(name, _)| name.as_str()).collect();
                    format!("there is no {name}; this machine has {}", names.join(", "))
                }
            }),
            (None, several) => {
                let names: Vec<_> = several
                    .iter()
                    .map(|(directory, ..)| directory.as_str())
                    .collect();
                Err(format!(
                    "several devices are called {name}; choose one: {}",
                    names.join(", ")
                ))
            }
        }
    }
}

/// All devices, each by its own name, or by that of its directory if others have the same.
pub(in super::super) fn devices(group: &Group, root: &Path) -> Vec<(String, PathBuf)> {
    let all = named(group, root);
    let is_alone = |name: &str| all.iter().filter(|(_, other, _)| other == name).count() == 1;
    let short = all.iter().map(|(directory, name, path)| {
        let name = if is_alone(name) { name } else { directory };
        (name.clone(), path.clone())
    });
    short.collect()
}

/// Directory's name, own name, and path of each device.
fn named(group: &Group, root: &Path) -> Vec<(String, String, PathBuf)> {
    let entries = fs::read_dir(root.join(group.directory))
        .into_iter()
        .flatten()
        .flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let directory = entry.file_name().into_string().ok()?;
            // The word before the number is in the prefix already: iio:device0.
            let directory = directory
                .strip_prefix("iio:")
                .unwrap_or(&directory)
                .to_owned();
            let name = match group.name {
                Some(file) => match fs::read_to_string(path.join(file)) {
                    Ok(text) => text.trim_end().to_owned(),
                    // hwmon devices may have no name; what is no device, such as a trigger or a cooling device, has another.
                    Err(_) => directory.clone(),
                },
                None => directory.clone(),
            };
            Some((directory, name, path))
        })
        .filter(|(directory, ..)| match group.prefix {
            "thermal" => directory.starts_with("thermal_zone"),
            "iio" => directory.starts_with("device"),
            _ => true,
        })
        .collect();
    all.sort();
    all
}
