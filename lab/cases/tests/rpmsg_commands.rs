// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe rpmsg`: what its commands say, and with which status they end, while the remote is there and when it goes.
// lab: --module rpmsg_ctrl --module rpmsg_char --module strobe_rpmsg --module lab_rpmsg

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use strobe_cases::machine::{patience, slowness};
use strobe_cases::raw::{sys, until};
use strobe_cases::rpmsg::*;

/// `strobe rpmsg`, with these words.
fn rpmsg(words: &str) -> Command {
    let mut program = Command::new("strobe");
    program.arg("rpmsg").args(words.split_whitespace());
    program
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    program
}

fn run(words: &str) -> Output {
    rpmsg(words).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What it says as JSON, and its status.
fn json(words: &str) -> (Value, Option<i32>) {
    json_of(run(&format!("{words} --json")))
}

fn json_of(output: Output) -> (Value, Option<i32>) {
    let said = text(&output.stderr);
    let value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {said}"));
    (value, output.status.code())
}

/// It could not run, says why in one line, and nothing else.
fn refused(words: &str, why: &str) {
    let output = run(words);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}: {said}");
    assert!(said.contains(why), "{words}: {said}");
    assert!(!said.contains("panicked"), "{words}: {said}");
    assert_eq!(text(&output.stdout), "", "{words}");
}

/// Messages that the endpoint of a program has sent; nothing while it has none.
fn sent(program: &Child) -> Option<u64> {
    let files = fs::read_dir(format!("/proc/{}/fdinfo", program.id())).ok()?;
    let texts = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
    let lines = texts.filter_map(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("rpmsg-sent:"))?;
        line.trim().parse().ok()
    });
    lines.max()
}

/// Ctrl-C.
fn interrupt(program: &Child) {
    let args = [program.id() as usize, libc::SIGINT as usize];
    sys(libc::SYS_kill, &args).expect("it is there");
}

/// Open `open`, which has said that its endpoint is there.
struct Open {
    program: Child,
    errors: BufReader<ChildStderr>,
}

impl Open {
    fn start(words: &str) -> Open {
        let mut program = rpmsg(&format!("open {words}"))
            .stdin(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut errors = BufReader::new(program.stderr.take().expect("a pipe"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        assert!(line.starts_with("strobe: endpoint 0x"), "{line}");
        Open { program, errors }
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut input = self.program.stdin.as_ref().expect("its input");
        input.write_all(bytes).expect("written");
    }

    /// Status, what it has printed, and its complaints; its input ends before, if it has not.
    fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.program.stdin.take());
        let (mut printed, mut errors) = (String::new(), String::new());
        let mut output = self.program.stdout.take().expect("a pipe");
        output.read_to_string(&mut printed).expect("its output");
        self.errors.read_to_string(&mut errors).expect("complaints");
        let status = self.program.wait().expect("its end");
        (status.code(), printed, errors)
    }
}

#[test]
fn list_shows_the_control_node_its_channel_and_its_service() {
    let _processor = Processor::new(false);
    let said = text(&run("list").stdout);
    let lines: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["node", "channel", "service"]);
    assert_eq!(lines[1][0], CONTROL);
    let (said, status) = json("list");
    assert_eq!(status, Some(0));
    let controls = said["controls"].as_array().expect("a list");
    assert_eq!((controls.len(), &controls[0]["path"]), (1, &CONTROL.into()));
    assert_eq!(controls[0]["channel"].as_str(), Some(lines[1][1]));
}

#[test]
fn without_a_control_node_each_command_says_what_to_do() {
    let processor = Processor::new(false);
    processor.pull();
    // Nothing is there: that is an answer, and no error, as of the other lists.
    let output = run("list");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout).contains("driver_override"),
        "{output:?}"
    );
    let (said, status) = json("list");
    assert_eq!(
        (said["controls"].as_array().map(Vec::len), status),
        (Some(0), Some(0))
    );
    for words in ["ping", "open", "bench"] {
        refused(words, "strobe_rpmsg loaded, and the channel bound to it?");
        refused(
            &format!("{words} --control strobe_rpmsg7"),
            "`strobe rpmsg list` shows those that exist",
        );
    }
}

#[test]
fn what_is_wrong_on_the_command_line_is_named_with_its_remedy() {
    let _processor = Processor::new(false);
    let _taken = endpoint(77, 78, 0);
    for (words, why) in [
        (
            "ping --from 77",
            "rpmsg address 0x4d: taken by another endpoint; choose another one, or any",
        ),
        (
            "open --from 0x4d",
            "rpmsg address 0x4d: taken by another endpoint; choose another one, or any",
        ),
        (
            "open --to 0xffffffff",
            "write a number below 4294967295, as in 0x400",
        ),
        (
            "open --to here",
            "write a number below 4294967295, as in 0x400",
        ),
        ("ping --count 0", "1..=100000000"),
        ("ping --size 7", "7 is not in 8..=65535"),
        (
            "ping --size 497",
            "a message of 497 bytes; this transport takes 496 at most",
        ),
        ("ping --timeout soon", "soon"),
        (
            "ping --control null",
            "/dev/null: no control node of strobe_rpmsg; `strobe rpmsg list`",
        ),
        (
            "bench --control rpmsg_ctrl0",
            "/dev/rpmsg_ctrl0: no control node of strobe_rpmsg",
        ),
        ("bench --threads 0", "1..=256"),
        (
            "bench --threads 2 --stock rpmsg_ctrl0",
            "cannot be used with",
        ),
        (
            "bench --stock rpmsg_ctrl7",
            "/dev/rpmsg_ctrl7: No such file",
        ),
        (
            "bench --live 5000",
            "this process has reached its limit of open files; `ulimit -n` raises it",
        ),
        ("open --count 1 --linger 1s", "cannot be used with"),
        ("ping --service", "a value is required"),
    ] {
        refused(words, why);
    }
    let long = format!("ping --service {}", "n".repeat(32));
    refused(&long, "a name has 1 to 31 bytes");
}

#[test]
fn ping_counts_what_comes_back_in_messages_of_any_size() {
    for _processor in contexts() {
        for size in [8, 16, 496] {
            let (said, status) = json(&format!("ping --count 100 --size {size}"));
            assert_eq!(status, Some(0), "{said}");
            assert_eq!(
                (&said["sent"], &said["back"], &said["strange"]),
                (&100.into(), &100.into(), &0.into())
            );
            assert!(said["took_ns"]["p99"].as_u64() > Some(0), "{said}");
            assert!(said["error"].is_null());
        }
        let output = run("ping --count 10");
        let said = text(&output.stdout);
        assert!(
            said.contains(": 10 sent, 10 came back, 0 strange\n"),
            "{said}"
        );
    }
}

#[test]
fn ping_tells_what_the_transport_has_lost() {
    for processor in contexts() {
        processor.set("drop", 4);
        let (said, status) = json("ping --count 8 --timeout 3s");
        assert_eq!(status, Some(3));
        assert_eq!(
            (&said["sent"], &said["back"]),
            (&8.into(), &6.into()),
            "{said}"
        );
        assert!(said["error"].is_null(), "it went on: {said}");
    }
}

#[test]
fn ping_ends_when_the_remote_goes_and_says_so() {
    for processor in contexts() {
        let ping = rpmsg("ping --count 1000000 --json")
            .spawn()
            .expect("the program runs");
        until("messages", || sent(&ping) > Some(100));
        processor.pull();
        let (said, status) = json_of(ping.wait_with_output().expect("its end"));
        assert_eq!(status, Some(3), "{said}");
        let error = said["error"].as_str().expect("why");
        assert!(
            error.contains("its remote has gone") && error.contains("open it again"),
            "{error}"
        );
        assert!(said["sent"].as_u64() >= said["back"].as_u64(), "{said}");
        assert!(said["back"].as_u64() > Some(0), "{said}");
    }
}

#[test]
fn ping_waits_no_longer_for_room_than_it_was_told_and_ctrl_c_ends_it() {
    for processor in contexts() {
        processor.set("stalled", 1);
        refused(
            "ping --timeout 100ms",
            "had no room for a message for 100 ms; does the remote take messages?",
        );
        let ping = rpmsg("ping --timeout 1h --json")
            .spawn()
            .expect("the program runs");
        until("an endpoint", || sent(&ping) == Some(0));
        interrupt(&ping);
        let (said, status) = json_of(ping.wait_with_output().expect("its end"));
        assert_eq!(
            (status, &said["interrupted"], &said["sent"]),
            (Some(130), &true.into(), &0.into())
        );
    }
}

#[test]
fn lines_are_messages_and_messages_lines() {
    for _processor in contexts() {
        let mut open = Open::start("--linger 3s");
        open.write(b"hello\n\n\\x00\\\\\nlatin \xe4\nno end");
        let (status, printed, errors) = open.end();
        assert_eq!(printed, "hello\n\n\\x00\\\\\nlatin \\xe4\nno end\n");
        assert_eq!((status, errors.as_str()), (Some(0), ""));
        let mut open = Open::start("--count 2");
        open.write(b"one\ntwo\nthree\n");
        let (status, printed, _) = open.end();
        assert_eq!((status, printed.as_str()), (Some(0), "one\ntwo\n"));
    }
}

#[test]
fn a_line_that_is_no_message_is_told_and_the_others_are_sent() {
    let _processor = Processor::new(false);
    let mut open = Open::start("--linger 3s");
    let long = "x".repeat(497);
    open.write(format!("a\n{long}\n\\n\nb\n").as_bytes());
    let (status, printed, errors) = open.end();
    assert_eq!((status, printed.as_str()), (Some(3), "a\nb\n"));
    assert!(
        errors.contains("not sent: ") && errors.contains("this transport takes 496 at most"),
        "{errors}"
    );
    assert!(errors.contains("a backslash is written \\\\"), "{errors}");
}

#[test]
fn open_talks_to_a_program_of_the_remote() {
    for _processor in contexts() {
        let remote = Program::start();
        let mut open = Open::start("--to 0x405 --from 77 --count 1");
        open.write(b"question\n");
        assert_eq!(remote.receive(), (77, REMOTE + 5, b"question".to_vec()));
        remote.send(REMOTE + 5, 77, b"answer").expect("sent");
        let (status, printed, errors) = open.end();
        assert_eq!(
            (status, printed.as_str(), errors.as_str()),
            (Some(0), "answer\n", "")
        );
    }
}

#[test]
fn open_ends_when_the_remote_goes_after_what_had_come() {
    for processor in contexts() {
        let mut open = Open::start("");
        open.write(b"last\n");
        let mut printed = String::new();
        let mut output = BufReader::new(open.program.stdout.as_mut().expect("a pipe"));
        output.read_line(&mut printed).expect("a line");
        assert_eq!(printed, "last\n");
        processor.pull();
        // Its input is still open.
        until("its end", || {
            open.program.try_wait().expect("a child").is_some()
        });
        let (status, _, errors) = open.end();
        assert_eq!(status, Some(3));
        assert!(errors.contains("its remote has gone"), "{errors}");
    }
}

#[test]
fn messages_that_open_could_not_print_in_time_are_counted() {
    for _processor in contexts() {
        let remote = Program::start();
        let open = Open::start("--from 77 --linger 3s");
        // Nobody reads what it prints: after a pipe's 64 KiB it stops, and then its queue is full.
        let message = [b'x'; 496];
        for _ in 0..500 {
            remote.send(REMOTE, 77, &message).expect("sent");
        }
        let (status, printed, errors) = open.end();
        let lost = 500 - printed.lines().count();
        assert!(lost > 0 && printed.lines().all(|line| line.len() == 496));
        assert_eq!(status, Some(3));
        let told = format!("{lost} messages are lost: they came faster than they could be printed");
        assert!(errors.contains(&told), "{lost}: {errors}");
    }
}

/// The steps of a way, each with its figures.
fn steps<'a>(said: &'a Value, way: &str) -> Option<Vec<(&'a str, &'a Value)>> {
    let ways = said["ways"].as_array().expect("ways");
    let it = ways.iter().find(|it| it["way"] == way)?;
    let steps = it["steps"].as_array().expect("steps");
    let pair = |step: &'a Value| (step[0].as_str().expect("a name"), &step[1]);
    Some(steps.iter().map(pair).collect())
}

#[test]
fn bench_measures_each_step_of_both_ways() {
    let _processor = Processor::new(false);
    let (said, status) = json("bench --count 50 --rounds 2");
    assert_eq!(status, Some(0), "{said}");
    for (way, none) in [("file", "open"), ("node", "")] {
        let steps = steps(&said, way).expect(way);
        let names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["create", "open", "destroy", "close", "all"]);
        for (step, figures) in steps {
            if step == none {
                assert!(figures.is_null(), "{way} {step}: {figures}");
            } else {
                // There is none with less than the hundred.
                assert!(figures["p99"].as_u64() > Some(0), "{way} {step}: {figures}");
            }
        }
    }
    let ratio = said["ratio"].as_f64().expect("a number");
    assert!(ratio > 1.0, "{ratio}");
    assert_eq!(said["round_ratios"].as_array().map(Vec::len), Some(2));
    assert!(
        said["error"].is_null() && said["without_nodes"].is_null(),
        "{said}"
    );
    let output = run("bench --count 50 --rounds 2");
    println!("{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("a node takes "));
}

#[test]
fn bench_makes_endpoints_by_several_threads_and_beside_others() {
    for _processor in contexts() {
        // No multiple of the threads.
        let (said, status) = json("bench --count 50 --rounds 2 --threads 4");
        assert_eq!(status, Some(0), "{said}");
        let all = steps(&said, "file").expect("files").pop().expect("all");
        assert!(all.1["p99"].as_u64() > Some(0), "a hundred: {said}");
        assert!(steps(&said, "node").is_none() && said["ratio"].is_null());
        let (said, status) = json("bench --count 50 --rounds 2 --threads 4 --live 400");
        assert_eq!((status, &said["live"]), (Some(0), &400.into()));
        let bytes = said["bytes"].as_i64().expect("a number");
        // 33 KiB, as near as the kernel's own account of free memory is; one that looks for faults puts more around each.
        assert!(bytes > 20 << 10, "{bytes}");
        assert!(slowness() > 1 || bytes < 48 << 10, "{bytes}");
        println!("{bytes} bytes an endpoint");
    }
}

#[test]
fn bench_without_the_stock_driver_has_files_only_and_says_so() {
    let _reloaded = Reloaded::with("", "channels=strobe_rpmsg");
    let (said, status) = json("bench --count 50 --rounds 2");
    assert_eq!(status, Some(0), "{said}");
    assert!(steps(&said, "file").is_some() && steps(&said, "node").is_none());
    let why = said["without_nodes"].as_str().expect("why");
    assert!(why.starts_with("/dev/rpmsg_ctrl0: No such file"), "{why}");
    let said = text(&run("bench --count 50 --rounds 2").stdout);
    assert!(said.contains("without nodes: /dev/rpmsg_ctrl0"), "{said}");
}

#[test]
fn bench_ends_early_when_the_remote_goes_or_with_ctrl_c_and_keeps_what_it_has() {
    let _reloaded = Reloaded::with("", "channels=strobe_rpmsg");
    let processor = Processor::new(false);
    for by_hand in [false, true] {
        let words = "bench --count 300 --rounds 1000 --json";
        let bench = rpmsg(words).spawn().expect("the program runs");
        until("an endpoint", || sent(&bench).is_some());
        // Some rounds, of a machine that is slow as well.
        thread::sleep(patience(3));
        if by_hand {
            interrupt(&bench);
        } else {
            processor.pull();
        }
        let (said, status) = json_of(bench.wait_with_output().expect("its end"));
        assert_eq!(status, Some(if by_hand { 130 } else { 3 }), "{said}");
        assert_eq!(said["error"].is_null(), by_hand, "{said}");
        let whole = said["ways"][0]["each_ns"].as_array().map_or(0, Vec::len);
        assert!((1..1000).contains(&whole), "{whole}");
        processor.plug();
    }
}
