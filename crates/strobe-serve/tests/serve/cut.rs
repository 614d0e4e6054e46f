// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network that is cut in mid-run: who comes through has every row, who does not says which ones it has, nobody hangs.
//!
//! The daemon is in one network namespace; the bus and all clients are in another one, at the other end of a cable.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const PATIENCE: Duration = Duration::from_secs(180);
const RATE: u64 = 1000;
const TOKEN: &str = "control-0123456789abcdef";
const HERE: &str = "10.99.0.1";
const THERE: &str = "10.99.0.2";

/// A program that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(mut command: Command) -> Running {
        let child = command.spawn();
        Running(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Its end, and what it has written.
    fn ended(mut self) -> Output {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("its state") {
                break status;
            }
            assert!(Instant::now() < until, "it hangs");
            std::thread::sleep(Duration::from_millis(50));
        };
        let mut output = Output {
            status,
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        for (pipe, to) in [
            (
                stdout.map(|pipe| Box::new(pipe) as Box<dyn std::io::Read>),
                &mut output.stdout,
            ),
            (
                stderr.map(|pipe| Box::new(pipe) as Box<dyn std::io::Read>),
                &mut output.stderr,
            ),
        ] {
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(to).expect("its words");
            }
        }
        output
    }
}

fn done(words: &[&str]) {
    let (program, arguments) = words.split_first().expect("words");
    let status = Command::new(program).args(arguments).status();
    assert!(status.expect("a program").success(), "{words:?}");
}

/// Two namespaces, and the cable between them.
struct Lab {
    folder: PathBuf,
    there: Running,
    certificate: Certificate<'static>,
    daemon: Option<Running>,
}

impl Lab {
    /// In a network namespace that has nothing yet.
    fn new(folder: &Path) -> Lab {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", "echo; exec sleep 1000"]);
        let mut there = Running::start({
            command.stdout(Stdio::piped());
            command
        });
        let mut said = BufReader::new(there.0.stdout.take().expect("a pipe"));
        said.read_line(&mut String::new()).expect("a line");
        let made = rcgen::generate_simple_self_signed(vec![HERE.to_owned()]);
        let made = made.expect("a certificate");
        let pem = made.cert.pem();
        for (name, text) in [
            ("serve.pem", pem.clone()),
            ("serve.key", made.signing_key.serialize_pem()),
            ("tokens", format!("control {TOKEN}\n")),
            ("token", TOKEN.to_owned()),
        ] {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        let lab = Lab {
            folder: folder.to_owned(),
            there,
            certificate: Certificate::from_pem(pem.as_bytes()).expect("PEM"),
            daemon: None,
        };
        let pid = lab.there.0.id().to_string();
        done(&["ip", "link", "set", "lo", "up"]);
        done(&[
            "ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", &pid,
        ]);
        done(&["ip", "addr", "add", &format!("{HERE}/24"), "dev", "here"]);
        for words in [
            vec!["link", "set", "lo", "up"],
            vec!["addr", "add", &format!("{THERE}/24"), "dev", "there"],
            vec!["link", "set", "there", "up"],
        ] {
            assert!(
                lab.over_there("ip")
                    .args(words)
                    .status()
                    .expect("ip")
                    .success()
            );
        }
        lab.link("up");
        lab
    }

    /// The cable, from now on.
    fn link(&self, to: &str) {
        done(&["ip", "link", "set", "here", to]);
    }

    /// A program at the other end.
    fn over_there(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-n", "-t", &self.there.0.id().to_string()]);
        command.arg(program).current_dir(&self.folder);
        command
    }

    /// With a run of so many rows, and more in its configuration.
    fn serve(&mut self, rows: u64, more: &str) {
        let folder = self.folder.display();
        // A busy machine may take the rows from the ring late; none is to be lost there.
        let recipe = format!(
            "event = \"timer:{RATE}Hz\"\nread = [\"sim.counter\"]\nengine = \"user\"\nrows = {rows}\nring = 65536\n"
        );
        fs::write(self.folder.join("scan.toml"), recipe).expect("a recipe");
        let config = format!(
            "data = \"{folder}/data\"\nrecipes = \".\"\n[http]\nlisten = [\"{HERE}:8000\"]\n\
             tls = {{ certificate = \"serve.pem\", key = \"serve.key\" }}\n\
             [tokens]\nfile = \"tokens\"\n[[run]]\nrecipe = \"scan.toml\"\nstart = true\n{more}"
        );
        let path = self.folder.join("serve.toml");
        fs::write(&path, config).expect("a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strobe-serve"));
        command.arg(path).stderr(Stdio::null());
        self.daemon = Some(Running::start(command));
        let until = Instant::now() + PATIENCE;
        while self.run().is_none() {
            assert!(Instant::now() < until, "no run");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The run, as the daemon says it at its own end of the cable.
    fn run(&self) -> Option<Value> {
        let roots = RootCerts::new_with_certs(std::slice::from_ref(&self.certificate));
        let tls = TlsConfig::builder().root_certs(roots).build();
        let config = ureq::Agent::config_builder().tls_config(tls);
        let agent: ureq::Agent = config.timeout_global(Some(PATIENCE)).build().into();
        let request = agent.get(format!("https://{HERE}:8000/api/runs/1"));
        let answer = request.header("authorization", format!("Bearer {TOKEN}"));
        let text = answer.call().ok()?.body_mut().read_to_string().ok()?;
        serde_json::from_str(&text).ok()
    }

    fn number(&self, name: &str) -> u64 {
        let run = self.run().expect("the run");
        run[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {run}"))
    }

    fn wait_for_rows(&self, rows: u64) {
        let until = Instant::now() + PATIENCE;
        while self.number("next") < rows {
            assert!(Instant::now() < until, "no rows");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// `strobe` over there, which asks the daemon.
    fn strobe(&self, command: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_strobe-serve")).with_file_name("strobe");
        let mut strobe = self.over_there(program);
        strobe.args([command, "--at", &format!("https://{HERE}:8000")]);
        strobe.args(["--ca", "serve.pem", "--token", "token"]);
        strobe
    }

    /// `strobe record` of the run over there.
    fn record(&self, file: &str, more: &[&str]) -> Running {
        let mut command = self.strobe("record");
        command
            .args(["--run", "1", "--json", "-o", file])
            .args(more);
        Running::start({
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        })
    }

    /// Waits until a recording has so many rows in its file, which is there with the first ones.
    fn wait_for_file(&self, mut recording: Running, file: &str, rows: usize) -> Running {
        let path = self.folder.join(file);
        let is_whole = |line: &&str| line.ends_with('\n') && !line.starts_with('#');
        let until = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            // The first line has the names of the columns.
            if text.split_inclusive('\n').filter(is_whole).count() > rows {
                return recording;
            }
            let ended = recording.0.try_wait().expect("its state").is_some();
            assert!(!ended, "{:?}", recording.ended());
            assert!(Instant::now() < until, "nothing is recorded");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// After the link came up, addresses are looked for anew: until somebody over there has an answer.
    fn wait_until_reached(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let asked = self.strobe("status").output().expect("strobe");
            if asked.status.success() {
                return;
            }
            assert!(Instant::now() < until, "{asked:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The numbers of the rows in a file.
    fn rows(&self, file: &str) -> Vec<u64> {
        let text = fs::read_to_string(self.folder.join(file)).expect("rows");
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let number = |line: &str| line.split(',').next().and_then(|row| row.parse().ok());
        lines.map(|line| number(line).expect("a number")).collect()
    }
}

/// Does this in a network namespace of its own: as a process of its own, which is root there.
fn alone(name: &str, test: fn(&Path)) {
    if let Some(folder) = std::env::var_os("IN_A_NETWORK_OF_ITS_OWN") {
        return test(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("unshare");
    command.arg("-rn");
    command.arg(std::env::current_exe().expect("this program"));
    command.args(["--exact", name, "--nocapture"]);
    command.env("IN_A_NETWORK_OF_ITS_OWN", folder.path());
    let status = command.env("STROBE_RUNTIME_DIR", folder.path()).status();
    assert!(status.expect("unshare, of util-linux").success());
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn who_waits_until_the_link_is_up_again_has_every_row() {
    alone(
        "cut::who_waits_until_the_link_is_up_again_has_every_row",
        |folder| {
            const ROWS: u64 = 12 * RATE;
            let mut lab = Lab::new(folder);
            let mut bus = lab.over_there("nats-server");
            bus.args(["-js", "-a", THERE, "-p", "4222", "-sd", "store"]);
            let _bus = Running::start({
                bus.stdout(Stdio::null()).stderr(Stdio::null());
                bus
            });
            let nats = format!("nats://{THERE}:4222");
            lab.serve(
                ROWS,
                &format!("[publish.nats]\nurl = \"{nats}\"\nmachine = \"here\"\n"),
            );
            let recording = lab.record("recorded.csv", &["--allow-loss"]);
            let mut subscribe = lab.over_there(env!("CARGO_BIN_EXE_strobe-serve"));
            subscribe.args([
                "subscribe",
                &nats,
                "--run",
                "scan",
                "--allow-loss",
                "-o",
                "taken.csv",
            ]);
            let subscriber = Running::start({
                subscribe.stderr(Stdio::piped());
                subscribe
            });
            // The link is not to go before it has connected.
            let recording = lab.wait_for_file(recording, "recorded.csv", 1);
            for round in 1..=2 {
                lab.wait_for_rows(2 * round * RATE);
                lab.link("down");
                // The run goes on, and the daemon answers who can reach it.
                lab.wait_for_rows((2 * round + 1) * RATE + lab.number("next") / 2);
                lab.link("up");
            }
            let recorded = recording.ended();
            assert!(recorded.status.success(), "{recorded:?}");
            let account = json(&recorded);
            let whole: Vec<u64> = (0..ROWS).collect();
            assert_eq!(lab.rows("recorded.csv"), whole);
            assert_eq!(
                (&account["rows"], &account["lost"]),
                (&ROWS.into(), &0.into()),
                "{account}"
            );
            let taken = subscriber.ended();
            assert!(taken.status.success(), "{taken:?}");
            assert_eq!(lab.rows("taken.csv"), whole);
            let made = |name| lab.number(name);
            assert_eq!(
                made("triggers"),
                made("rows") + made("missed") + made("skipped")
            );
            assert_eq!((made("rows"), made("lost")), (ROWS, 0));
        },
    );
}

#[test]
fn who_is_cut_off_for_good_ends_and_says_before_which_row() {
    alone(
        "cut::who_is_cut_off_for_good_ends_and_says_before_which_row",
        |folder| {
            let mut lab = Lab::new(folder);
            lab.serve(1000 * RATE, "");
            let recording = lab.record("recorded.csv", &[]);
            let recording = lab.wait_for_file(recording, "recorded.csv", 1);
            lab.wait_for_rows(2 * RATE);
            assert!(lab.number("readers") > 0);
            let readers = lab.number("readers");
            lab.link("down");
            let recorded = recording.ended();
            assert_eq!(recorded.status.code(), Some(3), "{recorded:?}");
            let rows = lab.rows("recorded.csv");
            assert_eq!(rows, (0..rows.len() as u64).collect::<Vec<_>>());
            assert!(!rows.is_empty());
            let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
            let account = json(&recorded);
            assert_eq!(account["rows"], rows.len() as u64, "{account}");
            let text = format!("{said}{account}");
            assert!(
                text.contains(&format!("before row {}", rows.len())),
                "{text}"
            );
            // The daemon lets go of who does not answer, and its run goes on.
            let until = Instant::now() + PATIENCE;
            while lab.number("readers") >= readers {
                assert!(Instant::now() < until, "it still waits for who is gone");
                std::thread::sleep(Duration::from_millis(200));
            }
            lab.wait_for_rows(lab.number("next") + RATE);
            // Who comes again has all of it.
            lab.link("up");
            lab.wait_until_reached();
            let again = lab.record("again.csv", &[]);
            let again = lab.wait_for_file(again, "again.csv", rows.len());
            done(&["kill", "-INT", &again.0.id().to_string()]);
            again.ended();
            let again = lab.rows("again.csv");
            assert!(again.len() >= rows.len());
            assert_eq!(again, (0..again.len() as u64).collect::<Vec<_>>());
        },
    );
}
