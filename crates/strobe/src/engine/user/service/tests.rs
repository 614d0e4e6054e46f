// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of a run without a thread: each test is its owner, its source and its reader.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel, sync_channel};

use strobe_hw::wakeup::{Waker, wakeup};
use strobe_ring::layout::{CLOCK_MONOTONIC, NO_LIMIT};
use strobe_ring::{Begin, Engine, Geometry, Header, MemoryMut, Missed, Reader, RowShape, Snapshot};

use super::*;
use crate::info::Clock;

/// What a source was asked for, in its order.
type Calls = Arc<Mutex<Vec<&'static str>>>;

/// A source that does what the test says; when it has nothing left, the thread is woken.
struct Script {
    waits: VecDeque<io::Result<Trigger>>,
    period: Option<u64>,
    begin: Option<Errno>,
    done: Option<Errno>,
    unserved: u64,
    /// What was skipped after the last trigger, if the source skips at all.
    skipped: Option<u64>,
    calls: Calls,
}

impl Script {
    fn call(&self, name: &'static str) {
        self.calls.lock().expect("a list").push(name);
    }
}

impl EventSource for Script {
    fn begin(&mut self, _: &RunClock, now: u64) -> io::Result<Option<u64>> {
        self.call("begin");
        match self.begin {
            Some(errno) => Err(errno.into()),
            None => Ok(self.period.map(|period| now + period)),
        }
    }

    fn wait(&mut self, _: &RunClock, _: &mut Wakeup) -> io::Result<WaitOutcome> {
        match self.waits.pop_front() {
            Some(trigger) => trigger.map(WaitOutcome::Trigger),
            None => Ok(WaitOutcome::Wakeup),
        }
    }

    fn done(&mut self) -> io::Result<()> {
        self.call("done");
        self.done.map_or(Ok(()), |errno| Err(errno.into()))
    }

    fn unserved(&mut self) -> (Missed, u64) {
        (Missed::Overrun, self.unserved)
    }

    fn unserved_skipped(&mut self) -> u64 {
        self.skipped.unwrap_or(0)
    }

    fn end(&mut self) {
        self.call("end");
    }
}

/// Reads these words, in their order; then errors.
struct Words(VecDeque<Result<u64, Errno>>);

impl ReadChannel for Words {
    fn read(&mut self, _: &Row) -> io::Result<u64> {
        let next = self.0.pop_front().unwrap_or(Err(Errno::IO));
        next.map_err(io::Error::from)
    }
}

/// A channel that cannot begin.
struct Broken;

impl ReadChannel for Broken {
    fn begin(&mut self) -> io::Result<()> {
        Err(Errno::ACCESS.into())
    }

    fn read(&mut self, _: &Row) -> io::Result<u64> {
        Ok(0)
    }
}

/// An output that answers this.
struct Out(Result<(), Errno>, Arc<Mutex<Vec<u64>>>);

impl WriteOutput for Out {
    fn write(&mut self, word: u64) -> io::Result<()> {
        self.1.lock().expect("a list").push(word);
        self.0.map_err(io::Error::from)
    }
}

struct Bench {
    service: Service,
    reader: Reader,
    waker: Waker,
    /// The owner's end.
    requests: Sender<Request>,
    calls: Calls,
}

fn script(waits: Vec<io::Result<Trigger>>) -> Script {
    Script {
        waits: waits.into(),
        period: None,
        begin: None,
        done: None,
        unserved: 0,
        skipped: None,
        calls: Calls::default(),
    }
}

fn missed(missed: u64) -> io::Result<Trigger> {
    Ok(Trigger {
        missed,
        ..Trigger::PLAIN
    })
}

fn bench(source: Script, limit: u64, actions: Vec<Action>) -> Bench {
    let reads = actions.iter().filter(|a| matches!(a, Action::Read(_)));
    let channels = reads.count();
    let shape = RowShape {
        channels: channels as u32,
        outputs: (actions.len() - channels) as u32,
        skipped: source.skipped.is_some(),
    };
    let geometry = Geometry::new(shape, 16, limit).expect("a geometry");
    let header = Header {
        geometry,
        clock: CLOCK_MONOTONIC,
        period_ns: 0,
        run: 1,
        engine: Engine::User,
        absent: false,
    };
    let memory = MemoryMut::zeroed(usize::try_from(geometry.bytes()).expect("few"));
    let ring = Writer::create(memory, &header).expect("a ring");
    let reader = Reader::attach(ring.for_reader(), Begin::Oldest).expect("a reader");
    let (waker, wakeup) = wakeup().expect("a wake-up");
    let (requests, received) = channel();
    let calls = Arc::clone(&source.calls);
    let late_after = source.period.unwrap_or(u64::MAX);
    let service = Service {
        ring,
        reader_waker: Arc::new(ReaderWaker::new().expect("a descriptor")),
        woken: 0,
        clock: RunClock::new(Clock::Monotonic),
        source: Box::new(source),
        is_soft: false,
        actions,
        acts: Vec::new(),
        computer: None,
        wakeup,
        requests: received,
        start: 0,
        late_after,
        usage: Arc::default(),
        usage_before: Usage::default(),
    };
    Bench {
        service,
        reader,
        waker,
        requests,
        calls,
    }
}

impl Bench {
    /// Starts the run and serves it until the source has nothing left.
    fn serve(&mut self) -> io::Result<()> {
        assert_eq!(self.service.obey(Order::Start), Ok(()));
        self.waker.wake();
        self.service.serve()
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().expect("a list"))
    }

    fn settle(&self) -> Snapshot {
        let now = self.reader.snapshot();
        let known = now.head + now.missed() + now.skipped;
        assert_eq!(now.triggers, known, "{now:?}");
        now
    }
}

/// Trigger and status of each row, and its values.
fn rows(reader: &mut Reader) -> Vec<(u64, u64, Vec<u64>)> {
    let mut buffer = [0; 256];
    let batch = reader.read(&mut buffer);
    let row = |row: strobe_ring::Row<'_>| (row.trigger, row.status.0, row.values.to_vec());
    batch.rows().map(row).collect()
}

#[test]
fn what_the_source_missed_is_counted_before_the_row_by_its_cause() {
    let overrun = Trigger {
        missed: 3,
        cause: Missed::Overrun,
        ..Trigger::PLAIN
    };
    let waits = vec![missed(0), missed(2), Ok(overrun)];
    let mut bench = bench(script(waits), NO_LIMIT, Vec::new());
    bench.serve().expect("to serve");
    let now = bench.settle();
    assert_eq!((now.head, now.triggers), (3, 8));
    assert_eq!(now.missed_by[Missed::Source as usize], 2);
    assert_eq!(now.missed_by[Missed::Overrun as usize], 3);
    let triggers: Vec<u64> = rows(&mut bench.reader).iter().map(|row| row.0).collect();
    assert_eq!(triggers, [0, 3, 7]);
    assert_eq!(bench.calls(), ["begin", "done", "done", "done"]);
}

#[test]
fn a_source_is_ended_once_and_nothing_is_asked_of_it_after_that() {
    let mut bench = bench(script(vec![missed(0), missed(0)]), 2, Vec::new());
    bench.serve().expect("to serve");
    assert_eq!(bench.settle().state, State::Done);
    assert_eq!(bench.service.obey(Order::Abandon), Ok(()));
    assert_eq!(bench.calls(), ["begin", "done", "done", "end"]);
}

#[test]
fn a_source_that_did_not_begin_is_not_ended() {
    let mut never = bench(script(Vec::new()), NO_LIMIT, Vec::new());
    assert_eq!(never.service.obey(Order::Abandon), Ok(()));
    assert_eq!(never.calls(), [""; 0], "it may be another run's by now");
    let mut paused = bench(script(Vec::new()), NO_LIMIT, Vec::new());
    for order in [Order::Start, Order::Pause] {
        assert_eq!(paused.service.obey(order), Ok(()));
    }
    assert_eq!(paused.calls(), ["begin", "end"]);
    assert_eq!(paused.service.obey(Order::Stop), Ok(()));
    assert_eq!(paused.calls(), [""; 0]);
    let source = Script {
        begin: Some(Errno::TIMEDOUT),
        ..script(Vec::new())
    };
    let mut half = bench(source, NO_LIMIT, Vec::new());
    assert_eq!(half.service.obey(Order::Start), Err(Errno::TIMEDOUT));
    assert_eq!(half.calls(), ["begin", "end"], "what it did is undone");
    let now = half.settle();
    assert_eq!((now.state, now.error), (State::Failed, -110));
}

#[test]
fn a_last_row_is_a_last_row_whatever_becomes_of_the_source() {
    let source = |limit| {
        let source = Script {
            done: Some(Errno::NODEV),
            ..script(vec![missed(0)])
        };
        bench(source, limit, Vec::new())
    };
    let mut whole = source(1);
    whole.serve().expect("to serve");
    assert_eq!(whole.settle().state, State::Done);
    let mut half = source(2);
    let error = half.serve().expect_err("the device is gone");
    assert_eq!(errno(&error), Errno::NODEV.raw_os_error());
}

#[test]
fn what_passed_before_a_pause_or_a_stop_is_missed_and_what_came_after_a_limit_is_not() {
    for order in [Order::Pause, Order::Stop, Order::Abandon] {
        let source = Script {
            unserved: 5,
            ..script(vec![missed(0)])
        };
        let mut bench = bench(source, NO_LIMIT, Vec::new());
        bench.serve().expect("to serve");
        assert_eq!(bench.service.obey(order), Ok(()));
        let now = bench.settle();
        assert_eq!((now.head, now.triggers), (1, 6), "{order:?}");
        assert_eq!(now.missed_by[Missed::Overrun as usize], 5);
        let error = match order {
            Order::Abandon => -32,
            _ => 0,
        };
        assert_eq!(now.error, error);
    }
}

#[test]
fn a_failure_of_the_source_ends_the_run_with_its_errno_and_the_thread_still_answers() {
    let waits = vec![missed(1), Err(Errno::NODEV.into()), missed(1)];
    let Bench {
        service,
        reader,
        waker,
        requests,
        calls,
    } = bench(script(waits), NO_LIMIT, Vec::new());
    let thread = std::thread::spawn(move || service.run());
    let call = |order| {
        let (answer, answered) = sync_channel(1);
        requests.send((order, answer)).expect("to send");
        waker.wake();
        answered.recv().expect("an answer")
    };
    assert_eq!(call(Order::Start), Ok(()));
    while !reader.snapshot().state.is_final() {
        std::thread::yield_now();
    }
    let now = reader.snapshot();
    assert_eq!((now.state, now.error), (State::Failed, -19));
    assert_eq!((now.head, now.triggers), (1, 2));
    assert_eq!(call(Order::Start), Err(Errno::SHUTDOWN));
    assert_eq!(call(Order::Abandon), Ok(()));
    thread.join().expect("no panic");
    assert_eq!(*calls.lock().expect("a list"), ["begin", "done", "end"]);
    assert_eq!(reader.snapshot(), now, "an end is the end");
}

#[test]
fn a_device_that_goes_in_a_row_ends_the_run_after_that_row() {
    for what in ["channel", "output", "neither"] {
        let seen = Arc::default();
        let first = match what {
            "channel" => Err(Errno::NODEV),
            _ => Err(Errno::IO),
        };
        let out = match what {
            "output" => Err(Errno::NODEV),
            _ => Err(Errno::IO),
        };
        let actions = vec![
            Action::Read(Box::new(Words([first].into()))),
            Action::Write(Box::new(Out(out, Arc::clone(&seen))), 77),
            Action::Read(Box::new(Words([Ok(9)].into()))),
        ];
        let mut bench = bench(script(vec![missed(0)]), NO_LIMIT, actions);
        let served = bench.serve().map_err(|error| errno(&error));
        let wanted = match what {
            "neither" => Ok(()),
            _ => Err(Errno::NODEV.raw_os_error()),
        };
        assert_eq!(served, wanted, "{what}");
        assert_eq!(*seen.lock().expect("a list"), [77], "the row is finished");
        // The first channel, and the first output behind two channels.
        assert_eq!(rows(&mut bench.reader), [(0, 0b101 << 32, vec![0, 9])]);
        assert_eq!(bench.settle().errors, 1);
    }
}

#[test]
fn all_channels_and_outputs_that_fail_are_named() {
    let seen = Arc::default();
    let read = |result| Action::Read(Box::new(Words([result].into())));
    let write = |result| Action::Write(Box::new(Out(result, Arc::clone(&seen))), 1);
    let mut actions = vec![write(Ok(())), write(Err(Errno::IO))];
    actions.extend((0..40).map(|n| read(if n % 13 == 5 { Err(Errno::IO) } else { Ok(n) })));
    actions.push(write(Err(Errno::IO)));
    let mut bench = bench(script(vec![missed(0)]), NO_LIMIT, actions);
    bench.serve().expect("to serve");
    let mut buffer = vec![0; 2 * bench.reader.row_words()];
    let row = bench.reader.read(&mut buffer).rows().next();
    let faults: Vec<_> = row.expect("a row").faults.iter().collect();
    assert_eq!(faults, [5, 18, 31, 41, 42]);
    assert_eq!(bench.settle().errors, 1);
}

#[test]
fn what_the_source_leaves_out_on_purpose_is_skipped_and_not_missed() {
    let left_out = |missed, skipped| {
        Ok(Trigger {
            missed,
            skipped,
            ..Trigger::PLAIN
        })
    };
    for order in [Order::Pause, Order::Stop] {
        let source = Script {
            unserved: 1,
            skipped: Some(5),
            ..script(vec![left_out(0, 9), left_out(2, 27)])
        };
        let mut bench = bench(source, NO_LIMIT, Vec::new());
        bench.serve().expect("to serve");
        let mut buffer = [0; 64];
        let rows = bench.reader.read(&mut buffer).rows();
        let rows: Vec<_> = rows.map(|row| (row.trigger, row.skipped)).collect();
        assert_eq!(rows, [(9, 9), (39, 36)]);
        assert_eq!(bench.service.obey(order), Ok(()));
        let now = bench.settle();
        assert_eq!((now.head, now.missed(), now.skipped), (2, 3, 41));
    }
}

#[test]
fn a_row_is_late_from_one_period_on() {
    let due = |due| {
        Ok(Trigger {
            due,
            ..Trigger::PLAIN
        })
    };
    let now = RunClock::new(Clock::Monotonic).now();
    let (past, future) = (now - 1_000_000, now + 1_000_000_000_000);
    for (period, due_at, late) in [
        (Some(1_000_000), Some(past), ROW_LATE),
        (Some(1_000_000_000_000), Some(past), 0),
        (Some(1_000_000), Some(future), 0),
        (Some(1_000_000), None, 0),
        (None, Some(past), 0),
    ] {
        let source = Script {
            period,
            ..script(vec![due(due_at)])
        };
        let mut bench = bench(source, NO_LIMIT, Vec::new());
        bench.serve().expect("to serve");
        assert_eq!(rows(&mut bench.reader), [(0, late, Vec::new())]);
    }
}

#[test]
fn a_start_says_when_it_was_and_when_the_first_trigger_is_due() {
    for period in [None, Some(5_000)] {
        let source = Script {
            period,
            ..script(Vec::new())
        };
        let mut bench = bench(source, NO_LIMIT, Vec::new());
        let before = bench.service.clock.now();
        assert_eq!(bench.service.obey(Order::Start), Ok(()));
        let start = bench.settle().start;
        assert!(start.time >= before && start.time <= bench.service.clock.now());
        assert_eq!(start.time, bench.service.start);
        let first_due = period.map_or(0, |period| start.time + period);
        assert_eq!(start.first_due, first_due);
    }
}

/// Keeps what it is told of a row.
struct Told(Arc<Mutex<Vec<Row>>>);

impl ReadChannel for Told {
    fn read(&mut self, row: &Row) -> io::Result<u64> {
        self.0.lock().expect("a list").push(*row);
        Ok(0)
    }
}

#[test]
fn a_channel_is_told_of_the_start_the_stamp_and_the_trigger() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let actions = vec![Action::Read(Box::new(Told(Arc::clone(&told))) as _)];
    let trigger = Trigger {
        count: 3,
        time: 4,
        ..Trigger::PLAIN
    };
    let mut bench = bench(script(vec![Ok(trigger)]), NO_LIMIT, actions);
    bench.serve().expect("to serve");
    let mut buffer = [0; 16];
    let batch = bench.reader.read(&mut buffer);
    let time = batch.rows().next().expect("a row").time;
    let told = told.lock().expect("a list");
    assert_eq!((told[0].time, told[0].trigger), (time, trigger));
    assert_eq!(told[0].start, bench.reader.snapshot().start.time);
}

#[test]
fn who_sleeps_is_woken_by_software_triggers_and_pauses_and_the_end() {
    let mut bench = bench(script(Vec::new()), NO_LIMIT, Vec::new());
    bench.service.is_soft = true;
    for order in [
        Order::Start,
        Order::Trigger(1),
        Order::Pause,
        Order::Resume,
        Order::Stop,
    ] {
        let before = bench.reader.wake_value();
        assert_eq!(bench.service.obey(order), Ok(()));
        assert_ne!(bench.reader.wake_value(), before, "{order:?}");
    }
    let mut full = self::bench(script(vec![missed(0)]), 1, Vec::new());
    assert_eq!(full.service.obey(Order::Start), Ok(()));
    let before = full.reader.wake_value();
    full.waker.wake();
    full.service.serve().expect("to serve");
    assert_ne!(full.reader.wake_value(), before, "the limit");
}

#[test]
fn a_channel_that_cannot_begin_ends_the_run_before_its_source_begins() {
    let actions = vec![Action::Read(Box::new(Broken) as _)];
    let mut bench = bench(script(Vec::new()), NO_LIMIT, actions);
    assert_eq!(bench.service.obey(Order::Start), Err(Errno::ACCESS));
    assert_eq!(bench.settle().error, -13);
    assert_eq!(bench.calls(), [""; 0]);
}

#[test]
fn orders_are_refused_by_the_state_of_the_run() {
    let mut bench = bench(script(Vec::new()), NO_LIMIT, Vec::new());
    let mut obey = |order| bench.service.obey(order);
    for order in [Order::Pause, Order::Resume, Order::Trigger(1)] {
        assert_eq!(obey(order), Err(Errno::BUSY), "{order:?} when ready");
    }
    assert_eq!(obey(Order::Start), Ok(()));
    assert_eq!(obey(Order::Start), Err(Errno::ALREADY));
    assert_eq!(obey(Order::Resume), Err(Errno::ALREADY));
    assert_eq!(obey(Order::Trigger(1)), Err(Errno::OPNOTSUPP));
    assert_eq!(obey(Order::Pause), Ok(()));
    assert_eq!(obey(Order::Pause), Err(Errno::ALREADY));
    assert_eq!(obey(Order::Start), Err(Errno::BUSY));
    assert_eq!(obey(Order::Trigger(1)), Err(Errno::BUSY));
    assert_eq!(obey(Order::Resume), Ok(()));
    assert_eq!(obey(Order::Stop), Ok(()));
    assert_eq!(obey(Order::Stop), Ok(()));
    for order in [Order::Start, Order::Pause, Order::Resume, Order::Trigger(1)] {
        assert_eq!(obey(order), Err(Errno::SHUTDOWN), "{order:?} at the end");
    }
    assert_eq!(bench.calls(), ["begin", "end", "begin", "end"]);
    assert_eq!(bench.settle().state, State::Stopped);
}

#[test]
fn software_triggers_make_rows_up_to_the_limit_and_no_more_at_once_than_the_contract_says() {
    let mut bench = bench(script(Vec::new()), 5, Vec::new());
    bench.service.is_soft = true;
    assert_eq!(bench.service.obey(Order::Start), Ok(()));
    for count in [0, TRIGGER_MAX + 1, u32::MAX] {
        let refused = bench.service.obey(Order::Trigger(count));
        assert_eq!(refused, Err(Errno::INVAL), "{count}");
    }
    assert_eq!(bench.service.obey(Order::Trigger(2)), Ok(()));
    assert_eq!(bench.settle().head, 2);
    assert_eq!(bench.service.obey(Order::Trigger(TRIGGER_MAX)), Ok(()));
    let now = bench.settle();
    assert_eq!((now.head, now.triggers, now.state), (5, 5, State::Done));
    assert_eq!(bench.calls(), ["begin", "end"]);
}

#[test]
fn what_it_has_cost_is_from_the_start_to_the_end() {
    let mut bench = bench(script(Vec::new()), NO_LIMIT, Vec::new());
    let touch = || {
        let pages = vec![1_u8; 8 << 20];
        std::hint::black_box(&pages);
    };
    let faults = |bench: &Bench| bench.service.usage.lock().expect("usage").minor_faults;
    touch();
    assert_eq!(bench.service.obey(Order::Start), Ok(()));
    assert_eq!(bench.service.obey(Order::Stop), Ok(()));
    let at_the_end = faults(&bench);
    assert!(at_the_end < 1000, "{at_the_end} faults");
    touch();
    assert_eq!(bench.service.obey(Order::Stop), Ok(()));
    bench.service.finish(End::Done);
    assert_eq!(faults(&bench), at_the_end, "what comes later is not its");
}
