// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that is none by accident is refused, or does what the evaluator says: it harms nobody.

use std::sync::Arc;

use libc::EINVAL;
use strobe_cases::compared::Compared;
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

/// Mostly a little, so that the kernel may take it; now and then beyond recognition.
fn spoil(dice: &mut Dice, insns: &mut Vec<Insn>) {
    let most = if dice.one_in(8) { 64 } else { 3 };
    for _ in 0..1 + dice.below(most) {
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

/// A number that the environment may say.
fn said(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"))
}

/// `STROBE_FUZZ` says how many, and `STROBE_SEED` which, so that many can be done in parts.
#[test]
fn a_spoilt_program_is_refused_or_does_what_the_evaluator_says() {
    let rounds = said("STROBE_FUZZ", 3000) as usize;
    let (mut dice, samples) = (Dice(said("STROBE_SEED", 7)), samples());
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
        left_out += compare(&created, insns);
    }
    println!("{run} of {rounds} were programs; they left {left_out} triggers out");
    assert!(
        run > rounds / 20 && left_out > rounds as u64 / 20,
        "a test of nothing"
    );
}

/// Six triggers of a run with this program, against the evaluator; how many were left out.
fn compare(created: &Created, insns: Vec<Insn>) -> u64 {
    let about = format!("{insns:x?}");
    let program = Evaluated::of_insns(insns, STATE_WORDS as usize, CHANNELS, DERIVED);
    let mut run = Compared::start(created, Machine::new(Arc::new(program)), about);
    for _ in 0..6 {
        run.trigger();
    }
    run.left_out()
}

#[test]
fn a_user_without_capabilities_has_programs_too() {
    let mut ann = OtherUser::new(1234, |control, talk| {
        let insns = bytes(&samples()[0]);
        let (answer, created) = ask_at(control, &about(&insns, &columns(DERIVED)));
        talk.say(answer.is_ok().into());
        talk.say(compare(&created, samples().swap_remove(0)));
    });
    assert_eq!(ann.talk().hear(), Some(1));
    assert_eq!(ann.talk().hear(), Some(5));
}
