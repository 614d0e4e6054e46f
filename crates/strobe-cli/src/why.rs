// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why rows were late, for the commands that measure or record: what is asked for, and what is said.

use std::path::{Path, PathBuf};

use strobe::quantity::show_ns;
use strobe_measure::late::{Error, LateRows};

use crate::term::say;

/// Where traces are kept, unless asked for.
const PLACE: &str = "strobe-late";

/// The option that goes with all that trace.
#[derive(clap::Args)]
pub struct Keep {
    /// Folder for the kernel's trace around each late row, one file per row
    #[arg(long, value_name = "DIR", default_value = PLACE)]
    trace_to: PathBuf,
}

impl Keep {
    /// The directory.
    pub fn place(&self) -> &Path {
        &self.trace_to
    }

    /// Writes what is to be kept; the names of the files begin like this.
    pub fn keep(&self, found: &mut LateRows, name: &str) -> Result<(), Error> {
        found.keep(&self.trace_to, name)
    }
}

/// The option that helps where a trace cannot be kept.
pub fn instead(error: &Error) -> &'static str {
    match error {
        Error::Keep { .. } => " with --trace-to",
        _ => "",
    }
}

/// The verdicts in words; a line ends each.
pub fn text(found: &LateRows) -> String {
    let mut text = String::new();
    for verdict in &found.verdicts {
        text += &verdict.text();
        if let Some(path) = &verdict.trace {
            text += &format!("  trace: {}\n", path.display());
        }
    }
    if found.more > 0 {
        text += &format!(
            "{} more late rows, whose traces were not kept\n",
            found.more
        );
    }
    if let (count @ 1.., most) = found.overlooked {
        let most = show_ns(most as f64);
        text += &format!(
            "{count} rows made during the analysis are not included (at most {most} late)\n"
        );
    }
    text
}

/// What has gone wrong meanwhile, on standard error.
pub fn complain(found: &LateRows) {
    if let Some(error) = &found.failed {
        say(format_args!(
            "strobe: cannot tell why some rows were late: {error}"
        ));
    }
}
