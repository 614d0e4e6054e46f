// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random sequences of everything that can be called, by three threads at once, while devices come and go. The
//! arguments have the structure of right ones; each part is wrong now and then. Every answer must be one that the header
//! knows, nothing may work that the header forbids, every account must be whole, and at the end nothing is left.
//!
//! More of it, with a seed: the modules below, and
//! `lab/run --kernel debug --append 'FUZZ_CALLS=1000000 FUZZ_SEED=7' --timeout 3000 ... -- cases fuzz:: --nocapture`
// lab: --module i2c-dev --module 'i2c-stub chip_addr=0x48,0x51 bank_reg=0,0x4e bank_mask=0,7 bank_start=0,0x50 bank_end=0,0x5f'
// lab: --module strobe_sample --module strobe_sample_i2c

use std::collections::BTreeMap;
use std::env;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use libc::{
    E2BIG, EACCES, EAGAIN, EALREADY, EBUSY, EFAULT, EINVAL, EMFILE, ENODEV, ENOENT, ENOMEM, ENOSPC,
    ENOTTY, EOPNOTSUPP, EPERM, ERANGE, ESHUTDOWN, EUSERS, MAP_PRIVATE, MAP_SHARED, PROT_EXEC,
    PROT_NONE, PROT_READ, PROT_WRITE,
};
use strobe_cases::dice::Dice;
use strobe_cases::machine::Sim;
use strobe_cases::raw::program::ask_tunable;
use strobe_cases::raw::*;
use strobe_cases::thermometer::Thermometer;

const THREADS: u64 = 3;
/// Seeds, one a line; the file says why each is there.
const KEPT: &str = include_str!("fuzz/seeds");
const CALLS_OF_KEPT: u64 = 2000;
/// Things of a kind that one thread holds at most.
const HELD: usize = 12;

/// What one thread holds, and what it has met.
struct Caller<'a> {
    dice: Dice,
    control: OwnedFd,
    owners: Vec<OwnedFd>,
    rings: Vec<OwnedFd>,
    maps: Vec<Map>,
    /// A run that some thread has made.
    known: &'a AtomicU32,
    /// How often each call has given each answer; 0 is success.
    met: BTreeMap<(&'static str, i32), u64>,
}

impl Caller<'_> {
    fn new(seed: u64, known: &AtomicU32) -> Caller<'_> {
        Caller {
            dice: Dice(seed),
            control: control(),
            owners: Vec::new(),
            rings: Vec::new(),
            maps: Vec::new(),
            known,
            met: BTreeMap::new(),
        }
    }

    /// Notes an answer; it must be one that the call may give.
    fn note<T>(&mut self, call: &'static str, answer: Result<T, i32>, may: &[i32]) -> Option<T> {
        let errno = answer.as_ref().err().copied().unwrap_or(0);
        assert!(
            errno == 0 || may.contains(&errno),
            "{call}: errno {errno} is not in its contract"
        );
        *self.met.entry((call, errno)).or_default() += 1;
        answer.ok()
    }

    /// An fd of some kind: mostly of the kind that is wanted.
    fn fd(&mut self, wanted: usize) -> RawFd {
        let kind = if self.dice.one_in(30) {
            self.dice.below(3)
        } else {
            wanted
        };
        let list = match kind {
            0 => &self.owners,
            1 => &self.rings,
            _ => return self.control.as_raw_fd(),
        };
        match list.len() {
            0 => self.control.as_raw_fd(),
            held => list[self.dice.below(held)].as_raw_fd(),
        }
    }

    fn keep(dice: &mut Dice, list: &mut Vec<OwnedFd>, fd: OwnedFd) {
        if list.len() >= HELD {
            let which = dice.below(HELD);
            list.swap_remove(which);
        }
        list.push(fd);
    }

    fn steps(&mut self) -> Vec<Step> {
        const CHANNELS: [&str; 12] = [
            "sim.counter",
            "sim.ramp",
            "sample.level",
            "clock.time",
            "clock.late",
            "cpu.id",
            "sim.latch",
            "sim.slow",
            "sim.async",
            "sim.next",
            "thermometer.temperature",
            "clock.waited",
        ];
        const OUTPUTS: [&str; 3] = ["sim.latch", "sample.step", "sim.counter"];
        let count = if self.dice.one_in(50) {
            self.dice.below(1100)
        } else {
            self.dice.below(7)
        };
        let make = |_| {
            let is_read = !self.dice.one_in(4);
            let right: &[&str] = if is_read { &CHANNELS } else { &OUTPUTS };
            let name = self.dice.name(right);
            let value = if is_read { 0 } else { self.dice.word() & 0xff };
            let op = if is_read { READ } else { WRITE };
            if count > 7 {
                return step(READ, "sim.counter", 0);
            }
            Step {
                op: self.dice.spoil32(op),
                flags: u32::from(self.dice.one_in(100)),
                value: self.dice.spoil(value),
                name,
            }
        };
        (0..count).map(make).collect()
    }

    fn create(&mut self) {
        const MAY: [i32; 15] = [
            EINVAL, EPERM, EUSERS, ENOENT, EOPNOTSUPP, ERANGE, EBUSY, ENOSPC, ENOMEM, E2BIG,
            EFAULT, ENODEV, EMFILE, ENOTTY, EAGAIN,
        ];
        let steps = self.steps();
        let event = self.dice.name(&["timer", "soft", "sim.pulse"]);
        let period = self.dice.of(&[20_000, 200_000, 1_000_000, 50_000_000]);
        let period = if event == named("timer") { period } else { 0 };
        let flags = self.dice.of(&[0, SHARED, SHARED, SHARED | DRY_RUN]);
        let capacity = self.dice.of(&[0, 2, 16, 64, 1024]);
        let limit = self.dice.of(&[0, 1, 5, 100, 2000]);
        let priority = self.dice.of(&[0, 0, 1, 45, 99]);
        let mut answer = Created::zero();
        // "MOV r0, N; EXIT", or what is none; behind it there is enough of what is none.
        let mut insns = [[0_u8; 8]; 8192];
        insns[0] = self.dice.spoil(0x0000_0000_0000_00b7).to_le_bytes();
        insns[0][4] = u8::from(self.dice.one_in(2));
        insns[1] = self.dice.spoil(0x95).to_le_bytes();
        let derived = [Derived {
            name: self.dice.name(&["speed", "mean"]),
            bits: self.dice.spoil32(64),
            ..Derived::zero()
        }; 2];
        let program = Program {
            size: self
                .dice
                .spoil32(size_of::<Program>() as u32)
                .min(size_of::<Program>() as u32),
            flags: self.dice.of(&[0, SKIPS, SKIPS, 2]),
            insns: self.dice.address(insns.as_ptr() as u64),
            insn_count: self.dice.of(&[2, 2, 2, 2, 0, 1, 3, 4096, 4097, u32::MAX]),
            state: self.dice.spoil32(8),
            derived: self.dice.address(derived.as_ptr() as u64),
            derived_count: self.dice.of(&[0, 1, 2, 2, 3, 1025, u32::MAX]),
            derived_size: self.dice.of(&[112, 112, 112, 0, 8, 4097]),
            tunables: self.dice.of(&[0, 1, 1, 1, 1, 2, 3, 65, u32::MAX]),
            reserved: u32::from(self.dice.one_in(30)),
        };
        let program = match self.dice.one_in(3) {
            true => self.dice.address(std::ptr::from_ref(&program) as u64),
            false => 0,
        };
        let mut c = Create {
            size: self.dice.spoil32(size_of::<Create>() as u32),
            flags: self.dice.spoil32(flags),
            event,
            period_ns: self.dice.spoil(period),
            capacity: self.dice.spoil(capacity),
            limit: self.dice.spoil(limit),
            steps: self.dice.address(steps.as_ptr() as u64),
            step_count: steps.len() as u32,
            step_size: size_of::<Step>() as u32,
            clock: self.dice.of(&[0, 0, 1, 11, 5]),
            priority: self.dice.spoil32(priority),
            answer: self.dice.address(std::ptr::from_mut(&mut answer) as u64),
            answer_size: self.dice.spoil32(size_of::<Created>() as u32),
            reserved: u32::from(self.dice.one_in(100)),
            program,
        };
        // As long as the answer is, and no more: what is behind it is not the kernel's to write.
        c.answer_size = c.answer_size.min(size_of::<Created>() as u32);
        // As long as the structure is, nothing beyond it is the kernel's to look at.
        c.size = c.size.min(size_of::<Create>() as u32);
        let fd = self.fd(2);
        let address = self.dice.address(std::ptr::from_mut(&mut c) as u64) as usize;
        let done = ioctl_at(fd, CREATE, address);
        if self.note("CREATE", done, &MAY).is_none() {
            return;
        }
        let is_ring = c.capacity == 0 || c.capacity.is_power_of_two() && c.capacity > 1;
        let is_time = [0, 1, 11].contains(&c.clock);
        assert!(
            is_ring && is_time && c.priority < 100 && c.flags & !(SHARED | DRY_RUN) == 0,
            "{c:?}"
        );
        if c.flags & DRY_RUN == 0 {
            self.known.store(answer.run, Ordering::Relaxed);
            Self::keep(&mut self.dice, &mut self.owners, adopt(answer.fd));
        }
    }

    fn order(&mut self) {
        const MAY: [i32; 9] = [
            EINVAL, EFAULT, ENOTTY, EALREADY, EBUSY, ESHUTDOWN, EOPNOTSUPP, ENODEV, ENOMEM,
        ];
        let op = self.dice.of(&[
            STATUS, START, START, START, PAUSE, RESUME, STOP, TRIGGER, TRIGGER, TRIGGER, 6,
        ]);
        let count = if op == TRIGGER {
            self.dice.of(&[1, 2, 10, 500])
        } else {
            0
        };
        let mut c = Control {
            size: self.dice.spoil32(56).min(56),
            op: self.dice.spoil32(op),
            flags: u32::from(self.dice.one_in(100)),
            // A million rows would take long, and find no more.
            count: self.dice.spoil32(count) & 0xfff,
            ..Control::zero()
        };
        let asked = c;
        let fd = self.fd(0);
        let address = self.dice.address(std::ptr::from_mut(&mut c) as u64) as usize;
        let answer = ioctl_at(fd, CONTROL, address);
        if self.note("CONTROL", answer, &MAY).is_some() {
            let is_order = asked.op <= TRIGGER && asked.flags == 0;
            assert!(
                is_order && (asked.op == TRIGGER) == (asked.count > 0),
                "{asked:?}"
            );
            assert!(c.triggers >= c.head + c.skipped, "{c:?}");
            assert!(c.state <= FAILED, "{c:?}");
        }
    }

    /// Whether the control device is asked for a run, and of which id.
    fn by_id(&mut self) -> (bool, u32) {
        match self.dice.one_in(3) {
            true => (true, self.known.load(Ordering::Relaxed)),
            false => (false, 0),
        }
    }

    fn reader(&mut self) {
        const MAY: [i32; 9] = [
            EINVAL, EFAULT, ENOTTY, ENOENT, EPERM, EACCES, EUSERS, ENOMEM, EMFILE,
        ];
        let (from_control, run) = self.by_id();
        let first = self.dice.of(&[0, 0, 1, 50, FROM_NOW]);
        let mut arg = Reader {
            size: self.dice.spoil32(48).min(48),
            flags: self.dice.spoil32(NONBLOCK),
            run: self.dice.spoil32(run),
            reserved: u32::from(self.dice.one_in(100)),
            first: self.dice.spoil(first),
            ..Reader::zero()
        };
        // A blocking one would keep this thread.
        arg.flags |= NONBLOCK;
        let fd = self.fd(if from_control { 2 } else { 0 });
        let address = self.dice.address(std::ptr::from_mut(&mut arg) as u64) as usize;
        let answer = ioctl_at(fd, READER, address);
        if self.note("READER", answer, &MAY).is_some() {
            assert!(
                arg.flags == NONBLOCK && (arg.run == 0 || fd == self.control.as_raw_fd()),
                "{arg:?}"
            );
            Self::keep(&mut self.dice, &mut self.rings, adopt(arg.fd));
        }
    }

    fn tune(&mut self) {
        const MAY: [i32; 8] = [
            EINVAL, EFAULT, ENOTTY, ENOENT, EPERM, EACCES, ERANGE, ESHUTDOWN,
        ];
        // By chance alone there is hardly a run that can be tuned.
        if self.dice.one_in(3) {
            let (answer, created) = ask_tunable(&self.control, self.dice.of(&[1, 8, 63, 64]));
            if answer.is_ok() {
                Self::keep(&mut self.dice, &mut self.owners, adopt(created.fd));
            }
        }
        let (from_control, run) = self.by_id();
        let tunable = self.dice.of(&[0, 0, 0, 1, 63, 64, u32::MAX]);
        let arg = Tune {
            size: self.dice.spoil32(24).min(24),
            flags: u32::from(self.dice.one_in(50)),
            run: self.dice.spoil32(run),
            tunable,
            value: self.dice.spoil(1),
        };
        let fd = self.fd(if from_control { 2 } else { 0 });
        let address = self.dice.address(std::ptr::from_ref(&arg) as u64) as usize;
        let answer = ioctl_at(fd, TUNE, address);
        if self.note("TUNE", answer, &MAY).is_some() {
            assert_eq!(arg.flags, 0, "{arg:?}");
        }
    }

    fn arm(&mut self) {
        let mut arg = Arm {
            size: self.dice.spoil32(16).min(16),
            flags: u32::from(self.dice.one_in(50)),
            rows: 0,
        };
        let rows = self.dice.of(&[0, 1, 10, 100, 2000]);
        arg.rows = self.dice.spoil(rows);
        let fd = self.fd(1);
        let address = self.dice.address(std::ptr::from_mut(&mut arg) as u64) as usize;
        let answer = ioctl_at(fd, ARM, address);
        if self
            .note("ARM", answer, &[EINVAL, EFAULT, ENOTTY])
            .is_some()
        {
            assert_eq!(arg.flags, 0, "{arg:?}");
        }
    }

    fn read(&mut self) {
        let mut room = vec![0u8; 65536];
        let length = self.dice.of(&[0, 8, 32, 40, 400, 4096, 65536]);
        let fd = self.fd(1);
        let address = self.dice.address(room.as_mut_ptr() as u64) as usize;
        let answer = sys(libc::SYS_read, &[fd as usize, address, length]);
        self.note("read", answer, &[EINVAL, EFAULT, EAGAIN]);
    }

    fn look(&mut self) {
        let fd = self.fd(1);
        let mut one = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let answer = sys(
            libc::SYS_poll,
            &[std::ptr::from_mut(&mut one) as usize, 1, self.dice.below(2)],
        );
        self.note("poll", answer, &[]);
        let file = format!("/proc/thread-self/fdinfo/{fd}");
        let text = std::fs::read_to_string(file).expect("fdinfo");
        assert!(text.contains("flags:"), "{text}");
    }

    fn map(&mut self) {
        const MAY: [i32; 5] = [EACCES, EINVAL, ENODEV, ENOMEM, EPERM];
        let prot = self.dice.of(&[
            PROT_READ,
            PROT_READ,
            PROT_READ,
            PROT_NONE,
            PROT_READ | PROT_WRITE,
            PROT_READ | PROT_EXEC,
        ]);
        let flags = self.dice.of(&[MAP_SHARED, MAP_SHARED, MAP_PRIVATE]);
        let pages = self.dice.of(&[1, 2, 2, 3, 17, 300]);
        let offset = if self.dice.one_in(10) { 4096 } else { 0 };
        let fd = self.fd(1);
        let answer = Map::new(fd, pages * 4096, prot, flags, offset);
        if let Some(map) = self.note("mmap", answer, &MAY) {
            assert!(prot & (PROT_WRITE | PROT_EXEC) == 0, "a ring is to be read");
            if prot & PROT_READ != 0 {
                let state: u32 = map.get(STATE);
                let (head, limit): (u64, u64) = (map.get(HEAD), map.get(LIMIT));
                assert!(state <= FAILED && head <= limit, "{state} {head} {limit}");
            }
            if self.maps.len() >= HELD {
                let which = self.dice.below(HELD);
                self.maps.swap_remove(which);
            }
            self.maps.push(map);
        }
    }

    fn remap(&mut self) {
        if self.maps.is_empty() {
            return;
        }
        let which = self.dice.below(self.maps.len());
        let map = &self.maps[which];
        let prot = self
            .dice
            .of(&[PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE]);
        let answer = map.protect(prot);
        self.note("mprotect", answer, &[EACCES, ENOMEM]);
        if self.dice.one_in(2) {
            self.maps.swap_remove(which);
        }
    }

    fn list(&mut self) {
        let mut entries = vec![Entry::zero(); 200];
        let run = if self.dice.one_in(3) {
            self.known.load(Ordering::Relaxed)
        } else {
            0
        };
        let mut arg = List {
            size: self.dice.spoil32(40).min(40),
            flags: u32::from(self.dice.one_in(50)),
            run: self.dice.spoil32(run),
            entry_size: size_of::<Entry>() as u32,
            buffer: self.dice.address(entries.as_mut_ptr() as u64),
            room: self.dice.of(&[0, 1, 50, 200]),
            ..List::zero()
        };
        let fd = self.fd(2);
        let address = self.dice.address(std::ptr::from_mut(&mut arg) as u64) as usize;
        let answer = ioctl_at(fd, LIST, address);
        let may = [EINVAL, EFAULT, ENOTTY, ENOENT, ENOMEM];
        self.note("LIST", answer, &may);
    }

    fn nonsense(&mut self) {
        let mut room = [0u64; 32];
        for word in &mut room {
            *word = if self.dice.one_in(2) {
                0
            } else {
                self.dice.word()
            };
        }
        // None that the kernel itself knows: one of those makes a ring fd wait.
        let number = match self.dice.below(3) {
            0 => 0xDA07 + self.dice.below(249) as u32,
            1 => self.dice.spoil32(LIST) | 0x8000_0000,
            _ => self.dice.word() as u32 | 0x4000_0000,
        };
        let which = self.dice.below(3);
        let fd = self.fd(which);
        let answer = ioctl_at(fd, number, room.as_mut_ptr() as usize);
        self.note("ioctl", answer, &[ENOTTY, EINVAL, EFAULT, EPERM]);
        let fd = self.fd(0);
        let address = self.dice.address(room.as_mut_ptr() as u64) as usize;
        let answer = ioctl_at(fd, FEATURES, address);
        self.note("FEATURES", answer, &[ENOTTY, EINVAL, EFAULT, E2BIG]);
    }

    fn close(&mut self) {
        let list = if self.dice.one_in(2) {
            &mut self.owners
        } else {
            &mut self.rings
        };
        if !list.is_empty() {
            let which = self.dice.below(list.len());
            list.swap_remove(which);
        }
    }

    fn duplicate(&mut self) {
        let is_owner = self.dice.one_in(2);
        let list = if is_owner {
            &mut self.owners
        } else {
            &mut self.rings
        };
        if !list.is_empty() {
            let which = self.dice.below(list.len());
            let copy = list[which].try_clone().expect("another fd");
            Self::keep(&mut self.dice, list, copy);
        }
    }

    fn call(&mut self) {
        match self.dice.below(34) {
            0..=3 => self.create(),
            4..=11 => self.order(),
            12..=15 => self.reader(),
            16..=18 => self.read(),
            19..=20 => self.arm(),
            21..=22 => self.look(),
            23..=24 => self.map(),
            25 => self.remap(),
            26..=27 => self.list(),
            28 => self.nonsense(),
            29 => self.duplicate(),
            30..=31 => self.tune(),
            _ => self.close(),
        }
    }
}

/// Plugs devices out and in, and gives the simulator faults; all is well again at the end.
fn trouble(seed: u64, is_over: impl Fn() -> bool) -> u64 {
    let mut dice = Dice(seed);
    let sim = Sim::well();
    let mut unplugs = 0;
    let mut thermometer = None;
    while !is_over() {
        thread::sleep(std::time::Duration::from_millis(20));
        match dice.below(13) {
            0 | 1 => {
                sim.plug(false);
                unplugs += 1;
                thread::sleep(std::time::Duration::from_millis(dice.word() % 5));
                sim.plug(true);
            }
            2 => drop(sim.set("sim_pulse_ns", dice.of(&[20_000, 200_000, 1_000_000]))),
            3 => drop(sim.set("sim_every", dice.of(&[1, 3, 100]))),
            4 => drop(sim.set("sim_fail", dice.word() & 1)),
            5 => drop(sim.set("sim_late_ns", dice.of(&[0, 0, 5000]))),
            6 => drop(sim.set("sim_drop", dice.word() & 1)),
            7 => drop(sim.set("sim_async_fault", dice.word() % 7)),
            8 => drop(sim.set("sim_async_ns", dice.of(&[0, 20_000, 3_000_000]))),
            9 => drop(sim.set("sim_sleep_us", dice.of(&[0, 50, 1000]))),
            10 => {
                thermometer = if thermometer.is_none() {
                    Some(Thermometer::new())
                } else {
                    None
                }
            }
            11 => drop(sim.set("sim_refuse", dice.of(&[0, 0, 2]))),
            _ => drop(sim.set("sim_burst", dice.of(&[0, 0, 3]))),
        }
    }
    unplugs
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().and_then(|text| text.parse().ok())
}

/// How often each call has given each answer, and how often the simulator was unplugged.
type Met = (BTreeMap<(&'static str, i32), u64>, u64);

/// So many calls, and nothing is left of them.
fn fuzz(seed: u64, calls: u64) -> Met {
    println!("FUZZ_SEED={seed} FUZZ_CALLS={calls}");
    let control = control();
    let before = census(&control);
    let known = AtomicU32::new(0);
    let running = AtomicU32::new(THREADS as u32);
    let mut met = BTreeMap::new();
    let mut unplugs = 0;
    thread::scope(|scope| {
        let trouble = scope.spawn(|| trouble(!seed, || running.load(Ordering::Relaxed) == 0));
        let work = |i: u64| {
            let (known, running) = (&known, &running);
            scope.spawn(move || {
                let mut caller = Caller::new(seed.wrapping_add(i << 32), known);
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    for _ in 0..calls / THREADS {
                        caller.call();
                    }
                }));
                running.fetch_sub(1, Ordering::Relaxed);
                done.map(|()| std::mem::take(&mut caller.met))
            })
        };
        let callers: Vec<_> = (0..THREADS).map(work).collect();
        for caller in callers {
            let its = caller.join().expect("a thread").unwrap_or_else(|why| {
                println!("seed {seed}");
                std::panic::resume_unwind(why)
            });
            for (answer, count) in its {
                *met.entry(answer).or_insert(0) += count;
            }
        }
        unplugs = trouble.join().expect("the simulator obeys");
    });
    println!("{unplugs} unplugs; answers: {met:?}");
    until("all is as it was", || {
        let now = Census {
            generation: before.generation,
            entries: Vec::new(),
            ..census(&control)
        };
        let (entries, _) = list(&control, 0).expect("a catalogue");
        let want = Census {
            entries: Vec::new(),
            ..before.clone()
        };
        now == want && entries.len() == before.entries.len()
    });
    (met, unplugs)
}

/// The fuzzer reaches what it is about.
fn has_reached_all(met: &Met) {
    for call in [
        "CREATE", "CONTROL", "READER", "ARM", "TUNE", "read", "mmap", "LIST",
    ] {
        assert!(met.0.contains_key(&(call, 0)), "{call} has never worked");
    }
}

#[test]
fn whatever_is_called_the_answer_is_in_the_contract_and_nothing_is_left() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let seed = number("FUZZ_SEED").unwrap_or(now.as_nanos() as u64);
    let met = fuzz(seed, number("FUZZ_CALLS").unwrap_or(20_000));
    has_reached_all(&met);
    assert!(met.1 > 0, "the simulator has never gone");
}

#[test]
fn the_seeds_that_are_kept_find_nothing() {
    let lines = KEPT.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let seed = line.parse().expect("a number");
        has_reached_all(&fuzz(seed, CALLS_OF_KEPT));
    }
}
