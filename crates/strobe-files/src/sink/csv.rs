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

use strobe::block::NoColumn;
use strobe::channel::{Channel, Type, column_names};
use strobe::info::{RunInfo, Totals};
use strobe_ring::layout::ROW_FAULTS;
use strobe_ring::{Row, RowShape, Rows};

use super::table::SKIPPED;
use super::{Appender, Sink, SinkProgress, check_shape};

/// Lines are written when so many bytes of them are there, or at a flush.
const BUFFER_BYTES: usize = 256 * 1024;

/// A CSV file, or a pipe.
pub struct Csv {
    file: Appender,
    lines: Option<CsvLines>,
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
            lines: None,
            rows_in_lines: 0,
        }
    }
}

impl Sink for Csv {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        self.lines = Some(CsvLines::all(info));
        self.flush()
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        let Some(lines) = &mut self.lines else {
            return Ok(());
        };
        check_shape(rows, lines.shape)?;
        for row in rows {
            lines.add_row(row);
            self.rows_in_lines += 1;
            if lines.bytes.len() >= BUFFER_BYTES {
                self.file.append(&lines.bytes, self.rows_in_lines)?;
                lines.bytes.clear();
                self.rows_in_lines = 0;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let lines = self.lines.as_mut();
        if let Some(lines) = lines.filter(|lines| !lines.bytes.is_empty()) {
            self.file.append(&lines.bytes, self.rows_in_lines)?;
            lines.bytes.clear();
            self.rows_in_lines = 0;
        }
        Ok(())
    }

    fn finish(&mut self, _: Option<&Totals>) -> io::Result<()> {
        self.flush()
    }

    fn written(&self) -> SinkProgress {
        self.file.written
    }
}

/// Makes the bytes of lines, for a file or for a connection.
pub struct CsvLines {
    /// The channels of a line, and their places in the row.
    channels: Vec<(usize, Channel)>,
    /// Whether lines have the outputs of a row as well.
    has_outputs: bool,
    shape: RowShape,
    bytes: Vec<u8>,
}

impl CsvLines {
    /// Of the rows of this run; with `channels`, the row's own columns and only these. The names of the columns are the
    /// first line.
    ///
    /// # Errors
    /// The run does not have a channel.
    pub fn new(info: &RunInfo, channels: Option<&[String]>) -> Result<Self, NoColumn> {
        let Some(names) = channels else {
            return Ok(CsvLines::all(info));
        };
        let all = column_names(&info.channels);
        let mut wanted = Vec::new();
        for name in names {
            let place = all.iter().position(|column| column == name);
            let Some(channel) = place.and_then(|place| info.channels.get(place).zip(place.into()))
            else {
                return Err(NoColumn {
                    name: name.clone(),
                    names: all,
                });
            };
            wanted.push((channel.1, channel.0.clone()));
        }
        Ok(CsvLines::with(info, wanted, names))
    }

    fn all(info: &RunInfo) -> Self {
        let channels = info.channels.iter().cloned().enumerate().collect();
        let mut lines = CsvLines::with(info, channels, &info.fault_names());
        lines.has_outputs = true;
        lines
    }

    fn with(info: &RunInfo, channels: Vec<(usize, Channel)>, names: &[String]) -> Self {
        let shape = info.shape();
        let mut first = "row,trigger,time,status".to_owned();
        let skipped = shape.skipped.then_some(SKIPPED);
        for name in skipped.into_iter().chain(names.iter().map(String::as_str)) {
            first.push(',');
            first.push_str(name);
        }
        first.push('\n');
        CsvLines {
            channels,
            has_outputs: false,
            shape,
            bytes: first.into_bytes(),
        }
    }

    /// A line for each row.
    ///
    /// # Errors
    /// They are not those of the run.
    pub fn add(&mut self, rows: Rows<'_>) -> io::Result<()> {
        check_shape(rows, self.shape)?;
        rows.for_each(|row| self.add_row(row));
        Ok(())
    }

    /// The lines that there are.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn add_row(&mut self, row: Row<'_>) {
        let lines = &mut self.bytes;
        let flags = row.status.0 & !ROW_FAULTS;
        put_integer(lines, row.row);
        for word in [row.trigger, row.time, flags] {
            lines.push(b',');
            put_integer(lines, word);
        }
        if self.shape.skipped {
            lines.push(b',');
            put_integer(lines, row.skipped);
        }
        let is_faulty = !row.faults.is_empty();
        let failed = |index| is_faulty && row.faults.failed(index);
        for (place, channel) in &self.channels {
            match row.values.get(*place) {
                Some(word) if !failed(*place) => put_value(lines, channel, *word),
                _ => lines.push(b','),
            }
        }
        let outputs = 0..self.shape.outputs as usize * usize::from(self.has_outputs);
        for output in outputs {
            let is_written = !failed(self.shape.channels as usize + output);
            lines.extend_from_slice(if is_written { b",1" } else { b"," });
        }
        lines.push(b'\n');
    }
}

/// Most of a line is integers. This is quicker than the standard library's way, and says the same.
fn put_integer(lines: &mut Vec<u8>, number: impl itoa::Integer) {
    lines.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn put_float(lines: &mut Vec<u8>, number: f64) {
    // Writing into memory never fails.
    let _ = write!(lines, "{number}");
}

fn put_value(lines: &mut Vec<u8>, channel: &Channel, word: u64) {
    lines.push(b',');
    if channel.is_scaled() {
        return put_float(lines, channel.value(word));
    }
    match channel.kind {
        Type::U64 => put_integer(lines, word),
        Type::S64 => put_integer(lines, word as i64),
        Type::F64 => put_float(lines, f64::from_bits(word)),
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
        assert_eq!(csv.written(), SinkProgress { rows: 2, bytes });
    }

    #[test]
    fn lines_have_the_channels_that_are_asked_for() {
        let info = info(vec![channel("a.x", Type::U64), channel("a.y", Type::S64)]);
        let mut lines = CsvLines::new(&info, Some(&["a.y".to_owned()])).expect("lines");
        let rows = [0, 0, 100, 0, 7, 8, 1, 1, 200, 0b10 << 32, 9, 10];
        lines.add(Rows::new(&rows, info.shape())).expect("rows");
        let text = String::from_utf8(lines.take()).expect("text");
        assert_eq!(
            text,
            "row,trigger,time,status,a.y\n0,0,100,0,8\n1,1,200,0,\n"
        );
        let error = CsvLines::new(&info, Some(&["a.z".to_owned()])).err();
        assert!(error.is_some_and(|error| error.to_string().contains("a.x, a.y")));
    }
}
