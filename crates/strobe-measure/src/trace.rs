// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own events, in a tracing instance that belongs to this program alone.
//!
//! An [`Instance`] has its own buffers, its own events, its own clock: whatever else is traced on the machine goes on as
//! it was. It goes with its owner in every case. Dropping it removes it; a guard, a process of its own, removes it when
//! the owner was killed; and what even that left behind is removed when the next instance is made.
//!
//! ```no_run
//! use strobe_measure::trace::{Instance, Settings, EventRequest};
//!
//! let switches = EventRequest::event("sched:sched_switch");
//! let mine = EventRequest::event("syscalls:sys_exit_read").only(format!("common_pid == {}", std::process::id()));
//! let instance = Instance::create(&Settings::of([switches, mine.or_without()]))?;
//! instance.turn_on()?;
//! // ... what is to be seen happens ...
//! instance.turn_off()?;
//! for event in instance.text()?.trace().events {
//!     println!("{} ns on CPU {}: {} {}", event.time, event.cpu, event.name, event.details);
//! }
//! # Ok::<(), strobe_measure::trace::Error>(())
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use strobe::info::Clock;

pub mod cause;
mod guard;
mod parse;
mod timeline;
mod tracefs;

pub use parse::{Event, Trace};
pub use tracefs::Tracefs;

use guard::Guard;

/// What the names of all instances begin with; the process and a number follow.
const PREFIX: &str = "strobe-";
/// Memory for the events of each CPU, unless asked for.
const BUFFER_KB: u32 = 2048;

/// Bytes of the text that are read at once: two events or three.
const PIECE: usize = 256;

/// The form of the text that [`parse`] reads. Whoever uses the machine's own instance may have chosen another, which a
/// new one inherits.
const FORM: [(&str, bool); 13] = [
    ("context-info", true),
    ("irq-info", true),
    ("overwrite", true),
    ("markers", true),
    ("raw", false),
    ("hex", false),
    ("bin", false),
    ("fields", false),
    ("verbose", false),
    ("latency-format", false),
    ("record-tgid", false),
    ("annotate", false),
    ("pause-on-trace", false),
];

/// Why there is no instance, or nothing to be had from it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is in none of its places, and this program cannot mount it.
    #[error(
        "tracefs is not mounted, and mounting it failed ({0}): be root, or run, as root, \
         mount -t tracefs tracefs /sys/kernel/tracing"
    )]
    NotMounted(io::Error),
    /// This kernel has none.
    #[error("this kernel has no tracefs; use one that is built with CONFIG_TRACING")]
    None,
    /// It is there, but not for this user.
    #[error("{}: {why}: only root may trace, unless the tracefs was mounted with gid= and mode= for others", path.display())]
    Denied {
        /// What was refused.
        path: PathBuf,
        /// By the system.
        why: io::Error,
    },
    /// An event that cannot be done without.
    #[error("this kernel has no event {0}")]
    NoEvent(String),
    /// The kernel does not take this filter.
    #[error("event {event}: the filter `{filter}` was refused: {why}")]
    Filter {
        /// Name of the event.
        event: String,
        /// As it was asked for.
        filter: String,
        /// By the kernel.
        why: io::Error,
    },
    /// Something else.
    #[error("{}: {doing} failed: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        why: io::Error,
    },
}

/// An event that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRequest {
    name: String,
    filter: Option<String>,
    stack: Option<String>,
    needed: bool,
}

impl EventRequest {
    /// This event, as `system:event`. Without it there is no instance.
    pub fn event(name: impl Into<String>) -> EventRequest {
        EventRequest {
            name: name.into(),
            filter: None,
            stack: None,
            needed: true,
        }
    }

    /// Only if its fields are like this, in the kernel's words: `irq == 24`, `common_pid != 0`, `comm ~ "strobe*"`.
    #[must_use]
    pub fn only(mut self, filter: impl Into<String>) -> EventRequest {
        self.filter = Some(filter.into());
        self
    }

    /// With the functions that the CPU is in, whenever the fields are like this.
    #[must_use]
    pub fn with_stack_if(mut self, filter: impl Into<String>) -> EventRequest {
        self.stack = Some(filter.into());
        self
    }

    /// It can be done without: [`Instance::missing`] names it then.
    #[must_use]
    pub fn or_without(mut self) -> EventRequest {
        self.needed = false;
        self
    }
}

/// What an instance is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What is traced.
    pub events: Vec<EventRequest>,
    /// Clock of the events' times; that of the run, so that they can be compared with its rows.
    pub clock: Clock,
    /// Memory for the events of each CPU, KiB. When it is full the oldest go.
    pub buffer_kb: u32,
}

impl Settings {
    /// These events, on CLOCK_MONOTONIC.
    pub fn of(events: impl IntoIterator<Item = EventRequest>) -> Settings {
        Settings {
            events: events.into_iter().collect(),
            clock: Clock::Monotonic,
            buffer_kb: BUFFER_KB,
        }
    }
}

/// A tracing instance. It is removed when this is dropped.
#[derive(Debug)]
pub struct Instance {
    dir: PathBuf,
    missing: Vec<String>,
    /// Open for as long as this lives: the kernel does not remove an instance in use, so that nobody takes it for one
    /// that was left behind.
    marker: Option<File>,
    guard: Option<Guard>,
    tracefs: Tracefs,
}

impl Instance {
    /// Makes an instance that traces nothing yet.
    ///
    /// # Errors
    /// There is no tracefs for this program, or an event that is needed is not there; nothing is left behind.
    pub fn create(settings: &Settings) -> Result<Instance, Error> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let tracefs = Tracefs::find()?;
        let instances = tracefs.dir().join("instances");
        remove_stale(&instances);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let dir = instances.join(&name);
        // Before there is anything to remove: who is killed right after making it leaves nothing behind.
        let guard = Guard::new(&instances, &name).ok();
        if let Err(why) = fs::create_dir(&dir) {
            // What is there is another's.
            if let Some(guard) = guard {
                guard.dismiss();
            }
            return Err(failed(&dir, "making it", why));
        }
        let mut instance = Instance {
            guard,
            dir,
            missing: Vec::new(),
            marker: None,
            tracefs,
        };
        instance.set_up(settings)?;
        Ok(instance)
    }

    fn set_up(&mut self, settings: &Settings) -> Result<(), Error> {
        let marker = self.dir.join("trace_marker");
        let open = File::options().write(true).open(&marker);
        self.marker = Some(open.map_err(|why| failed(&marker, "opening it", why))?);
        self.turn_off()?;
        let clock = match settings.clock {
            Clock::Monotonic => "mono",
            Clock::Tai => "tai",
        };
        self.put("trace_clock", clock)?;
        self.put("buffer_size_kb", &settings.buffer_kb.to_string())?;
        for (option, is_on) in FORM {
            // One that this kernel does not have cannot spoil anything.
            let _ = self.put(&format!("options/{option}"), if is_on { "1" } else { "0" });
        }
        settings
            .events
            .iter()
            .try_for_each(|wanted| self.enable(wanted))
    }

    fn enable(&mut self, wanted: &EventRequest) -> Result<(), Error> {
        let place = format!("events/{}", wanted.name.replacen(':', "/", 1));
        if !wanted.name.contains(':') || !self.dir.join(&place).join("enable").exists() {
            if wanted.needed {
                return Err(Error::NoEvent(wanted.name.clone()));
            }
            self.missing.push(wanted.name.clone());
            return Ok(());
        }
        let refused = |filter: &str| {
            let (event, filter) = (wanted.name.clone(), filter.to_owned());
            move |error| match error {
                Error::Io { why, .. } => Error::Filter { event, filter, why },
                error => error,
            }
        };
        if let Some(filter) = &wanted.filter {
            let set = self.put(&format!("{place}/filter"), filter);
            set.map_err(refused(filter))?;
        }
        if let Some(filter) = &wanted.stack {
            let set = self.put(
                &format!("{place}/trigger"),
                &format!("stacktrace if {filter}"),
            );
            set.map_err(refused(filter))?;
        }
        self.put(&format!("{place}/enable"), "1")
    }

    /// Events are recorded from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn turn_on(&self) -> Result<(), Error> {
        self.put("tracing_on", "1")
    }

    /// No events any more; those there are stay.
    ///
    /// # Errors
    /// The system's.
    pub fn turn_off(&self) -> Result<(), Error> {
        self.put("tracing_on", "0")
    }

    /// Forgets all events.
    ///
    /// # Errors
    /// The system's.
    pub fn clear(&self) -> Result<(), Error> {
        self.put("trace", "")
    }

    /// An event of our own: `tracing_mark_write` with this text. One system call; nothing while it is turned off.
    ///
    /// # Errors
    /// The system's.
    pub fn mark(&self, text: &str) -> Result<(), Error> {
        let Some(mut marker) = self.marker.as_ref() else {
            return Ok(());
        };
        match marker.write_all(text.as_bytes()) {
            // The kernel's word for an instance that is turned off.
            Err(why) if why.raw_os_error() != Some(Errno::BADF.raw_os_error()) => {
                Err(failed(&self.dir.join("trace_marker"), "writing it", why))
            }
            _ => Ok(()),
        }
    }

    /// All events that are there, oldest first, in the kernel's words. They stay there. While it is turned on the newest may
    /// be missing: the kernel gives up where it has to overwrite what is being read.
    ///
    /// # Errors
    /// The system's.
    pub fn text(&self) -> Result<Text, Error> {
        let path = self.dir.join("trace");
        let bytes = File::open(&path).and_then(|mut file| read_in_pieces(&mut file));
        let bytes = bytes.map_err(|why| failed(&path, "reading it", why))?;
        Ok(Text(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Events that were asked for, and that this kernel does not have.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Where the tracefs is.
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn put(&self, file: &str, text: &str) -> Result<(), Error> {
        let path = self.dir.join(file);
        // One write: the kernel takes each for a whole command. Truncating `trace` is what empties it.
        let done = File::options().write(true).truncate(true).open(&path);
        let done = done.and_then(|mut file| file.write_all(text.as_bytes()));
        done.map_err(|why| failed(&path, "setting it", why))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // While it is open, the instance is in use.
        self.marker = None;
        // With all of its events. If this fails, the guard goes on trying for a while.
        let _ = fs::remove_dir(&self.dir);
        self.guard = None;
    }
}

/// What an instance has recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// As events.
    pub fn trace(&self) -> Trace<'_> {
        Trace::parse(&self.0)
    }

    /// As it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text)
    }
}

/// The kernel makes the text as it is read, and most kernels cannot be preempted meanwhile: in small pieces, so that whoever
/// is traced on this CPU does not wait for all of it.
fn read_in_pieces(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            count => bytes.extend(piece.iter().take(count)),
        }
    }
}

fn failed(path: &Path, doing: &'static str, why: io::Error) -> Error {
    let path = path.to_owned();
    match why.kind() {
        io::ErrorKind::PermissionDenied => Error::Denied { path, why },
        _ => Error::Io { path, doing, why },
    }
}

/// Removes what processes have left that are not there any more. One that is in use stays, whatever its name says: the
/// kernel sees to that.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner).is_some_and(is_gone) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that has made the instance of this name.
fn owner(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

fn is_gone(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests;
