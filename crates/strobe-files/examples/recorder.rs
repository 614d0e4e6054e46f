// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records a run whose triggers are lines on standard input, so that another
//! program can look at the files while they are written, and kill this one.
//! `tests/files/run` does that.
//!
//! Each line is 100 triggers; the last one of them is missed. Each line is
//! answered by one on standard error when its rows are in the ring. At the end
//! of the input the run is done, and the account is on standard error. Exit
//! status: 0, or 3 if something but triggers was lost.

use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use strobe::channel::{Channel, Class, Type};
use strobe::engine;
use strobe::info::{Clock, RunInfo};
use strobe::reader::{ReaderOptions, RunReader, Waiter};
use strobe::ring::{
    End, Engine, Geometry, Header, Memory, MemoryMut, Missed, Reader, RowShape, StartTimes, Writer,
};
use strobe::run::{OwnedRun, Run};
use strobe::stop::Stop;
use strobe_files::record::{Options, record};

const PERIOD: u64 = 1_000_000;
const START: u64 = 1_000_000_000;
const CAPACITY: u64 = 1 << 16;
/// Triggers of a line.
const STEP: u64 = 100;

struct Lines {
    info: RunInfo,
    memory: Memory,
    writer: Mutex<Writer>,
}

/// Looks again and again; nobody waits for its descriptor.
struct Polling(File);

impl Waiter for Polling {
    fn wait(&self, _: &Reader, _: u64, timeout: Duration) -> io::Result<()> {
        std::thread::sleep(timeout.min(Duration::from_millis(5)));
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn arm(&self, _: &Reader, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn disarm(&self) -> io::Result<()> {
        Ok(())
    }

    fn wake_at_each_row(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Run for Lines {
    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn reader_with(&self, options: ReaderOptions) -> Result<RunReader, engine::Error> {
        let ring = Reader::attach(self.memory.clone(), options.begin);
        let ring = ring.map_err(|source| engine::Error::Ring {
            run: format!("run on event {}", self.info.event),
            source,
        })?;
        let null = File::open("/dev/null").map_err(|source| engine::Error::Reader {
            run: format!("run on event {}", self.info.event),
            doing: "making a reader",
            source,
        })?;
        Ok(RunReader::new(
            ring,
            Box::new(Polling(null)),
            &self.info,
            options,
        ))
    }
}

impl OwnedRun for Lines {
    fn start(&self) -> Result<(), engine::Error> {
        let times = StartTimes {
            time: START,
            realtime: 1_767_225_600_000_000_000,
            tai: 1_767_225_637_000_000_000,
            first_due: START + PERIOD,
        };
        self.with(|writer| writer.start(times).map_err(drop));
        Ok(())
    }

    fn stop(&self) -> Result<(), engine::Error> {
        self.with(|writer| {
            writer.finish(End::Stopped, START);
            Ok(())
        });
        Ok(())
    }

    fn trigger(&self, _: u32) -> Result<(), engine::Error> {
        Ok(())
    }

    fn pause(&self) -> Result<(), engine::Error> {
        Ok(())
    }

    fn resume(&self) -> Result<(), engine::Error> {
        Ok(())
    }
}

impl Lines {
    fn new() -> Option<Self> {
        let channel = |name: &str, kind, unit: &str, scale| Channel {
            name: name.to_owned(),
            description: format!("{name}, made up"),
            unit: unit.to_owned(),
            kind,
            class: Class::Hard,
            scale,
            offset: 0.0,
            bits: 64,
            cost_ns: 10,
            in_use: true,
        };
        let channels = vec![
            channel("sim.counter", Type::U64, "", 1.0),
            channel("adc.volt", Type::S64, "V", 0.001),
            channel("adc.real", Type::F64, "mm", 1.0),
        ];
        let geometry = Geometry::new(RowShape::of_channels(3), CAPACITY, u64::MAX).ok()?;
        let header = Header {
            geometry,
            clock: 1,
            period_ns: PERIOD,
            run: 1,
            engine: Engine::User,
            absent: false,
        };
        let memory = MemoryMut::zeroed(usize::try_from(geometry.bytes()).ok()?);
        let writer = Writer::create(memory, &header).ok()?;
        Some(Lines {
            info: RunInfo {
                engine: Engine::User,
                kernel: "6.12.0".to_owned(),
                event: "timer:1kHz".to_owned(),
                run: 1,
                clock: Clock::Monotonic,
                period_ns: Some(PERIOD),
                capacity: CAPACITY,
                limit: None,
                start: StartTimes::default(),
                channels,
                outputs: Vec::new(),
                tunables: Vec::new(),
                skips: false,
                accounting: strobe::accounting::Accounting::Exact,
                set_up: Vec::new(),
                doctor: Vec::new(),
            },
            memory: writer.for_reader(),
            writer: Mutex::new(writer),
        })
    }

    fn with(&self, act: impl FnOnce(&mut Writer) -> Result<(), ()>) {
        if let Ok(mut writer) = self.writer.lock() {
            if act(&mut writer).is_err() {
                eprintln!("recorder: the run is not in that state");
            }
        }
    }

    /// The triggers of one line.
    fn step(&self) {
        self.with(|writer| {
            for n in 0..STEP - 1 {
                let row = writer.head();
                let volt = 100 - (row % 200) as i64;
                let real = row as f64 / 8.0;
                let time = START + PERIOD * (1 + writer.triggers());
                // A quarter of a row's period late, and a little more each time.
                let time = time + PERIOD / 4 + 100 * n;
                writer.push(time, 0, &[u64::MAX - row, volt as u64, real.to_bits()]);
            }
            writer.miss(Missed::Overrun, 1);
            Ok(())
        });
    }

    fn follow_input(&self) {
        for line in io::stdin().lock().lines() {
            if line.is_err() {
                break;
            }
            self.step();
            eprintln!("stepped");
        }
        self.with(|writer| {
            let end = START + PERIOD * writer.triggers();
            writer.finish(End::Done, end);
            Ok(())
        });
    }
}

fn main() -> ExitCode {
    let Some(run) = Lines::new() else {
        return ExitCode::FAILURE;
    };
    let options = Options {
        sinks: std::env::args().skip(1).collect(),
        ..Options::default()
    };
    let summary = std::thread::scope(|scope| {
        let mut input = Some(scope);
        record(&run, &options, &Stop::default(), &mut |_| {
            // The first time, the run has been started.
            if let Some(scope) = input.take() {
                let run = &run;
                scope.spawn(move || run.follow_input());
            }
        })
    });
    match summary {
        Ok(summary) => {
            eprintln!("{}", serde_json::to_string(&summary).unwrap_or_default());
            let whole = summary.lost == 0 && summary.sinks.iter().all(|o| o.error.is_none());
            ExitCode::from(if whole { 0 } else { 3 })
        }
        Err(error) => {
            eprintln!("recorder: {error}");
            ExitCode::FAILURE
        }
    }
}
