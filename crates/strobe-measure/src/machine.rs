// SPDX-License-Identifier: MIT OR Apache-2.0
//! What something was measured on, and what else the machine did meanwhile. No figure of time means anything without.

use std::fmt;
use std::fs;

use serde::Serialize;
use strobe::clock::monotonic;

/// A machine over some time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Name of its CPUs, as they say it.
    pub cpu: String,
    /// How many there are.
    pub cpus: usize,
    /// CPUs that were busy on average, of all of them; what was measured is part of it. It is seen at ticks only, which
    /// a timer may dodge.
    pub busy: f64,
    /// Share of the time that a hypervisor gave to others, in percent.
    pub stolen_percent: f64,
    #[serde(skip)]
    begun: (u64, Ticks),
}

/// In one line. What else it did is not known of a recording's.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}", self.kernel)?;
        if self.cpus > 0 {
            write!(
                f,
                ", {} CPUs, {:.1} of them busy, {:.1} % stolen",
                self.cpus, self.busy, self.stolen_percent
            )?;
        }
        Ok(())
    }
}

/// Of /proc/stat, in 1/100 s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ticks {
    idle: u64,
    stolen: u64,
}

impl Machine {
    /// One of which nothing but its kernel is known, such as that of a recording.
    pub fn unknown(kernel: &str) -> Machine {
        Machine {
            kernel: kernel.to_owned(),
            ..Machine::default()
        }
    }

    /// This one, from now on.
    pub fn from_now() -> Machine {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = cpus
            .lines()
            .find_map(|line| line.strip_prefix("model name"));
        Machine {
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            cpu: name
                .map_or("an unknown CPU", |name| {
                    name.trim_start_matches([' ', '\t', ':'])
                })
                .to_owned(),
            cpus: cpus
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
            begun: (monotonic(), Ticks::now()),
            ..Machine::default()
        }
    }

    /// With what it has done until now.
    #[must_use]
    pub fn until_now(mut self) -> Machine {
        let (time, ticks) = (monotonic(), Ticks::now());
        let (begun, before) = self.begun;
        let seconds = (time - begun).max(1) as f64 / 1e9;
        let spent = |now: u64, before: u64| now.saturating_sub(before) as f64 / 100.0 / seconds;
        self.busy = (self.cpus as f64 - spent(ticks.idle, before.idle)).max(0.0);
        self.stolen_percent = 100.0 * spent(ticks.stolen, before.stolen) / self.cpus.max(1) as f64;
        self
    }
}

impl Ticks {
    fn now() -> Ticks {
        Ticks::from(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn from(stat: &str) -> Ticks {
        let line = stat.lines().next().unwrap_or_default();
        let words = line.split_whitespace().skip(1);
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        Ticks {
            idle: at(3) + at(4),
            stolen: at(7),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_are_found_in_the_first_line_of_proc_stat() {
        let stat = "cpu  10 20 30 400 5 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 8\n";
        let ticks = Ticks {
            idle: 405,
            stolen: 80,
        };
        assert_eq!(Ticks::from(stat), ticks);
        assert_eq!(Ticks::from(""), Ticks::default());
    }

    #[test]
    fn this_machine_has_cpus_of_which_not_more_than_all_are_busy() {
        let machine = Machine::from_now();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let machine = machine.until_now();
        assert!(machine.cpus > 0);
        // Idle time is counted in whole ticks.
        assert!(
            (0.0..=machine.cpus as f64).contains(&machine.busy),
            "{machine:?}"
        );
    }
}
