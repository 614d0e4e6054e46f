// SPDX-License-Identifier: MIT OR Apache-2.0
//! The triggers of a sequence: each of them waits until the run has read all its channels.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use tokio::sync::oneshot;

use super::acquisition::Acquisition;
use crate::served_run::ServedRun;

/// A thread that triggers a run. It is the run's alone: what others read from disks is not in its way.
pub struct Triggers(Sender<oneshot::Sender<()>>);

impl Triggers {
    /// Of this run.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn new(of: Arc<Acquisition>, run: Arc<ServedRun>) -> io::Result<Self> {
        let (sender, orders) = channel::<oneshot::Sender<()>>();
        // It ends when nobody is left who orders.
        Builder::new().name("trigger".to_owned()).spawn(move || {
            for done in orders {
                // Where the gate is closed it is not counted.
                if run.trigger(1).is_ok() {
                    of.given.fetch_add(1, Ordering::Relaxed);
                }
                // The sequence may have been given up.
                let _ = done.send(());
            }
        })?;
        Ok(Triggers(sender))
    }

    /// One, and waits until it is done.
    pub async fn give(&self) {
        let (done, is_done) = oneshot::channel();
        if self.0.send(done).is_ok() {
            // Fails when the thread has ended.
            let _ = is_done.await;
        }
    }
}
