// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table [match]: which hardware a board file is for.

use super::table::Table;
use super::words::line;
use super::{Hardware, chips, pci, rpmsg};

/// The driver puts it into a path.
const PLATFORM_NAME_MAX: usize = 48;

/// Where the device is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bus {
    Pci,
    Platform,
    Uio,
    Rpmsg,
    I2c,
    Spi,
}

impl Bus {
    /// By the keys of [match]; where several are, the one whose reader says so.
    pub(super) fn of(table: &Table<'_>) -> Self {
        [
            ("pci", Bus::Pci),
            ("uio", Bus::Uio),
            ("platform", Bus::Platform),
            ("rpmsg", Bus::Rpmsg),
            ("i2c", Bus::I2c),
            ("spi", Bus::Spi),
        ]
        .iter()
        .find(|(key, _)| table.has(key))
        .map_or(Bus::Pci, |(_, bus)| *bus)
    }

    /// Reads [match].
    pub(super) fn hardware(self, table: Table<'_>) -> Option<Hardware> {
        match self {
            Bus::Pci => card(table),
            Bus::Platform => platform(table),
            Bus::Uio => uio(table),
            Bus::Rpmsg => rpmsg::hardware(table),
            Bus::I2c => chips::hardware(table, false),
            Bus::Spi => chips::hardware(table, true),
        }
    }

    /// Whether it is a bus of chips.
    pub(super) fn is_of_chips(self) -> bool {
        matches!(self, Bus::I2c | Bus::Spi)
    }
}

/// A device by what its UIO driver calls it.
fn uio(mut table: Table<'_>) -> Option<Hardware> {
    let mut words = ["uio", "version"].map(|key| {
        let (word, at) = table.string(key)?;
        Some(line(&table, key, word, &at))
    });
    let version_wrong = table.has("version") && !matches!(words[1], Some(Some(_)));
    let [name, version] = words.each_mut().map(|word| word.take().flatten());
    table.finish();
    (!version_wrong).then_some(Hardware::Uio {
        name: name?,
        version,
    })
}

/// A platform device by its name, which becomes a part of a file's name.
fn platform(mut table: Table<'_>) -> Option<Hardware> {
    let named = table.string("platform").and_then(|(name, at)| {
        let fits = (1..=PLATFORM_NAME_MAX).contains(&name.len());
        let fit = |c: char| c.is_ascii_alphanumeric() || ",._-".contains(c);
        if !fits || !name.chars().all(fit) {
            table.fault_at(&at, format!(
                "`platform` is \"{}\"; write a compatible, an ACPI hardware id or a device's name, of 1 to \
                 {PLATFORM_NAME_MAX} letters, digits, `,`, `.`, `_` and `-`",
                name.escape_debug()));
            return None;
        }
        Some(name.to_owned())
    });
    table.finish();
    Some(Hardware::Platform { name: named? })
}

fn card(mut table: Table<'_>) -> Option<Hardware> {
    for key in ["platform", "rpmsg", "i2c", "spi"] {
        if table.has(key) {
            table.string(key);
            table.fault(format!(
                "`{key}` and another key name two devices; keep one of `pci`, `platform`, `uio`, `rpmsg`, `i2c` \
                 and `spi`"
            ));
        }
    }
    if table.has("uio") {
        for key in ["uio", "version"] {
            table.string(key);
        }
        table.fault("`pci` and `uio` name two devices; keep `pci` for registers in BARs, or `uio` for registers in \
        maps of a UIO driver");
    }
    let ids = match table.string("pci") {
        Some((text, at)) => {
            let ids = pci::ids(text);
            if ids.is_none() {
                table.fault_at(&at, format!(
                    "`pci` is \"{text}\"; write vendor and device in hexadecimal, as `lspci -nn` shows them: \"1234:11e8\""));
            }
            ids
        }
        None => {
            table.missing(
                "pci",
                "pci = \"VVVV:DDDD\", as `lspci -nn` shows it, or uio = \"NAME\", as `strobe uio list` shows it",
            );
            None
        }
    };
    let subsystem = table.string("subsystem").map(|(text, at)| {
        let ids = pci::ids(text);
        if ids.is_none() {
            table.fault_at(&at, format!(
                "`subsystem` is \"{text}\"; write it in hexadecimal, as `lspci -nnv` shows it: \"1af4:1100\""));
        }
        ids
    });
    table.finish();
    let (vendor, device) = ids?;
    match subsystem {
        Some(None) => None,
        Some(subsystem) => Some(Hardware::Pci {
            vendor,
            device,
            subsystem,
        }),
        None => Some(Hardware::Pci {
            vendor,
            device,
            subsystem: None,
        }),
    }
}
