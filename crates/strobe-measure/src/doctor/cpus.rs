// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of CPUs, as the kernel writes them.

use std::collections::BTreeSet;
use std::fmt;

/// More than any kernel has; a text that names more is not one of CPUs.
const CPUS_MAX: usize = 8192;

/// Some CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus(BTreeSet<usize>);

impl Cpus {
    /// This one only.
    pub fn one(cpu: usize) -> Cpus {
        Cpus(BTreeSet::from([cpu]))
    }

    /// `0-3,8`; nothing, or `(null)` as some kernels say it, is none.
    pub fn of_list(text: &str) -> Option<Cpus> {
        let mut cpus = BTreeSet::new();
        let text = text.trim();
        if text.is_empty() || text == "(null)" {
            return Some(Cpus(cpus));
        }
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= CPUS_MAX {
                return None;
            }
            cpus.extend(first..=last);
        }
        Some(Cpus(cpus))
    }

    /// `ff` or `00000001,ffffffff`: a bit a CPU, the last word first.
    pub fn of_mask(text: &str) -> Option<Cpus> {
        let mut cpus = BTreeSet::new();
        for (word, digits) in text.trim().rsplit(',').enumerate() {
            let bits = u32::from_str_radix(digits, 16).ok()?;
            cpus.extend(
                (0..32)
                    .filter(|bit| bits & (1 << bit) != 0)
                    .map(|bit| 32 * word + bit),
            );
        }
        Some(Cpus(cpus))
    }

    pub fn has(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Whether all of these are among the others.
    pub fn are_within(&self, others: &Cpus) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Whether any of these is.
    pub fn meet(&self, others: &Cpus) -> bool {
        !self.0.is_disjoint(&others.0)
    }

    /// These, but not the others.
    pub fn without(&self, others: &Cpus) -> Cpus {
        Cpus(self.0.difference(&others.0).copied().collect())
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let words = ranges.into_iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        match words.collect::<Vec<_>>().join(",") {
            none if none.is_empty() => f.write_str("none"),
            list => f.write_str(&list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_understood_and_written_as_the_kernel_does() {
        for text in ["0", "0-3", "0-3,8", "1,3,5-6"] {
            let cpus = Cpus::of_list(text).expect("CPUs");
            assert_eq!(cpus.to_string(), text);
        }
        for none in ["", "\n", "(null)\n"] {
            assert_eq!(Cpus::of_list(none), Some(Cpus::default()));
        }
        assert_eq!(Cpus::of_mask("5"), Cpus::of_list("0,2"));
        assert_eq!(Cpus::of_mask("00000001,80000000\n"), Cpus::of_list("31-32"));
    }

    #[test]
    fn what_is_no_set_of_cpus_is_none() {
        for text in ["a", "3-1", "0-", "-", "0,", "0-4294967295", "1 2"] {
            assert_eq!(Cpus::of_list(text), None, "{text}");
        }
        for text in ["", "g", "123456789"] {
            assert_eq!(Cpus::of_mask(text), None, "{text}");
        }
    }
}
