// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of numbers in /sys, as the kernel's documentation (ABI/testing/sysfs-class-*) gives them to all drivers.

/// A unit, and the factor from the number in the file to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) scale: f64,
}

impl Default for Unit {
    fn default() -> Self {
        Unit::new("", 1.0)
    }
}

impl Unit {
    pub(super) const fn new(name: &'static str, scale: f64) -> Self {
        Unit { name, scale }
    }
}

/// That of a sensor of hwmon, such as `temp1`, `in0_max` or `fan2`.
pub(super) fn of_sensor(part: &str) -> Unit {
    let end = part
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(part.len());
    // An alarm or a type is no measured value.
    let of_value = match part.split_once('_') {
        None => true,
        Some((_, what)) => [
            "input",
            "min",
            "max",
            "crit",
            "lcrit",
            "average",
            "lowest",
            "highest",
            "emergency",
        ]
        .contains(&what),
    };
    match part.get(..end).filter(|_| of_value) {
        Some("temp") => Unit::new("degC", 1e-3),
        Some("in") => Unit::new("V", 1e-3),
        Some("curr") => Unit::new("A", 1e-3),
        Some("power") => Unit::new("W", 1e-6),
        Some("energy") => Unit::new("J", 1e-6),
        Some("humidity") => Unit::new("%", 1e-3),
        Some("fan") => Unit::new("rpm", 1.0),
        Some("freq") => Unit::new("Hz", 1.0),
        _ => Unit::default(),
    }
}

/// That of a property of a power supply; `None` for what is no number that is measured.
pub(super) fn of_supply(part: &str) -> Option<Unit> {
    let unit = match part.split_once('_').map_or(part, |(what, _)| what) {
        "voltage" => Unit::new("V", 1e-6),
        "current" => Unit::new("A", 1e-6),
        "power" => Unit::new("W", 1e-6),
        "charge"
            if part.starts_with("charge_control")
                || part == "charge_type"
                || part == "charge_behaviour" =>
        {
            return None;
        }
        "charge" => Unit::new("Ah", 1e-6),
        "energy" => Unit::new("Wh", 1e-6),
        "temp" => Unit::new("degC", 0.1),
        "time" => Unit::new("s", 1.0),
        "capacity" if part == "capacity" => Unit::new("%", 1.0),
        "online" | "present" if !part.contains('_') => Unit::default(),
        _ => return None,
    };
    Some(unit)
}
