// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs beside one that waits for an instrument, exactly: on a machine that nothing disturbs, they miss nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use strobe::engine::user::User;
use strobe::plan::Plan;
use strobe::run::OwnedRun;
use strobe_board::Board;
use strobe_cases::account::{begin, read_to_end, record};
use strobe_cases::machine::{slowness, timer};
use strobe_cases::{Pace, plan};
use strobe_ring::State;

/// Questions that were answered, each with its number.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Answers, but of 20 answers one is wrong, one comes twice, one is cut and one late.
fn answer(mut stream: TcpStream) -> Option<()> {
    for line in BufReader::new(stream.try_clone().ok()?).lines() {
        if line.ok()? == "Y?" {
            stream.write_all(b"7\n").ok()?;
            continue;
        }
        let number = ASKED.fetch_add(1, Ordering::Relaxed);
        let right = format!("{number}\n");
        let said = match number % 20 {
            5 => "what?\n".to_owned(),
            10 => right.repeat(2),
            15 => {
                stream.write_all(&right.as_bytes()[..1]).ok()?;
                return None;
            }
            19 => {
                thread::sleep(Duration::from_millis(80 * slowness()));
                right
            }
            _ => right,
        };
        stream.write_all(said.as_bytes()).ok()?;
    }
    None
}

fn board() -> Board {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| answer(stream));
        }
    });
    let text = format!(
        "[board]\nname = \"psu\"\n[transport]\nkind = \"tcp\"\naddress = \"127.0.0.1:{port}\"\ntimeout = {}\nretry = 0.01\n\
         [channel.x]\nquery = \"X?\"\ntype = \"integer\"\n\
         [channel.y]\nquery = \"Y?\"\ntype = \"integer\"\nmode = \"latest\"\nevery = 0.005\n",
        0.05 * slowness() as f64
    );
    Board::from_toml("psu.toml", &text).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn a_run_beside_an_instrument_with_every_fault_misses_nothing() {
    let instrument = board();
    let of = |limit, period, names: &[&str]| {
        let engine = User::default().with_board(instrument.clone());
        let plan = Plan {
            limit,
            ..plan(&timer(period), names)
        };
        engine.create(&plan).unwrap_or_else(|why| panic!("{why}"))
    };
    let faults = ["late", "wrong", "cut", "extra"];
    let names: Vec<String> = ["x", "questions", "answers", "absent"]
        .iter()
        .chain(&faults)
        .map(|name| format!("psu.{name}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slow = of(None, 10_000_000, &names);
    let (mut reader, _) = begin(&slow);
    slow.start().expect("to start");
    // One that knows nothing of it, and one that looks at its latest answers.
    let fast = of(Some(2000), 1_000_000, &["sim.counter"]);
    let other = thread::spawn(move || record(&fast));
    let looking = of(Some(2000), 1_000_000, &["psu.y", "psu.y.age"]);
    for (account, end) in [record(&looking), other.join().expect("the other run")] {
        assert_eq!(
            (end.state, end.triggers, end.missed()),
            (State::Done, 2000, 0)
        );
        assert!(account.rows.iter().all(|row| row.faults.is_empty()));
    }
    slow.stop().expect("to stop");
    let account = read_to_end(&mut reader, Pace::FAST);
    let last = account.rows.last().expect("rows");
    let [_, questions, answers, absent, ends @ ..] = &last.values[..] else {
        panic!("{last:?}");
    };
    assert!(ends.iter().all(|count| *count > 0), "{last:?}");
    let sum = answers + absent + ends.iter().sum::<u64>();
    // The latest answers of this conversation nobody has asked for.
    assert_eq!((*questions, account.rows.len() as u64), (sum, sum));
    let values = account.rows.iter().filter(|row| row.faults.is_empty());
    let values: Vec<u64> = values.map(|row| row.values[0]).collect();
    assert!(
        values.windows(2).all(|pair| pair[0] < pair[1]),
        "an answer of before"
    );
    assert_eq!(values.len() as u64, *answers);
}
