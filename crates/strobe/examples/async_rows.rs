// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of a run in an async program: a reader is a descriptor that tokio waits for.

use std::error::Error;
use std::time::Duration;

use strobe::block::Block;
use strobe::engine::user::User;
use strobe::plan::{Plan, Step};
use strobe::reader::RunReader;
use strobe::run::{OwnedRun, Run};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The next rows, as soon as there are some; `None` after the last ones.
async fn next(reader: &mut AsyncFd<RunReader>) -> Result<Option<Block>, Box<dyn Error>> {
    loop {
        // Armed first: a row that comes after the look makes it ready.
        reader.get_ref().arm(1)?;
        match reader.get_mut().next(Duration::ZERO)? {
            Some(block) if block.is_empty() => reader.readable().await?.clear_ready(),
            block => return Ok(block),
        }
    }
}

async fn rows() -> Result<u64, Box<dyn Error>> {
    let mut plan = Plan::new("timer:1kHz".parse()?);
    plan.steps.push(Step::Read("sim.sine".into()));
    plan.limit = Some(200);
    let run = User::default().create(&plan)?;
    // Safe, since a reader has one descriptor all its life; what is to replace this call would need an unsafe block.
    #[allow(deprecated)]
    let mut reader = AsyncFd::with_interest(run.reader()?, Interest::READABLE)?;
    // Not every 1 to 16 ms, but each row by itself.
    reader.get_ref().wake_at_each_row()?;
    run.start()?;
    let mut rows = 0;
    while let Some(block) = next(&mut reader).await? {
        rows += block.len() as u64 + block.lost();
        println!("{block:?}: {:?}", block.column("sim.sine")?.to_vec());
    }
    Ok(rows)
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build()?;
    println!("{} rows", runtime.block_on(rows())?);
    Ok(())
}

#[test]
fn every_row_of_the_run_comes() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build().expect("a runtime");
    assert_eq!(runtime.block_on(rows()).expect("rows"), 200);
}
