// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records for a second, while the program does something else.
use std::{error::Error, sync::Arc, time::Duration};
use strobe::engine::user::User;
use strobe::plan::{Plan, Step};
use strobe_files::recorder::Recorder;

fn main() -> Result<(), Box<dyn Error>> {
    let mut plan = Plan::new("timer:1kHz".parse()?);
    plan.steps = vec![
        Step::Read("sim.sine".into()),
        Step::Read("sim.counter".into()),
    ];
    let run = User::default().create(&plan)?;
    let file = std::env::args()
        .nth(1)
        .unwrap_or("scan-{n:05}.arrows".into());
    let recording = Recorder::new(Arc::new(run)).file(file).spawn()?;
    std::thread::sleep(Duration::from_secs(1));
    recording.stop();
    let summary = recording.join()?;
    println!(
        "{} rows, {} missed, {} lost",
        summary.rows, summary.missed, summary.lost
    );
    Ok(())
}
