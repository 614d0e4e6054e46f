// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine, as far as it is to be seen: its files, and what has to be tried.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use strobe::engine;
use strobe::engine::kernel::Control;
use strobe::plan::CpuLatency;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::rt::{self, Policy};

use super::Intent;
use super::cpus::Cpus;
use super::task::Task;

/// More than any file of a check has.
const BYTES_MAX: u64 = 16 << 20;

/// Why something could not be found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

impl Unknown {
    pub(super) fn new(why: impl Into<String>) -> Unknown {
        Unknown(why.into())
    }
}

/// What no file tells: it is tried, and leaves nothing behind.
pub trait Trial: Send + Sync {
    /// What a thread gets that asks for SCHED_FIFO.
    ///
    /// # Errors
    /// There is no thread to try it with.
    fn fifo(&self, priority: u8) -> io::Result<rt::Step>;

    /// What who asks for CPUs that are awake gets.
    fn awake(&self) -> rt::Step;

    /// Locks so many bytes more in memory, and frees them.
    ///
    /// # Errors
    /// The system's reason.
    fn lock(&self, bytes: u64) -> io::Result<()>;

    /// Resolution of timers, ns.
    ///
    /// # Errors
    /// The system's reason.
    fn resolution_ns(&self) -> io::Result<u64>;

    /// Opens the kernel engine, and asks it what it has: how many channels.
    ///
    /// # Errors
    /// The engine's reason.
    fn control(&self) -> Result<usize, engine::Error>;
}

/// The machine that this runs on.
struct Here;

impl Trial for Here {
    fn fifo(&self, priority: u8) -> io::Result<rt::Step> {
        let thread = std::thread::Builder::new().stack_size(512 * 1024);
        let steps = thread.spawn(move || rt::set_up_thread(None, Policy::Fifo(priority)))?;
        let steps = steps.join().unwrap_or_default();
        let policy = steps.into_iter().find(|step| step.what == "policy");
        policy.ok_or_else(|| io::Error::other("the thread said nothing"))
    }

    fn awake(&self) -> rt::Step {
        CpuLatencyRequest::hold(CpuLatency::default().0).step
    }

    fn lock(&self, bytes: u64) -> io::Result<()> {
        rt::try_lock(bytes)
    }

    fn resolution_ns(&self) -> io::Result<u64> {
        let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(resolution.tv_sec).map_err(io::Error::other)?;
        let ns = u64::try_from(resolution.tv_nsec).map_err(io::Error::other)?;
        Ok(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
    }

    fn control(&self) -> Result<usize, engine::Error> {
        Ok(Control::look()?.catalogue()?.channels.len())
    }
}

/// What the kernel had counted at one moment.
#[derive(Clone)]
struct Moment {
    interrupts: Result<String, Unknown>,
    stat: Result<String, Unknown>,
}

/// Two moments, and the seconds between them.
struct Watched {
    first: Moment,
    last: Moment,
    seconds: f64,
}

/// What was counted at the first of two moments and at the last, and the seconds between them.
pub(super) type Between<'a> = (&'a str, &'a str, f64);

/// A machine.
pub struct System {
    root: PathBuf,
    trial: Box<dyn Trial>,
    watched: Option<Watched>,
    /// Looked for once.
    pub(super) tasks: OnceLock<Result<Vec<Task>, Unknown>>,
}

impl System {
    /// The machine this runs on.
    pub fn this_one() -> System {
        System::new(Path::new("/"), Box::new(Here))
    }

    /// One whose files are below a directory.
    pub fn new(root: &Path, trial: Box<dyn Trial>) -> System {
        System {
            root: root.to_owned(),
            trial,
            watched: None,
            tasks: OnceLock::new(),
        }
    }

    /// Sees what it does for some time, for the checks that need that.
    pub fn watch(&mut self, time: Duration) {
        self.watch_while(|| std::thread::sleep(time));
    }

    /// Watches it for as long as this takes.
    pub fn watch_while(&mut self, pass: impl FnOnce()) {
        let (first, begun) = (self.moment(), Instant::now());
        pass();
        self.watched = Some(Watched {
            first,
            seconds: begun.elapsed().as_secs_f64().max(1e-3),
            last: self.moment(),
        });
    }

    /// Whether it was.
    pub fn was_watched(&self) -> bool {
        self.watched.is_some()
    }

    fn moment(&self) -> Moment {
        Moment {
            interrupts: self.text("/proc/interrupts"),
            stat: self.text("/proc/stat"),
        }
    }

    pub(super) fn trial(&self) -> &dyn Trial {
        self.trial.as_ref()
    }

    /// /proc/interrupts, twice.
    pub(super) fn interrupts(&self) -> Result<Between<'_>, Unknown> {
        self.between(|moment| &moment.interrupts)
    }

    /// /proc/stat, twice.
    pub(super) fn stat(&self) -> Result<Between<'_>, Unknown> {
        self.between(|moment| &moment.stat)
    }

    fn between(&self, of: fn(&Moment) -> &Result<String, Unknown>) -> Result<Between<'_>, Unknown> {
        let watched = self.watched.as_ref();
        let watched =
            watched.ok_or_else(|| Unknown::new("the machine was not watched for a while"))?;
        let text = |moment| of(moment).as_deref().map_err(Unknown::clone);
        Ok((text(&watched.first)?, text(&watched.last)?, watched.seconds))
    }

    /// Where a file of the machine is.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// What is in a file, without the end of its last line.
    pub(super) fn text(&self, path: &str) -> Result<String, Unknown> {
        let bytes = self.bytes(path)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Unknown::new(format!("{path} is not text")))?;
        Ok(text.trim_end().to_owned())
    }

    pub(super) fn bytes(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        let read = || {
            let mut bytes = Vec::new();
            let file = File::open(self.path(path))?;
            file.take(BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| cannot_read(path, &error))
    }

    /// A file that is a number.
    pub(super) fn number<T: FromStr>(&self, path: &str) -> Result<T, Unknown> {
        let text = self.text(path)?;
        text.parse().map_err(|_| not_understood(path, &text))
    }

    /// A file that is a set of CPUs.
    pub(super) fn cpus(&self, path: &str) -> Result<Cpus, Unknown> {
        let text = self.text(path)?;
        Cpus::of_list(&text).ok_or_else(|| not_understood(path, &text))
    }

    /// The word in brackets, of those a file has to choose from.
    pub(super) fn chosen(&self, path: &str) -> Result<String, Unknown> {
        let text = self.text(path)?;
        let word = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let word = word.map(|(word, _)| word.to_owned());
        word.ok_or_else(|| not_understood(path, &text))
    }

    /// What follows `NAME:` in a file of such lines.
    pub(super) fn field(&self, path: &str, name: &str) -> Result<String, Unknown> {
        let text = self.text(path)?;
        let line = text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        });
        line.ok_or_else(|| Unknown::new(format!("{path} has no {name}")))
    }

    /// The same, where it is a number of KiB.
    pub(super) fn kib(&self, path: &str, name: &str) -> Result<u64, Unknown> {
        let value = self.field(path, name)?;
        let number = value.strip_suffix("kB").and_then(|n| n.trim().parse().ok());
        number.ok_or_else(|| not_understood(path, &format!("{name}: {value}")))
    }

    /// The names in a directory, in order.
    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, Unknown> {
        let read = || {
            let entries = fs::read_dir(self.path(path))?;
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            names.collect::<io::Result<Vec<String>>>()
        };
        let mut names = read().map_err(|error| cannot_read(path, &error))?;
        names.sort();
        Ok(names)
    }

    /// Whether there is such a file. That there is none is believed of a directory that shows others only: an empty
    /// one may be hidden, or not mounted.
    pub(super) fn is_there(&self, path: &str) -> Result<bool, Unknown> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let names = self.list(parent)?;
        match names.is_empty() {
            true => Err(Unknown::new(format!("{parent} is empty"))),
            false => Ok(names.iter().any(|found| found == name)),
        }
    }

    /// Release of its kernel.
    pub(super) fn release(&self) -> Result<String, Unknown> {
        const PATH: &str = "/proc/sys/kernel/osrelease";
        let release = self.text(PATH)?;
        let is_one =
            release.starts_with(|c: char| c.is_ascii_digit()) && !release.contains(['/', ' ']);
        match is_one {
            true => Ok(release),
            false => Err(not_understood(PATH, &release)),
        }
    }

    /// The words that its kernel was started with.
    pub(super) fn command_line(&self) -> Result<Vec<String>, Unknown> {
        let words = self.text("/proc/cmdline")?;
        Ok(words.split_whitespace().map(str::to_owned).collect())
    }

    /// The CPUs that a run may work on: the one it is to work on, or those of this process.
    pub(super) fn cpus_of(&self, intent: &Intent) -> Result<Cpus, Unknown> {
        if let Some(cpu) = intent.cpu {
            return Ok(Cpus::one(cpu));
        }
        let path = "/proc/self/status";
        let text = self.field(path, "Cpus_allowed_list")?;
        let cpus = Cpus::of_list(&text).filter(|cpus| !cpus.is_empty());
        cpus.ok_or_else(|| not_understood(path, &text))
    }
}

fn cannot_read(path: &str, error: &io::Error) -> Unknown {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "is not there".to_owned(),
        io::ErrorKind::PermissionDenied => "cannot be read by this user".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    Unknown(format!("{path} {why}"))
}

/// For what is there, and makes no sense.
pub(super) fn not_understood(path: &str, text: &str) -> Unknown {
    let start: String = text.chars().take(40).collect();
    Unknown(format!("{path} is not understood: {start:?}"))
}

/// The first few of many, in words.
pub(super) fn some_of(words: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = words.get(..SHOWN).unwrap_or(words).join(", ");
    match words.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What to do for a word on the kernel's command line.
pub(super) fn boot_with(words: &str) -> String {
    format!("add to GRUB_CMDLINE_LINUX in /etc/default/grub: {words}; then: update-grub && reboot")
}
