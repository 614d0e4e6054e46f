// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of runs and of what they have. The module calls run 3 `run:3`, for it knows no other engine; and a channel of it as that
//! run does.

use crate::event::run_number;

pub(super) const PREFIX: &str = "run:";

/// The number of the run, and what is behind its point, if it is a name of something of a run that may be this engine's.
pub(super) fn part_of(name: &str) -> Option<(u32, &str)> {
    let (run, part) = name.strip_prefix(PREFIX)?.split_once('.')?;
    let number = number_of(run)?;
    Some((number, part))
}

/// The number of a run that may be this engine's: `kernel:3` or `3`.
pub(super) fn number_of(run: &str) -> Option<u32> {
    match run_number(run)? {
        (Some("user"), _) => None,
        (_, number) => Some(number),
    }
}

/// A name of the module, as people write it.
pub(super) fn shown(name: String) -> String {
    match part_of(&name) {
        Some((number, part)) => format!("{PREFIX}kernel:{number}.{part}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_name_that_people_write_and_one_of_the_user_engine_none() {
        assert_eq!(part_of("run:3.enc.pos"), Some((3, "enc.pos")));
        assert_eq!(part_of("run:kernel:3.row"), Some((3, "row")));
        for other in [
            "run:user:3.row",
            "run:x.row",
            "run:3",
            "runs.row",
            "enc.pos",
        ] {
            assert_eq!(part_of(other), None, "{other}");
        }
        assert_eq!(shown("run:3.row:10".into()), "run:kernel:3.row:10");
        assert_eq!(shown("enc.pos".into()), "enc.pos");
    }
}
