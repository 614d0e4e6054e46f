// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers: that of STROBE_CREATE has a place and a size of its own, that of STROBE_CONTROL comes on
//! failure, too.

use std::os::fd::AsRawFd;

use libc::{EFAULT, EINVAL, ENOENT, PROT_READ, PROT_WRITE};
use strobe_cases::account::until;
use strobe_cases::raw::*;

const UNMAPPED: usize = 0x1000;
const KERNEL: usize = 0xffff_8880_0000_0000;
const NON_CANONICAL: usize = 0x8000_0000_0000_0000;

/// The answer at this place, into bytes that are 0xEE before; what is there then.
fn answer_at(control: &impl AsRawFd, wrong: bool, size: u32) -> (Answer, Vec<u8>) {
    let page = Map::pages(2, PROT_READ | PROT_WRITE);
    (0..8192).for_each(|at| page.put(at, 0xEEu8));
    let event = if wrong { "nothing" } else { "soft" };
    let mut c = Create {
        flags: DRY_RUN,
        answer: page.address as u64,
        answer_size: size,
        ..request(event, 0, 4, &[])
    };
    let result = ioctl(control, CREATE, &mut c);
    (result, (0..8192).map(|at| page.get::<u8>(at)).collect())
}

#[test]
fn an_answer_may_have_more_room_than_the_kernel_knows_and_gets_zeros_there() {
    const KNOWN: usize = 56;
    let control = control();
    let mut findings = Findings::default();
    for wrong in [false, true] {
        let want = if wrong { Err(ENOENT) } else { Ok(0) };
        for size in [KNOWN, KNOWN + 8, 512, 4096] {
            let what = format!("answer_size {size}, wrong {wrong}");
            let (result, bytes) = answer_at(&control, wrong, size as u32);
            findings.equal(&what, result, want);
            let filled = bytes[KNOWN..size].iter().all(|byte| *byte == 0);
            findings.equal(format!("{what}: filled up"), filled, true);
            let behind = bytes[size..].iter().all(|byte| *byte == 0xEE);
            findings.equal(format!("{what}: behind"), behind, true);
        }
        for size in [
            0,
            8,
            KNOWN - 8,
            KNOWN - 1,
            KNOWN + 1,
            4097,
            4104,
            usize::MAX,
        ] {
            let what = format!("answer_size {size}, wrong {wrong}");
            let (result, bytes) = answer_at(&control, wrong, size as u32);
            findings.equal(&what, result, Err(EINVAL));
            let written = bytes.iter().any(|byte| *byte != 0xEE);
            findings.equal(format!("{what}: written"), written, false);
        }
    }
}

#[test]
fn a_run_whose_answer_has_no_room_is_not_made() {
    let control = control();
    let before = census(&control);
    let read_only = Map::pages(1, PROT_READ);
    for (what, answer) in [
        ("NULL", 0),
        ("unmapped", UNMAPPED as u64),
        ("the kernel", KERNEL as u64),
        ("not canonical", NON_CANONICAL as u64),
        ("read-only", read_only.address as u64),
    ] {
        let mut c = Create {
            answer,
            answer_size: 56,
            ..request("soft", 0, 4, &[])
        };
        assert_eq!(ioctl(&control, CREATE, &mut c), Err(EFAULT), "{what}");
        let after = census(&control);
        // A number that has moved on is allowed: a run may have come and gone.
        let generation = before.generation;
        assert_eq!(
            Census {
                generation,
                ..after
            },
            before,
            "{what}"
        );
    }
}

#[test]
fn a_start_that_the_events_provider_refuses_says_the_providers_errno() {
    let control = control();
    let refuse = Parameter::set("sim_refuse", 1);
    let (owner, _) = create(&control, &request("sim.pulse", 0, 8, &[])).expect("a run");
    let (result, answer) = order_answered(&owner, START, 0);
    assert_eq!(result, Err(libc::ENODEV));
    assert!(answer.cause < 0 && answer.cause > -4096, "{answer:?}");
    assert_eq!(answer.state, READY);
    drop(refuse);
    let (result, answer) = order_answered(&owner, START, 0);
    assert_eq!((result, answer.cause, answer.state), (Ok(0), 0, RUNNING));
    let (result, answer) = order_answered(&owner, START, 0);
    assert_eq!((result, answer.cause), (Err(libc::EALREADY), 0));
    assert_eq!(
        answer.state, RUNNING,
        "the answer is written on failure, too"
    );
}

#[test]
fn a_start_that_fails_for_another_reason_has_no_cause() {
    let control = control();
    // The pulses before the refusal make all rows of the run.
    let _refuse = Parameter::set("sim_refuse", 3);
    let c = Create {
        limit: 2,
        ..request("sim.pulse", 0, 8, &[])
    };
    let (owner, _) = create(&control, &c).expect("a run");
    let mut answered = order_answered(&owner, START, 0);
    // On a machine that stands still now and then a pulse may be missed; then the provider's refusal comes first.
    until("both rows", || {
        if answered.0 == Err(libc::ENODEV) {
            answered = order_answered(&owner, START, 0);
        }
        answered.0 != Err(libc::ENODEV)
    });
    let (result, answer) = answered;
    assert_eq!((result, answer.cause), (Err(libc::ESHUTDOWN), 0));
    assert_eq!((answer.state, answer.head), (DONE, 2));
}

#[test]
fn skipped_triggers_are_in_the_answers_and_in_the_rows() {
    let control = control();
    let steps = [step(READ, "clock.late", 0)];
    let c = Create {
        limit: 3,
        ..request("sim.decimated", 0, 8, &steps)
    };
    let (owner, made) = create(&control, &c).expect("a run");
    assert_eq!((made.channels, made.outputs, made.row_size), (1, 0, 48));
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    order(&owner, START, 0).expect("started");
    until("the end", || {
        order(&owner, STATUS, 0).expect("status").state == DONE
    });
    let map = map(&ring, made.ring_bytes as usize).expect("a mapping");
    assert_eq!(map.get::<u32>(INCOMPAT), 2, "rows have the word");
    let end = order(&owner, STATUS, 0).expect("status");
    assert_eq!((end.head, end.skipped), (3, 27));
    assert_eq!(map.get::<u64>(SKIPPED), 27);
    let mut words = [0u64; 24];
    let args = [ring.as_raw_fd() as usize, words.as_mut_ptr() as usize, 192];
    assert_eq!(sys(libc::SYS_read, &args), Ok(3 * 48), "three whole rows");
    let skipped = [words[5], words[11], words[17]];
    assert_eq!(skipped, [9, 18, 27]);
}
