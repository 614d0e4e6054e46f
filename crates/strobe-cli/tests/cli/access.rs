// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to a server: what is said when there is none, and who is let in.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::generate_simple_self_signed;

use crate::common::{command, strobe};
use crate::daemon::Daemon;

const VIEW: &str = "0123456789abcdef";
const CONTROL: &str = "fedcba9876543210";

/// What `strobe status` says on standard error when it cannot run.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = strobe(dir, &[&["status"], arguments].concat());
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {why}");
    assert!(output.stdout.is_empty(), "{output:?}");
    why
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_remedy() {
    let dir = tempfile::tempdir().expect("a folder");
    // A port that nobody listens at.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    let free = format!("http://{}", port.local_addr().expect("an address"));
    drop(port);
    for (url, reason, remedy) in [
        (
            free.as_str(),
            "nothing listens there",
            "start strobe serve there",
        ),
        (
            "http://no-such-host.invalid:8000",
            "no host of this name",
            "correct the name",
        ),
        ("127.0.0.1:8000", "not", "write http://HOST:PORT"),
        (
            "ftp://127.0.0.1",
            "not the URL of a server",
            "write http://HOST:PORT",
        ),
        ("", "not a URL", "write http://HOST:PORT"),
    ] {
        let why = refused(dir.path(), &["--at", url]);
        assert!(why.starts_with(&format!("strobe: {url}: ")), "{why}");
        assert!(why.contains(reason) && why.contains(remedy), "{why}");
    }
}

#[test]
fn what_is_not_strobe_serve_is_told_from_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let port = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", port.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for answer in [
            "220 mail ESMTP\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno",
        ] {
            let (mut client, _) = port.accept().expect("a client");
            let mut request = [0; 1024];
            let _ = std::io::Read::read(&mut client, &mut request);
            let _ = std::io::Write::write_all(&mut client, answer.as_bytes());
        }
    });
    let why = refused(dir.path(), &["--at", &url]);
    assert!(
        why.contains(&url) && why.contains("does not speak HTTP"),
        "{why}"
    );
    let why = refused(dir.path(), &["--at", &url]);
    assert!(
        why.contains(&url) && why.contains("404") && why.contains("strobe serve"),
        "{why}"
    );
}

#[test]
fn a_token_is_wanted_and_its_role_is_what_it_may_do() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a mode");
        path.display().to_string()
    };
    let tokens = file("tokens", &format!("view {VIEW}\ncontrol {CONTROL}\n"));
    let (control, wrong) = (
        file("control", &format!("{CONTROL}\n")),
        file("wrong", "abcdefghijklmnop"),
    );
    let (nothing, none) = (
        file("nothing", " \n"),
        dir.path().join("none").display().to_string(),
    );
    let daemon = Daemon::with(dir.path(), &format!("[tokens]\nfile = {tokens:?}\n"));
    let why = refused(dir.path(), &["--at", &daemon.url]);
    assert!(why.contains(&daemon.url) && why.contains("token"), "{why}");
    let why = refused(dir.path(), &["--at", &daemon.url, "--token", &wrong]);
    assert!(why.contains(&daemon.url) && why.contains("token"), "{why}");
    for (path, reason) in [(&nothing, "holds no token"), (&none, "No such file")] {
        let why = refused(dir.path(), &["--at", &daemon.url, "--token", path]);
        assert!(why.contains(path.as_str()) && why.contains(reason), "{why}");
    }
    let with = |token: &str, arguments: &[&str]| {
        let mut command = command(dir.path());
        let output = command
            .args(arguments)
            .args(["--at", &daemon.url])
            .env("STROBE_TOKEN", token);
        output.output().expect("the program runs")
    };
    let seen = with(VIEW, &["status"]);
    assert_eq!(
        (seen.status.code(), seen.stdout.as_slice()),
        (Some(0), &b"no runs\n"[..])
    );
    for arguments in [
        &["set", "sim.latch=1"][..],
        &[
            "record",
            "--engine",
            "user",
            "--event",
            "soft",
            "--read",
            "sim.counter",
            "--rows",
            "1",
        ],
    ] {
        let refused = with(VIEW, arguments);
        let why = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{why}");
        assert!(
            why.contains(&daemon.url) && why.contains("control"),
            "{why}"
        );
    }
    let set = strobe(
        dir.path(),
        &[
            "set",
            "sim.latch=1",
            "--at",
            &daemon.url,
            "--token",
            &control,
        ],
    );
    assert_eq!(set.status.code(), Some(0), "{set:?}");
}

#[test]
fn a_token_is_not_sent_where_everybody_could_read_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = command(dir.path());
    command.args(["status", "--at", "http://192.0.2.1:8000"]);
    let output = command
        .env("STROBE_TOKEN", VIEW)
        .output()
        .expect("the program runs");
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{why}");
    assert!(
        why.contains("http://192.0.2.1:8000") && why.contains("use https"),
        "{why}"
    );
    assert!(!why.contains(VIEW), "{why}");
}

#[test]
fn a_certificate_is_trusted_only_if_that_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let made = generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]);
    let made = made.expect("a certificate");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("a mode");
        path.display().to_string()
    };
    let (certificate, key) = (
        file("cert.pem", &made.cert.pem()),
        file("key.pem", &made.signing_key.serialize_pem()),
    );
    let tls = format!("tls = {{certificate = {certificate:?}, key = {key:?}}}\n");
    let daemon = Daemon::with(dir.path(), &tls);
    assert!(daemon.url.starts_with("https://"), "{}", daemon.url);
    let why = refused(dir.path(), &["--at", &daemon.url]);
    assert!(
        why.contains(&daemon.url) && why.contains("not trusted") && why.contains("--ca FILE"),
        "{why}"
    );
    let status = strobe(
        dir.path(),
        &["status", "--at", &daemon.url, "--ca", &certificate],
    );
    assert_eq!(
        (status.status.code(), status.stdout.as_slice()),
        (Some(0), &b"no runs\n"[..]),
        "{status:?}"
    );
    let why = refused(dir.path(), &["--at", &daemon.url, "--ca", &key]);
    assert!(
        why.contains(&key) && why.contains("it has no certificate"),
        "{why}"
    );
    let plain = daemon.url.replace("https", "http");
    let why = refused(dir.path(), &["--at", &plain]);
    assert!(why.contains(&plain) && why.contains("https://"), "{why}");
    let other = tempfile::tempdir().expect("a folder");
    let plain = Daemon::new(other.path());
    let secret = plain.url.replace("http", "https");
    let why = refused(dir.path(), &["--at", &secret]);
    assert!(
        why.contains(&secret) && why.contains("write http://"),
        "{why}"
    );
}

#[test]
fn the_daemon_is_the_program_beside_this_one() {
    let dir = tempfile::tempdir().expect("a folder");
    for word in ["serve", "subscribe"] {
        let help = strobe(dir.path(), &[word, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{help:?}");
        assert!(
            String::from_utf8_lossy(&help.stdout).contains("strobe-serve"),
            "{help:?}"
        );
    }
    // A link: a copy that is just written may be open in a child of another test, and does not run then.
    let empty = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let alone = empty.path().join("strobe");
    std::fs::hard_link(env!("CARGO_BIN_EXE_strobe"), &alone).expect("a link");
    let output = std::process::Command::new(&alone)
        .args(["serve", "--demo"])
        .env("PATH", empty.path())
        .output();
    let output = output.expect("the program runs");
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        why.starts_with("strobe: strobe-serve: ") && why.contains("install it"),
        "{why}"
    );
}
