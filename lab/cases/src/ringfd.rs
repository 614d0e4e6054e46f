// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader that uses read() on a ring fd, the contract's other way beside the
//! mapping; the library never does.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use strobe_ring::{RowShape, Rows};

use crate::machine::patience;
use crate::{Account, Pace, raw};

/// STROBE_NONBLOCK.
const NONBLOCK: u32 = 1;

/// A ring fd without a mapping.
pub struct RingFd {
    fd: OwnedFd,
    shape: RowShape,
    first: u64,
    is_blocking: bool,
}

impl RingFd {
    /// A reader of somebody's run, from row `first` on, whose rows have nothing but channels.
    pub fn open(run: u32, channels: usize, first: u64, is_blocking: bool) -> RingFd {
        let flags = if is_blocking { 0 } else { NONBLOCK };
        RingFd {
            fd: raw::reader(&raw::control(), run, first, flags).expect("a ring fd"),
            shape: RowShape::of_channels(channels as u32),
            first,
            is_blocking,
        }
    }

    /// An account that begins where this reader does.
    pub fn account(&self) -> Account {
        Account::new(self.first, self.shape.channels as usize)
    }

    /// One read(): how many rows; `None` at the end of the run.
    ///
    /// # Errors
    /// That of the call; `AGAIN` if there is no row yet.
    pub fn read(&self, rows: usize, account: &mut Account) -> Result<Option<usize>, Errno> {
        let row_bytes = self.shape.bytes() as usize;
        let mut bytes = vec![0; rows * row_bytes];
        let got = match read(&self.fd, &mut bytes)? {
            0 => return Ok(None),
            got => got,
        };
        assert_eq!(got % row_bytes, 0, "whole rows only");
        let words = bytes[..got].chunks_exact(8);
        let words: Vec<u64> = words
            .map(|b| u64::from_ne_bytes(b.try_into().expect("8 bytes")))
            .collect();
        for row in Rows::new(&words, self.shape) {
            let lost = row.row - account.next();
            account.add(row, lost);
        }
        Ok(Some(got / row_bytes))
    }

    /// Everything up to the end of the run.
    pub fn read_to_end(&self, pace: Pace) -> Account {
        let mut account = self.account();
        loop {
            match self.read(pace.rows, &mut account) {
                Ok(None) => return account,
                Ok(Some(_)) => thread::sleep(pace.pause),
                Err(Errno::AGAIN) if !self.is_blocking => {
                    assert!(self.poll(patience(60)), "no row comes");
                }
                Err(errno) => panic!("read: {errno}"),
            }
        }
    }

    /// Whether there is something to read, at the latest after this time.
    pub fn poll(&self, patience: Duration) -> bool {
        let timeout = Timespec::try_from(patience).expect("a time");
        poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&timeout)).expect("to poll") > 0
    }
}
