// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe-assets DIR` writes manual pages into `DIR/man` and completions into
//! `DIR/completions/{bash,zsh,fish}`, from the definitions of the command line.
#![forbid(unsafe_code)]

use std::fs::create_dir_all;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap_complete::Shell;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(dir), None) = (arguments.next(), arguments.next()) else {
        // Nowhere to report that standard error is closed.
        let _ = writeln!(io::stderr(), "usage: strobe-assets DIR");
        return ExitCode::FAILURE;
    };
    match write(Path::new(&dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let dir = Path::new(&dir).display();
            let _ = writeln!(io::stderr(), "strobe-assets: {dir}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(dir: &Path) -> io::Result<()> {
    let man = dir.join("man");
    create_dir_all(&man)?;
    clap_mangen::generate_to(strobe_cli::command(), &man)?;
    for (shell, name) in [
        (Shell::Bash, "bash"),
        (Shell::Zsh, "zsh"),
        (Shell::Fish, "fish"),
    ] {
        let place = dir.join("completions").join(name);
        create_dir_all(&place)?;
        clap_complete::generate_to(shell, &mut strobe_cli::command(), "strobe", place)?;
    }
    Ok(())
}
