// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the number of a channel of IIO means: `(raw + offset) * scale` in the unit of its kind, as the kernel's documentation
//! (ABI/testing/sysfs-bus-iio) has it, brought to V, A and the like.

use std::fs;
use std::path::Path;

/// Factor, what is added then, and unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) scale: f64,
    pub(super) offset: f64,
    pub(super) unit: &'static str,
}

/// Kinds of channels, the factor from IIO's unit to ours, and ours.
const UNITS: [(&str, f64, &str); 22] = [
    ("voltage", 1e-3, "V"),
    ("altvoltage", 1e-3, "V"),
    ("current", 1e-3, "A"),
    ("power", 1e-3, "W"),
    ("energy", 1.0, "J"),
    ("resistance", 1.0, "Ohm"),
    ("capacitance", 1e-9, "F"),
    ("temp", 1e-3, "degC"),
    ("accel", 1.0, "m/s^2"),
    ("gravity", 1.0, "m/s^2"),
    ("anglvel", 1.0, "rad/s"),
    ("angl", 1.0, "rad"),
    ("incli", 1.0, "deg"),
    ("rot", 1.0, "deg"),
    ("magn", 1.0, "G"),
    ("pressure", 1.0, "kPa"),
    ("humidityrelative", 1e-3, "%"),
    ("illuminance", 1.0, "lx"),
    ("distance", 1.0, "m"),
    ("velocity", 1.0, "m/s"),
    ("phase", 1.0, "rad"),
    ("timestamp", 1.0, "ns"),
];

impl Value {
    /// That of a channel of a device, such as `in_accel_x`.
    pub(super) fn of(device: &Path, part: &str) -> Value {
        let is_processed = device.join(format!("{part}_input")).exists();
        let number = |what: &str| {
            let files = shared(part)
                .into_iter()
                .map(|name| device.join(format!("{name}_{what}")));
            let texts = files.filter_map(|file| fs::read_to_string(file).ok());
            texts
                .filter_map(|text| text.trim().parse::<f64>().ok())
                .next()
        };
        let (scale, offset) = match is_processed {
            true => (1.0, 0.0),
            false => (
                number("scale").unwrap_or(1.0),
                number("offset").unwrap_or(0.0),
            ),
        };
        let has_scale = is_processed || number("scale").is_some() || part.ends_with("timestamp");
        let kind = kind(part);
        let known = UNITS.iter().find(|(known, ..)| *known == kind && has_scale);
        let (factor, unit) = known.map_or((1.0, ""), |(_, factor, unit)| (*factor, *unit));
        Value {
            scale: scale * factor,
            offset: offset * scale * factor,
            unit,
        }
    }
}

/// `voltage` of `in_voltage0-voltage1`, `accel` of `in_accel_x`.
fn kind(part: &str) -> &str {
    let rest = part
        .strip_prefix("in_")
        .or_else(|| part.strip_prefix("out_"))
        .unwrap_or(part);
    let end = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    rest.get(..end).unwrap_or(rest)
}

/// A channel's own name, and those under which channels of its kind have files in common.
fn shared(part: &str) -> Vec<String> {
    let direction = if part.starts_with("out_") {
        "out"
    } else {
        "in"
    };
    let kind = kind(part);
    let mut names = vec![part.to_owned()];
    if let Some((before, _)) = part
        .rsplit_once('_')
        .filter(|(before, _)| *before != direction)
    {
        names.push(before.to_owned());
    }
    // What two inputs differ by is of a kind of its own.
    names.push(match part.contains('-') {
        true => format!("{direction}_{kind}-{kind}"),
        false => format!("{direction}_{kind}"),
    });
    names.push(direction.to_owned());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_and_offset_may_be_a_channels_own_or_shared() {
        let device = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("in_voltage0_raw", "1"),
            ("in_voltage0_scale", "2.000000000"),
            ("in_voltage1_raw", "1"),
            ("in_voltage_scale", "0.5"),
            ("in_voltage_offset", "-100"),
            ("in_voltage0-voltage1_raw", "1"),
            ("in_voltage-voltage_scale", "4"),
            ("in_accel_x_raw", "1"),
            ("in_accel_scale", "0.01"),
            ("in_temp_input", "21000"),
            ("in_humidityrelative_raw", "1"),
            ("out_voltage0_raw", "0"),
            ("out_voltage0_scale", "1"),
        ] {
            fs::write(device.path().join(name), format!("{text}\n")).expect("a file");
        }
        for (part, at_200, unit) in [
            ("in_voltage0", (200.0 - 100.0) * 2e-3, "V"),
            ("in_voltage1", (200.0 - 100.0) * 0.5e-3, "V"),
            ("in_voltage0-voltage1", 200.0 * 4e-3, "V"),
            ("in_accel_x", 2.0, "m/s^2"),
            ("in_temp", 0.2, "degC"),
            ("in_humidityrelative", 200.0, ""),
            ("out_voltage0", 0.2, "V"),
            ("in_timestamp", 200.0, "ns"),
        ] {
            let value = Value::of(device.path(), part);
            let got = 200.0 * value.scale + value.offset;
            assert!((got - at_200).abs() < 1e-9, "{part}: {got}");
            assert_eq!(value.unit, unit, "{part}");
        }
    }
}
