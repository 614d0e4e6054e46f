// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a connection was told of, group by group: the first time everything, then only what is new.

use super::values::{Content, Group, Value, Values};

/// Where a connection is.
#[derive(Debug, Default)]
pub struct Seen {
    /// For each group, the last change it was told of.
    groups: [u64; Group::ALL.len()],
    /// Bits that rose and fell again before anybody asked: not all of that was told.
    owed: Vec<(String, Owed)>,
}

/// What is told of a bit the next time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// It fell.
    Fall,
    /// It rose once more, and may have fallen since.
    Rise,
}

impl Seen {
    /// What is new in these groups, as lines of an answer.
    pub fn news(&mut self, values: &Values, groups: &[Group]) -> Vec<String> {
        let owed = std::mem::take(&mut self.owed);
        let mut lines = Vec::new();
        for value in values.list() {
            let owes = owed.iter().find(|(name, _)| *name == value.name);
            let owes = owes.map(|(_, owes)| *owes);
            if !groups.contains(&value.group) {
                self.owed
                    .extend(owes.map(|owes| (value.name.clone(), owes)));
                continue;
            }
            let seen = self.seen(value.group);
            let has_risen = seen > 0 && value.group == Group::Bits && value.rose > seen;
            let is_low = value.changed > value.rose;
            let (bit, next) = match owes.filter(|_| seen > 0) {
                None if has_risen && is_low => ('1', Some(Owed::Fall)),
                // It rose behind the fall that was not told yet.
                Some(Owed::Fall) if has_risen => ('0', Some(Owed::Rise)),
                // Pulses that come quicker than the questions are one.
                Some(Owed::Rise) if is_low => ('1', Some(Owed::Fall)),
                owes => {
                    if value.changed > seen || owes.is_some() {
                        lines.push(line(value));
                    }
                    continue;
                }
            };
            lines.push(format!("{}={bit}", value.name));
            self.owed
                .extend(next.map(|next| (value.name.clone(), next)));
        }
        self.skip(values, groups);
        lines
    }

    /// What was new in these groups is not to be told.
    pub fn skip(&mut self, values: &Values, groups: &[Group]) {
        for (seen, (_, group)) in self.groups.iter_mut().zip(Group::ALL) {
            if groups.contains(&group) {
                *seen = values.changes();
            }
        }
    }

    /// Everything in these groups is new again.
    pub fn rewind(&mut self, groups: &[Group]) {
        for (seen, (_, group)) in self.groups.iter_mut().zip(Group::ALL) {
            if groups.contains(&group) {
                *seen = 0;
            }
        }
    }

    fn seen(&self, group: Group) -> u64 {
        let groups = self.groups.iter().zip(Group::ALL);
        groups
            .filter(|(_, (_, other))| *other == group)
            .map(|(seen, _)| *seen)
            .next()
            .unwrap_or_default()
    }
}

fn line(value: &Value) -> String {
    match &value.content {
        Content::Line(line) => format!("{}={line}", value.name),
        Content::Words(_) | Content::Lines(_) => format!("{}<", value.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panda::model::Model;
    use strobe::catalogue::Catalogue;

    const BITS: &[Group] = &[Group::Bits];

    fn values() -> Values {
        Values::new(&Model::new(&Catalogue::default()))
    }

    #[test]
    fn the_first_question_is_answered_with_everything_and_then_with_what_is_new() {
        let mut values = values();
        let (mut one, mut two) = (Seen::default(), Seen::default());
        let all: Vec<Group> = Group::ALL.into_iter().map(|(_, group)| group).collect();
        assert_eq!(one.news(&values, &all).len(), values.list().len());
        assert_eq!(one.news(&values, &all), [""; 0]);
        values.set_line("PCAP.NUM_TRIG", "7");
        assert_eq!(one.news(&values, &all), ["PCAP.NUM_TRIG=7"]);
        assert_eq!(one.news(&values, &all), [""; 0]);
        assert!(
            two.news(&values, BITS)
                .iter()
                .all(|line| line.ends_with("=0"))
        );
        assert!(
            two.news(&values, &[Group::Config])
                .contains(&"PCAP.NUM_TRIG=7".to_owned())
        );
        two.rewind(&[Group::Config]);
        assert!(
            two.news(&values, &all)
                .contains(&"PCAP.NUM_TRIG=7".to_owned())
        );
    }

    #[test]
    fn a_pulse_between_two_questions_is_told_as_a_rise_and_then_as_a_fall() {
        let mut values = values();
        let mut seen = Seen::default();
        seen.news(&values, BITS);
        for _ in 0..3 {
            values.set_bit("PCAP.ACTIVE", true);
            values.set_bit("PCAP.ACTIVE", false);
        }
        assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=1"]);
        assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=0"]);
        assert_eq!(seen.news(&values, BITS), [""; 0]);
        values.set_bit("PCAP.ACTIVE", true);
        assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=1"]);
        values.set_bit("PCAP.ACTIVE", false);
        values.set_bit("PCAP.ACTIVE", true);
        assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=1"]);
    }

    #[test]
    fn a_pulse_behind_a_fall_that_was_not_told_yet_is_told_after_it() {
        for ends_high in [false, true] {
            let mut values = values();
            let mut seen = Seen::default();
            seen.news(&values, BITS);
            values.set_bit("PCAP.ACTIVE", true);
            values.set_bit("PCAP.ACTIVE", false);
            assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=1"]);
            values.set_bit("PCAP.ACTIVE", true);
            values.set_bit("PCAP.ACTIVE", ends_high);
            assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=0"]);
            assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=1"]);
            values.set_bit("PCAP.ACTIVE", false);
            assert_eq!(seen.news(&values, BITS), ["PCAP.ACTIVE=0"]);
            assert_eq!(seen.news(&values, BITS), [""; 0]);
        }
    }

    #[test]
    fn an_input_that_rises_is_told_as_what_it_is_connected_to() {
        let mut values = values();
        let mut seen = Seen::default();
        seen.news(&values, &[Group::Config]);
        for input in ["ZERO", "ONE", "ZERO"] {
            values.set_line("PCAP.ENABLE", input);
        }
        assert_eq!(seen.news(&values, &[Group::Config]), ["PCAP.ENABLE=ZERO"]);
        assert_eq!(seen.news(&values, &[Group::Config]), [""; 0]);
    }
}
