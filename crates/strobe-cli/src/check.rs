// SPDX-License-Identifier: MIT OR Apache-2.0
//! `strobe check`: whether recipes can be run here.

use std::path::PathBuf;
use std::process::ExitCode;

use strobe_files::recipe::Recipe;

use crate::term::{self, answer, say};

/// Check recipes, and report every fault
///
/// This includes what this machine lacks: channels, outputs, events, boards, CPUs.
/// Nothing is written and no run is made.
#[derive(clap::Args)]
pub struct Args {
    /// Recipes, as strobe record --save writes them
    #[arg(required = true, value_name = "RECIPE")]
    recipes: Vec<PathBuf>,
}

pub fn run(args: &Args) -> ExitCode {
    let mut status = term::COMPLETE;
    for path in &args.recipes {
        match Recipe::check(path) {
            Ok(recipe) => {
                let (event, steps) = (&recipe.event, recipe.plan().steps.len());
                answer(&format!(
                    "{}: ok: {steps} steps on {event}\n",
                    path.display()
                ));
            }
            Err(faults) => {
                say(faults);
                status = term::COULD_NOT_RUN;
            }
        }
    }
    status.into()
}
