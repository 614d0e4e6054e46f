// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is here: channels, and runs of all programs.
use strobe::engine::user::User;
use strobe::runs::Runs;

fn main() {
    for channel in User::default().catalogue().channels {
        println!(
            "{} ({}): {}",
            channel.name, channel.unit, channel.description
        );
    }
    for run in Runs::now().runs {
        println!(
            "{}:{} on {}: {} rows",
            run.engine, run.run, run.event, run.rows
        );
    }
}
