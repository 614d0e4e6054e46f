// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes files with known content into a folder, for programs that read them:
//! `whole.arrows`, `whole.csv`, `whole.h5`, `whole.parquet`; the same of
//! `faults`, in which channels and an output fail, and triggers are skipped;
//! and `killed.arrows`, whose writer did not come to its end. `tests/files/run`
//! checks them with pyarrow, polars and h5py.
//!
//! 10 000 rows of a 1 kHz timer. Triggers 5000 to 5002 were missed; rows 8000
//! to 8009 were lost to this reader.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use strobe::channel::{Channel, Class, Type};
use strobe::info::{Clock, End, RunInfo, Totals};
use strobe::ring::{Engine, RowShape, Rows, StartTimes};
use strobe_files::sink::arrow::ArrowFile;
use strobe_files::sink::csv::Csv;
use strobe_files::sink::{self, Existing, Sink};

const ROWS: u64 = 10_000;
const MISSED: u64 = 3;
const MISSED_BEFORE: u64 = 5_000;
const LOST: std::ops::Range<u64> = 8_000..8_010;
const START: u64 = 1_000_000_000;
const PERIOD: u64 = 1_000_000;
/// Rows between two flushes.
const FLUSH: usize = 100;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: sample_files DIR");
        return ExitCode::FAILURE;
    };
    let files = || -> std::io::Result<()> {
        let create = |name: &str| File::create(dir.join(name));
        write(&mut ArrowFile::new(create("whole.arrows")?), true)?;
        write(&mut Csv::new(create("whole.csv")?), true)?;
        let create_sink = |name: &str| {
            let path = dir.join(name).to_string_lossy().into_owned();
            let sink = sink::create(&path, "timer:1kHz", Existing::Refuse);
            sink.map(|(_, sink)| sink).map_err(std::io::Error::other)
        };
        for name in ["whole.h5", "whole.parquet"] {
            write(create_sink(name)?.as_mut(), true)?;
        }
        for name in ["faults.arrows", "faults.h5", "faults.parquet", "faults.csv"] {
            write_faults(create_sink(name)?.as_mut())?;
        }
        write(&mut ArrowFile::new(create("killed.arrows")?), false)?;
        // The last batch was not written to its end.
        let killed = File::options()
            .write(true)
            .open(dir.join("killed.arrows"))?;
        killed.set_len(killed.metadata()?.len() - 100)
    };
    match files() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sample_files: {}: {error}", dir.display());
            ExitCode::FAILURE
        }
    }
}

fn channel(name: &str, kind: Type, unit: &str, scale: f64, offset: f64) -> Channel {
    Channel {
        name: name.to_owned(),
        description: format!("{name}, made up"),
        unit: unit.to_owned(),
        kind,
        class: Class::Hard,
        scale,
        offset,
        bits: 64,
        cost_ns: 10,
        in_use: true,
    }
}

fn info(channels: Vec<Channel>) -> RunInfo {
    RunInfo {
        engine: Engine::Kernel,
        kernel: "6.12.0".to_owned(),
        event: "timer:1kHz".to_owned(),
        run: 1,
        clock: Clock::Monotonic,
        period_ns: Some(PERIOD),
        capacity: 1024,
        limit: Some(ROWS),
        start: StartTimes {
            time: START,
            realtime: 1_767_225_600_000_000_000,
            tai: 1_767_225_637_000_000_000,
            first_due: START + PERIOD,
        },
        channels,
        outputs: Vec::new(),
        tunables: Vec::new(),
        skips: false,
        accounting: strobe::accounting::Accounting::Exact,
        set_up: Vec::new(),
        doctor: Vec::new(),
    }
}

/// 200 rows of 40 channels and an output, of an event of which each fifth trigger makes a row. In each row whose number
/// ends with 7 two channels and the output fail; there are more than the status word of a row has room for.
fn write_faults(sink: &mut dyn Sink) -> std::io::Result<()> {
    const CHANNELS: u64 = 40;
    let channels = (0..CHANNELS).map(|n| channel(&format!("adc.{n}"), Type::S64, "V", 1.0, 0.0));
    let mut info = info(channels.collect());
    (info.outputs, info.skips) = (vec!["dac.x".to_owned()], true);
    sink.begin(&info)?;
    for row in 0..200 {
        let (trigger, is_faulty) = (5 * row + 4, row % 10 == 7);
        let value = |n| match is_faulty && [3, 35].contains(&n) {
            true => 0,
            false => 1 + row + n,
        };
        // Of the first 32, and of those behind: the output is number 40.
        let (first, others) = match is_faulty {
            true => (1 << (32 + 3), 1 << (35 - 32) | 1 << (40 - 32)),
            false => (0, 0),
        };
        let mut words = vec![row, trigger, START + PERIOD * (1 + trigger), first];
        words.extend((0..CHANNELS).map(value));
        words.extend([others, 4 * (row + 1)]);
        sink.write(Rows::new(&words, info.shape()))?;
    }
    sink.flush()?;
    sink.finish(Some(&Totals {
        rows: 200,
        triggers: 1000,
        skipped: 800,
        missed_by: [0; 8],
        lost: 0,
        errors: 20,
        end_time_ns: START + PERIOD * 1000,
        end: End::Complete,
    }))
}

fn write(sink: &mut dyn Sink, finish: bool) -> std::io::Result<()> {
    sink.begin(&info(vec![
        channel("sim.counter", Type::U64, "", 1.0, 0.0),
        channel("adc.volt", Type::S64, "V", 0.001, -1.0),
        channel("adc.real", Type::F64, "mm", 1.0, 0.0),
        channel("sim.counter", Type::U64, "", 1.0, 0.0),
    ]))?;
    let mut words = Vec::new();
    for row in (0..ROWS).filter(|row| !LOST.contains(row)) {
        let trigger = if row < MISSED_BEFORE {
            row
        } else {
            row + MISSED
        };
        let time = START + PERIOD * (1 + trigger);
        let volt = 100 - (row % 200) as i64;
        let real = row as f64 / 8.0;
        let top = u64::MAX - row;
        words.extend([row, trigger, time, 0, top, volt as u64, real.to_bits(), row]);
        if words.len() == FLUSH * 8 {
            sink.write(Rows::new(&words, RowShape::of_channels(4)))?;
            sink.flush()?;
            words.clear();
        }
    }
    sink.write(Rows::new(&words, RowShape::of_channels(4)))?;
    sink.flush()?;
    if !finish {
        return Ok(());
    }
    sink.finish(Some(&Totals {
        rows: ROWS,
        triggers: ROWS + MISSED,
        skipped: 0,
        missed_by: [MISSED, 0, 0, 0, 0, 0, 0, 0],
        lost: LOST.end - LOST.start,
        errors: 0,
        end_time_ns: START + PERIOD * (ROWS + MISSED),
        end: End::Complete,
    }))
}
