// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a connection was told of, group by group: the first time everything, then only what is new.

use super::values::{Content, Group, Value, Values};

/// Where a connection is.
#[derive(Debug, Default)]
pub struct Seen {
    /// For each group, the last change it was told of.
    groups: [u64; Group::ALL.len()],
    /// Bits that fell again before anybody asked: the rise was told, the fall is told the next time.
    owed: Vec<String>,
}

impl Seen {
    /// What is new in these groups, as lines of an answer.
    pub fn news(&mut self, values: &Values, groups: &[Group]) -> Vec<String> {
        let owed = std::mem::take(&mut self.owed);
        let mut lines = Vec::new();
        for value in values.list() {
            if !groups.contains(&value.group) {
                if owed.contains(&value.name) {
                    self.owed.push(value.name.clone());
                }
                continue;
            }
            let seen = self.seen(value.group);
            let is_pulse = seen > 0
                && value.rose > seen
                && value.changed > value.rose
                && !owed.contains(&value.name);
            if is_pulse {
                lines.push(format!("{}=1", value.name));
                self.owed.push(value.name.clone());
            } else if value.changed > seen || owed.contains(&value.name) {
                lines.push(line(value));
            }
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
}
