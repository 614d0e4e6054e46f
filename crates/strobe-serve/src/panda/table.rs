// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of a sequencer: lines of four words, as PandABlocks lays them out.

/// Outputs of a sequencer.
pub const OUTPUTS: [char; 6] = ['A', 'B', 'C', 'D', 'E', 'F'];
/// Bits that its lines can wait for.
pub const INPUTS: [&str; 3] = ["BITA", "BITB", "BITC"];
/// Positions that its lines can wait for.
pub const POSITIONS: [&str; 3] = ["POSA", "POSB", "POSC"];
/// Lines a table may have.
pub const LINES: usize = 4096;
/// What a line can wait for.
pub const TRIGGERS: [&str; 13] = [
    "Immediate",
    "BITA=0",
    "BITA=1",
    "BITB=0",
    "BITB=1",
    "BITC=0",
    "BITC=1",
    "POSA>=POSITION",
    "POSA<=POSITION",
    "POSB>=POSITION",
    "POSB<=POSITION",
    "POSC>=POSITION",
    "POSC<=POSITION",
];

/// What a line waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Nothing.
    Immediate,
    /// A bit, from 0 for A, and what it is to be.
    Bit(usize, bool),
    /// A position, from 0 for A: whether it is to be at least or at most so much.
    Position(usize, bool, i32),
}

/// A time, and the outputs in it: bit 0 is A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// In units of the prescaler.
    pub time: u32,
    /// The outputs.
    pub outputs: u8,
}

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How often; at least once.
    pub repeats: u32,
    /// What each repetition waits for.
    pub wait: Wait,
    /// What it does then.
    pub phases: [Phase; 2],
}

/// Columns: bits, name and type, in the words of the protocol.
pub fn columns() -> Vec<(String, String)> {
    let mut columns = vec![
        ("15:0".to_owned(), "REPEATS uint".to_owned()),
        ("19:16".to_owned(), "TRIGGER enum".to_owned()),
        ("63:32".to_owned(), "POSITION int".to_owned()),
    ];
    for phase in 0..2 {
        let low = 64 + 32 * phase;
        columns.push((
            format!("{}:{low}", low + 31),
            format!("TIME{} uint", phase + 1),
        ));
        for (place, out) in OUTPUTS.iter().enumerate() {
            let bit = 20 + 6 * phase + place;
            columns.push((
                format!("{bit}:{bit}"),
                format!("OUT{out}{} uint", phase + 1),
            ));
        }
    }
    columns
}

/// Whether there is such a column.
pub fn has_column(name: &str) -> bool {
    columns()
        .iter()
        .any(|(_, text)| text.split(' ').next() == Some(name))
}

/// The lines of a table.
///
/// # Errors
/// It cannot be done here; why.
pub fn steps(words: &[u32]) -> Result<Vec<Step>, String> {
    if words.len() % 4 != 0 {
        return Err("Table length is not a multiple of 4 words".to_owned());
    }
    if words.len() > 4 * LINES {
        return Err("Too many words in table".to_owned());
    }
    words.chunks_exact(4).map(step).collect()
}

fn step(words: &[u32]) -> Result<Step, String> {
    let [what, position, time1, time2] = words else {
        return Err("Table is not whole".to_owned());
    };
    let wait = match (what >> 16) & 15 {
        0 => Wait::Immediate,
        bit @ 1..=6 => Wait::Bit((bit as usize - 1) / 2, bit % 2 == 0),
        place @ 7..=12 => {
            Wait::Position((place as usize - 7) / 2, place % 2 == 1, *position as i32)
        }
        other => return Err(format!("Trigger {other} is unknown")),
    };
    let outputs = |shift: u32| ((what >> shift) & 0x3F) as u8;
    let last = Phase {
        time: *time2,
        outputs: outputs(26),
    };
    // A first time of 0 is passed over, and its outputs are never there.
    let first = match time1 {
        0 => Phase { time: 0, ..last },
        _ => Phase {
            time: *time1,
            outputs: outputs(20),
        },
    };
    Ok(Step {
        repeats: (what & 0xFFFF).max(1),
        wait,
        phases: [first, last],
    })
}

/// A sequence that is nothing but a timer: one line that waits for nothing, with one rise of this output a repetition.
/// Answers the period in units of the prescaler, and how many rises there are in one run through the table.
pub fn as_timer(steps: &[Step], output: usize) -> Option<(u64, u64)> {
    let [step] = steps else {
        return None;
    };
    let is_high = |phase: &Phase| phase.outputs & (1 << output) != 0;
    let [first, second] = &step.phases;
    let period = u64::from(first.time) + u64::from(second.time);
    let rises_at_once = is_high(first) && !is_high(second) && second.time > 0;
    (rises_at_once && step.wait == Wait::Immediate && period > 0)
        .then_some((period, u64::from(step.repeats)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_pandablocks_lays_it_out() {
        let words = [3 | 2 << 16 | 1 << 20 | 1 << 27, 0, 100, 200];
        let phase = |time, outputs| Phase { time, outputs };
        assert_eq!(
            steps(&words),
            Ok(vec![Step {
                repeats: 3,
                wait: Wait::Bit(0, true),
                phases: [phase(100, 1), phase(200, 2)],
            }])
        );
        assert!(steps(&words[..3]).is_err());
        let waits = |what: u32, position: i32| {
            steps(&[what << 16, position as u32, 0, 0]).map(|steps| steps[0].wait)
        };
        assert_eq!(waits(7, -5), Ok(Wait::Position(0, true, -5)));
        assert_eq!(waits(12, 5), Ok(Wait::Position(2, false, 5)));
        assert!(steps(&[15 << 16, 0, 0, 0]).is_err());
    }

    #[test]
    fn the_columns_fill_128_bits_without_overlap() {
        let mut bits = [0; 128];
        for (range, _) in columns() {
            let (high, low) = range.split_once(':').expect("a range");
            let (high, low): (usize, usize) =
                (high.parse().expect("a bit"), low.parse().expect("a bit"));
            bits[low..=high].iter_mut().for_each(|bit| *bit += 1);
        }
        assert!(bits.iter().all(|bit| *bit == 1));
        assert_eq!(columns().len(), 17);
        assert!(has_column("OUTF2") && !has_column("OUTG1"));
    }

    #[test]
    fn one_plain_line_is_a_timer() {
        let line = |wait: u32, out: u32| steps(&[3000 | wait << 16 | out << 20, 0, 300, 700]);
        let steps = line(0, 1).expect("steps");
        assert_eq!(as_timer(&steps, 0), Some((1000, 3000)));
        assert_eq!(as_timer(&steps, 1), None);
        assert_eq!(as_timer(&line(1, 1).expect("steps"), 0), None);
        assert_eq!(as_timer(&line(0, 0b100_0001).expect("steps"), 0), None);
    }
}
