// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a run as columns, in an async program.
use std::{error::Error, task::Poll};

use strobe::engine::user::User;
use strobe::plan::{Plan, Step};
use strobe::run::{OwnedRun, Run};
use tokio::io::{Interest, unix::AsyncFd};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut plan = Plan::new("timer:1kHz".parse()?);
    plan.steps.push(Step::Read("sim.sine".into()));
    plan.limit = Some(500);
    let run = User::default().create(&plan)?;
    #[allow(deprecated)] // sound here: a reader has one descriptor all its life
    let mut reader = AsyncFd::with_interest(run.reader()?, Interest::READABLE)?;
    run.start()?;
    loop {
        let block = match reader.get_mut().poll_next()? {
            Poll::Ready(Some(block)) => block,
            Poll::Ready(None) => return Ok(()),
            Poll::Pending => {
                reader.readable().await?.clear_ready();
                continue;
            }
        };
        if block.lost() + block.missed() > 0 {
            eprintln!("{} lost, {} missed", block.lost(), block.missed());
        }
        let sine: Vec<f64> = block.column("sim.sine")?.to_vec();
        println!("{} rows from {}: {sine:?}", block.len(), block.first());
    }
}
