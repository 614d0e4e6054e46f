// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an engine does not do what it was asked for.

use std::fmt;
use std::io;

use rustix::io::Errno;
use strobe_hw::uapi;
use strobe_ring::layout::{RING_MAJOR, RING_MINOR};

use crate::quantity::show_ns;

/// An error in words. As a text: `object: reason; remedy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// What it is about.
    pub object: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to do, if anything can be done.
    pub remedy: Option<String>,
}

impl Words {
    /// Without a remedy.
    pub fn new(object: impl Into<String>, reason: impl Into<String>) -> Words {
        Words {
            object: object.into(),
            reason: reason.into(),
            remedy: None,
        }
    }

    /// With this remedy.
    #[must_use]
    pub fn mend(self, remedy: impl Into<String>) -> Words {
        Words {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.reason)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

/// Why an engine does not do what it was asked for, or rows cannot be had: the object, the reason and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The module is not there.
    NoModule {
        /// The control device.
        path: String,
    },
    /// The control device cannot be opened.
    NoPermission {
        /// The control device.
        path: String,
    },
    /// The control device is not that of this program's module.
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
    NotHere {
        /// "event", "channel" or "output".
        what: &'static str,
        /// The name asked for.
        name: String,
        /// What there is.
        instead: String,
    },
    /// What is wrong with a program.
    Program(Box<strobe_expr::Fault>),
    /// The kernel engine, a program, and why it does not run it.
    ProgramOfKernel(String),
    /// A run has no such tunable.
    NoTunable {
        /// The name asked for.
        name: String,
        /// The event of the run.
        event: String,
        /// Names of those it has.
        instead: Vec<String>,
    },
    /// An event of the other engine.
    NotOfKernel(String),
    /// A channel, output or event that is there, but cannot be used.
    Unusable {
        /// "event", "channel" or "output".
        what: &'static str,
        /// Its name.
        name: String,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// Period out of bounds, or given where none belongs.
    Period {
        /// The event, as asked for.
        event: String,
        /// Its period.
        period_ns: Option<u64>,
    },
    /// Too many steps.
    Steps(usize),
    /// Another run excludes this one.
    Busy {
        /// The event, channel or output.
        object: String,
    },
    /// A value that does not fit.
    Value {
        /// The output.
        output: String,
        /// What was to be written.
        value: u64,
        /// Bits it has, if known.
        bits: Option<u32>,
    },
    /// Lateness on an event that is never due.
    Due {
        /// The channel.
        channel: String,
        /// The event.
        event: String,
    },
    /// A ring of an impossible size.
    Capacity(u64),
    /// More memory than rings may have.
    Memory(u64),
    /// The system has not enough memory.
    NoMemory(u64),
    /// The driver of a device refused.
    Provider {
        /// The channel or output.
        object: String,
        /// Its reason.
        source: io::Error,
    },
    /// A priority that there is not, or that the user may not have.
    Priority(u8),
    /// Steps that take too long in an interrupt.
    Cost {
        /// The event.
        event: String,
        /// What the steps of a row take.
        cost_ns: u64,
    },
    /// A user with too many runs.
    Runs(String),
    /// Too many async channels, of all runs.
    Async(String),
    /// There is no more of what a call needs.
    Exhausted {
        /// Of what.
        object: String,
        /// What was asked for.
        doing: String,
        /// The errno.
        source: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A run that is not there, or not any more.
    NoRun(u32),
    /// A run of another user.
    NotShared(u32),
    /// A call on a run failed.
    Run {
        /// The event.
        event: String,
        /// What was asked for.
        doing: &'static str,
        /// The errno.
        source: io::Error,
    },
    /// There is no reader of a run.
    Reader {
        /// The run.
        run: String,
        /// What was asked for.
        doing: &'static str,
        /// The errno.
        source: io::Error,
    },
    /// A reader that was to fail then has lost rows.
    Lost {
        /// The run.
        run: String,
        /// How many.
        rows: u64,
    },
    /// A place of rows that is no run, such as a file, has no more.
    Rows(Words),
    /// A server, or the way to it, does not do what it was asked for.
    Server(Words),
    /// The ring is not one that this program reads.
    Ring {
        /// The run.
        run: String,
        /// What is wrong with it.
        source: strobe_ring::AttachError,
    },
}

impl Error {
    /// For a call that failed since there is no more of what it needs; `None` for another reason.
    pub(crate) fn exhausted(
        object: impl Into<String>,
        doing: impl Into<String>,
        errno: Errno,
    ) -> Option<Error> {
        let remedy = match errno {
            Errno::MFILE => "close files of this process, or raise its limit (ulimit -n)",
            Errno::NFILE => "end programs that hold many files, or raise the sysctl fs.file-max",
            Errno::NOMEM => "end other programs or runs, or use a shorter ring",
            Errno::USERS => "this user has reached the limit of readers of the run; end one",
            _ => return None,
        };
        Some(Error::Exhausted {
            object: object.into(),
            doing: doing.into(),
            source: errno.into(),
            remedy,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().fmt(f)
    }
}

impl Error {
    /// What it is about.
    pub fn object(&self) -> String {
        self.words().object
    }

    /// What is wrong with it.
    pub fn reason(&self) -> String {
        self.words().reason
    }

    /// What to do, if anything can be done.
    pub fn remedy(&self) -> Option<String> {
        self.words().remedy
    }

    /// All of it.
    pub fn words(&self) -> Words {
        let run_on = |event: &str| format!("run on event {event}");
        let kernel_run = |number: &u32| format!("run kernel:{number}");
        let ring_of = |bytes: &u64| format!("a ring of {}", show_bytes(*bytes));
        let failed = |doing: &str, source: &io::Error| format!("{doing} failed: {source}");
        match self {
            Error::NoModule { path } => Words::new(path, "not available: the kernel engine is not loaded")
                .mend("load it as root: modprobe strobe"),
            Error::NoPermission { path } => Words::new(path, "no permission").mend(
                "become a member of the group strobe (usermod -aG strobe USER, then log in again), or be root",
            ),
            Error::Version {
                path,
                call,
                module,
                source,
            } => Words::new(
                path,
                format!(
                    "{call} was refused ({source}): the loaded module and this program have different versions (its \
                     contract is {module}, ours {RING_MAJOR}.{RING_MINOR})"
                ),
            )
            .mend("install both from one release, then modprobe -r strobe"),
            Error::NotHere {
                what,
                name,
                instead,
            } => Words::new(format!("{what} {name}"), format!("no such {what}")).mend(instead),
            Error::Program(fault) => Words::new(fault.object(), &fault.reason).mend(&fault.remedy),
            Error::ProgramOfKernel(why) => {
                Words::new("the program", format!("the kernel engine cannot run it: {why}"))
                    .mend("use the user engine, or leave out derive, keep and every")
            }
            Error::NoTunable {
                name,
                event,
                instead,
            } => Words::new(format!("{name} of the run on {event}"), "it cannot be tuned").mend(
                match instead.as_slice() {
                    [] => "declare it as a tunable of the run's program".to_owned(),
                    names => format!("this run has {}", names.join(", ")),
                },
            ),
            Error::NotOfKernel(event) => Words::new(
                format!("event {event}"),
                "the kernel engine does not have it",
            )
            .mend("use the user engine, or timer:PERIOD, soft or device.event (`strobe list` shows them)"),
            Error::Unusable { what, name, why } => {
                let object = format!("{what} {name}");
                match why.split_once("; ") {
                    Some((reason, remedy)) => Words::new(object, reason).mend(remedy),
                    None => Words::new(object, why),
                }
            }
            Error::Period { event, period_ns } => Words::new(
                format!("event {event}"),
                format!(
                    "a period of {}: it must be from 1 us to 1 h",
                    show_period(*period_ns)
                ),
            ),
            Error::Steps(count) => Words::new(
                format!("{count} channels and outputs"),
                format!("a row has at most {}", uapi::STEPS_MAX),
            )
            .mend("split them into several runs"),
            Error::Busy { object } => {
                Words::new(object, "another run uses it, and only one run can")
                    .mend("`strobe status` shows the runs")
            }
            Error::Value {
                output,
                value,
                bits,
            } => {
                let words = Words::new(format!("output {output}"), format!("{value} does not fit"));
                match bits {
                    Some(bits) => words.mend(format!("it has {bits} bits")),
                    None => words,
                }
            }
            Error::Due { channel, event } => Words::new(
                format!("channel {channel}"),
                format!("event {event} has no due time, so its rows have no lateness"),
            )
            .mend("leave out the channel, or use a timer"),
            Error::Capacity(rows) => Words::new(
                format!("a ring of {rows} rows"),
                format!("it can have from 2 to {} rows", uapi::CAPACITY_MAX),
            ),
            Error::Memory(bytes) => Words::new(
                ring_of(bytes),
                "all rings together would be larger than the module allows",
            )
            .mend("use a shorter ring, or raise /sys/module/strobe/parameters/ring_bytes_max"),
            Error::NoMemory(bytes) => {
                Words::new(ring_of(bytes), "not enough memory").mend("use a shorter ring")
            }
            Error::Provider { object, source } => {
                Words::new(object, format!("its driver refused: {source}"))
                    .mend("see the kernel's log (dmesg)")
            }
            Error::Priority(priority) => Words::new(
                format!("priority {priority}"),
                format!(
                    "a run's thread may have 1 to {}; more than {} needs RLIMIT_RTPRIO (ulimit -r) or CAP_SYS_NICE",
                    uapi::PRIORITY_MAX,
                    uapi::PRIORITY_DEFAULT
                ),
            )
            .mend("ask for no priority, or be root"),
            Error::Cost { event, cost_ns } => Words::new(
                run_on(event),
                format!(
                    "its steps take about {} in an interrupt, where {} are allowed",
                    show_ns(*cost_ns as f64),
                    show_ns(uapi::COST_MAX as f64)
                ),
            )
            .mend("leave out channels or outputs, or be root"),
            Error::Runs(event) => {
                Words::new(run_on(event), "this user has reached the limit of runs")
                    .mend("`strobe status` shows the runs; end one")
            }
            Error::Async(event) => Words::new(
                run_on(event),
                "all runs together would have more than 1024 async channels",
            )
            .mend("leave out async channels, or end another run"),
            Error::Exhausted {
                object,
                doing,
                source,
                remedy,
            } => Words::new(object, failed(doing, source)).mend(*remedy),
            Error::NoRun(run) => Words::new(kernel_run(run), "no such run, or it has just ended")
                .mend("`strobe status` shows the runs"),
            Error::NotShared(run) => Words::new(
                kernel_run(run),
                "it belongs to another user, who has not shared it",
            )
            .mend("ask that user to share it, or be root"),
            Error::Run {
                event,
                doing,
                source,
            } => match refused(doing, source) {
                Some((reason, remedy)) => {
                    Words::new(run_on(event), format!("{doing} failed: {reason}")).mend(remedy)
                }
                None => Words::new(run_on(event), failed(doing, source)),
            },
            Error::Reader { run, doing, source } => Words::new(run, failed(doing, source)),
            Error::Lost { run, rows } => Words::new(
                run,
                format!("{rows} rows were overwritten before they were read"),
            )
            .mend("read more often, or make its ring longer"),
            Error::Rows(words) | Error::Server(words) => words.clone(),
            Error::Ring { run, source } => Words::new(run, source.to_string()),
        }
    }
}

/// Why a run does not do what its owner wants, as the contract has it, and the remedy; `None`: it is the errno of a driver.
fn refused(doing: &str, source: &io::Error) -> Option<(&'static str, &'static str)> {
    match (doing, Errno::from_io_error(source)?) {
        ("the trigger", Errno::OPNOTSUPP) => Some((
            "only runs on the event soft are triggered by a call",
            "make the run on the event soft, or let its own event trigger it",
        )),
        ("the trigger", Errno::BUSY) => Some(("it is not running", "start it, or resume it")),
        ("the pause", Errno::BUSY) => Some(("it is not running", "start it first")),
        ("the tuning", Errno::ACCESS | Errno::BADF) => Some((
            "it belongs to another user",
            "ask that user to tune it, or be root",
        )),
        (_, Errno::ALREADY) => Some(("it is in that state already", "there is nothing to do")),
        (_, Errno::SHUTDOWN) => Some(("it has ended", "make a new run")),
        _ => None,
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
