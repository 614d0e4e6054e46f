// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real daemon, and what a stock client gets from it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::Process;

/// `strobe-serve` of the same build, at a port of the system's choice.
pub struct Daemon {
    pub process: Process,
    pub url: String,
}

impl Daemon {
    /// With nothing but its address said.
    pub fn new(dir: &Path) -> Self {
        Daemon::with(dir, "")
    }

    /// With more in `[http]`, and after it.
    pub fn with(dir: &Path, more: &str) -> Self {
        let config = dir.join("serve.toml");
        let text = format!(
            "data = {:?}\n[http]\nlisten = [\"127.0.0.1:0\"]\n{more}",
            dir.join("spool")
        );
        std::fs::write(&config, text).expect("a configuration");
        let program = program();
        let child = Command::new(&program)
            .arg(&config)
            .env("STROBE_RUNTIME_DIR", dir)
            .stderr(Stdio::piped())
            .spawn();
        let child = child.unwrap_or_else(|error| {
            let program = program.display();
            panic!("{program}: {error}; build it: cargo build --release -p strobe-serve")
        });
        let mut process = Process(child);
        let said = process.0.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let url = lines.find_map(|line| {
            let url = line
                .split_whitespace()
                .find(|word| word.starts_with("http"));
            url.map(str::to_owned)
        });
        // It must not stop at a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Daemon {
            process,
            url: url.expect("it says where it listens"),
        }
    }

    /// The answer to a question of this address, as text.
    pub fn asked(&self, path: &str) -> String {
        let answer = ureq::get(format!("{}{path}", self.url)).call();
        let mut answer = answer.expect("an answer");
        answer.body_mut().read_to_string().expect("text")
    }
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_strobe")).with_file_name("strobe-serve")
}
