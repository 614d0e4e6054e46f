// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a card is still there. One that is pulled reads as all ones; one that was only removed from the
//! kernel's list may go on answering, at addresses that will be another card's. So does the memory of a UIO
//! device that its driver has given up, for as long as it is mapped.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use strobe_board::Block;
use strobe_hw::uio::MappedMemory;

/// How often it is looked for a card that answers.
const LOOK: Duration = Duration::from_millis(50);

/// How a card shows that it is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A PCI card, by the vendor in its configuration space.
    Card,
    /// A UIO device, by its name in sysfs.
    Uio,
}

/// A card that is used.
#[derive(Debug)]
pub(super) struct Presence {
    path: PathBuf,
    kind: Kind,
    /// What answers while it is there. The open file stays with this card, whatever is plugged in after it.
    file: File,
    /// Set when it has gone, for good. Written by the watching thread and by who reads all ones.
    gone: AtomicBool,
    /// Its blocks of registers that are mapped: each once for all who use it, however many registers of it they have.
    blocks: Mutex<Vec<Mapped>>,
}

/// A block of registers that is mapped.
#[derive(Debug)]
struct Mapped {
    block: Block,
    writable: bool,
    memory: MappedMemory,
}

impl Presence {
    /// The watch over the card of this directory of sysfs; one for all who use it.
    pub(super) fn of(card: &Path, kind: Kind) -> io::Result<Arc<Presence>> {
        static CARDS: Mutex<Vec<Weak<Presence>>> = Mutex::new(Vec::new());
        let mut cards = CARDS.lock().unwrap_or_else(PoisonError::into_inner);
        cards.retain(|card| card.strong_count() > 0);
        let mut known = cards.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| known.path == card && known.look()) {
            return Ok(known);
        }
        let presence = Arc::new(Presence {
            path: card.to_owned(),
            kind,
            file: File::open(card.join(match kind {
                Kind::Card => "config",
                Kind::Uio => "name",
            }))?,
            gone: AtomicBool::new(false),
            blocks: Mutex::default(),
        });
        let watched = Arc::downgrade(&presence);
        cards.push(Weak::clone(&watched));
        let thread = thread::Builder::new().name("strobe-card".to_owned());
        thread.spawn(move || {
            while watched.upgrade().is_some_and(|presence| presence.look()) {
                thread::sleep(LOOK);
            }
        })?;
        Ok(presence)
    }

    /// A block of its registers, by `map` if it is not mapped yet.
    pub(super) fn block<E>(
        &self,
        block: &Block,
        writable: bool,
        map: impl FnOnce() -> Result<MappedMemory, E>,
    ) -> Result<MappedMemory, E> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let serves = |known: &&Mapped| known.block == *block && (known.writable || !writable);
        if let Some(known) = blocks.iter().find(serves) {
            return Ok(known.memory.clone());
        }
        let memory = map()?;
        blocks.push(Mapped {
            block: block.clone(),
            writable,
            memory: memory.clone(),
        });
        Ok(memory)
    }

    /// Whether it was there when it was last looked for.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        !self.gone.load(Ordering::Relaxed)
    }

    /// Looks for it, by one system call.
    pub(super) fn look(&self) -> bool {
        let mut bytes = [0; 2];
        let read = self.file.read_exact_at(&mut bytes, 0).is_ok();
        let there = match self.kind {
            Kind::Card => read && bytes != [0xff; 2],
            Kind::Uio => read,
        };
        if !there {
            self.gone.store(true, Ordering::Relaxed);
        }
        self.is_there()
    }
}

/// The errno of a card that is not there any more.
pub(super) fn gone() -> io::Error {
    Errno::NODEV.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_is_gone_stays_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let config = dir.path().join("config");
        std::fs::write(&config, [0x34, 0x12, 0, 0]).expect("to write");
        let presence = Presence::of(dir.path(), Kind::Card).expect("a card");
        let same = Presence::of(dir.path(), Kind::Card).expect("a card");
        assert!(Arc::ptr_eq(&presence, &same) && presence.look());
        std::fs::write(&config, [0xff; 4]).expect("to write");
        while presence.is_there() {
            thread::sleep(Duration::from_millis(1));
        }
        std::fs::write(&config, [0x34, 0x12, 0, 0]).expect("to write");
        assert!(!presence.look(), "what is there now is another one");
        let other = Presence::of(dir.path(), Kind::Card).expect("a card");
        assert!(other.is_there() && !presence.is_there());
    }
}
