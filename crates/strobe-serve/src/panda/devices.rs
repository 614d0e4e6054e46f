// SPDX-License-Identifier: MIT OR Apache-2.0
//! One kind of block for each kind of device: `adc0` and `adc1` with the same channels are ADC1 and ADC2.

use std::collections::BTreeMap;

use strobe::catalogue::Catalogue;
use strobe::channel::Channel;

use super::field::{Block, Field, Kind, Source, field};

/// Names that mean something else, here or in the stock IOCs.
const TAKEN: [&str; 12] = [
    "PCAP",
    "EVENT",
    "SEQ",
    "BITS",
    "PULSE",
    "PCOMP",
    "DATA",
    "SYSTEM",
    "VERSIONS",
    "POSITIONS",
    "HDF5",
    "PVI",
];

/// A device with its channels.
struct Device<'c> {
    name: &'c str,
    about: &'c str,
    channels: Vec<&'c Channel>,
}

/// The blocks of all devices that have channels.
pub fn blocks(catalogue: &Catalogue) -> Vec<Block> {
    let devices = catalogue.devices.iter().map(|device| Device {
        name: &device.name,
        about: &device.description,
        channels: (catalogue.channels.iter())
            .filter(|channel| part(&channel.name, &device.name).is_some())
            .collect(),
    });
    let mut kinds: BTreeMap<&str, Vec<Device<'_>>> = BTreeMap::new();
    for device in devices.filter(|device| !device.channels.is_empty()) {
        let stem = device.name.trim_end_matches(|c: char| c.is_ascii_digit());
        // A number is told from a name only where nothing else is a digit.
        let stem = match stem.contains(|c: char| c.is_ascii_digit()) {
            true => device.name,
            false => stem,
        };
        kinds.entry(stem).or_default().push(device);
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (stem, mut devices) in kinds {
        let is_one_kind = devices.iter().all(|device| are_alike(device, &devices));
        if is_one_kind && !stem.is_empty() {
            devices.sort_by_key(|device| (device.name.len(), device.name));
            let name = free(&word(stem), &blocks);
            blocks.push(block(name, &devices));
        } else {
            for device in devices {
                let name = free(&word(device.name), &blocks);
                blocks.push(block(name, &[device]));
            }
        }
    }
    blocks
}

/// The events of devices: each becomes a bit of the block of its device. Answers label and event.
pub fn events(catalogue: &Catalogue, blocks: &mut [Block]) -> Vec<(String, String)> {
    let mut events = Vec::new();
    for event in &catalogue.events {
        let Some((device, name)) = event.name.split_once('.') else {
            continue;
        };
        let prefix = format!("{device}.");
        let is_its = |source: &Source| source.channel.starts_with(&prefix);
        let place = blocks.iter_mut().find_map(|block| {
            let of = |field: &Field| match &field.kind {
                Kind::PosOut(sources) => sources.iter().position(is_its),
                _ => None,
            };
            let number = block.fields.iter().find_map(of)?;
            Some((block, number))
        });
        let Some((block, number)) = place else {
            continue;
        };
        let base = word(name);
        let is_bit = |field: &&Field| field.kind == Kind::BitOut(None);
        let name = match block.fields.iter().find(|field| field.name == base) {
            Some(same) if !is_bit(&same) => format!("{base}_EVENT"),
            _ => base,
        };
        if !block.fields.iter().any(|field| field.name == name) {
            block
                .fields
                .push(field(&name, Kind::BitOut(None), &event.description));
        }
        events.push((
            format!("{}.{name}", block.name_of(number)),
            event.name.clone(),
        ));
    }
    events
}

fn block(name: String, devices: &[Device<'_>]) -> Block {
    let mut fields: Vec<Field> = Vec::new();
    let first = devices.first();
    for (place, channel) in first
        .into_iter()
        .flat_map(|d| d.channels.iter().enumerate())
    {
        let same = devices
            .iter()
            .filter_map(|device| device.channels.get(place));
        let sources = same.map(|channel| Source {
            channel: channel.name.clone(),
            kind: channel.kind,
            scale: channel.scale,
            offset: channel.offset,
            unit: channel.unit.clone(),
        });
        let base = word(channel.name.split_once('.').map_or("", |(_, part)| part));
        let taken = |name: &str| fields.iter().any(|field| field.name == name);
        let name = unique(&base, taken);
        fields.push(field(
            &name,
            Kind::PosOut(sources.collect()),
            &channel.description,
        ));
    }
    Block {
        name,
        count: devices.len(),
        about: first.map_or("", |device| device.about).to_owned(),
        fields,
    }
}

fn are_alike(device: &Device<'_>, others: &[Device<'_>]) -> bool {
    let names = |device: &Device<'_>| -> Vec<String> {
        let parts = device.channels.iter();
        parts
            .map(|c| part(&c.name, device.name).unwrap_or_default().to_owned())
            .collect()
    };
    others
        .first()
        .is_none_or(|first| names(first) == names(device))
}

/// `channel` of `device.channel`.
fn part<'c>(channel: &'c str, device: &str) -> Option<&'c str> {
    channel.strip_prefix(device)?.strip_prefix('.')
}

/// A name as fields and blocks have them.
fn word(name: &str) -> String {
    let sign = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let word: String = name.chars().map(sign).collect();
    match word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => word,
        false => format!("N{word}"),
    }
}

/// A name of a block that is not taken, and does not end in a digit.
fn free(base: &str, blocks: &[Block]) -> String {
    let base = match TAKEN.contains(&base) || base.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{base}_DEV"),
        false => base.to_owned(),
    };
    let mut name = base;
    while blocks.iter().any(|block| block.name == name) {
        name.push_str("_X");
    }
    name
}

fn unique(base: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = base.to_owned();
    while taken(&name) {
        name.push_str("_X");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::samples::channel;

    fn catalogue(names: &[&str]) -> Catalogue {
        let mut devices: Vec<&str> = names.iter().filter_map(|n| n.split('.').next()).collect();
        devices.dedup();
        Catalogue {
            devices: devices
                .into_iter()
                .map(|name| strobe::catalogue::Device {
                    name: name.to_owned(),
                    description: String::new(),
                    in_use: false,
                })
                .collect(),
            channels: names
                .iter()
                .map(|name| channel(name, strobe::channel::Type::U64))
                .collect(),
            ..Catalogue::default()
        }
    }

    fn names(of: &[&str]) -> Vec<(String, usize)> {
        blocks(&catalogue(of))
            .into_iter()
            .map(|block| (block.name, block.count))
            .collect()
    }

    #[test]
    fn devices_that_differ_only_in_their_number_are_one_kind_of_block() {
        let of = |name: &str, count| (name.to_owned(), count);
        assert_eq!(
            names(&["adc0.a", "adc0.b", "adc1.a", "adc1.b"]),
            [of("ADC", 2)]
        );
        assert_eq!(
            names(&["adc0.a", "adc1.b"]),
            [of("ADC0_DEV", 1), of("ADC1_DEV", 1)]
        );
        assert_eq!(names(&["ad7124-8.a"]), [of("AD7124_8_DEV", 1)]);
        assert_eq!(names(&["event.time"]), [of("EVENT_DEV", 1)]);
    }

    #[test]
    fn no_name_of_a_block_ends_in_a_digit_and_none_is_there_twice() {
        let blocks = blocks(&catalogue(&[
            "a-b.x", "a_b.x", "9.1", "9.+", "pcap.a", "X1Y2.z",
        ]));
        let mut seen = std::collections::BTreeSet::new();
        for block in &blocks {
            assert!(
                !block.name.ends_with(|c: char| c.is_ascii_digit()),
                "{}",
                block.name
            );
            assert!(
                seen.insert(block.name.clone()),
                "{} is there twice",
                block.name
            );
        }
    }
}
