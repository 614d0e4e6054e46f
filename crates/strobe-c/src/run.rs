// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: made here, or of another program.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use strobe::engine::user::Lock;
use strobe::error::Error;
use strobe::info::Totals;
use strobe::ring::{Snapshot, State};
use strobe::run::{OwnedRun, Run};
use strobe::runs::{RunName, Runs};
use strobe_files::recipe::{Recipe, setting};

use crate::call::{self, Failure, Result, c_text, call, optional, seen, text};

/// Where a run is.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum strobe_run_state {
    /// It waits for its start.
    STROBE_RUN_READY,
    /// Triggers make rows.
    STROBE_RUN_RUNNING,
    /// Triggers are not counted.
    STROBE_RUN_PAUSED,
    /// It has made all its rows.
    STROBE_RUN_DONE,
    /// It was stopped.
    STROBE_RUN_STOPPED,
    /// It has failed, such as by a device that went away.
    STROBE_RUN_FAILED,
    /// In another state, which a newer strobe has.
    STROBE_RUN_OTHER,
}

/// The account of a run. Set `size` to `sizeof(struct strobe_account)` before each call: a library that knows more, or
/// less, than the program was compiled with fills what both know.
///
/// triggers = rows + missed + skipped
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct strobe_account {
    /// Bytes of this struct, set by the program.
    pub size: usize,
    /// Rows made.
    pub rows: u64,
    /// Triggers there were.
    pub triggers: u64,
    /// Triggers that should have made a row, and did not.
    pub missed: u64,
    /// Triggers that were left out on purpose: no loss.
    pub skipped: u64,
    /// Rows that were overwritten before this reader, or this recording, read them.
    pub lost: u64,
    /// Rows in which a channel or an output failed.
    pub errors: u64,
    /// An `enum strobe_run_state`.
    pub state: u32,
    /// Always 0.
    pub reserved: u32,
}

impl strobe_account {
    pub fn of(now: &Snapshot, lost: u64) -> strobe_account {
        strobe_account {
            rows: now.head,
            triggers: now.triggers,
            missed: now.missed(),
            skipped: now.skipped,
            lost,
            errors: now.errors,
            state: state(now.state) as u32,
            ..strobe_account::default()
        }
    }

    /// Of rows that have come to their end.
    pub fn of_totals(totals: &Totals) -> strobe_account {
        use strobe::info::End;
        strobe_account {
            rows: totals.rows,
            triggers: totals.triggers,
            missed: totals.missed(),
            skipped: totals.skipped,
            lost: totals.lost,
            errors: totals.errors,
            state: match totals.end {
                End::Complete => strobe_run_state::STROBE_RUN_DONE,
                End::Stopped => strobe_run_state::STROBE_RUN_STOPPED,
                End::Failed(_) => strobe_run_state::STROBE_RUN_FAILED,
            } as u32,
            ..strobe_account::default()
        }
    }

    /// Writes as much of it as the program has room for; what the program knows more is 0.
    ///
    /// # Safety
    /// `to` is NULL, or there are as many bytes as its `size` says.
    pub unsafe fn give(mut self, to: *mut strobe_account) -> Result<()> {
        // SAFETY: its size at least is there, as the caller promises.
        let size = unsafe { seen(to.cast::<usize>(), "account") }?;
        self.size = *size;
        let known = size_of::<strobe_account>();
        if self.size < size_of::<usize>() + size_of::<u64>() {
            let why = format!("its size is {}", self.size);
            return Err(Failure::new(
                "account",
                why,
                "set size to sizeof(struct strobe_account) first",
            ));
        }
        let from = ptr::from_ref(&self).cast::<u8>();
        // SAFETY: not more than either of both has, and they are apart.
        unsafe { ptr::copy_nonoverlapping(from, to.cast::<u8>(), self.size.min(known)) };
        if let Some(more) = self.size.checked_sub(known) {
            // SAFETY: what is behind it is the program's, as its size says.
            unsafe { ptr::write_bytes(to.cast::<u8>().add(known), 0, more) };
        }
        Ok(())
    }
}

pub fn state(state: State) -> strobe_run_state {
    match state {
        State::Ready => strobe_run_state::STROBE_RUN_READY,
        State::Running => strobe_run_state::STROBE_RUN_RUNNING,
        State::Paused => strobe_run_state::STROBE_RUN_PAUSED,
        State::Done => strobe_run_state::STROBE_RUN_DONE,
        State::Stopped => strobe_run_state::STROBE_RUN_STOPPED,
        State::Failed => strobe_run_state::STROBE_RUN_FAILED,
        #[allow(unreachable_patterns)] // a newer one
        _ => strobe_run_state::STROBE_RUN_OTHER,
    }
}

pub enum Kind {
    Own(Arc<dyn OwnedRun>),
    Others(Box<dyn Run>),
}

/// A run. All threads may use it at the same time.
pub struct strobe_run {
    pub kind: Kind,
    name: CString,
    channels: Vec<(CString, CString)>,
}

impl strobe_run {
    fn new(kind: Kind) -> strobe_run {
        let mut run = strobe_run {
            kind,
            name: CString::default(),
            channels: Vec::new(),
        };
        let info = run.run().info();
        let name = c_text(&format!("{}:{}", info.engine.name(), info.run));
        let names = strobe::channel::column_names(&info.channels).into_iter();
        let channels = names.zip(&info.channels);
        let channels = channels.map(|(name, channel)| (c_text(&name), c_text(&channel.unit)));
        (run.channels, run.name) = (channels.collect(), name);
        run
    }

    /// It, whoever has made it.
    pub fn run(&self) -> &dyn Run {
        match &self.kind {
            Kind::Own(run) => run.as_ref(),
            Kind::Others(run) => run.as_ref(),
        }
    }

    fn own(&self) -> Result<&dyn OwnedRun> {
        match &self.kind {
            Kind::Own(run) => Ok(run.as_ref()),
            Kind::Others(_) => Err(Failure::new(
                &format!("run {}", self.name.to_string_lossy()),
                "it belongs to another program",
                "read it; only the program that made it can control it",
            )),
        }
    }
}

fn made(recipe: &Recipe) -> Result<*mut strobe_run> {
    let mut selection = recipe.selection().map_err(Failure::text)?;
    // The memory of the program is its own affair.
    selection.lock = Lock::RingAndStack;
    let plan = recipe.plan();
    if recipe.needs_a_clock() {
        return Err(Failure::new(
            "recipe",
            "`for` gives no number of rows here: the event has no period, or a program chooses rows",
            "leave `for` out, and call strobe_run_stop when it is time",
        ));
    }
    let chosen = selection.choose(&plan).map_err(Failure::text)?;
    let run = chosen.create(&plan)?;
    Ok(call::handle(strobe_run::new(Kind::Own(run))))
}

/// Makes the run of a recipe's file, which waits for its start. It ends when it is freed. NULL if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_of_recipe(path: *const c_char) -> *mut strobe_run {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let path = unsafe { text(path, "path of a recipe") }?;
        made(&Recipe::read(Path::new(path)).map_err(Failure::text)?)
    })
}

/// The same of a recipe's text, such as `"event = 'timer:1kHz'\nread = ['sim.sine']\nrows = 1000"`. Its keys are those
/// of a recipe's file: docs/reference/command-line.md explains them. `sinks`, `last` and `sync` are not of the run:
/// `strobe_run_record` takes sinks and flags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_of_text(recipe: *const c_char) -> *mut strobe_run {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let recipe = unsafe { text(recipe, "text of a recipe") }?;
        made(&Recipe::from_toml("recipe", recipe).map_err(Failure::text)?)
    })
}

/// The same of words as `strobe record` takes them: an event, channels with commas between them, and outputs with their
/// values (`"sim.latch=1,sim.level=3"`; NULL: none). It ends after so many rows; 0: when it is stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_new(
    event: *const c_char,
    read: *const c_char,
    set: *const c_char,
    rows: u64,
) -> *mut strobe_run {
    let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let (event, read, set) = unsafe {
            (
                text(event, "event")?,
                optional(read, "channels")?,
                optional(set, "outputs")?,
            )
        };
        let mut recipe = Recipe::new(event.parse().map_err(Failure::text)?);
        recipe.read = read.map(words).unwrap_or_default();
        for word in set.map(words).unwrap_or_default() {
            let step = setting(&word).map_err(|why| Failure::text(format!("output {word}: {why}")));
            recipe.set.push(step?);
        }
        recipe.rows = (rows > 0).then_some(rows);
        made(&recipe)
    })
}

/// A run of another program, by its name: `user:3`, or `3`. It can be read, and does not notice that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_attach(name: *const c_char) -> *mut strobe_run {
    call(ptr::null_mut(), || {
        // SAFETY: as the header demands.
        let name = unsafe { text(name, "name of a run") }?;
        let parsed: RunName = name
            .parse()
            .map_err(|why| Failure::text(format!("run {name}: {why}")))?;
        let place = Runs::now().find(&parsed).map_err(Failure::text)?;
        let run = place.attach().map_err(Failure::text)?;
        Ok(call::handle(strobe_run::new(Kind::Others(run))))
    })
}

/// Frees it. A run that was made here ends; what is in its ring can be read by who reads it already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_free(run: *mut strobe_run) {
    // SAFETY: as the header demands.
    unsafe { call::free(run) };
}

/// What is asked of one's own run.
///
/// # Safety
/// As of [`seen`].
unsafe fn steer(
    run: *const strobe_run,
    verb: impl FnOnce(&dyn OwnedRun) -> std::result::Result<(), Error>,
) -> c_int {
    call(-1, || {
        // SAFETY: as the caller promises.
        let run = unsafe { seen(run, "run") }?;
        verb(run.own()?)?;
        Ok(0)
    })
}

/// Triggers make rows from now on. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_start(run: *const strobe_run) -> c_int {
    // SAFETY: as the header demands.
    unsafe { steer(run, |run| run.start()) }
}

/// Ends the run; nothing if it has ended. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_stop(run: *const strobe_run) -> c_int {
    // SAFETY: as the header demands.
    unsafe { steer(run, |run| run.stop()) }
}

/// Triggers are not counted from now on, until the run goes on. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_pause(run: *const strobe_run) -> c_int {
    // SAFETY: as the header demands.
    unsafe { steer(run, |run| run.pause()) }
}

/// A paused run goes on. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_resume(run: *const strobe_run) -> c_int {
    // SAFETY: as the header demands.
    unsafe { steer(run, |run| run.resume()) }
}

/// So many triggers of the event `soft`. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_trigger(run: *const strobe_run, count: u32) -> c_int {
    // SAFETY: as the header demands.
    unsafe { steer(run, |run| run.trigger(count)) }
}

/// Gives a tunable of the run's program a new value: a number in the unit of the column that shows it, such as `"1000"`,
/// or one with a unit, such as `"2.5 mV"`. Also of another program's run, if this user may tune it. The column shows from
/// which row on it was so. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_tune(
    run: *const strobe_run,
    tunable: *const c_char,
    value: *const c_char,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let (run, tunable, value) = unsafe {
            (
                seen(run, "run")?,
                text(tunable, "name of a tunable")?,
                text(value, "value of a tunable")?,
            )
        };
        run.run().tune(tunable, value)?;
        Ok(0)
    })
}

/// Its name among runs, such as `user:3`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_name(run: *const strobe_run) -> *const c_char {
    call(ptr::null(), || {
        // SAFETY: as the header demands.
        Ok(unsafe { seen(run, "run") }?.name.as_ptr())
    })
}

/// How many channels a row has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_channels(run: *const strobe_run) -> usize {
    call(0, || {
        // SAFETY: as the header demands.
        Ok(unsafe { seen(run, "run") }?.channels.len())
    })
}

/// The name of a channel; one that a row has twice is called `name#2` the second time. NULL if there is no such channel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_channel(run: *const strobe_run, index: usize) -> *const c_char {
    // SAFETY: as the header demands.
    unsafe { channel(run, index, |(name, _)| name.as_ptr()) }
}

/// The unit of a channel's values; empty if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_unit(run: *const strobe_run, index: usize) -> *const c_char {
    // SAFETY: as the header demands.
    unsafe { channel(run, index, |(_, unit)| unit.as_ptr()) }
}

/// One text of a channel.
///
/// # Safety
/// As of [`seen`].
unsafe fn channel(
    run: *const strobe_run,
    index: usize,
    part: impl FnOnce(&(CString, CString)) -> *const c_char,
) -> *const c_char {
    call(ptr::null(), || {
        // SAFETY: as the caller promises.
        let run = unsafe { seen(run, "run") }?;
        let count = run.channels.len();
        let none = || {
            Failure::new(
                "run",
                format!("no channel {index}"),
                &format!("it has {count}"),
            )
        };
        run.channels.get(index).map(part).ok_or_else(none)
    })
}

/// The account of the run, now; `lost` is 0, for that is each reader's own. 0, or -1 if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_account(
    run: *const strobe_run,
    account: *mut strobe_account,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let run = unsafe { seen(run, "run") }?;
        let now = run.run().snapshot()?;
        // SAFETY: as the header demands.
        unsafe { strobe_account::of(&now, 0).give(account) }?;
        Ok(0)
    })
}
