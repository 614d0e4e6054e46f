// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is no program is refused, and the instruction is named.

use libc::{E2BIG, EFAULT, EINVAL, EOPNOTSUPP, EPERM};
use strobe_cases::account::until;
use strobe_cases::machine::Sim;
use strobe_cases::raw::program::*;
use strobe_cases::raw::*;
use strobe_expr::Insn;

/// The index of the instruction that is refused; `None` if it is a program.
fn refused(insns: &[Insn]) -> Option<u32> {
    let (insns, derived) = (bytes(insns), columns(DERIVED));
    let (answer, created) = ask_with(&about(&insns, &derived));
    match answer {
        Ok(_) => {
            drop(adopt(created.fd));
            None
        }
        Err(errno) => {
            assert_eq!((errno, created.why), (EINVAL, WHY_PROGRAM), "{created:?}");
            Some(created.fault_step)
        }
    }
}

#[test]
fn an_instruction_that_may_not_stand_where_it_is_is_named() {
    // Each with what goes before it; it is followed by "MOV r0, 0; EXIT".
    #[rustfmt::skip]
    let wrong: &[(&str, &[Insn], u32)] = &[
        ("a call", &[insn(0x85, 0, 0, 0, 1)], 0),
        ("a call of a subprogram", &[insn(0x85, 0, 1, 0, 0)], 0),
        ("a jump back", &[mov(2, 0), insn(JA, 0, 0, -2, 0)], 1),
        ("a jump to itself", &[insn(JA, 0, 0, -1, 0)], 0),
        ("a jump behind the end", &[insn(JA, 0, 0, 2, 0)], 0),
        ("a jump far behind the end", &[insn(JA, 0, 0, i16::MAX, 0)], 0),
        ("what cannot be reached", &[insn(JA, 0, 0, 1, 0), mov(2, 0)], 1),
        ("a register that is not set", &[insn(MOV | X, 2, 3, 0, 0)], 0),
        ("a register that is set on one way only", &[mov(2, 0), insn(JEQ, 2, 0, 1, 0), mov(3, 0), insn(MOV | X, 4, 3, 0, 0)], 3),
        ("an operation on a register that is not set", &[insn(ADD, 2, 0, 0, 1)], 0),
        ("a copy of the row's address", &[insn(MOV | X, 2, 1, 0, 0)], 0),
        ("a copy of the state's address", &[insn(MOV | X, 2, 9, 0, 0)], 0),
        ("the row's address stored", &[insn(STX, 9, 1, 0, 0)], 0),
        ("the state's address stored", &[insn(STX, 1, 9, 16, 0)], 0),
        ("the stack", &[insn(LDX, 2, 10, -8, 0)], 0),
        ("the stack's address", &[insn(MOV | X, 2, 10, 0, 0)], 0),
        ("a row's address that is changed", &[insn(ADD, 1, 0, 0, 8)], 0),
        ("a state's address that is changed", &[mov(9, 0)], 0),
        ("a row's address that is compared", &[insn(JEQ, 1, 0, 0, 0)], 0),
        ("a row's address added", &[mov(2, 0), insn(ADD | X, 2, 1, 0, 0)], 1),
        ("a state's address added", &[mov(2, 0), insn(ADD | X, 2, 9, 0, 0)], 1),
        ("a word before the row", &[insn(LDX, 2, 1, -8, 0)], 0),
        ("a word behind the row", &[insn(LDX, 2, 1, 32, 0)], 0),
        ("a word across the end of the row", &[insn(LDX, 2, 1, 28, 0)], 0),
        ("a word before the state", &[insn(LDX, 2, 9, -8, 0)], 0),
        ("a word behind the state", &[insn(LDX, 2, 9, 128, 0)], 0),
        ("a channel that is changed", &[mov(2, 0), insn(STX, 1, 2, 8, 0)], 1),
        ("a half word", &[insn(0x61, 2, 1, 0, 0)], 0),
        ("an atomic addition", &[mov(2, 0), insn(0xdb, 9, 2, 0, 0)], 1),
        ("a number that is stored", &[insn(0x7a, 9, 0, 0, 5)], 0),
        ("a division by 0", &[mov(2, 1), insn(DIV, 2, 0, 0, 0)], 1),
        ("a rest of a division by 0", &[mov(2, 1), insn(MOD, 2, 0, 0, 0)], 1),
        ("a division by a register", &[mov(2, 1), mov(3, 1), insn(DIV | X, 2, 3, 0, 0)], 2),
        ("a division with a sign", &[mov(2, 1), insn(DIV, 2, 0, 1, 2)], 1),
        ("a test of another register", &[mov(2, 1), mov(3, 1), insn(JNE, 2, 0, 1, 0), mov(2, 1), insn(DIV | X, 2, 3, 0, 0)], 4),
        ("a jump past the test", &[mov(2, 1), mov(3, 1), insn(JEQ, 2, 0, 2, 5), insn(JNE, 3, 0, 1, 0), mov(3, 1), insn(DIV | X, 2, 3, 0, 0)], 5),
        ("a shift too far", &[mov(2, 1), insn(LSH, 2, 0, 0, 64)], 1),
        ("a shift back", &[mov(2, 1), insn(LSH, 2, 0, 0, -1)], 1),
        ("32 bits", &[insn(0xb4, 2, 0, 0, 1)], 0),
        ("a jump on 32 bits", &[mov(2, 1), insn(0x16, 2, 0, 0, 1)], 1),
        ("a move that extends a sign", &[mov(2, 1), insn(MOV | X, 3, 2, 8, 0)], 1),
        ("another order of bytes", &[mov(2, 1), insn(0xd7, 2, 0, 0, 64)], 1),
        ("half a number of 64 bits", &[insn(LD, 2, 0, 0, 1), mov(2, 1)], 0),
        ("an address of a map", &[insn(LD, 2, 1, 0, 1), insn(0, 0, 0, 0, 0)], 0),
        ("a jump into a number", &[mov(3, 1), insn(JEQ, 3, 0, 1, 0), insn(LD, 2, 0, 0, 1), insn(0, 0, 0, 0, 0)], 2),
        ("a number in a move by register", &[mov(2, 1), insn(MOV | X, 3, 2, 0, 1)], 1),
        ("a register in a move by number", &[insn(MOV, 3, 2, 0, 1)], 0),
        ("a negation with a number", &[mov(2, 1), insn(NEG, 2, 0, 0, 1)], 1),
        ("a register in an end", &[mov(0, 0), insn(EXIT, 1, 0, 0, 0)], 1),
        ("an end without an answer", &[exit()], 0),
        ("a wide jump", &[insn(0x06, 0, 0, 0, 0)], 0),
        ("a jump that the kernel may take", &[insn(0xe5, 0, 0, 0, 0)], 0),
        ("nothing at all", &[insn(0, 0, 0, 0, 0)], 0),
        ("a load into the row's address", &[insn(LDX, 1, 1, 0, 0)], 0),
        ("a load into the state's address", &[insn(LDX, 9, 1, 0, 0)], 0),
        ("a load into the stack's address", &[insn(LDX, 10, 1, 0, 0)], 0),
        ("a number of 64 bits into the row's address", &[insn(LD, 1, 0, 0, 1), insn(0, 0, 0, 0, 0)], 0),
        ("a number of 64 bits with an offset", &[insn(LD, 2, 0, 8, 1), insn(0, 0, 0, 0, 0)], 0),
        ("a second half with a register", &[insn(LD, 2, 0, 0, 1), insn(0, 1, 0, 0, 0)], 0),
        ("a load with a number", &[insn(LDX, 2, 1, 0, 1)], 0),
        ("a store with a number", &[mov(2, 0), insn(STX, 9, 2, 0, 1)], 1),
        ("a load that extends a sign", &[insn(0x99, 2, 1, 0, 0)], 0),
        ("a load that may fail", &[insn(0x39, 2, 1, 0, 0)], 0),
        ("a jump on bits", &[mov(2, 1), insn(0x45, 2, 0, 0, 1)], 1),
        ("a jump to where a register says", &[mov(2, 0), insn(JA | X, 2, 0, 0, 0)], 1),
        ("a jump with a number", &[insn(JA, 0, 0, 0, 1)], 0),
        ("a jump with a register", &[insn(JA, 2, 0, 0, 0)], 0),
        ("a jump by number with a register", &[mov(2, 0), insn(JEQ, 2, 2, 0, 0)], 1),
        ("an end by register", &[mov(0, 0), insn(EXIT | X, 0, 0, 0, 0)], 1),
        ("a negation by register", &[mov(2, 1), insn(NEG | X, 2, 2, 0, 0)], 1),
        ("a cast of an address", &[mov(2, 1), insn(MOV | X, 3, 2, 1, 1)], 1),
        ("a place of a CPU", &[mov(2, 1), insn(MOV | X, 3, 2, -1, 0)], 1),
        ("a jump to the second of a division", &[mov(2, 1), mov(3, 1), insn(JEQ, 2, 0, 1, 5), insn(JNE, 3, 0, 1, 0), mov(3, 1), insn(DIV | X, 2, 3, 0, 0)], 5),
        ("a division with a sign by a register", &[mov(2, 1), insn(JNE, 2, 0, 1, 0), mov(2, 1), insn(DIV | X, 2, 2, 1, 0)], 3),
    ];
    for (what, insns, index) in wrong {
        let whole = [insns, &[mov(0, 0), exit()][..]].concat();
        assert_eq!(refused(&whole), Some(*index), "{what}");
    }
    // The last is come to from where r4 is set. But before it stands a jump, where r4 is not.
    let behind = [
        mov(2, 0),
        insn(JEQ, 2, 0, 2, 5),
        mov(4, 1),
        insn(JA, 0, 0, 1, 0),
        insn(JA, 0, 0, 1, 0),
        insn(MOV | X, 5, 4, 0, 0),
    ];
    let whole = [&behind[..], &[mov(0, 0), exit()]].concat();
    assert_eq!(refused(&whole), Some(5), "what a processor may guess");
    assert_eq!(refused(&[mov(0, 0)]), Some(0), "it goes on behind its end");
    let number = [insn(LD, 0, 0, 0, 0), insn(0, 0, 0, 0, 0)];
    assert_eq!(refused(&number), Some(1), "it goes on behind its end");
    assert_eq!(refused(&number[..1]), Some(0), "half a number at the end");
}

/// A word of the state by a place that is not constant.
fn element(mask: i32, off: i16) -> [Insn; 5] {
    [
        insn(LDX, 2, 1, 0, 0),
        insn(AND, 2, 0, 0, mask),
        insn(LSH, 2, 0, 0, 3),
        insn(ADD | X, 2, 9, 0, 0),
        insn(LDX, 3, 2, off, 0),
    ]
}

#[test]
fn a_place_in_the_state_is_cut_by_a_mask_and_nothing_comes_between() {
    let end = [mov(0, 0), exit()];
    let with = |change: &dyn Fn(&mut Vec<Insn>)| {
        let mut insns = element(7, 64).to_vec();
        change(&mut insns);
        insns.extend(end);
        refused(&insns)
    };
    assert_eq!(with(&|_| ()), None);
    assert_eq!(
        with(&|i| i[4] = insn(LDX, 2, 2, 64, 0)),
        None,
        "into its own register"
    );
    assert_eq!(
        with(&|i| i[1].imm = 15),
        Some(3),
        "the last words are outside"
    );
    assert_eq!(
        with(&|i| i[4].off = 72),
        Some(3),
        "the last word is outside"
    );
    assert_eq!(
        with(&|i| i[4].off = -8),
        Some(3),
        "the first word is outside"
    );
    assert_eq!(with(&|i| i[4].off = 4), Some(3), "between two words");
    assert_eq!(with(&|i| i[1].imm = -1), Some(3), "no mask");
    assert_eq!(with(&|i| i[1].imm = i32::MAX), Some(3), "a wide mask");
    assert_eq!(with(&|i| i[2].imm = 4), Some(3), "another shift");
    assert_eq!(with(&|i| i[3].src = 1), Some(3), "the row");
    assert_eq!(
        with(&|i| i.insert(2, mov(4, 0))),
        Some(4),
        "another instruction"
    );
    assert_eq!(
        with(&|i| i.insert(4, insn(ADD, 2, 0, 0, 8))),
        Some(3),
        "one more on the address"
    );
    assert_eq!(
        with(&|i| i[4] = insn(STX, 2, 2, 64, 0)),
        Some(3),
        "the address stored"
    );
    assert_eq!(
        with(&|i| i[4] = insn(STX, 2, 1, 64, 0)),
        Some(3),
        "the row's address stored"
    );
    assert_eq!(
        with(&|i| i[4] = insn(STX, 2, 4, 64, 0)),
        Some(3),
        "what was not set stored"
    );
    assert_eq!(
        with(&|i| i.push(insn(MOV | X, 4, 2, 0, 0))),
        Some(5),
        "the address afterwards"
    );
    assert_eq!(
        with(&|i| i.push(insn(LDX, 4, 2, 0, 0))),
        Some(5),
        "the address as a base afterwards"
    );
    // Past the mask, from before it.
    for to in 1..=3 {
        let into = with(&|i| i.insert(1, insn(JEQ, 2, 0, to, 5)));
        assert!(into.is_some(), "a jump {to} further");
    }
}

#[test]
fn what_is_said_of_a_program_is_checked() {
    let insns = bytes(&[mov(0, 0), exit()]);
    let derived = columns(DERIVED);
    let good = about(&insns, &derived);
    let none = (Err(EINVAL), 0, NO_STEP);
    let program = (Err(EINVAL), WHY_PROGRAM, NO_STEP);
    let is = |program: &Program| {
        let (answer, created) = ask_with(program);
        if answer.is_ok() {
            drop(adopt(created.fd));
        }
        (answer.map(|_| ()), created.why, created.fault_step)
    };
    assert_eq!(is(&good), (Ok(()), 0, NO_STEP));
    assert_eq!(is(&Program { size: 39, ..good }), none);
    assert_eq!(
        is(&Program { size: 40, ..good }),
        (Ok(()), 0, NO_STEP),
        "the first version"
    );
    assert_eq!(is(&Program { flags: 2, ..good }), none);
    assert_eq!(
        is(&Program {
            reserved: 1,
            ..good
        }),
        none
    );
    let tunables = |tunables, state| Program {
        tunables,
        state,
        ..good
    };
    assert_eq!(is(&tunables(2, 2)), (Ok(()), 0, NO_STEP));
    assert_eq!(is(&tunables(2, 1)), program, "more than words");
    assert_eq!(is(&tunables(3, 16)), program, "more than columns");
    assert_eq!(
        is(&Program {
            derived_size: 111,
            ..good
        }),
        none
    );
    assert_eq!(
        is(&Program {
            derived_size: 4097,
            ..good
        }),
        (Err(E2BIG), 0, NO_STEP)
    );
    assert_eq!(is(&Program { insns: 8, ..good }), (Err(EFAULT), 0, NO_STEP));
    assert_eq!(
        is(&Program { derived: 8, ..good }),
        (Err(EFAULT), 0, NO_STEP)
    );
    assert_eq!(
        is(&Program {
            insn_count: 0,
            ..good
        }),
        program
    );
    assert_eq!(
        is(&Program {
            insn_count: 4097,
            ..good
        }),
        program
    );
    assert_eq!(
        is(&Program {
            insn_count: u32::MAX,
            ..good
        }),
        program
    );
    assert_eq!(
        is(&Program {
            state: 4097,
            ..good
        }),
        program
    );
    assert_eq!(
        is(&Program {
            state: 4096,
            ..good
        }),
        (Ok(()), 0, NO_STEP)
    );
    let many = (Err(EINVAL), WHY_DERIVED, NO_STEP);
    assert_eq!(is(&about(&insns, &columns(1023))), many);
    assert_eq!(is(&about(&insns, &columns(1022))), (Ok(()), 0, NO_STEP));
    assert_eq!(
        is(&Program {
            derived_count: u32::MAX,
            ..good
        }),
        many
    );
    type Change = fn(&mut Derived);
    let changes: [(&str, Change); 10] = [
        ("a name of two lines", |d| d.name[1] = b'\n'),
        ("a unit that moves the cursor", |d| d.unit[0] = 0x1b),
        ("too many bits", |d| d.bits = 65),
        ("no name", |d| d.name = [0; 64]),
        ("a name without an end", |d| d.name = [b'x'; 64]),
        ("a unit without an end", |d| d.unit = [b'x'; 16]),
        ("a binary fraction", |d| d.kind = 2),
        ("a class", |d| d.cost_class = 1),
        ("a cost", |d| d.cost_ns = 1),
        ("no bits", |d| d.bits = 0),
    ];
    for (what, change) in changes {
        let mut derived = columns(DERIVED);
        change(&mut derived[1]);
        let (answer, created) = ask_with(&about(&insns, &derived));
        assert_eq!(
            (answer, created.why, created.fault_step),
            (Err(EINVAL), WHY_DERIVED, 1),
            "{what}"
        );
    }
    let (answer, created) = {
        let steps = [step(READ, "sim.counter", 0)];
        let request = Create {
            program: 8,
            ..request("soft", 0, 16, &steps)
        };
        ask(&control(), &request)
    };
    assert_eq!((answer, created.why), (Err(EFAULT), 0));
}

#[test]
fn a_step_that_acts_has_a_bit_and_a_program_and_stands_last() {
    const WHY_STEP: u32 = 4;
    const ACT: u32 = 3;
    let (insns, derived) = (bytes(&[mov(0, 0), exit()]), columns(DERIVED));
    let program = about(&insns, &derived);
    let asked = |steps: &[(u32, u32)], program: u64| {
        let made = |&(op, flags): &(u32, u32)| {
            let name = if op == READ {
                "sim.counter"
            } else {
                "sim.latch"
            };
            let mut step = step(op, name, 0);
            step.flags = flags;
            step
        };
        let steps: Vec<_> = steps.iter().map(made).collect();
        let request = Create {
            program,
            flags: DRY_RUN,
            ..request("soft", 0, 16, &steps)
        };
        let (answer, created) = ask(&control(), &request);
        (
            answer.map(|_| created.outputs),
            created.why,
            created.fault_step,
        )
    };
    let with = std::ptr::from_ref(&program) as u64;
    for (steps, program, at) in [
        (vec![(ACT, 1)], 0, 0),
        (vec![(ACT, 0)], with, 0),
        (vec![(ACT, 32)], with, 0),
        (vec![(ACT, u32::MAX)], with, 0),
        (vec![(READ, 0), (ACT, 1), (READ, 0)], with, 2),
        (vec![(ACT, 1), (WRITE, 0)], with, 1),
        (vec![(WRITE, 1)], with, 0),
        (vec![(READ, 1)], with, 0),
        (vec![(4, 1)], with, 0),
    ] {
        let found = asked(&steps, program);
        assert_eq!(found, (Err(EINVAL), WHY_STEP, at), "{steps:?}");
    }
    let good = [(READ, 0), (WRITE, 0), (ACT, 1), (ACT, 31)];
    assert_eq!(asked(&good, with), (Ok(3), 0, NO_STEP));
}

#[test]
fn the_longest_program_runs_and_a_dry_run_says_what_it_costs() {
    let mut longest = vec![mov(2, 1); 4094];
    longest.extend([mov(0, 0), exit()]);
    let (insns, derived) = (bytes(&longest), columns(DERIVED));
    let program = about(&insns, &derived);
    let steps = [step(READ, "sim.counter", 0), step(READ, "sim.ramp", 0)];
    let cost = |program, flags| {
        let request = Create {
            program,
            flags,
            ..request("soft", 0, 16, &steps)
        };
        let (answer, created) = ask(&control(), &request);
        answer.expect("an answer");
        if created.fd >= 0 {
            let owner = adopt(created.fd);
            order(&owner, START, 0).expect("to start");
            order(&owner, TRIGGER, 1000).expect("triggers");
            assert_eq!(order(&owner, STATUS, 0).expect("a state").head, 1000);
        }
        (created.cost_ns, created.channels, created.row_size)
    };
    let plain = cost(0, DRY_RUN);
    assert_eq!(plain.1, 2);
    let program = std::ptr::from_ref(&program) as u64;
    assert_eq!(cost(program, DRY_RUN), cost(program, 0));
    // Two lines of state; two derived columns, and the word that counts what was skipped.
    assert_eq!(cost(program, 0), (plain.0 + 4096 + 100, 4, plain.2 + 8 * 3));
}

#[test]
fn without_the_flag_a_program_leaves_nothing_out() {
    let (insns, derived) = (bytes(&[mov(0, -1), exit()]), columns(DERIVED));
    for (flags, rows) in [(SKIPS, 0), (0, 10)] {
        let (answer, created) = ask_with(&Program {
            flags,
            ..about(&insns, &derived)
        });
        answer.expect("a run");
        let owner = adopt(created.fd);
        order(&owner, START, 0).expect("to start");
        order(&owner, TRIGGER, 10).expect("triggers");
        let look = order(&owner, STATUS, 0).expect("a state");
        assert_eq!(
            (look.head, look.triggers, look.skipped),
            (rows, 10, 10 - rows)
        );
    }
}

#[test]
fn nor_does_it_where_the_event_leaves_triggers_out_and_rows_are_made_in_line() {
    let _sim = Sim::well();
    let (insns, derived) = (bytes(&[mov(0, -1), exit()]), columns(DERIVED));
    for flags in [SKIPS, 0] {
        let program = Program {
            flags,
            ..about(&insns, &derived)
        };
        let (answer, created) = ask_on("sim.decimated", &control(), &program);
        answer.expect("a run");
        let owner = adopt(created.fd);
        order(&owner, START, 0).expect("to start");
        let look = || order(&owner, STATUS, 0).expect("a state");
        until("pulses", || look().skipped >= 50);
        order(&owner, STOP, 0).expect("to stop");
        assert_eq!(look().head > 0, flags == 0, "{flags}: {:?}", look().skipped);
    }
}

#[test]
fn the_administrator_may_forbid_programs_and_who_has_no_compiler_has_none() {
    let insns = bytes(&[mov(0, 0), exit()]);
    let made = || {
        let (answer, created) = ask_with(&about(&insns, &[]));
        if answer.is_ok() {
            drop(adopt(created.fd));
        }
        (answer.map(|_| ()), created.why, created.fault_step)
    };
    /// Needs no program.
    const FOLLOW: u64 = 8;
    let features = || features(&control()).expect("features").features;
    {
        let _forbidden = Parameter::set("programs", 0);
        assert_eq!(
            (made(), features()),
            ((Err(EPERM), WHY_PROGRAM, NO_STEP), FOLLOW)
        );
    }
    assert_eq!((made(), features()), ((Ok(()), 0, NO_STEP), 15));
    for (name, value, want) in [
        (
            "bpf_jit_enable",
            "0",
            (Err(EOPNOTSUPP), WHY_PROGRAM, NO_STEP),
        ),
        ("bpf_jit_harden", "2", (Ok(()), 0, NO_STEP)),
    ] {
        let file = format!("/proc/sys/net/core/{name}");
        let before = std::fs::read_to_string(&file).expect("a setting");
        std::fs::write(&file, value).expect("to set it");
        let found = made();
        std::fs::write(&file, before).expect("to set it back");
        assert_eq!(found, want, "{name}");
    }
}
