// SPDX-License-Identifier: MIT OR Apache-2.0
//! CSV: one line of names, then one line a row.
//!
//! Columns are `row,trigger,time,status`, `skipped` if the run can skip
//! triggers, one a channel, and `output NAME` for each output, which is 1. A
//! channel without scale and offset is written as its type says, exactly;
//! another one as its scaled value, in its unit. Where a channel or an output
//! failed, its field is empty. A step of more than one in `row` is rows lost;
//! where `trigger` steps more than `row` and `skipped`, triggers were missed.

use std::fs::File;
use std::io::{self, Write};

use strobe::channel::{Channel, Type};
use strobe::info::{RunInfo, Totals};
use strobe_ring::layout::ROW_FAULTS;
use strobe_ring::{Row, RowShape, Rows};

use super::table::SKIPPED;
use super::{Appender, Sink, Written, check_shape};

/// Lines are written when so many bytes of them are there, or at a flush.
const BUFFER_BYTES: usize = 256 * 1024;

/// A CSV file, or a pipe.
pub struct Csv {
    file: Appender,
    channels: Vec<Channel>,
    shape: RowShape,
    lines: Vec<u8>,
    rows_in_lines: u64,
}

impl Csv {
    /// Into this file, from where it is now.
    pub fn new(file: File) -> Self {
        Csv::with(Appender::new(file))
    }

    /// Into a file that others may write into, too, such as standard output: nothing in it is ever cut off.
    pub fn shared(file: File) -> Self {
        Csv::with(Appender::shared(file))
    }

    fn with(file: Appender) -> Self {
        Csv {
            file,
            channels: Vec::new(),
            shape: RowShape::of_channels(0),
            lines: Vec::new(),
            rows_in_lines: 0,
        }
    }
}

impl Sink for Csv {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        self.channels.clone_from(&info.channels);
        self.shape = info.shape();
        self.lines.extend_from_slice(b"row,trigger,time,status");
        if self.shape.skipped {
            write!(self.lines, ",{SKIPPED}")?;
        }
        for name in info.fault_names() {
            write!(self.lines, ",{name}")?;
        }
        self.lines.push(b'\n');
        self.flush()
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        check_shape(rows, self.shape)?;
        for row in rows {
            self.write_row(row)?;
            self.rows_in_lines += 1;
            if self.lines.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.lines.is_empty() {
            self.file.append(&self.lines, self.rows_in_lines)?;
            self.lines.clear();
            self.rows_in_lines = 0;
        }
        Ok(())
    }

    fn finish(&mut self, _: Option<&Totals>) -> io::Result<()> {
        self.flush()
    }

    fn written(&self) -> Written {
        self.file.written
    }
}

impl Csv {
    fn write_row(&mut self, row: Row<'_>) -> io::Result<()> {
        let lines = &mut self.lines;
        let flags = row.status.0 & !ROW_FAULTS;
        write!(lines, "{},{},{},{flags}", row.row, row.trigger, row.time)?;
        if self.shape.skipped {
            write!(lines, ",{}", row.skipped)?;
        }
        let is_faulty = !row.faults.is_empty();
        let failed = |index| is_faulty && row.faults.failed(index);
        for (index, (channel, word)) in self.channels.iter().zip(row.values).enumerate() {
            match failed(index) {
                true => lines.push(b','),
                false => write_value(lines, channel, *word)?,
            }
        }
        for output in 0..self.shape.outputs as usize {
            let is_written = !failed(self.channels.len() + output);
            lines.extend_from_slice(if is_written { b",1" } else { b"," });
        }
        lines.push(b'\n');
        Ok(())
    }
}

fn write_value(lines: &mut Vec<u8>, channel: &Channel, word: u64) -> io::Result<()> {
    if channel.is_scaled() {
        return write!(lines, ",{}", channel.value(word));
    }
    match channel.kind {
        Type::U64 => write!(lines, ",{word}"),
        Type::S64 => write!(lines, ",{}", word as i64),
        Type::F64 => write!(lines, ",{}", f64::from_bits(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};
    use strobe::samples::channel;
    use strobe::samples::{info, totals};

    #[test]
    fn rows_become_lines_of_numbers() {
        let mut scaled = channel("adc.u", Type::S64);
        scaled.scale = 0.5;
        let channels = vec![
            channel("sim.counter", Type::U64),
            channel("adc.s", Type::S64),
            channel("adc.f", Type::F64),
            scaled,
            channel("sim.counter", Type::U64),
        ];
        let minus = |n: i64| -n as u64;
        let first = [
            0,
            0,
            100,
            0,
            u64::MAX,
            minus(3),
            0.1_f64.to_bits(),
            minus(5),
            1,
        ];
        let second = [1, 3, 400, 1, 2, 4, f64::NAN.to_bits(), 6, 3];
        let mut file = tempfile::tempfile().expect("a file");
        let mut csv = Csv::new(file.try_clone().expect("a file"));
        csv.begin(&info(channels)).expect("begin");
        csv.write(Rows::new(&first, RowShape::of_channels(5)))
            .expect("write");
        csv.flush().expect("flush");
        csv.write(Rows::new(&second, RowShape::of_channels(5)))
            .expect("write");
        csv.finish(Some(&totals(2))).expect("finish");

        let mut text = String::new();
        file.rewind()
            .and_then(|()| file.read_to_string(&mut text))
            .expect("text");
        assert_eq!(
            text,
            "row,trigger,time,status,sim.counter,adc.s,adc.f,adc.u,sim.counter#2\n\
             0,0,100,0,18446744073709551615,-3,0.1,-2.5,1\n\
             1,3,400,1,2,4,NaN,3,3\n"
        );
        let bytes = text.len() as u64;
        assert_eq!(csv.written(), Written { rows: 2, bytes });
    }
}
