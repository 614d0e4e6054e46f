// SPDX-License-Identifier: MIT OR Apache-2.0
//! Averaging in the row: of a converter's 200000 samples a second, rows of a thousand each. They are what a recording of
//! all samples gives when it is averaged afterwards, bit for bit.
// lab: --device lab-counter,id=first --device lab-encoder,master=first --device lab-adc,master=first --device lab-axi-timer
// lab: --device lab-axi-gpio --module uio_pci_generic --module strobe_loop --module lab_fpga

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use strobe::engine::kernel::KernelRun;
use strobe::plan::Plan;
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use strobe_cases::account::{begin, read_now, until};
use strobe_cases::engine::{Kernel, program};
use strobe_cases::machine::undisturbed;
use strobe_cases::pci::{self, get, put};
use strobe_cases::{Account, Engine, plan};

const CHANNELS: [&str; 2] = ["adc.sample1", "adc.sample2"];
/// Samples of a row.
const POINT: usize = 1000;
const DERIVE: [&str; 5] = [
    "mean1 = mean(adc.sample1 since emit)",
    "mean2 = mean(adc.sample2 since emit)",
    "least = min(adc.sample1 since emit)",
    "most = max(adc.sample2 since emit)",
    "samples = count(since emit)",
];

/// How often the converter's clock is started before the test gives up: one start in six was of no use here.
const STARTS: usize = 8;

/// What has been read, and what reading it has cost.
struct Read {
    rows: Vec<Vec<u64>>,
    bytes: usize,
    cpu_ns: u64,
}

/// Time between two samples, ns, and how many rows they make.
struct Pace {
    period: u64,
    points: usize,
}

/// It is known of Debian's stable kernels how long they keep interrupts away; others may do it for many samples.
fn pace() -> Pace {
    let (period, points) = match std::env::var("LAB_KERNEL").as_deref() {
        Ok("amd64" | "rt") => (5_000, 100),
        _ => (1_000_000, 10),
    };
    Pace { period, points }
}

/// CPU time of this thread.
fn spent() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What a run has recorded of so many samples; nothing if the interrupts of two of them came as one.
fn read(
    run: &KernelRun,
    (mut reader, mut account): (RunReader, Account),
    samples: u64,
) -> Option<Read> {
    run.stop().expect("to stop");
    let begun = spent();
    read_now(&mut reader, &mut account);
    let cpu_ns = spent() - begun;
    let end = reader.snapshot();
    account.settle(&end);
    assert_eq!((account.lost, end.missed(), end.errors), (0, 0, 0));
    assert!(end.triggers <= samples, "{end:?}");
    (end.triggers == samples).then(|| Read {
        bytes: 8 * reader.ring().row_words() * account.rows.len(),
        rows: account.rows.into_iter().map(|row| row.values).collect(),
        cpu_ns,
    })
}

/// The same samples, each a row and averaged. A kernel keeps interrupts away while it handles its own tick, one with PREEMPT_RT
/// for close to 5 us. It depends on when the converter's clock was started whether two samples come within that: then their
/// interrupts are one, the two runs read different samples at it, and there is nothing to compare.
fn record(engine: &Kernel, samples: u64, period: u64) -> Option<[Read; 2]> {
    let outputs = [
        ("counter.run", 0),
        ("counter.period", period),
        ("counter.limit", samples),
        ("adc.clear", 3),
        ("adc.delay", 1000),
    ];
    put(engine, &outputs);
    let before = get(engine, "adc.conversions");
    let plain = Plan {
        ring: Some(1 << 17),
        ..plan("adc.done", &CHANNELS)
    };
    let averaged = Plan {
        program: program(&DERIVE, &[], Some(POINT as u64)),
        ..plain.clone()
    };
    let [plain, averaged] = [plain, averaged].map(|plan| engine.run(&plan));
    let [of_plain, of_averaged] = [&plain, &averaged].map(begin);
    for run in [&plain, &averaged] {
        run.start().expect("to start");
    }
    put(engine, &[("counter.run", 1)]);
    until("the last sample", || {
        thread::sleep(Duration::from_millis(10));
        get(engine, "adc.conversions") - before == samples
    });
    until("its rows", || get(engine, "adc.irq_status") == 0);
    let channels = &averaged.info().channels;
    let (sample, mean) = (&channels[0], &channels[CHANNELS.len()]);
    assert_eq!(mean.scale, sample.scale / POINT as f64, "{mean:?}");
    let all = read(&plain, of_plain, samples);
    let few = read(&averaged, of_averaged, samples);
    Some([all?, few?])
}

#[test]
fn rows_of_a_thousand_samples_are_those_of_the_plain_recording_averaged_afterwards() {
    undisturbed();
    let Pace { period, points } = pace();
    let lab = pci::kernel(&["lab-counter", "lab-adc"]);
    let [all, few] = (0..STARTS)
        .find_map(|_| record(&lab.engine, (POINT * points) as u64, period))
        .expect("a start from which each sample has an interrupt of its own");

    assert_eq!(few.rows.len(), all.rows.len() / POINT);
    for (point, row) in all.rows.chunks(POINT).zip(&few.rows) {
        let column = |channel: usize| point.iter().map(move |row| row[channel] as i64);
        let wanted = [
            // Its scale divides it by as many: nothing is rounded.
            column(0).sum::<i64>(),
            column(1).sum(),
            column(0).min().expect("samples"),
            column(1).max().expect("samples"),
            POINT as i64,
        ];
        let got: Vec<i64> = row[CHANNELS.len()..]
            .iter()
            .map(|word| *word as i64)
            .collect();
        assert_eq!(got, wanted);
        assert_eq!(row[..CHANNELS.len()], point[POINT - 1], "the last sample");
    }
    for (what, read) in [("plain", &all), ("averaged", &few)] {
        let Read {
            rows,
            bytes,
            cpu_ns,
        } = read;
        println!(
            "{what}: {} rows, {bytes} bytes, read in {cpu_ns} ns of CPU",
            rows.len()
        );
    }
}
