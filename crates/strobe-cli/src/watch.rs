// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe watch`: a live view of one run. It only reads: the run does not notice it. Of a recording it shows a replay.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use strobe::engine::user::{Lock, ReplayOptions, Settings, User, UserRun};
use strobe::figures::Figures;
use strobe::machine::Machine;
use strobe::run::{OwnedRun, Run};
use strobe::runs::{AttachError, Place};
use strobe::source::Live;

use crate::at;
use crate::rows::RunOrFile;
use crate::term::{answer, fail, say};

mod choose;
mod view;

/// Distance of two pictures.
const EVERY: Duration = Duration::from_millis(100);

/// Watch a run live, or a recording as if it were live; q quits
///
/// Watching reads the run's ring with a cursor of its own and disturbs neither the
/// run nor its recording. A recording is replayed at its own speed.
#[derive(clap::Args)]
pub struct Args {
    /// Number of the run, as `strobe status` shows it; kernel:N or user:N if both
    /// engines have it; or a recording (.arrows or .h5). Without it: the only run,
    /// or a list to choose from
    #[arg(value_name = "RUN|FILE")]
    what: Option<RunOrFile>,

    #[command(flatten)]
    at: at::Args,
}

/// Why there is nothing to watch.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "watch needs a terminal for its input and output; use `strobe status --json` for programs"
    )]
    NoTerminal,
    #[error(
        "there are no runs; start one, such as: strobe record --event timer:1kHz --read sim.counter"
    )]
    NoRun,
    #[error("{0}")]
    Name(String),
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Machine(#[from] strobe::error::Error),
}

pub fn run(args: &Args) -> ExitCode {
    match watch(args) {
        Ok(text) => answer(&text),
        Err(error) => fail(error),
    }
}

/// The last words, once the terminal is as it was.
fn watch(args: &Args) -> Result<String, Error> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Error::NoTerminal);
    }
    let leave = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&leave))?;
    }
    if let Some(RunOrFile::File(file)) = &args.what {
        args.at.refuse(&[("a recording", true)])?;
        let watched = WatchedRun::file(file)?;
        return watched.show(&mut Screen::new(leave)?);
    }
    let machine = args.at.machine()?;
    let runs = machine.runs()?;
    for note in &runs.notes {
        say(format_args!("strobe: {note}"));
    }
    let place = match &args.what {
        Some(RunOrFile::Run(name)) => Some(runs.find(name).map_err(Error::Name)?),
        _ => match runs.places().as_slice() {
            [] => return Err(Error::NoRun),
            [place] => Some(*place),
            _ => None,
        },
    };
    // Before the screen is taken, so that a refusal is an ordinary message.
    let watched = place.map(|place| WatchedRun::new(machine.as_ref(), place));
    let watched = watched.transpose()?;
    let mut screen = Screen::new(leave)?;
    let watched = match watched {
        Some(watched) => watched,
        None => match choose::choose(machine.as_ref(), &mut screen)? {
            Some(place) => WatchedRun::new(machine.as_ref(), place)?,
            None => return Ok(String::new()),
        },
    };
    watched.show(&mut screen)
}

/// What a key means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Leave,
    Up,
    Down,
    Enter,
}

/// The terminal while it is ours; whatever happens, it is given back as it was.
struct Screen {
    /// There until the end.
    terminal: Option<DefaultTerminal>,
    leave: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal. A panic gives it back before it says anything.
    fn new(leave: Arc<AtomicBool>) -> io::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        let terminal = Some(terminal);
        Ok(Screen { terminal, leave })
    }

    fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match &mut self.terminal {
            Some(terminal) => terminal.draw(render).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The next key that means something; none if there was none for a while.
    fn key(&self) -> io::Result<Option<Key>> {
        if self.leave.load(Ordering::Relaxed) || is_hung_up_after(EVERY) {
            return Ok(Some(Key::Leave));
        }
        let ready = match event::poll(Duration::ZERO) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
            ready => ready?,
        };
        if !ready {
            return Ok(None);
        }
        let Event::Key(key) = event::read()? else {
            return Ok(None);
        };
        if key.kind == KeyEventKind::Release {
            return Ok(None);
        }
        Ok(match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Leave),
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Key::Leave),
            KeyCode::Up | KeyCode::Char('k') => Some(Key::Up),
            KeyCode::Down | KeyCode::Char('j') => Some(Key::Down),
            KeyCode::Enter => Some(Key::Enter),
            _ => None,
        })
    }
}

/// Waits for a key. Answers whether the terminal has gone away, as one does whose window was closed: not every
/// process is sent a SIGHUP then, and crossterm would read its end for ever.
fn is_hung_up_after(time: Duration) -> bool {
    let stdin = io::stdin();
    let mut poll = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec::try_from(time).unwrap_or_default();
    // An error is a signal, or says nothing about the terminal.
    let _ = rustix::event::poll(&mut poll, Some(&time));
    let [terminal] = poll;
    terminal
        .revents()
        .intersects(PollFlags::HUP | PollFlags::ERR)
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A panic has done it already, and its message must not be written over.
        if !std::thread::panicking() {
            let restored = ratatui::try_restore();
            let terminal = self.terminal.take();
            if restored.is_err() {
                // It is gone: dropping this would complain of that to nobody, and panic.
                std::mem::forget(terminal);
            }
        }
    }
}

/// A run, and what was seen of it.
struct WatchedRun {
    run: Box<dyn Live>,
    figures: Figures,
    /// Makes the rows, if the run is a recording's.
    _replay: Option<UserRun>,
}

impl WatchedRun {
    fn new(machine: &dyn Machine, place: Place) -> Result<Self, Error> {
        let run = machine.live(place)?;
        let figures = Figures::new(place.to_string(), run.info().clone());
        Ok(WatchedRun {
            run,
            figures,
            _replay: None,
        })
    }

    /// A recording, which begins now.
    fn file(file: &Path) -> Result<Self, Error> {
        let recording = strobe_files::open(file).map_err(strobe::error::Error::from)?;
        // What it does is not real-time work.
        let user = User::new(Settings {
            lock: Lock::None,
            ..Settings::default()
        });
        let replay = user.replay(recording, &ReplayOptions::default())?;
        let reader = replay.reader()?;
        replay.start()?;
        let figures = Figures::new(file.display().to_string(), replay.info().clone());
        Ok(WatchedRun {
            run: Box::new(reader),
            figures,
            _replay: Some(replay),
        })
    }

    /// Until somebody leaves.
    fn show(mut self, screen: &mut Screen) -> Result<String, Error> {
        loop {
            self.figures.update(self.run.as_mut());
            let figures = &self.figures;
            screen.draw(|frame| view::draw(frame, figures))?;
            if screen.key()? == Some(Key::Leave) {
                return Ok(self.figures.last_words());
            }
        }
    }
}
