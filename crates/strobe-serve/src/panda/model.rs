// SPDX-License-Identifier: MIT OR Apache-2.0
//! All blocks of a machine: those that every machine has, and one kind for each kind of device.

use strobe::catalogue::Catalogue;

use super::devices;
use super::field::{Block, Extra, Field, Kind, field};
use super::table::OUTPUTS;

/// Sequencers and events that there are.
pub const SEQUENCERS: usize = 2;
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
        let mut blocks = fixed(catalogue, &events);
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
    bits.push("PCAP.ACTIVE".to_owned());
    bits
}

/// What can be connected to the trigger: a bit that is no event makes no rows.
fn triggers(events: &[(String, String)]) -> Vec<String> {
    let mut labels: Vec<String> = (1..=EVENTS).map(|n| format!("EVENT{n}.OUT")).collect();
    labels.extend(events.iter().map(|(label, _)| label.clone()));
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
fn fixed(catalogue: &Catalogue, events: &[(String, String)]) -> Vec<Block> {
    let mux = |name: &str, start, about: &str| field(name, Kind::BitMux(start, bus()), about);
    let extra = |name: &str, extra, about: &str| field(name, Kind::ExtOut(extra), about);
    let bit = |name: &str, about: &str| field(name, Kind::BitOut(None), about);
    let place = |name: &str, place, about: &str| field(name, Kind::BitOut(Some(place)), about);
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
    let positions = |name: &str| field(name, Kind::PosMux(texts(["ZERO"])), "Not offered");
    seq.extend(["POSA", "POSB", "POSC"].map(positions));
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
    let none = || {
        vec![field(
            "HEALTH",
            Kind::ReadEnum(texts(["Not offered"])),
            "Not offered",
        )]
    };
    vec![
        block("PCAP", 1, "Rows: event, gate, end", pcap),
        block("EVENT", EVENTS, "What makes rows", event),
        block("SEQ", SEQUENCERS, "Sequencer in software", seq),
        block("BITS", 1, "Switches", bits),
        block("PULSE", 1, "Not offered", none()),
        block("PCOMP", 1, "Not offered", none()),
    ]
}
