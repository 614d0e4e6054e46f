// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::path::Path;

use super::*;
use crate::engine::user::provider::Row;
use crate::engine::user::trigger::Trigger;

const ROW: Row = Row {
    time: 0,
    start: 0,
    trigger: Trigger::PLAIN,
};

/// A tree as /sys is, of these files.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for (path, text) in [
        ("class/hwmon/hwmon0/name", "lm75"),
        ("class/hwmon/hwmon0/temp1_input", "21500"),
        ("class/hwmon/hwmon0/temp1_max", "80000"),
        ("class/hwmon/hwmon1/name", "nct6775"),
        ("class/hwmon/hwmon1/in0_input", "1032"),
        ("class/hwmon/hwmon1/fan1_input", "880"),
        ("class/hwmon/hwmon1/pwm1", "128"),
        ("class/hwmon/hwmon1/pwm1_enable", "1"),
        ("class/hwmon/hwmon2/name", "twin"),
        ("class/hwmon/hwmon2/temp1_input", "-2000"),
        ("class/hwmon/hwmon3/name", "twin"),
        ("class/hwmon/hwmon3/temp1_input", "1000"),
        ("class/power_supply/BAT0/voltage_now", "12345678"),
        ("class/power_supply/BAT0/capacity", "87"),
        ("class/power_supply/BAT0/temp", "305"),
        ("class/power_supply/BAT0/status", "Charging"),
        ("class/thermal/thermal_zone0/type", "x86_pkg_temp"),
        ("class/thermal/thermal_zone0/temp", "47000"),
        ("class/thermal/cooling_device0/type", "Processor"),
        ("class/leds/input3::capslock/brightness", "0"),
        ("class/leds/input3::capslock/max_brightness", "1"),
        ("bus/counter/devices/counter0/name", "encoder"),
        ("bus/counter/devices/counter0/count1/count", "4711"),
        ("class/pwm/pwmchip0/export", ""),
        ("class/pwm/pwmchip0/pwm2/duty_cycle", "500"),
        ("class/pwm/pwmchip0/pwm2/period", "1000"),
        ("class/pwm/pwmchip0/pwm2/enable", "0"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a directory");
        fs::write(path, format!("{text}\n")).expect("a file");
    }
    root
}

#[test]
fn a_value_has_the_name_of_its_device_and_its_unit() {
    let root = tree();
    let sysfs = Sysfs::at(root.path());
    for (name, value, unit) in [
        ("hwmon:lm75/temp1", 21.5, "degC"),
        ("hwmon:hwmon0/temp1_max", 80.0, "degC"),
        ("hwmon:nct6775/in0", 1.032, "V"),
        ("hwmon:nct6775/fan1", 880.0, "rpm"),
        ("hwmon:nct6775/pwm1", 128.0, ""),
        ("hwmon:hwmon2/temp1", -2.0, "degC"),
        ("power:BAT0/voltage_now", 12.345678, "V"),
        ("power:BAT0/capacity", 87.0, "%"),
        ("power:BAT0/temp", 30.5, "degC"),
        ("thermal:x86_pkg_temp", 47.0, "degC"),
        ("thermal:thermal_zone0", 47.0, "degC"),
        ("led:input3::capslock", 0.0, ""),
        ("counter:encoder/count1", 4711.0, ""),
        ("pwm:pwmchip0/2", 500.0, "ns"),
        ("pwm:pwmchip0/2/period", 1000.0, "ns"),
    ] {
        let found = sysfs.channel(name).expect(name).expect(name);
        let about = found.about.clone();
        let mut reader = found.open().expect(name);
        let word = reader.read(&ROW).expect(name);
        assert!(
            (about.value(word) - value).abs() < 1e-9,
            "{name}: {}",
            about.value(word)
        );
        assert_eq!((about.unit.as_str(), about.name.as_str()), (unit, name));
    }
}

#[test]
fn what_can_be_set_is_an_output_and_what_is_measured_is_none() {
    let root = tree();
    let sysfs = Sysfs::at(root.path());
    for (name, bits, file) in [
        (
            "led:input3::capslock",
            1,
            "class/leds/input3::capslock/brightness",
        ),
        ("pwm:pwmchip0/2", 63, "class/pwm/pwmchip0/pwm2/duty_cycle"),
        ("pwm:pwmchip0/2/enable", 1, "class/pwm/pwmchip0/pwm2/enable"),
        ("hwmon:nct6775/pwm1", 8, "class/hwmon/hwmon1/pwm1"),
    ] {
        let found = sysfs.output(name).expect(name).expect(name);
        assert_eq!(found.about.bits, bits, "{name}");
        let path = root.path().join(file);
        fs::write(&path, "").expect("an empty file");
        found.open().expect(name).write(1).expect(name);
        assert_eq!(fs::read_to_string(path).expect("a file"), "1\n", "{name}");
    }
    let error = sysfs
        .output("thermal:x86_pkg_temp")
        .expect("of this")
        .err()
        .expect("refused");
    assert!(
        error.to_string().contains("it is a measured value"),
        "{error}"
    );
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let root = tree();
    let sysfs = Sysfs::at(root.path());
    for (name, part) in [
        (
            "hwmon:lm76/temp1",
            "there is no lm76; this machine has lm75, nct6775, hwmon2, hwmon3",
        ),
        ("hwmon:twin/temp1", "choose one: hwmon2, hwmon3"),
        (
            "hwmon:nct6775/temp9",
            "it has no temp9; it has fan1, in0, pwm1",
        ),
        ("hwmon:nct6775", "name the part"),
        ("hwmon:lm75/../hwmon1/in0_input", "name the part"),
        ("power:BAT0/status", "not a number"),
        (
            "power:BAT1/capacity",
            "there is no BAT1; this machine has BAT0",
        ),
        (
            "thermal:Processor",
            "there is no Processor; this machine has x86_pkg_temp",
        ),
        (
            "led:x/brightness",
            "there is no x; this machine has input3::capslock",
        ),
        ("led:input3::capslock/x", "leave /x out"),
        ("counter:encoder/count0", "it has no count0; it has count1"),
        ("pwm:pwmchip0/7", "echo 7 > "),
        ("pwm:pwmchip0/2/polarity", "it has duty_cycle"),
    ] {
        let error = sysfs
            .channel(name)
            .expect(name)
            .err()
            .expect(name)
            .to_string();
        assert!(
            error.starts_with(&format!("channel {name}: ")) && error.contains(part),
            "{error}"
        );
    }
    assert!(sysfs.channel("sim.sine").is_none() && sysfs.channel("file:/x").is_none());
    let empty = tempfile::tempdir().expect("a directory");
    let error = Sysfs::at(empty.path())
        .channel("hwmon:a/b")
        .expect("of this")
        .err();
    assert!(
        error
            .expect("refused")
            .to_string()
            .contains("is its driver loaded?")
    );
}

#[test]
fn all_that_is_measured_is_listed() {
    let root = tree();
    let mut catalogue = Catalogue::default();
    Sysfs::at(root.path()).list(&mut catalogue);
    let names: Vec<_> = catalogue.channels.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "hwmon:lm75/temp1",
            "hwmon:nct6775/fan1",
            "hwmon:nct6775/in0",
            "hwmon:nct6775/pwm1",
            "hwmon:hwmon2/temp1",
            "hwmon:hwmon3/temp1",
            "power:BAT0/capacity",
            "power:BAT0/temp",
            "power:BAT0/voltage_now",
            "thermal:x86_pkg_temp",
            "led:input3::capslock",
            "pwm:pwmchip0/2",
            "counter:encoder/count1",
        ]
    );
    let outputs: Vec<_> = catalogue.outputs.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        outputs,
        [
            "hwmon:nct6775/pwm1",
            "led:input3::capslock",
            "pwm:pwmchip0/2",
            "counter:encoder/count1"
        ]
    );
}
