// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cards that are pulled before the kernel knows, so that their registers read as all ones.

use std::fs;

use strobe::plan::{Plan, Step};
use strobe_cases::account::record;
use strobe_cases::monitor::{SLOTS, Slot};
use strobe_cases::{Account, Engine, plan};
use strobe_ring::State;

use super::machine::{ID, Machine, give_to_uio, pci};
use super::watched::{Sum, Watched, rows_are_of_the_card, timer};

fn writing(event: &str, output: String, value: u64) -> Plan {
    Plan {
        steps: vec![Step::Write { output, value }],
        ..plan(event, &[])
    }
}

/// A card that was pulled by surprise has been recognised: only the last row says so, and holds nothing of it.
fn only_the_last_row_is_at_fault(account: &Account, of_card: &[usize], what: &str) {
    let (last, others) = account.rows.split_last().expect("a row");
    assert!(others.iter().all(|row| row.faults.is_empty()), "{what}");
    assert!(!last.faults.is_empty(), "{what}: {last:?}");
    // What was read before the card had gone stays, and what is of another card; from the first read that failed on, all
    // of the card has failed.
    let first = last.faults[0];
    let gone = of_card.iter().copied().filter(|column| *column >= first);
    assert_eq!(last.faults, gone.collect::<Vec<_>>(), "{what}: {last:?}");
    for (column, value) in last.values.iter().enumerate() {
        let mut before = others.iter().map(|row| row.values[column]);
        let good = before.next().expect("two rows");
        if !last.faults.contains(&column) && before.all(|value| value == good) {
            assert_eq!(*value, good, "{what}, column {column}: {last:?}");
        }
    }
}

#[test]
fn a_card_that_is_pulled_by_surprise_ends_the_runs_that_read_it_and_the_others_when_the_kernel_knows()
 {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let name = machine.plug(&SLOTS[0]);
    let uio = machine.plug_for_uio(&SLOTS[1]);
    let of = |what: &str| format!("{name}.{what}");
    let of_uio = |what: &str| format!("{}.{what}", uio.name);
    // Whole registers, fields, 64 bits; alone, beside another card, in a thread.
    let plans: [(&str, &[&str], &[usize]); 5] = [
        ("timer:500Hz", &[&of("id")], &[0]),
        (
            "timer:100Hz",
            &["edu.id", &of("id"), "edu2.id", &of("status")],
            &[1, 3],
        ),
        ("timer:100Hz", &[&of("major"), "edu.major"], &[0]),
        ("timer:100Hz", &[&of("dma_source"), "edu.id"], &[0]),
        ("timer:100Hz", &["edu.id", &of("id"), "sim.slow"], &[1]),
    ];
    let reading = plans.map(|(event, channels, of_card)| {
        let run = Watched::new(machine.engine.run(&plan(event, channels)), 2);
        run.until_rows(5);
        (run, of_card, format!("{event} {channels:?}"))
    });
    let heard = Watched::new(machine.engine.run(&plan(&of("irq"), &[&of("id")])), 1);
    let raising = writing(&timer(500), of("raise"), 1);
    let raising = Watched::new(machine.engine.run(&raising), 1);
    heard.until_rows(5);
    let listening = Watched::new(machine.user(&plan(&of_uio("irq"), &[&of_uio("id")])), 1);
    let looking = Watched::new(
        machine.user(&plan(&timer(1000), &[&of_uio("id"), "clock.late"])),
        2,
    );
    looking.until_rows(5);

    let card = SLOTS[0].card().expect("a card");
    let uio_card = SLOTS[1].card().expect("a card");
    let pulled = SLOTS.map(|slot| slot.pull());
    for (run, of_card, what) in reading {
        only_the_last_row_is_at_fault(&run.settle(&what, &mut sum), of_card, &what);
    }
    let account = looking.settle("the timer run of the user engine", &mut sum);
    let last = account.rows.last().expect("a row");
    assert_eq!(last.faults.first(), Some(&0), "{last:?}");
    // Who only writes to it, or waits for it, sees nothing of that.
    let rows = raising.readers[0].0.snapshot().head;
    raising.until_rows(rows + 10);
    assert!(machine.lists(&name), "the kernel does not know yet");

    for card in [card, uio_card] {
        fs::write(card.join("remove"), "1").expect("to tell the kernel");
    }
    assert!(!machine.lists(&name));
    rows_are_of_the_card(&heard.settle("the interrupt run", &mut sum), "interrupts");
    raising.settle("the run that raises", &mut sum);
    listening.settle("the interrupt run of the user engine", &mut sum);
    drop(pulled);
    for slot in SLOTS {
        slot.unplug(&mut machine.monitor);
    }
    // Another one in the same place.
    let name = machine.plug(&SLOTS[0]);
    let run = machine.engine.run(&Plan {
        limit: Some(10),
        ..plan("timer:1kHz", &[&format!("{name}.id")])
    });
    let (account, end) = record(&run);
    assert_eq!(end.state, State::Done);
    assert!(account.column(0).eq([ID; 10]));
}

/// All of the card has failed in the last row, for it was one access; the rows before have its values.
fn all_fields_of_the_last_row_are_at_fault(account: &Account, of_card: &[usize], what: &str) {
    let (last, others) = account.rows.split_last().expect("a row");
    assert_eq!(last.faults, of_card, "{what}: {last:?}");
    for row in others {
        assert!(row.faults.is_empty(), "{what}: {row:?}");
        let of_card: Vec<u64> = of_card.iter().map(|column| row.values[*column]).collect();
        assert_eq!(of_card, [ID >> 24, ID >> 16 & 0xff, ID], "{what}: {row:?}");
    }
}

#[test]
fn a_card_that_is_pulled_by_surprise_has_no_value_in_any_field_of_a_register() {
    let mut machine = Machine::new();
    let mut sum = Sum::default();
    let name = machine.plug(&SLOTS[0]);
    let uio = machine.plug_for_uio(&SLOTS[1]);
    let fields = |name: &str| ["major", "minor", "id"].map(|part| format!("{name}.{part}"));
    let [major, minor, id] = &fields(&name);
    // Alone, with another card between them, in a thread; in the user engine, that has but its card.
    let plans: [(&[&str], &[usize]); 3] = [
        (&[major, minor, id], &[0, 1, 2]),
        (&[major, "edu.id", minor, id], &[0, 2, 3]),
        (&[major, minor, "sim.slow", id], &[0, 1, 3]),
    ];
    let mut reading = plans
        .map(|(channels, of_card)| {
            let run = Watched::new(machine.engine.run(&plan("timer:100Hz", channels)), 1);
            (run, of_card, format!("{channels:?}"))
        })
        .into_iter()
        .collect::<Vec<_>>();
    let [major, minor, id] = &fields(&uio.name);
    let of_user = plan("timer:100Hz", &[major, "clock.time", minor, id]);
    let what = "the user engine".to_owned();
    reading.push((Watched::new(machine.user(&of_user), 1), &[0, 2, 3], what));
    for (run, ..) in &reading {
        run.until_rows(5);
    }

    let gone = SLOTS.each_ref().map(|slot| slot.card().expect("a card"));
    let pulled = SLOTS.each_ref().map(Slot::pull);
    for (run, of_card, what) in reading {
        all_fields_of_the_last_row_are_at_fault(&run.settle(&what, &mut sum), of_card, &what);
    }
    for card in gone {
        fs::write(card.join("remove"), "1").expect("to tell the kernel");
    }
    drop(pulled);
    for slot in &SLOTS {
        slot.unplug(&mut machine.monitor);
    }
}

#[test]
fn all_ones_that_a_card_says_which_is_there_are_a_value() {
    let machine = Machine::new();
    let liveness = |name: &str, event: &str| Plan {
        // It reads as the inverse of what was written.
        steps: vec![
            Step::Write {
                output: format!("{name}.liveness"),
                value: 0,
            },
            Step::Read(format!("{name}.liveness")),
            Step::Read(format!("{name}.id")),
            // At the last one the card is asked.
            Step::Read(format!("{name}.liveness")),
        ],
        limit: Some(100),
        ..plan(event, &[])
    };
    let of_kernel = record(&machine.engine.run(&liveness("edu", "timer:1kHz")));
    give_to_uio("0000:00:02.0");
    let of_user = record(&machine.user(&liveness("edu2", "timer:1kHz")));
    for (account, end) in [of_kernel, of_user] {
        assert_eq!((end.state, end.errors), (State::Done, 0));
        assert_eq!(account.rows.len(), 100);
        for liveness in [0, 2] {
            assert!(account.column(liveness).all(|value| value == 0xffff_ffff));
        }
        assert!(account.column(1).all(|value| value == ID));
    }
    let address = "0000:00:02.0";
    fs::write(pci(address).join("driver/unbind"), address).expect("to unbind");
    fs::write(pci(address).join("driver_override"), "\n").expect("to leave it to anybody");
}
