// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the values of a row say about the time that it took to make it.
//!
//! A counter of a board that runs on says when it was read; the same counter
//! latched by the board at the event says when that was. Read several times in
//! a row, it says how long one reading takes; so does `clock.time`, for what
//! strobe itself adds to a channel.

use std::ops::Range;

use serde::Serialize;
use strobe::channel::{Channel, Type};
use strobe::stats::{Figures, Stats};
use strobe_ring::Row;

/// Where in a row the values are that delays are computed of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DelayColumns {
    /// The counter that runs on, read one after the other.
    pub running: Range<usize>,
    /// The same counter, as it was at the event.
    pub latched: Option<usize>,
    /// The board's own count of its events.
    pub index: Option<usize>,
    /// `clock.time`, read one after the other.
    pub times: Range<usize>,
}

/// A channel that does not say what it would have to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It counts no time.
    #[error(
        "channel {0}: its unit is \"{1}\", which is no unit of time (ns, us, ms, s); name other counters, running and \
         latched"
    )]
    NoTime(String, String),
    /// It is no counter.
    #[error(
        "channel {0}: it is a number with a fraction, and a counter is needed; name another channel"
    )]
    NoCounter(String),
    /// They are not of one counter.
    #[error(
        "channels {0} and {1}: they cannot be subtracted, because their steps or widths differ; name two views of one \
         counter"
    )]
    Unlike(String, String),
}

/// Delays of all rows so far.
#[derive(Debug)]
pub struct Delays {
    places: DelayColumns,
    /// Of the counter.
    count: Option<Counter>,
    /// Of the board's count of events.
    events: Option<Counter>,
    /// Index and trigger of the first row, and how far the last one was from them.
    board: Option<Account>,
    last: Option<(u64, u64)>,
    interrupt: Stats,
    /// Rows that were overtaken by the next event: the counter was latched again before it was read.
    overtaken: u64,
    channel: Stats,
    clock: Stats,
}

/// The figures of [`Delays`], in nanoseconds; `None`: there is nothing to compute them of.
#[derive(Debug, Serialize)]
pub struct Report {
    /// From the event, as the board saw it, to the first value of the row.
    pub interrupt_ns: Option<Figures>,
    /// Rows of which that is not known: the next event came before the latched counter was read.
    pub overtaken: u64,
    /// From one value of the board to the next.
    pub channel_ns: Option<Figures>,
    /// From one value of strobe's own to the next.
    pub clock_ns: Option<Figures>,
    /// What the board itself has counted.
    pub board: Option<Account>,
    /// All of them, to be drawn.
    pub histogram: Histograms,
}

/// The delays, one by one.
#[derive(Debug, Serialize)]
pub struct Histograms {
    interrupt: Stats,
    channel: Stats,
    clock: Stats,
}

/// Events from the first row to the last, as two have counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// By the board.
    pub events: i64,
    /// By strobe: rows and missed.
    pub triggers: i64,
}

impl Account {
    /// Events that raised no interrupt of their own.
    pub fn merged(self) -> i64 {
        self.events - self.triggers
    }
}

/// How to take differences of a counter's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counter {
    bits: u32,
    /// Of one count.
    ns: f64,
}

impl Counter {
    fn new(channel: &Channel) -> Result<Self, Error> {
        match channel.kind {
            Type::F64 => Err(Error::NoCounter(channel.name.clone())),
            Type::U64 | Type::S64 => Ok(Counter {
                bits: channel.bits.clamp(1, u64::BITS),
                ns: 1.0,
            }),
        }
    }

    /// One of so many bits and this step.
    #[cfg(test)]
    pub fn of_bits(bits: u32, ns: f64) -> Counter {
        Counter { bits, ns }
    }

    fn of_time(channel: &Channel) -> Result<Self, Error> {
        let unit = match channel.unit.as_str() {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            unit => return Err(Error::NoTime(channel.name.clone(), unit.to_owned())),
        };
        let ns = channel.scale * unit;
        Counter::new(channel).map(|counter| Counter { ns, ..counter })
    }

    /// How many counts `to` is after `from`; the counter may have turned over once between them.
    fn counts(self, from: u64, to: u64) -> i64 {
        let unused = u64::BITS - self.bits;
        ((to.wrapping_sub(from) << unused) as i64) >> unused
    }

    /// From one value to the other, ns; below 0 if the other was before.
    pub fn ns(self, from: u64, to: u64) -> i64 {
        (self.counts(from, to) as f64 * self.ns).round() as i64
    }
}

/// How to take differences of two views of one counter of time.
///
/// # Errors
/// They do not count time, or not alike.
pub fn counter_of(running: &Channel, latched: &Channel) -> Result<Counter, Error> {
    let count = Counter::of_time(running)?;
    if Counter::of_time(latched)? != count {
        let names = (running.name.clone(), latched.name.clone());
        return Err(Error::Unlike(names.0, names.1));
    }
    Ok(count)
}

impl Delays {
    /// For rows of these channels.
    ///
    /// # Errors
    /// A channel is not what its place needs.
    pub fn new(channels: &[Channel], places: DelayColumns) -> Result<Self, Error> {
        let at = |place: usize| channels.get(place);
        let running = places.clone().running.next().and_then(at);
        let count = match (running, places.latched.and_then(at)) {
            (Some(running), Some(latched)) => Some(counter_of(running, latched)?),
            _ => running.map(Counter::of_time).transpose()?,
        };
        let events = places.index.and_then(at).map(Counter::new).transpose()?;
        Ok(Delays {
            places,
            count,
            events,
            board: None,
            last: None,
            interrupt: Stats::around(0),
            overtaken: 0,
            channel: Stats::around(0),
            clock: Stats::around(0),
        })
    }

    /// One more row. One with a fault says nothing.
    pub fn add(&mut self, row: &Row<'_>) {
        if !row.faults.is_empty() {
            return;
        }
        let value = |place: usize| row.values.get(place).copied();
        if let Some(count) = self.count {
            let running = self.places.running.clone();
            let latched = self.places.latched.and_then(value);
            if let Some((latched, first)) = latched.zip(value(running.start)) {
                match count.ns(latched, first) {
                    ns @ 0.. => self.interrupt.add(ns),
                    _ => self.overtaken += 1,
                }
            }
            let values = row.values.get(running).unwrap_or_default();
            for (from, to) in values.iter().zip(values.iter().skip(1)) {
                self.channel.add(count.ns(*from, *to));
            }
        }
        let times = row.values.get(self.places.times.clone());
        let times = times.unwrap_or_default();
        for (from, to) in times.iter().zip(times.iter().skip(1)) {
            self.clock.add(to.wrapping_sub(*from) as i64);
        }
        if let Some((events, index)) = self.events.zip(self.places.index.and_then(value)) {
            let account = self.board.get_or_insert_default();
            if let Some((last, trigger)) = self.last {
                account.events += events.counts(last, index);
                account.triggers += row.trigger.wrapping_sub(trigger) as i64;
            }
            self.last = Some((index, row.trigger));
        }
    }

    /// What to report.
    pub fn report(&self) -> Report {
        Report {
            interrupt_ns: self.interrupt.figures(),
            overtaken: self.overtaken,
            channel_ns: self.channel.figures(),
            clock_ns: self.clock.figures(),
            board: self.board,
            histogram: Histograms {
                interrupt: self.interrupt.clone(),
                channel: self.channel.clone(),
                clock: self.clock.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strobe::channel::Class;
    use strobe_ring::{RowShape, Rows};

    fn channel(name: &str, unit: &str, scale: f64, bits: u32) -> Channel {
        Channel {
            name: name.to_owned(),
            description: String::new(),
            unit: unit.to_owned(),
            kind: Type::U64,
            class: Class::Hard,
            scale,
            offset: 0.0,
            bits,
            cost_ns: 0,
            in_use: false,
        }
    }

    /// Two readings of a counter of 10 ns and 16 bits, latched, the board's count, two of the clock.
    fn delays() -> Delays {
        let count = || channel("card.count", "ns", 10.0, 16);
        let time = || channel("clock.time", "ns", 1.0, 64);
        let index = channel("card.index", "", 1.0, 8);
        let channels = [count(), count(), count(), index, time(), time()];
        let places = DelayColumns {
            running: 0..2,
            latched: Some(2),
            index: Some(3),
            times: 4..6,
        };
        Delays::new(&channels, places).expect("channels that fit")
    }

    fn add(delays: &mut Delays, row: [u64; 10]) {
        Rows::new(&row, RowShape::of_channels(6)).for_each(|row| delays.add(&row));
    }

    #[test]
    fn latency_is_from_the_latched_count_to_the_first_reading() {
        let mut delays = delays();
        add(&mut delays, [0, 0, 0, 0, 1007, 1010, 1000, 0, 500, 540]);
        let report = delays.report();
        let of = |figures: Option<Figures>| figures.map(|f| (f.min, f.max));
        assert_eq!(of(report.interrupt_ns), Some((70, 70)));
        assert_eq!(of(report.channel_ns), Some((30, 30)));
        assert_eq!(of(report.clock_ns), Some((40, 40)));
    }

    #[test]
    fn a_counter_may_turn_over_within_a_row() {
        let mut delays = delays();
        add(&mut delays, [0, 0, 0, 0, 2, 5, 0xfffe, 0, 0, 0]);
        let report = delays.report();
        assert_eq!(report.interrupt_ns.map(|f| f.max), Some(40));
        assert_eq!(report.channel_ns.map(|f| f.max), Some(30));
    }

    #[test]
    fn a_row_whose_counter_was_latched_again_has_no_latency() {
        let mut delays = delays();
        add(&mut delays, [0, 0, 0, 0, 1000, 1003, 1001, 0, 0, 0]);
        let report = delays.report();
        assert!(report.interrupt_ns.is_none());
        assert_eq!(report.overtaken, 1);
        assert_eq!(report.channel_ns.map(|f| f.max), Some(30));
    }

    #[test]
    fn what_the_board_counted_beyond_rows_and_missed_was_merged() {
        let mut delays = delays();
        for (row, trigger, index) in [(0, 0, 253), (1, 1, 254), (2, 5, 2), (3, 6, 5)] {
            add(&mut delays, [row, trigger, 0, 0, 0, 0, 0, index, 0, 0]);
        }
        let account = delays.report().board.expect("an account");
        let expected = Account {
            events: 8,
            triggers: 6,
        };
        assert_eq!(account, expected);
        assert_eq!(account.merged(), 2);
    }

    #[test]
    fn a_row_with_a_fault_says_nothing() {
        let mut delays = delays();
        add(&mut delays, [0, 0, 0, 1 << 32, 0, 9, 5, 7, 8, 9]);
        let report = delays.report();
        assert!(report.interrupt_ns.is_none() && report.clock_ns.is_none());
        assert!(report.board.is_none());
    }

    #[test]
    fn channels_that_count_no_time_are_refused_by_name() {
        let places = |latched| DelayColumns {
            running: 0..1,
            latched,
            ..DelayColumns::default()
        };
        let refused = |channels: &[Channel], latched| {
            let delays = Delays::new(channels, places(latched));
            delays.expect_err("a refusal").to_string()
        };
        let volts = [channel("adc.x", "V", 1.0, 16)];
        assert!(refused(&volts, None).starts_with("channel adc.x: its unit is \"V\""));
        let fraction = [Channel {
            kind: Type::F64,
            ..channel("pid.t", "s", 1.0, 64)
        }];
        assert!(
            refused(&fraction, None).starts_with("channel pid.t: it is a number with a fraction")
        );
        let unlike = [
            channel("a.count", "ns", 1.0, 32),
            channel("b.count", "ns", 1.0, 64),
        ];
        assert!(refused(&unlike, Some(1)).starts_with("channels a.count and b.count:"));
    }
}
