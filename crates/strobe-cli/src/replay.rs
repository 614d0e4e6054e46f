// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe replay`: a recording as a run of this machine.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use strobe::engine::user::{Lock, ReplayOptions, Settings, Speed, User, UserRun};
use strobe::info::End;
use strobe::ring::State;
use strobe::run::{OwnedRun, Run};

use crate::term::{self, fail, say};

/// Errors of a replay: its recording was cut off; it contradicts itself.
const EPIPE: i32 = 32;
const EBADMSG: i32 = 74;

/// How often readers are counted.
const LOOK: Duration = Duration::from_millis(50);

/// Replay a recording: it becomes a run of this machine, with its gaps, its
/// times and its account
///
/// The run begins when its first reader opens it (`strobe watch`, `strobe record
/// --run` or any other), and the program ends when the last reader has closed it.
#[derive(clap::Args)]
pub struct Args {
    /// The recording: an .arrows or .h5 file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// How fast: 1, 10, 0.5, or max
    #[arg(long, value_name = "SPEED", default_value = "1", value_parser = speed)]
    speed: Speed,

    /// Smallest number of rows that the ring holds (default: the whole recording, up to 256 MiB)
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    ring: Option<u64>,

    /// Other users may read the run, too
    #[arg(long)]
    shared: bool,

    /// Begin at once, and end after the last row; do not wait for readers
    #[arg(long)]
    now: bool,
}

/// Of the command line.
fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    match text.parse::<f64>() {
        Ok(factor) if (1e-3..=1e6).contains(&factor) => Ok(Speed::Times(factor)),
        _ => Err("give a number from 0.001 to 1000000, or max".to_owned()),
    }
}

pub fn run(args: &Args) -> ExitCode {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&interrupted)) {
            return fail(format_args!("signals: {error}"));
        }
    }
    let replay = match Replay::new(args, interrupted) {
        Ok(replay) => replay,
        Err(error) => return fail(error),
    };
    match replay.play(args.now) {
        Ok(status) => status.into(),
        Err(error) => fail(error),
    }
}

struct Replay {
    run: UserRun,
    interrupted: Arc<AtomicBool>,
    /// The run that was recorded had failed.
    had_failed: bool,
}

impl Replay {
    fn new(
        args: &Args,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Replay, Box<dyn std::error::Error>> {
        let recording = strobe_files::open(&args.file)?;
        let end = recording.totals().map(|totals| totals.end);
        let user = User::new(Settings {
            // What it does is not real-time work.
            lock: Lock::None,
            ..Settings::default()
        });
        let options = ReplayOptions {
            speed: args.speed,
            ring: args.ring,
            shared: args.shared,
        };
        let run = user.replay(recording, &options)?;
        let seen = run.info().set_up.iter().find(|step| step.what == "visible");
        if let Some(step) = seen.filter(|step| !step.ok) {
            return Err(io::Error::other(step.got.clone()).into());
        }
        Ok(Replay {
            run,
            interrupted,
            had_failed: matches!(end, Some(End::Failed(_))),
        })
    }

    fn play(&self, now: bool) -> Result<u8, strobe::engine::Error> {
        let name = format!("user:{}", self.run.info().run);
        say(format_args!(
            "{name}: {}{}",
            self.run.info().event,
            match now {
                true => "",
                false => "; it begins when a reader opens it, such as strobe watch",
            }
        ));
        let has_readers = || now || self.run.readers_elsewhere() > 0;
        if !self.wait(has_readers) {
            return Ok(term::INTERRUPTED);
        }
        self.run.start()?;
        let reader = self.run.reader()?;
        let is_over = || reader.snapshot().state.is_final();
        if !self.wait(|| is_over() || !has_readers()) {
            self.run.stop()?;
            return Ok(term::INTERRUPTED);
        }
        // Or nobody is left to make rows for.
        self.run.stop()?;
        // They have all of it in their ring, but are told that the owner has gone when this program ends.
        self.wait(|| now || self.run.readers_elsewhere() == 0);
        let last = reader.snapshot();
        let has_failed = last.state == State::Failed && !self.had_failed;
        say(format_args!(
            "{name}: {} rows, {} missed, {} skipped{}",
            last.head,
            last.missed(),
            last.skipped,
            match (has_failed, -last.error) {
                (false, _) => "",
                (true, EPIPE) => "; the recording was cut off",
                (true, EBADMSG) => "; the recording is damaged: its numbers contradict each other",
                (true, _) => "; the recording cannot be read any further",
            }
        ));
        Ok(match has_failed {
            false => term::COMPLETE,
            true => term::NOT_WHOLE,
        })
    }

    /// Until this is so; false if a signal came first.
    fn wait(&self, is_so: impl Fn() -> bool) -> bool {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return false;
            }
            if is_so() {
                return true;
            }
            sleep(LOOK);
        }
    }
}
