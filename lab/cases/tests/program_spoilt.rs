// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that is none by accident is refused, or does what the evaluator says: it harms nobody.

use std::sync::Arc;

use libc::EINVAL;
use strobe_cases::dice::Dice;
use strobe_cases::engine::program;
use strobe_cases::raw::program::*;
use strobe_cases::raw::*;
use strobe_expr::{Column, Insn, Machine, Program as Evaluated, compile};

/// A good program of the language, which is then spoilt.
fn samples() -> Vec<Vec<Insn>> {
    let texts: [(&[&str], &[&str], Option<u64>); 4] = [
        (&["d0 = mean(b, 4)", "d1 = diff(a)"], &["a & 1"], Some(3)),
        (
            &["d0 = a % 7", "d1 = b / (a % 5) else 3"],
            &["b > 100 || a & 2"],
            None,
        ),
        (
            &["d0 = max(b since emit)", "d1 = sum(b since emit)"],
            &[],
            Some(5),
        ),
        (
            &["d0 = clamp(b, 10, 200)", "d1 = abs(diff(b)) / 3"],
            &["!(a & 4)"],
            None,
        ),
    ];
    let columns = [
        Column::unsigned("a"),
        Column {
            bits: 10,
            ..Column::unsigned("b")
        },
    ];
    let of = |(derive, keep, every): &(&[&str], &[&str], Option<u64>)| {
        let program = compile(&program(derive, keep, *every), &columns);
        program.expect("a program").insns().to_vec()
    };
    texts.iter().map(of).collect()
}

fn spoil(dice: &mut Dice, insns: &mut Vec<Insn>) {
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(insns.len());
        let other = insns[dice.below(insns.len())];
        match dice.below(10) {
            0 => insns[at] = other,
            1 => insns.insert(at, other),
            2 if insns.len() > 1 => drop(insns.remove(at)),
            3 => insns[at].dst = dice.below(11) as u8,
            4 => insns[at].src = dice.below(11) as u8,
            5 => insns[at].off = dice.of(&[0, 1, 2, 8, 16, 24, 32, 120, 128, -1, -8]) as i16,
            6 => insns[at].imm = dice.of(&[0, 1, 3, 7, 15, 63, 64, u64::MAX]) as i32,
            7 => insns[at].code = dice.below(256) as u8,
            8 => insns[at].code ^= X,
            _ => {
                insns[at].code =
                    dice.of(&[LDX, STX, MOV, ADD, SUB, AND, LSH, DIV, JA, JNE].map(u64::from)) as u8
            }
        }
    }
}

/// `STROBE_FUZZ` says how many.
#[test]
fn a_spoilt_program_is_refused_or_does_what_the_evaluator_says() {
    let rounds = std::env::var("STROBE_FUZZ").map_or(3000, |n| n.parse().expect("a number"));
    let (mut dice, samples) = (Dice(7), samples());
    let (mut run, mut left_out) = (0, 0);
    for round in 0..rounds {
        let mut insns = samples[dice.below(samples.len())].clone();
        if round >= samples.len() {
            spoil(&mut dice, &mut insns);
        }
        if insns.len() > 4096 {
            continue;
        }
        let (code, derived) = (bytes(&insns), columns(DERIVED));
        let (answer, created) = ask_with(&about(&code, &derived));
        if let Err(errno) = answer {
            assert_eq!((errno, created.why), (EINVAL, WHY_PROGRAM), "{insns:x?}");
            continue;
        }
        run += 1;
        left_out += compare(created.fd, &created, insns);
    }
    println!("{run} of {rounds} were programs; they left {left_out} triggers out");
    assert!(
        run > rounds / 20 && left_out > rounds as u64 / 20,
        "a test of nothing"
    );
}

/// Six triggers of a run with this program, against the evaluator; how many were left out. The row of one that was is in its
/// place all the same, where the next row will be.
fn compare(owner: i32, created: &Created, insns: Vec<Insn>) -> u64 {
    let owner = adopt(owner);
    let ring = reader(&owner, 0, 0, 0).expect("a reader");
    let map = map(&ring, created.ring_bytes as usize).expect("a mapping");
    let start = map.get::<u64>(DATA_OFFSET) as usize;
    order(&owner, START, 0).expect("to start");
    let mut machine = Machine::new(Arc::new(Evaluated::of_insns(
        insns,
        STATE_WORDS as usize,
        CHANNELS,
        DERIVED,
    )));
    let (mut derived, mut rows) = ([0; DERIVED], 0);
    for trigger in 1..=6 {
        order(&owner, TRIGGER, 1).expect("a trigger");
        let place = start + rows as usize * created.row_stride as usize + 32;
        let row: Vec<u64> = (0..CHANNELS + DERIVED)
            .map(|n| map.get(place + 8 * n))
            .collect();
        let mut values = [&row[..CHANNELS], &derived].concat();
        let is_kept = machine.run(&mut values).is_kept();
        let look = order(&owner, STATUS, 0).expect("a state");
        let kept = look.head - rows;
        let what = machine.program().insns();
        assert_eq!(
            (kept == 1, &values),
            (is_kept, &row),
            "trigger {trigger} of {what:x?}"
        );
        assert_eq!(
            (look.triggers, look.skipped),
            (trigger, trigger - look.head)
        );
        rows = look.head;
        derived.copy_from_slice(if is_kept {
            &[0; DERIVED]
        } else {
            &row[CHANNELS..]
        });
    }
    6 - rows
}

#[test]
fn a_user_without_capabilities_has_programs_too() {
    let mut ann = OtherUser::new(1234, |control, talk| {
        let insns = bytes(&samples()[0]);
        let (answer, created) = ask_at(control, &about(&insns, &columns(DERIVED)));
        talk.say(answer.is_ok().into());
        talk.say(compare(created.fd, &created, samples().swap_remove(0)));
    });
    assert_eq!(ann.talk().hear(), Some(1));
    assert_eq!(ann.talk().hear(), Some(5));
}
