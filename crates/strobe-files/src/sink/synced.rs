// SPDX-License-Identifier: MIT OR Apache-2.0
//! A journal that survives a power cut.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use strobe::info::{RunInfo, Totals};
use strobe_ring::Rows;

use super::{Sink, SinkProgress};

/// What was flushed is brought to the disk this often. Twice as often as is promised: the disk may take its time.
const SYNC_EVERY: Duration = Duration::from_millis(500);

/// Brings what another sink writes to the disk, and through its cache.
pub(crate) struct Synced {
    sink: Box<dyn Sink>,
    file: File,
    /// The entry of the file has to be on the disk, too.
    folder: File,
    synced: Instant,
}

impl Synced {
    /// The sink that writes into this file, which is in this folder.
    pub(crate) fn new(sink: Box<dyn Sink>, file: File, folder: &Path) -> io::Result<Self> {
        Ok(Synced {
            sink,
            file,
            folder: File::open(folder)?,
            synced: Instant::now(),
        })
    }
}

impl Sink for Synced {
    fn begin(&mut self, info: &RunInfo) -> io::Result<()> {
        self.sink.begin(info)?;
        self.file.sync_all()?;
        self.folder.sync_all()?;
        self.synced = Instant::now();
        Ok(())
    }

    fn write(&mut self, rows: Rows<'_>) -> io::Result<()> {
        self.sink.write(rows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()?;
        if self.synced.elapsed() >= SYNC_EVERY {
            // From here: rows that come while the disk is at work have waited by then.
            self.synced = Instant::now();
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn finish(&mut self, totals: Option<&Totals>) -> io::Result<()> {
        // The rows first: the file must not say that it is complete while some of them are in a cache.
        self.sink.flush()?;
        self.file.sync_data()?;
        self.sink.finish(totals)?;
        self.file.sync_all()
    }

    fn written(&self) -> SinkProgress {
        self.sink.written()
    }

    fn safe(&self) -> Option<u64> {
        self.sink.safe()
    }
}
