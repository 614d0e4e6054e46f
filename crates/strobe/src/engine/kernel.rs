// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel engine: `/dev/strobe`.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use strobe_expr::Program;
use strobe_hw::cpu_latency_request::CpuLatencyRequest;
use strobe_hw::uapi::program::{FEATURE_ACT, FEATURE_PROGRAMS, FEATURE_TUNE};
use strobe_hw::uapi::{self, create_flag, kind, op, why};
use strobe_ring::layout::CLOCK_TAI;
use strobe_ring::{Engine, Reader, StartTimes};

use super::DryRun;
use crate::catalogue::Catalogue;
use crate::channel::Channel;
use crate::error::Error;
use crate::event::Event;
use crate::info::{Clock, RunInfo};
use crate::plan::{CpuLatency, Plan, Step};
use crate::program;
use crate::quantity::show_ns;
use crate::reader::ReaderOptions;
use crate::run::Run;

mod entries;
mod given;
mod lines;
mod ring_fd;
mod run;
mod run_names;
mod run_rows;

use entries::{accounting_of_run, catalogue, channels, named, outputs, tunables};
use given::given;
use ring_fd::Whose;
pub use run::{AttachedRun, KernelRun};

/// Minor version of the contract that knows programs.
const PROGRAMS_SINCE: u16 = 3;
const FORBIDDEN: &str = "the module's parameter programs forbids programs";

/// Whether this engine has events like the one of this plan; a device's own events are only known to the module.
///
/// # Errors
/// It is an event of the user engine.
pub fn check(plan: &Plan) -> Result<(), Error> {
    kernel_event(plan).map(|_| ())
}

/// The control device, open.
///
/// To make runs it must be open for writing, since a run can write outputs.
pub struct Control {
    path: String,
    fd: OwnedFd,
}

impl Control {
    /// Opens `/dev/strobe` to make runs, and for all else.
    ///
    /// # Errors
    /// The module is not loaded, or there is no permission.
    pub fn open() -> Result<Self, Error> {
        Self::open_at(uapi::DEVICE_PATH, OFlags::RDWR)
    }

    /// Opens `/dev/strobe` to look: what is here, what a run would be, and runs of others.
    ///
    /// # Errors
    /// The module is not loaded, or there is no permission.
    pub fn look() -> Result<Self, Error> {
        Self::open_at(uapi::DEVICE_PATH, OFlags::RDONLY)
    }

    fn open_at(path: &str, access: OFlags) -> Result<Self, Error> {
        let path = path.to_owned();
        match open(path.as_str(), access | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Control { path, fd }),
            Err(Errno::ACCESS | Errno::PERM) => Err(Error::NoPermission { path }),
            Err(Errno::NOENT | Errno::NODEV | Errno::NXIO) => Err(Error::NoModule { path }),
            Err(errno) => {
                let exhausted = Error::exhausted(path.as_str(), "open", errno);
                Err(exhausted.unwrap_or_else(|| Error::Version {
                    path,
                    call: "open",
                    module: "unknown".to_owned(),
                    source: errno.into(),
                }))
            }
        }
    }

    /// All that is here.
    ///
    /// # Errors
    /// The module is of another version.
    pub fn catalogue(&self) -> Result<Catalogue, Error> {
        let (entries, generation) = self.entries(0)?;
        Ok(catalogue(&entries, generation))
    }

    /// What the run would be; nothing is changed.
    ///
    /// # Errors
    /// The run would be refused; the reason.
    pub fn dry_run(&self, plan: &Plan) -> Result<DryRun, Error> {
        let program = self.program(plan)?;
        let (answer, _) = self.call_create(plan, program.as_ref(), create_flag::DRY_RUN)?;
        let mut channels = self.channels(plan)?;
        channels.extend(program.iter().flat_map(program::channels));
        Ok(DryRun {
            engine: "kernel",
            channels,
            row_bytes: answer.row_stride,
            ring_rows: answer.capacity,
            ring_bytes: answer.ring_bytes,
            cost_ns: answer.cost_ns,
        })
    }

    /// Makes a run; it waits for its start.
    ///
    /// # Errors
    /// The run is refused; the reason.
    pub fn create(&self, plan: &Plan) -> Result<KernelRun, Error> {
        let event = plan.event.to_string();
        let program = self.program(plan)?;
        let (answer, owner) = self.call_create(plan, program.as_ref(), 0)?;
        let owner = owner.ok_or_else(|| self.other_version("STROBE_CREATE", Errno::BADF))?;
        let (entries, _) = self.entries(answer.run)?;
        let awake = CpuLatencyRequest::hold(plan.wake_within.0);
        let mut run = KernelRun {
            owner,
            info: RunInfo {
                engine: Engine::Kernel,
                kernel: release(),
                event,
                run: answer.run,
                clock: plan.clock,
                period_ns: None,
                capacity: 0,
                limit: plan.limit,
                start: StartTimes::default(),
                channels: channels(&entries),
                outputs: outputs(&entries),
                tunables: tunables(&entries),
                skips: false,
                accounting: accounting_of_run(&entries),
                set_up: vec![awake.step.clone()],
                doctor: Vec::new(),
            },
            _awake: awake,
        };
        // The ring knows best what it is.
        let whose = Whose::Event(&run.info.event);
        let (ring, _) = ring_fd::attach(run.owner.as_fd(), whose, ReaderOptions::default())?;
        let header = ring.header();
        run.info.capacity = header.geometry.capacity();
        run.info.skips = header.geometry.shape().skipped;
        run.info.period_ns = Some(header.period_ns).filter(|ns| *ns > 0);
        run.info.clock = clock(header.clock);
        call_as_asked(&mut run.info, plan);
        // Before the start: so the first row sees them.
        for (tunable, word) in program.iter().flat_map(Program::tunables).enumerate() {
            run.tune_word(tunable, *word)?;
        }
        Ok(run)
    }

    /// Somebody's run, to be read.
    ///
    /// # Errors
    /// There is no such run, or it is not to be read by others.
    pub fn attach(self, run: u32) -> Result<AttachedRun, Error> {
        let (ring, _) =
            ring_fd::attach(self.fd.as_fd(), Whose::Run(run), ReaderOptions::default())?;
        let info = self.info(run, &ring)?;
        Ok(AttachedRun {
            control: self.fd,
            info,
        })
    }

    /// A run that another process has made, which has left its owner fd: it is this process's from now on.
    ///
    /// # Errors
    /// It is not the owner fd of that run.
    #[doc(hidden)]
    pub fn adopt(&self, owner: OwnedFd, run: u32, wake: CpuLatency) -> Result<KernelRun, Error> {
        let whose = Whose::Run(run);
        let attached = ring_fd::attach_own(owner.as_fd(), whose, ReaderOptions::default());
        let (ring, _) = attached?;
        let mut info = self.info(run, &ring)?;
        if info.shape() != ring.header().geometry.shape() {
            return Err(Error::NoRun(run));
        }
        let awake = CpuLatencyRequest::hold(wake.0);
        info.set_up.push(awake.step.clone());
        Ok(KernelRun {
            owner,
            info,
            _awake: awake,
        })
    }

    /// What the module and the ring know of a run.
    fn info(&self, run: u32, ring: &Reader) -> Result<RunInfo, Error> {
        let (entries, _) = self.entries(run)?;
        let status = entries.iter().find(|e| e.kind == kind::RUN);
        let name = status.map_or(String::new(), named);
        let header = ring.header();
        let period_ns = Some(header.period_ns).filter(|ns| *ns > 0);
        Ok(RunInfo {
            engine: Engine::Kernel,
            kernel: release(),
            event: match period_ns {
                Some(ns) => format!("{name}:{}", show_ns(ns as f64).replace(' ', "")),
                None => name,
            },
            run,
            clock: clock(header.clock),
            period_ns,
            capacity: header.geometry.capacity(),
            limit: Some(header.geometry.limit()).filter(|limit| *limit != uapi::NO_LIMIT),
            start: ring.snapshot().start,
            channels: channels(&entries),
            outputs: outputs(&entries),
            tunables: tunables(&entries),
            skips: header.geometry.shape().skipped,
            accounting: accounting_of_run(&entries),
            set_up: Vec::new(),
            doctor: Vec::new(),
        })
    }

    /// The channels that a row reads, called as the plan calls them.
    fn channels(&self, plan: &Plan) -> Result<Vec<Channel>, Error> {
        let catalogue = self.catalogue()?;
        let reads = plan.steps.iter().filter(|s| matches!(s, Step::Read(_)));
        let channel = |step: &Step| {
            if let Some((run, part)) = run_names::part_of(step.name()) {
                return Ok(self.channel_of_run(step.name(), run, part)?.0);
            }
            let name = lines::shown(self.module_name("channel", step.name())?);
            let found = catalogue.channels.iter().find(|c| c.name == name);
            let mut channel = found
                .cloned()
                .ok_or_else(|| self.not_here("channel", step.name()))?;
            step.name().clone_into(&mut channel.name);
            Ok(channel)
        };
        reads.map(channel).collect()
    }

    /// The program of this plan, if it has one.
    fn program(&self, plan: &Plan) -> Result<Option<Program>, Error> {
        if plan.program.is_empty() {
            return Ok(None);
        }
        let features = uapi::features(self.fd.as_fd()).unwrap_or_default();
        if features.features & FEATURE_PROGRAMS == 0 {
            let why = match features.minor < PROGRAMS_SINCE {
                true => "the module is too old for programs",
                false => FORBIDDEN,
            };
            return Err(Error::ProgramOfKernel(why.to_owned()));
        }
        let acts = plan.steps.iter().any(|s| matches!(s, Step::Act { .. }));
        if acts && features.features & FEATURE_ACT == 0 {
            let why = "the module is too old for outputs that rules write";
            return Err(Error::ProgramOfKernel(why.to_owned()));
        }
        if !plan.program.tunables.is_empty() && features.features & FEATURE_TUNE == 0 {
            let why = "the module is too old for variables that can be tuned";
            return Err(Error::ProgramOfKernel(why.to_owned()));
        }
        program::compile(&plan.program, &self.channels(plan)?).map(Some)
    }

    fn call_create(
        &self,
        plan: &Plan,
        program: Option<&Program>,
        flags: u32,
    ) -> Result<(uapi::Created, Option<OwnedFd>), Error> {
        plan.check_acts()?;
        self.check_follows(plan)?;
        let (event, period_ns) = kernel_event(plan)?;
        let not_here = |what, name: &str| self.not_here(what, name);
        let create = uapi::Create {
            flags: flags | if plan.shared { create_flag::SHARED } else { 0 },
            event: fixed(&self.module_name("event", &event)?)
                .ok_or_else(|| not_here("event", &event))?,
            period_ns,
            capacity: plan.capacity().unwrap_or(0),
            limit: plan.limit.unwrap_or(uapi::NO_LIMIT),
            priority: plan.priority.map_or(0, u32::from),
            clock: match plan.clock {
                Clock::Monotonic => strobe_ring::layout::CLOCK_MONOTONIC,
                Clock::Tai => CLOCK_TAI,
            },
            ..uapi::Create::EMPTY
        };
        let steps: Vec<uapi::Step> = plan
            .steps
            .iter()
            .map(|step| {
                let (op, flags, value) = match step {
                    Step::Read(_) => (op::READ, 0, 0),
                    Step::Write { value, .. } => (op::WRITE, 0, *value),
                    // Bit 0 of a program's answer is whether the row is left out.
                    Step::Act { value, rule, .. } => (op::ACT, *rule as u32 + 1, *value),
                };
                let name = self.module_name(what(step), step.name())?;
                let name = fixed(&name).ok_or_else(|| not_here(what(step), step.name()))?;
                Ok(uapi::Step {
                    op,
                    flags,
                    value,
                    name,
                })
            })
            .collect::<Result<_, Error>>()?;
        let given = program.map(given).transpose()?;
        let mut answer = uapi::Created::NOTHING;
        match uapi::create(
            self.fd.as_fd(),
            &create,
            &steps,
            given.as_ref(),
            &mut answer,
        ) {
            Ok(owner) => Ok((answer, owner)),
            Err(errno) => Err(self.refusal(plan, &answer, errno)),
        }
    }

    /// The words for a `STROBE_CREATE` that failed.
    fn refusal(&self, plan: &Plan, answer: &uapi::Created, errno: Errno) -> Error {
        let event = plan.event.to_string();
        let source = io::Error::from(errno);
        let fault = usize::try_from(answer.fault_step).ok();
        let step = fault.and_then(|index| plan.steps.get(index));
        let name = step.map_or("", Step::name).to_owned();
        let object = match step {
            Some(step) => format!("{} {name}", what(step)),
            None => format!("event {event}"),
        };
        match answer.why {
            why::EVENT | why::NAME if errno == Errno::ACCESS => Error::Unusable {
                what: step.map_or("event", what),
                name: step.map_or(event, |_| name),
                why: "another user owns that run, and does not share it; it must be started as shared".to_owned(),
            },
            why::EVENT | why::NAME if errno == Errno::USERS => Error::Unusable {
                what: step.map_or("event", what),
                name: step.map_or(event, |_| name),
                why: "that run has too many readers".to_owned(),
            },
            why::EVENT => self.not_here("event", &event),
            why::PERIOD => Error::Period {
                event,
                period_ns: plan.event.period_ns(),
            },
            why::STEPS => Error::Steps(plan.steps.len()),
            why::NAME => self.not_here(step.map_or("channel", what), &name),
            why::BUSY => Error::Busy { object },
            why::VALUE => Error::Value {
                bits: self.output_bits(&name),
                output: name,
                value: answer_value(step),
            },
            why::DUE => Error::Due {
                channel: name,
                event,
            },
            why::CAPACITY => Error::Capacity(plan.capacity().unwrap_or(answer.capacity)),
            why::MEMORY => Error::Memory(answer.ring_bytes),
            why::PROVIDER => Error::Provider { object, source },
            why::PRIORITY => Error::Priority(plan.priority.unwrap_or(0)),
            why::COST => Error::Cost {
                event,
                cost_ns: answer.cost_ns,
            },
            why::RUNS => Error::Runs(event),
            why::ASYNC => Error::Async(event),
            why::PROGRAM | why::DERIVED => Error::ProgramOfKernel(match (errno, step) {
                (Errno::OPNOTSUPP, Some(_)) => format!("the value of {object} arrives later"),
                (Errno::OPNOTSUPP, None) => "this kernel cannot compile it".to_owned(),
                (Errno::PERM, _) => FORBIDDEN.to_owned(),
                _ => format!("the module does not know part {} of it", answer.fault_step),
            }),
            why::STEP | why::CLOCK => self.other_version("STROBE_CREATE", errno),
            _ => match errno {
                Errno::NOMEM => Error::NoMemory(answer.ring_bytes),
                Errno::BADF => Error::NoPermission {
                    path: self.path.clone(),
                },
                Errno::NOTTY | Errno::INVAL | Errno::TOOBIG => {
                    self.other_version("STROBE_CREATE", errno)
                }
                _ => {
                    let object = format!("run on event {event}");
                    Error::exhausted(object, "its creation", errno).unwrap_or(Error::Run {
                        event,
                        doing: "its creation",
                        source,
                    })
                }
            },
        }
    }

    /// The module's name of an event, a channel or an output: its own, unless it is a GPIO line, or a channel of a run.
    fn module_name(&self, what: &'static str, name: &str) -> Result<String, Error> {
        if let Some((run, part)) = run_names::part_of(name).filter(|_| what == "channel") {
            return Ok(self.channel_of_run(name, run, part)?.1);
        }
        if !lines::is_line(name) {
            return Ok(name.to_owned());
        }
        let found = lines::of_module(&self.catalogue()?, name);
        found.ok_or_else(|| self.not_here(what, name))
    }

    fn not_here(&self, what: &'static str, name: &str) -> Error {
        // If the catalogue fails as well, the name alone has to do.
        let catalogue = self.catalogue().unwrap_or_default();
        let instead = match what {
            _ if lines::is_line(name) => lines::instead(&catalogue),
            _ if run_names::part_of(name).is_some() => "`strobe status` shows the runs".to_owned(),
            "event" => catalogue.instead_of_event(),
            "output" => catalogue.instead_of_output(name),
            _ => catalogue.instead_of_channel(name),
        };
        Error::NotHere {
            what,
            name: name.to_owned(),
            instead,
        }
    }

    fn output_bits(&self, name: &str) -> Option<u32> {
        let catalogue = self.catalogue().ok()?;
        let name = lines::shown(self.module_name("output", name).ok()?);
        let output = catalogue.outputs.iter().find(|o| o.name == name)?;
        Some(output.bits)
    }

    fn other_version(&self, call: &'static str, errno: Errno) -> Error {
        let module = uapi::features(self.fd.as_fd());
        Error::Version {
            path: self.path.clone(),
            call,
            module: module.map_or("unknown".to_owned(), |f| format!("{}.{}", f.major, f.minor)),
            source: errno.into(),
        }
    }

    /// The words for a `STROBE_LIST` that failed.
    fn not_listed(&self, run: u32, errno: Errno) -> Error {
        match errno {
            Errno::NOENT if run != 0 => Error::NoRun(run),
            _ => Error::exhausted(self.path.as_str(), "STROBE_LIST", errno)
                .unwrap_or_else(|| self.other_version("STROBE_LIST", errno)),
        }
    }

    /// The catalogue of everything, or of one run.
    fn entries(&self, run: u32) -> Result<(Vec<uapi::Entry>, u64), Error> {
        let mut entries = Vec::new();
        loop {
            let list = uapi::list(self.fd.as_fd(), run, &mut entries)
                .map_err(|errno| self.not_listed(run, errno))?;
            let count = usize::try_from(list.count).unwrap_or(usize::MAX);
            if count <= entries.len() {
                entries.truncate(count);
                return Ok((entries, list.generation));
            }
            // A little more: something may come between the calls.
            entries.resize(count.saturating_add(8), uapi::Entry::EMPTY);
        }
    }
}

/// Name and period of an event, if it is one of this engine.
fn kernel_event(plan: &Plan) -> Result<(Cow<'_, str>, u64), Error> {
    match plan.event.event() {
        Event::Timer { period_ns } => Ok(("timer".into(), *period_ns)),
        Event::Soft => Ok(("soft".into(), 0)),
        Event::Device(name) => Ok((name.into(), 0)),
        // If the module has the line: see `module_name`.
        Event::Gpio { .. } => Ok((plan.event.to_string().into(), 0)),
        Event::Run { run, every } => match (run_names::number_of(run), u32::try_from(*every)) {
            (Some(number), Ok(1)) => Ok((format!("run:{number}.row").into(), 0)),
            (Some(number), Ok(every)) => Ok((format!("run:{number}.row:{every}").into(), 0)),
            _ => Err(Error::NotOfKernel(plan.event.to_string())),
        },
        Event::Uio(_)
        | Event::Iio(_)
        | Event::Counter { .. }
        | Event::Hpet { .. }
        | Event::Eventfd(_) => Err(Error::NotOfKernel(plan.event.to_string())),
    }
}

/// Columns have the names by which they were asked for; a line has several.
fn call_as_asked(info: &mut RunInfo, plan: &Plan) {
    let read = plan.steps.iter().filter(|s| matches!(s, Step::Read(_)));
    let written = plan.steps.iter().filter(|s| !matches!(s, Step::Read(_)));
    for (channel, step) in info.channels.iter_mut().zip(read) {
        step.name().clone_into(&mut channel.name);
    }
    for (output, step) in info.outputs.iter_mut().zip(written) {
        step.name().clone_into(output);
    }
}

fn clock(raw: u32) -> Clock {
    match raw {
        CLOCK_TAI => Clock::Tai,
        _ => Clock::Monotonic,
    }
}

/// Release of the kernel we run on.
fn release() -> String {
    let system = rustix::system::uname();
    system.release().to_string_lossy().into_owned()
}

fn what(step: &Step) -> &'static str {
    match step {
        Step::Read(_) => "channel",
        Step::Write { .. } | Step::Act { .. } => "output",
    }
}

fn answer_value(step: Option<&Step>) -> u64 {
    match step {
        Some(Step::Write { value, .. } | Step::Act { value, .. }) => *value,
        _ => 0,
    }
}

/// A name as the contract wants it, if it fits and has no NUL.
fn fixed<const N: usize>(name: &str) -> Option<[u8; N]> {
    let mut array = [0; N];
    let (to, end) = array.split_at_mut_checked(name.len())?;
    to.copy_from_slice(name.as_bytes());
    (!end.is_empty() && !name.contains('\0')).then_some(array)
}

#[cfg(test)]
mod tests;
