// SPDX-License-Identifier: MIT OR Apache-2.0
//! All blocks of a machine: those that every machine has, and one kind for each kind of device.

use strobe::catalogue::Catalogue;

use super::devices;
use super::field::{Block, Extra, Field, Kind, Source, field};
use super::table::{OUTPUTS, POSITIONS};

/// Sequencers and events that there are.
pub const SEQUENCERS: usize = 2;
/// Position compares that there are.
pub const COMPARES: usize = 2;
/// Events that can be set up at once.
pub const EVENTS: usize = 2;
/// What can be said of the health of a run.
pub const HEALTH: [&str; 5] = [
    "OK",
    "Triggers were missed",
    "Rows were lost",
    "A channel failed",
    "The run failed",
];
/// What can be said of the health of a position compare.
pub const HEALTH_OF_COMPARES: [&str; 3] = ["OK", "No run waits for it", "Its run cannot be made"];
/// Bits of `PCAP.BITS0`, in their order.
pub const BITS: [&str; 3] = ["PCAP.FAILED", "PCAP.MISSED", "PCAP.LOST"];
/// Labels of a choice that the IOC can show.
const LABELS: usize = 16;
const LABEL: usize = 24;

/// All that there is.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// What makes rows: label in `PCAP.TRIG` of each event of a device, and the event.
    pub events: Vec<(String, String)>,
}

/// A field that was found by its name.
pub struct Found<'m> {
    /// Its kind of block.
    pub block: &'m Block,
    /// Which of them, from 0.
    pub number: usize,
    /// The field.
    pub field: &'m Field,
    /// Whether it is clear which of them is meant.
    pub is_one: bool,
}

impl Model {
    /// The blocks for these devices.
    pub fn new(catalogue: &Catalogue) -> Self {
        let mut devices = devices::blocks(catalogue);
        let events = devices::events(catalogue, &mut devices);
        let mut blocks = fixed(catalogue, &events, positions(&devices));
        blocks.append(&mut devices);
        Model { blocks, events }
    }

    /// The kind of block of this name.
    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// The field `BLOCK1.FIELD`; the number may be left out where there is one block, or where it does not matter.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        let (block, field) = name.split_once('.')?;
        let kind = block.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = block.get(kind.len()..)?;
        let block = self.block(kind)?;
        let is_one = block.count == 1 || !number.is_empty();
        let number = match number.is_empty() {
            true => 1,
            false => number.parse().ok()?,
        };
        let field = block.fields.iter().find(|known| known.name == field)?;
        (1..=block.count).contains(&number).then(|| Found {
            block,
            number: number - 1,
            field,
            is_one,
        })
    }

    /// The channel of a position.
    pub fn source(&self, name: &str) -> Option<&Source> {
        let found = self.find(name)?;
        match &found.field.kind {
            Kind::PosOut(sources) => sources.get(found.number),
            _ => None,
        }
    }

    /// All fields, with their whole names.
    pub fn fields(&self) -> impl Iterator<Item = (String, Found<'_>)> {
        self.blocks
            .iter()
            .flat_map(|block| (0..block.count).map(move |number| (block, number)))
            .flat_map(|(block, number)| {
                let prefix = block.name_of(number);
                block.fields.iter().map(move |field| {
                    let found = Found {
                        block,
                        number,
                        field,
                        is_one: true,
                    };
                    (format!("{prefix}.{}", field.name), found)
                })
            })
    }
}

/// Names of all positions, and of none.
fn positions(blocks: &[Block]) -> Vec<String> {
    let mut names = texts(["ZERO"]);
    for block in blocks {
        for number in 0..block.count {
            let is_one = |field: &&Field| matches!(field.kind, Kind::PosOut(_));
            let its = block.fields.iter().filter(is_one);
            names.extend(its.map(|field| format!("{}.{}", block.name_of(number), field.name)));
        }
    }
    names
}

fn texts<T: ToString>(words: impl IntoIterator<Item = T>) -> Vec<String> {
    words.into_iter().map(|word| word.to_string()).collect()
}

/// Bits that others can be connected to.
fn bus() -> Vec<String> {
    let mut bits = texts(["ZERO", "ONE"]);
    bits.extend(["A", "B", "C", "D"].map(|bit| format!("BITS.OUT{bit}")));
    for seq in 1..=SEQUENCERS {
        bits.push(format!("SEQ{seq}.ACTIVE"));
        bits.extend(OUTPUTS.map(|out| format!("SEQ{seq}.OUT{out}")));
    }
    for compare in 1..=COMPARES {
        bits.push(format!("PCOMP{compare}.ACTIVE"));
    }
    bits.push("PCAP.ACTIVE".to_owned());
    bits
}

/// Events.
fn events_of(events: &[(String, String)]) -> Vec<String> {
    let mut labels: Vec<String> = (1..=EVENTS).map(|n| format!("EVENT{n}.OUT")).collect();
    labels.extend(events.iter().map(|(label, _)| label.clone()));
    labels
}

/// What can be connected to the trigger: a bit that is no event makes no rows.
fn triggers(events: &[(String, String)]) -> Vec<String> {
    let mut labels = events_of(events);
    labels.extend((1..=COMPARES).map(|n| format!("PCOMP{n}.OUT")));
    for seq in 1..=SEQUENCERS {
        labels.extend(OUTPUTS.map(|out| format!("SEQ{seq}.OUT{out}")));
    }
    labels
}

/// Events that fit into the choice of a block EVENT.
fn sources(catalogue: &Catalogue) -> Vec<String> {
    let mut names: Vec<String> = texts(["timer", "soft"]);
    for event in &catalogue.events {
        let fits = event.name.len() <= LABEL && names.len() < LABELS;
        if fits && !names.contains(&event.name) && (!event.periodic || event.name == "hpet") {
            names.push(event.name.clone());
        }
    }
    names
}

fn block(name: &str, count: usize, about: &str, fields: Vec<Field>) -> Block {
    Block {
        name: name.to_owned(),
        count,
        about: about.to_owned(),
        fields,
    }
}

/// Blocks that every machine has.
fn fixed(catalogue: &Catalogue, events: &[(String, String)], positions: Vec<String>) -> Vec<Block> {
    let mux = |name: &str, start, about: &str| field(name, Kind::BitMux(start, bus()), about);
    let extra = |name: &str, extra, about: &str| field(name, Kind::ExtOut(extra), about);
    let bit = |name: &str, about: &str| field(name, Kind::BitOut(None), about);
    let place = |name: &str, place, about: &str| field(name, Kind::BitOut(Some(place)), about);
    let samples = [texts(["ZERO"]), events_of(events)].concat();
    let pcap = vec![
        mux(
            "ENABLE",
            "ONE",
            "Rows are made while 1; the end is its fall",
        ),
        mux("GATE", "ONE", "Triggers are not counted while 0"),
        field(
            "TRIG",
            Kind::BitMux("EVENT1.OUT", triggers(events)),
            "The event that makes rows",
        ),
        field(
            "SAMPLE",
            Kind::BitMux("ZERO", samples),
            "The event at which channels are read between two triggers",
        ),
        field(
            "TRIG_EDGE",
            Kind::Enum(texts(["Rising"])),
            "Edge of the event",
        ),
        field(
            "NUM_TRIG",
            Kind::Uint {
                start: 0,
                max: u32::MAX,
            },
            "End after so many rows; 0: do not",
        ),
        bit("ACTIVE", "Armed, or rows are made"),
        field("HEALTH", Kind::ReadEnum(texts(HEALTH)), "The last run"),
        field("TRIG_LOST", Kind::ReadUint, "Triggers without a row"),
        extra("TS_TRIG", Extra::Time, "Time of the row since the start"),
        extra(
            "GATE_DURATION",
            Extra::Duration,
            "Time since the row before",
        ),
        extra("INDEX", Extra::Row, "Number of the row"),
        extra("TRIG_INDEX", Extra::Trigger, "Number of the trigger"),
        extra(
            "SAMPLES",
            Extra::Samples,
            "How often channels were read for the row",
        ),
        extra("BITS0", Extra::Bits, "What is to be known of the row"),
        place("FAILED", 0, "A channel failed in the row"),
        place("MISSED", 1, "Triggers were missed before the row"),
        place("LOST", 2, "Rows before the row were lost"),
    ];
    let event = vec![
        field("SOURCE", Kind::Enum(sources(catalogue)), "What it is"),
        field("PERIOD", Kind::Time(0.001), "Period of a timer"),
        bit("OUT", "The event"),
    ];
    let mut seq = vec![
        field("TABLE", Kind::Table, "Lines of the sequence"),
        mux("ENABLE", "ZERO", "Starts at its rise, ends at its fall"),
        mux("BITA", "ZERO", "Bit A that a line can wait for"),
        mux("BITB", "ZERO", "Bit B that a line can wait for"),
        mux("BITC", "ZERO", "Bit C that a line can wait for"),
    ];
    let position = |name: &str| {
        let about = format!(
            "Position {} that a line can wait for",
            name.trim_start_matches("POS")
        );
        field(name, Kind::PosMux(positions.clone()), &about)
    };
    seq.extend(POSITIONS.map(position));
    seq.push(field(
        "PRESCALE",
        Kind::Time(1e-6),
        "Unit of the table's times",
    ));
    seq.push(field(
        "REPEATS",
        Kind::Uint {
            start: 1,
            max: u32::MAX,
        },
        "Of the whole table; 0: until stopped",
    ));
    seq.push(bit("ACTIVE", "The sequence is under way"));
    seq.extend(OUTPUTS.map(|out| bit(&format!("OUT{out}"), "Output of the sequence")));
    let switches = ["A", "B", "C", "D"];
    let mut bits: Vec<Field> = switches
        .map(|name| field(name, Kind::Bit, "A switch"))
        .into();
    bits.extend(switches.map(|name| bit(&format!("OUT{name}"), "The switch")));
    let health = |texts| field("HEALTH", Kind::ReadEnum(texts), "What is wrong with it");
    let uint = |name: &str, start, about: &str| {
        let max = i32::MAX as u32;
        field(name, Kind::Uint { start, max }, about)
    };
    let choice =
        |name: &str, words: &[&str], about: &str| field(name, Kind::Enum(texts(words)), about);
    let compare = vec![
        mux("ENABLE", "ZERO", "Starts at its rise, ends at its fall"),
        field(
            "INP",
            Kind::PosMux(positions),
            "The position, as a whole number",
        ),
        field("START", Kind::Int, "Position of the first pulse"),
        field(
            "PRE_START",
            Kind::Int,
            "The position is this far before START first",
        ),
        uint("STEP", 0, "Distance of two pulses"),
        uint("WIDTH", 0, "Not used: a row is made where a pulse begins"),
        uint("PULSES", 1, "Number of pulses; 0: until stopped"),
        choice(
            "DIR",
            &["Positive", "Negative", "Either"],
            "Direction; Either is not offered",
        ),
        choice(
            "RELATIVE",
            &["Absolute", "Relative"],
            "Relative: to the position at the first sample",
        ),
        bit("ACTIVE", "It compares"),
        bit("OUT", "The pulses, for PCAP.TRIG; it is 0 here"),
        field("PRODUCED", Kind::ReadUint, "Pulses that there were"),
        health(texts(HEALTH_OF_COMPARES)),
    ];
    vec![
        block("PCAP", 1, "Rows: event, gate, end", pcap),
        block("EVENT", EVENTS, "What makes rows", event),
        block("SEQ", SEQUENCERS, "Sequencer", seq),
        block("BITS", 1, "Switches", bits),
        block(
            "PULSE",
            1,
            "Not offered",
            vec![health(texts(["Not offered"]))],
        ),
        block("PCOMP", COMPARES, "Position compare", compare),
    ]
}
