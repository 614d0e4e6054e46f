// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPIO lines of the kernel engine, by the names that the user engine has for them.
//!
//! A name of the contract has one dot, so the module calls line 4 of the chip gpiochip0 `gpiochip0.line4`, and its
//! events `gpiochip0.line4-rising` and so on. The text of the chip is its label, that of a channel the name of its line.

use crate::catalogue::Catalogue;

const PREFIX: &str = "gpio:";

/// Whether it is a line.
pub(super) fn is_line(name: &str) -> bool {
    name.starts_with(PREFIX)
}

fn is_chip(name: &str) -> bool {
    let number = name.strip_prefix("gpiochip");
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// A name of the module, as people write it.
pub(super) fn shown(name: String) -> String {
    line(&name).unwrap_or(name)
}

fn line(name: &str) -> Option<String> {
    let (chip, line) = name.split_once('.').filter(|(chip, _)| is_chip(chip))?;
    let line = line.strip_prefix("line")?;
    Some(format!("{PREFIX}{chip}/{}", line.replace('-', ":")))
}

/// The module's name of what is written `gpio:CHIP/LINE` or `gpio:CHIP/LINE:EDGE`, if there is such a line.
pub(super) fn of_module(catalogue: &Catalogue, name: &str) -> Option<String> {
    let (chip, line) = name.strip_prefix(PREFIX)?.rsplit_once('/')?;
    let (line, edge) = line.split_once(':').unwrap_or((line, ""));
    // Lines without a name are not called "".
    if line.is_empty() {
        return None;
    }
    let chip = chip_of(catalogue, chip)?;
    let lines = format!("{PREFIX}{chip}/");
    let mut channels = catalogue.channels.iter();
    let mut is_called = channels.by_ref().filter_map(|channel| {
        let offset = channel.name.strip_prefix(&lines)?;
        (offset == line || channel.description == line).then_some(offset)
    });
    let offset = is_called.next()?;
    Some(match edge {
        "" => format!("{chip}.line{offset}"),
        edge => format!("{chip}.line{offset}-{edge}"),
    })
}

/// The chip that is called so: by its name, its number, its path or its label.
fn chip_of(catalogue: &Catalogue, called: &str) -> Option<String> {
    let name = match called.parse::<u32>() {
        Ok(number) => format!("gpiochip{number}"),
        Err(_) => called.strip_prefix("/dev/").unwrap_or(called).to_owned(),
    };
    let chips = catalogue.devices.iter().filter(|d| is_chip(&d.name));
    let mut found = chips.filter(|d| d.name == name || d.description == called);
    let first = found.next()?;
    // Two of one label: the user engine says so.
    found.next().is_none().then(|| first.name.clone())
}

/// What there is instead of a line that is not there.
pub(super) fn instead(catalogue: &Catalogue) -> String {
    let chips = catalogue.devices.iter().filter(|d| is_chip(&d.name));
    let chips: Vec<String> = chips
        .map(|d| format!("{} ({})", d.name, d.description))
        .collect();
    match chips.as_slice() {
        [] => "the kernel engine has no GPIO chip; load strobe_gpio, or use the user engine".into(),
        chips => format!("the kernel engine has the lines of {}", chips.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Device;
    use crate::channel::Type;
    use crate::samples::channel;

    fn catalogue() -> Catalogue {
        let chip = |name: &str, label: &str| Device {
            name: name.into(),
            description: label.into(),
            in_use: false,
        };
        let mut lines = [
            channel("gpio:gpiochip0/0", Type::U64),
            channel("gpio:gpiochip0/1", Type::U64),
            channel("gpio:gpiochip2/1", Type::U64),
        ];
        for (line, name) in lines.iter_mut().zip(["wave", "", "reset"]) {
            name.clone_into(&mut line.description);
        }
        Catalogue {
            devices: vec![
                chip("sim", ""),
                chip("gpiochip0", "lab"),
                chip("gpiochip2", "INT34C5:00"),
                chip("gpiochip3", "twin"),
                chip("gpiochip4", "twin"),
            ],
            channels: lines.into(),
            ..Catalogue::default()
        }
    }

    #[test]
    fn a_line_has_the_names_of_the_user_engine() {
        let catalogue = catalogue();
        for (written, module) in [
            ("gpio:lab/wave", "gpiochip0.line0"),
            ("gpio:gpiochip0/0", "gpiochip0.line0"),
            ("gpio:0/1", "gpiochip0.line1"),
            ("gpio:/dev/gpiochip2/reset", "gpiochip2.line1"),
            ("gpio:INT34C5:00/1:both", "gpiochip2.line1-both"),
            ("gpio:lab/wave:rising", "gpiochip0.line0-rising"),
        ] {
            let found = of_module(&catalogue, written);
            assert_eq!(found.as_deref(), Some(module), "{written}");
        }
        for nothing in [
            "gpio:lab/2",
            "gpio:lab/",
            "gpio:bal/0",
            "gpio:sim/0",
            "gpio:twin/0",
            "gpio:lab",
            "sim.x",
        ] {
            assert_eq!(of_module(&catalogue, nothing), None, "{nothing}");
        }
    }

    #[test]
    fn names_of_the_module_are_shown_as_they_are_written() {
        for (module, written) in [
            ("gpiochip0.line14", "gpio:gpiochip0/14"),
            ("gpiochip3.line4-falling", "gpio:gpiochip3/4:falling"),
            ("gpiochip.line4", "gpiochip.line4"),
            ("gpiochip0.spare", "gpiochip0.spare"),
            ("sim.line4", "sim.line4"),
        ] {
            assert_eq!(shown(module.to_owned()), written);
        }
    }
}
