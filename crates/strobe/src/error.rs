// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an engine does not do what it was asked for.

use std::io;

use rustix::io::Errno;
use strobe_hw::uapi;
use strobe_ring::layout::{RING_MAJOR, RING_MINOR};

use crate::quantity::show_ns;

/// Why an engine does not do what it was asked for: the object, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The module is not there.
    #[error("no {path}: the kernel engine is not loaded; load it as root: modprobe strobe")]
    NoModule {
        /// The control device.
        path: String,
    },
    /// The control device cannot be opened.
    #[error(
        "{path}: no permission; become a member of the group strobe (usermod -aG strobe USER, \
         then log in again), or be root"
    )]
    NoPermission {
        /// The control device.
        path: String,
    },
    /// The control device is not that of this program's module.
    #[error(
        "{path}: {call} was refused ({source}); the loaded module and this program are of different versions \
         (its contract is {module}, ours {RING_MAJOR}.{RING_MINOR}): install both from one release, then \
         modprobe -r strobe"
    )]
    Version {
        /// The control device.
        path: String,
        /// What was called.
        call: &'static str,
        /// Version of the module's contract, if it says so.
        module: String,
        /// The errno.
        source: io::Error,
    },
    /// No such event, channel or output.
    #[error("{what} {name}: no such {what}; {instead}")]
    NotHere {
        /// "event", "channel" or "output".
        what: &'static str,
        /// The name asked for.
        name: String,
        /// What there is.
        instead: String,
    },
    /// An event of the other engine.
    #[error(
        "event {0}: the kernel engine does not have it; use the user engine, or timer:PERIOD, soft or \
         device.event (`strobe list` shows them)"
    )]
    NotOfKernel(String),
    /// A channel, output or event that is there, but cannot be used.
    #[error("{what} {name}: {why}")]
    Unusable {
        /// "event", "channel" or "output".
        what: &'static str,
        /// Its name.
        name: String,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// Period out of bounds, or given where none belongs.
    #[error("event {event}: a period of {}: it must be from 1 us to 1 h", show_period(*.period_ns))]
    Period {
        /// The event, as asked for.
        event: String,
        /// Its period.
        period_ns: Option<u64>,
    },
    /// Too many steps.
    #[error("{0} channels and outputs: a row has at most {max}; split them into several runs", max = uapi::STEPS_MAX)]
    Steps(usize),
    /// Another run excludes this one.
    #[error(
        "{object}: used by another run, which excludes this one; `strobe status` shows the runs"
    )]
    Busy {
        /// The event, channel or output.
        object: String,
    },
    /// A value that does not fit.
    #[error("output {output}: {value} does not fit{}", bits.map_or(String::new(), |b| format!("; it has {b} bits")))]
    Value {
        /// The output.
        output: String,
        /// What was to be written.
        value: u64,
        /// Bits it has, if known.
        bits: Option<u32>,
    },
    /// Lateness on an event that is never due.
    #[error(
        "channel {channel}: event {event} is never due, so no row of it can be late; leave the channel out, or use a timer"
    )]
    Due {
        /// The channel.
        channel: String,
        /// The event.
        event: String,
    },
    /// A ring of an impossible size.
    #[error("a ring of {0} rows: it can have from 2 to {max} rows", max = uapi::CAPACITY_MAX)]
    Capacity(u64),
    /// More memory than rings may have.
    #[error(
        "a ring of {}: all rings together would be larger than the module allows; use a shorter \
         ring, or raise /sys/module/strobe/parameters/ring_bytes_max", show_bytes(*.0)
    )]
    Memory(u64),
    /// The system has not enough memory.
    #[error("a ring of {}: not enough memory; use a shorter ring", show_bytes(*.0))]
    NoMemory(u64),
    /// The driver of a device refused.
    #[error("{object}: its driver refused: {source}; see the kernel's log (dmesg)")]
    Provider {
        /// The channel or output.
        object: String,
        /// Its reason.
        source: io::Error,
    },
    /// A priority that there is not, or that the user may not have.
    #[error(
        "priority {0}: a run's thread may have 1 to {max}, and more than {default} needs RLIMIT_RTPRIO (ulimit -r) or \
         CAP_SYS_NICE; ask for no priority, or be root", max = uapi::PRIORITY_MAX, default = uapi::PRIORITY_DEFAULT
    )]
    Priority(u8),
    /// Steps that take too long in an interrupt.
    #[error(
        "run on event {event}: its steps take about {} in an interrupt, and may take {}; leave channels or outputs \
         out, or be root", show_ns(*.cost_ns as f64), show_ns(uapi::COST_MAX as f64)
    )]
    Cost {
        /// The event.
        event: String,
        /// What the steps of a row take.
        cost_ns: u64,
    },
    /// A user with too many runs.
    #[error(
        "run on event {0}: this user has as many runs as one may have; `strobe status` shows them; end one"
    )]
    Runs(String),
    /// Too many async channels, of all runs.
    #[error(
        "run on event {0}: all runs together would have more than 1024 async channels; leave async channels out, or \
         end another run"
    )]
    Async(String),
    /// There is no more of what a call needs.
    #[error("{doing} failed: {source}; {remedy}")]
    Exhausted {
        /// What was asked for, of which object.
        doing: String,
        /// The errno.
        source: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A run that is not there, or not any more.
    #[error("run kernel:{0}: no such run, or it has just ended; `strobe status` shows the runs")]
    NoRun(u32),
    /// A run of another user.
    #[error(
        "run kernel:{0}: belongs to another user, who has not shared it; ask for that, or be root"
    )]
    NotShared(u32),
    /// A call on a run failed.
    #[error("run on event {event}: {doing} failed: {source}")]
    Run {
        /// The event.
        event: String,
        /// What was asked for.
        doing: &'static str,
        /// The errno.
        source: io::Error,
    },
    /// There is no reader of a run.
    #[error("{run}: {doing} failed: {source}")]
    Reader {
        /// The run.
        run: String,
        /// What was asked for.
        doing: &'static str,
        /// The errno.
        source: io::Error,
    },
    /// A reader that was to fail then has lost rows.
    #[error(
        "{run}: {rows} rows were overwritten before they were read; read more often, or make its ring longer"
    )]
    Lost {
        /// The run.
        run: String,
        /// How many.
        rows: u64,
    },
    /// A place of rows that is no run, such as a file, has no more.
    #[error("{0}")]
    Rows(Box<dyn std::error::Error + Send + Sync>),
    /// The ring is not one that this program reads.
    #[error("{run}: {source}")]
    Ring {
        /// The run.
        run: String,
        /// What is wrong with it.
        source: strobe_ring::AttachError,
    },
}

impl Error {
    /// For a call that failed since there is no more of what it needs; `None` for another reason.
    pub(crate) fn exhausted(doing: impl Into<String>, errno: Errno) -> Option<Error> {
        let remedy = match errno {
            Errno::MFILE => "close files of this process, or raise its limit (ulimit -n)",
            Errno::NFILE => {
                "end programs that have many files open, or raise the sysctl fs.file-max"
            }
            Errno::NOMEM => "end other programs or runs, or use a shorter ring",
            Errno::USERS => "this user has as many readers of the run as one may have; end one",
            _ => return None,
        };
        Some(Error::Exhausted {
            doing: doing.into(),
            source: errno.into(),
            remedy,
        })
    }
}

fn show_period(period_ns: Option<u64>) -> String {
    period_ns.map_or("none".to_owned(), |ns| show_ns(ns as f64))
}

/// Memory for people.
fn show_bytes(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        0 => "unknown size".to_owned(),
        b if b < MIB => format!("{} KiB", b.div_ceil(1024)),
        b => format!("{} MiB", b.div_ceil(MIB)),
    }
}
