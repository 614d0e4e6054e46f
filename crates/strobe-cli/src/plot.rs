// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe plot`: a picture of a recording or a run, or of what `strobe jitter` or `strobe latency` has measured.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use serde_json::Value;
use strobe::runs::RunName;
use strobe_files::sink::Existing;

use crate::at;
use crate::existing;
use crate::rows::{self, RunOrFile};
use crate::term::{self, fail, say};

mod draw;
mod jitter;
mod latency;
#[cfg(feature = "remote")]
mod remote;
mod ring;
mod shares;
mod trace;

use jitter::Results;
use latency::Latencies;
use trace::Trace;

/// Draw a recording or a run, or what strobe jitter or strobe latency has measured
///
/// From a recording, or the rows in the ring of a run: channels over time, and
/// histograms of period and lateness.
/// From the JSON object of strobe jitter: the worst periods over time, and how late
/// the rows of all ways were. From that of strobe latency: how long each step took.
/// The picture is coloured where triggers were missed or rows lost.
#[derive(clap::Args)]
pub struct Args {
    /// The recording: an .arrows or .h5 file; or what strobe jitter or strobe latency has
    /// printed with --json: a .json file; or the number of a run, as `strobe status` shows it
    #[arg(value_name = "RUN|FILE")]
    what: RunOrFile,

    #[command(flatten)]
    at: at::Args,

    /// The picture: .png or .svg
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    existing: existing::Args,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("picture {0}: unknown format; end the name in .png or .svg")]
    Format(String),
    #[error("{0}: has no rows, so there is nothing to draw")]
    Empty(String),
    #[error("{0}: {1}")]
    Results(String, String),
    #[error("picture {0}: the file exists; give it another name, or replace it with --overwrite")]
    Exists(String),
    #[error("picture {0}: cannot be created: {1}")]
    Create(String, io::Error),
    #[error("picture {0}: {1}")]
    Draw(String, String),
    #[error(transparent)]
    Rows(#[from] rows::Error),
    #[error("the font of this program is not usable")]
    Font,
    #[error(transparent)]
    Input(#[from] strobe::error::Error),
}

pub fn run(args: &Args) -> ExitCode {
    match plot(args) {
        Ok(code) => code.into(),
        Err(error) => fail(error),
    }
}

fn plot(args: &Args) -> Result<u8, Error> {
    let name = || args.output.display().to_string();
    let is_svg = match args.output.extension().and_then(|e| e.to_str()) {
        Some("png") => false,
        Some("svg") => true,
        _ => return Err(Error::Format(name())),
    };
    // The letters come with the program: no font of the system is needed.
    register_font(
        "sans-serif",
        FontStyle::Normal,
        epaint_default_fonts::UBUNTU_LIGHT,
    )
    .map_err(|_| Error::Font)?;
    // The system's reason; the drawing library's is vague.
    let create = || match create(&args.output, args.existing.existing()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Exists(name())),
        Err(error) => Err(Error::Create(name(), error)),
        Ok(_) => Ok(()),
    };
    let picture = Picture {
        path: &args.output,
        is_svg,
    };
    if matches!(args.what, RunOrFile::File(_)) {
        args.at.refuse(&[("a file", true)])?;
    }
    let results_of = match &args.what {
        RunOrFile::File(file) => {
            Some(file).filter(|file| file.extension().is_some_and(|e| e == "json"))
        }
        RunOrFile::Run(_) => None,
    };
    if let Some(file) = results_of {
        let drawn = results(file).map_err(|why| Error::Results(file.display().to_string(), why))?;
        create()?;
        let size = match &drawn {
            Drawn::Latencies(latencies) => latencies.size(),
            Drawn::Jitter(results) => results.size(),
            Drawn::Trace(trace) => draw::size(trace),
        };
        let drawn = picture.draw(size, &drawn);
        drawn.map_err(|error| Error::Draw(name(), error))?;
        return Ok(term::COMPLETE);
    }
    let (trace, source) = match &args.what {
        RunOrFile::Run(name) => of_run(args, name)?,
        RunOrFile::File(file) => {
            let trace = Trace::read(&mut |_| Ok(strobe_files::open(file)?))?;
            (trace, file.display().to_string())
        }
    };
    if trace.rows == 0 {
        return Err(Error::Empty(source));
    }
    create()?;
    let drawn = picture.draw(draw::size(&trace), &Drawn::Trace(&trace));
    drawn.map_err(|error| Error::Draw(name(), error))?;
    let (why, status) = match (&trace.totals, &args.what) {
        (Some(_), _) => return Ok(term::COMPLETE),
        (None, RunOrFile::Run(_)) => ("the run goes on", term::COMPLETE),
        (None, RunOrFile::File(_)) => ("the recording was cut off", term::NOT_WHOLE),
    };
    say(format_args!(
        "strobe: {source}: {why}; drawn {} rows",
        trace.rows
    ));
    Ok(status)
}

/// What is drawn of the run of this name, and what it is called.
fn of_run(args: &Args, name: &RunName) -> Result<(Trace, String), Error> {
    #[cfg(feature = "remote")]
    if let Some(server) = args.at.server()? {
        return remote::trace(&server, name);
    }
    ring::trace(args.at.machine()?.as_ref(), name)
}

/// What a measurement has printed; an error in words.
fn results(path: &Path) -> Result<Drawn<'static>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let results: Value = serde_json::from_reader(BufReader::new(file))
        .map_err(|error| format!("is not JSON: {error}"))?;
    if results.get("target").is_none() {
        if let Some(latencies) = Latencies::of(&results) {
            return Ok(Drawn::Latencies(latencies));
        }
    }
    Ok(Drawn::Jitter(Results::of(results)?))
}

/// A file for a picture.
fn create(path: &Path, existing: Existing) -> io::Result<File> {
    match existing {
        Existing::Refuse => File::create_new(path),
        Existing::Overwrite => File::create(path),
    }
}

/// A file to draw into.
struct Picture<'a> {
    path: &'a Path,
    is_svg: bool,
}

/// What is drawn.
enum Drawn<'a> {
    Trace(&'a Trace),
    Jitter(Results),
    Latencies(Latencies),
}

impl Picture<'_> {
    fn draw(&self, size: (u32, u32), what: &Drawn<'_>) -> Result<(), String> {
        match self.is_svg {
            true => all(SVGBackend::new(self.path, size), what),
            false => all(BitMapBackend::new(self.path, size), what),
        }
    }
}

fn all<DB: DrawingBackend>(backend: DB, what: &Drawn<'_>) -> Result<(), String> {
    let words = |error: &dyn Display| error.to_string();
    let root = backend.into_drawing_area();
    match what {
        Drawn::Trace(trace) => draw::draw(&root, trace),
        Drawn::Jitter(results) => results.draw(&root),
        Drawn::Latencies(latencies) => latencies.draw(&root),
    }
    .map_err(|e| words(&e))?;
    root.present().map_err(|e| words(&e))
}
