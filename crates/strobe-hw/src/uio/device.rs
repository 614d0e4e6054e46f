// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open UIO device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::switch::Switch;
use super::{Error, Uio};
use crate::map::{Region, Register};

/// One or more interrupts, seen by one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// The kernel's count of the device's interrupts; wraps at 2^32.
    pub count: u32,
    /// Interrupts before this one and since the last that was read, or since the device was opened.
    pub missed: u32,
}

/// An open UIO device. Its file descriptor is ready to be read when an interrupt has come.
#[derive(Debug)]
pub struct Device {
    about: Uio,
    file: File,
    switch: Switch,
    /// The kernel's count when it was last read.
    count: u32,
}

impl Device {
    pub(super) fn open(about: Uio) -> Result<Device, Error> {
        let file = open(&about, true)?;
        let mut device = Device {
            switch: Switch::of(&about),
            about,
            file,
            count: 0,
        };
        device.count = device.about.read_events()?;
        // Did more come between the opening and that? The next read tells.
        match device.forget() {
            Ok(()) | Err(Error::NoInterrupt(_)) => Ok(device),
            Err(error) => Err(error),
        }
    }

    /// What sysfs said of it before it was opened.
    pub fn about(&self) -> &Uio {
        &self.about
    }

    /// The kernel's count of interrupts when it was last read.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Waits for an interrupt, as long as it takes.
    ///
    /// # Errors
    /// The device has gone, or has no interrupt.
    pub fn wait(&mut self) -> Result<Interrupt, Error> {
        loop {
            if let Some(interrupt) = self.wait_until(None)? {
                return Ok(interrupt);
            }
        }
    }

    /// Waits for an interrupt, but not longer than this: then `None`.
    ///
    /// # Errors
    /// As of [`Device::wait`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Interrupt>, Error> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&mut self, end: Option<Instant>) -> Result<Option<Interrupt>, Error> {
        loop {
            if let Some(interrupt) = self.read()? {
                return Ok(Some(interrupt));
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut fds, limit.as_ref()) {
                Ok(0) if left == Some(Duration::ZERO) => return Ok(None),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed("waiting for it", errno)),
            }
        }
    }

    /// The interrupt that has come since the last read; `None` if there was none. Does not wait.
    ///
    /// # Errors
    /// As of [`Device::wait`].
    #[inline]
    pub fn read(&mut self) -> Result<Option<Interrupt>, Error> {
        let mut bytes = [0; 4];
        match rustix::io::read(&self.file, &mut bytes) {
            Ok(4) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            // The kernel says EIO for both; a device without an interrupt is still there.
            Err(Errno::IO) if self.is_here() => {
                return Err(Error::NoInterrupt(self.about.name.clone()));
            }
            Err(Errno::IO | Errno::NODEV) | Ok(_) => {
                return Err(Error::Gone(self.about.name.clone()));
            }
            Err(errno) => return Err(self.failed("reading its count", errno)),
        }
        let count = u32::from_ne_bytes(bytes);
        // As many as it steps on, which is 1 or more, unless 2^32 of them came.
        let step = count.wrapping_sub(self.count);
        self.count = count;
        Ok(Some(Interrupt {
            count,
            missed: step.saturating_sub(1),
        }))
    }

    /// Forgets the interrupts that have come and were not read.
    ///
    /// # Errors
    /// As of [`Device::wait`].
    pub fn forget(&mut self) -> Result<(), Error> {
        self.read().map(|_| ())
    }

    /// Lets it interrupt. Some drivers, such as uio_pci_generic, need that after each interrupt, and before the
    /// first. For uio_pci_generic, which leaves it to the program, a bit of the card's configuration is written;
    /// for all others the driver is asked.
    ///
    /// # Errors
    /// Its driver has no irqcontrol, the configuration may not be written, or the device has gone.
    pub fn enable(&self) -> Result<(), Error> {
        self.control(true)
    }

    /// Whether this program may enable and disable its interrupt at all; nothing is changed.
    ///
    /// # Errors
    /// The configuration of a card of uio_pci_generic may not be written.
    pub fn permitted(&self) -> Result<(), Error> {
        self.switch.permitted(&self.about.name)
    }

    /// Keeps it from interrupting.
    ///
    /// # Errors
    /// As of [`Device::enable`].
    pub fn disable(&self) -> Result<(), Error> {
        self.control(false)
    }

    fn control(&self, on: bool) -> Result<(), Error> {
        let done = self.switch.set(&self.about.name, &self.file, on);
        // Of a device that has gone the kernel says the same as of one that has no interrupt, or does not like
        // what is written to it.
        let may_be_gone = match &done {
            Err(Error::NoInterrupt(_)) => true,
            Err(Error::Io { source, .. }) => Errno::from_io_error(source) == Some(Errno::INVAL),
            _ => false,
        };
        if may_be_gone && !self.is_here() {
            return Err(Error::Gone(self.about.name.clone()));
        }
        done
    }

    /// Maps this block of its memory, to be read and written.
    ///
    /// # Errors
    /// There is no such map, or the kernel refuses.
    pub fn map(&self, number: u32) -> Result<MappedMemory, Error> {
        map_of(&self.about, &self.file, number, true)
    }

    /// Whether sysfs still has it.
    fn is_here(&self) -> bool {
        let now = super::text(&self.about.node(), &self.about.class().join("name"));
        now.is_ok_and(|name| name == self.about.name)
    }

    fn failed(&self, doing: &'static str, errno: Errno) -> Error {
        Error::Io {
            name: self.about.name.clone(),
            doing,
            source: errno.into(),
        }
    }
}

/// To be polled with others; read it with [`Device::read`].
impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens the device file.
fn open(about: &Uio, writable: bool) -> Result<File, Error> {
    let path = about.path();
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(writable)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(&path).map_err(|source| {
        let name = about.name.clone();
        match Errno::from_io_error(&source) {
            Some(Errno::ACCESS | Errno::PERM) => Error::NoPermission {
                name,
                group: group_of(&path),
                path,
            },
            Some(Errno::NODEV | Errno::NXIO) => Error::Gone(name),
            Some(Errno::NOENT) if !about.class().exists() => Error::Gone(name),
            _ => Error::Io {
                name,
                doing: "opening its device file",
                source,
            },
        }
    })
}

/// Maps a block of the memory of a device that is not open, at least not by this.
pub(super) fn map(about: &Uio, number: u32, writable: bool) -> Result<MappedMemory, Error> {
    map_of(about, &open(about, writable)?, number, writable)
}

fn map_of(about: &Uio, file: &File, number: u32, writable: bool) -> Result<MappedMemory, Error> {
    let maps = &about.maps;
    let Some(map) = maps.iter().find(|map| map.number == number) else {
        return Err(Error::NoMap {
            name: about.name.clone(),
            number,
            there: maps.iter().map(|map| map.number).collect(),
        });
    };
    // The kernel takes the page number of the offset for the number of the map.
    let place = u64::from(number).saturating_mul(rustix::param::page_size() as u64);
    let region = Region::map(file, place, map.size, writable);
    let region = region.map_err(|source| Error::Io {
        name: about.name.clone(),
        doing: "mapping its memory",
        source,
    })?;
    Ok(MappedMemory {
        region,
        offset: map.offset,
    })
}

/// A mapped block of a device's memory. It may be used by other threads, and outlives the [`Device`].
#[derive(Debug, Clone)]
pub struct MappedMemory {
    region: Region,
    offset: u64,
}

/// All of a region.
impl From<Region> for MappedMemory {
    fn from(region: Region) -> Self {
        MappedMemory { region, offset: 0 }
    }
}

impl MappedMemory {
    /// Bytes of the device's memory.
    pub fn bytes(&self) -> u64 {
        self.region.bytes().saturating_sub(self.offset)
    }

    /// Where the device's memory begins, for who accesses it by pointers: good as long as this, or a clone of it, is there.
    pub fn start(&self) -> *mut u8 {
        // The offset is not checked against the size before a register is made.
        let offset = self.offset.min(self.region.bytes());
        self.region.start().wrapping_add(offset as usize)
    }

    /// The register of `width` bytes (1, 2, 4 or 8) at `offset` bytes from the start of the device's memory;
    /// `None` if it lies outside, or is not aligned to its width.
    pub fn register(&self, offset: u64, width: u8) -> Option<Register> {
        self.region
            .register(self.offset.checked_add(offset)?, width)
    }
}

/// The group that may read and write the file, unless it is root's.
fn group_of(path: &std::path::Path) -> Option<u32> {
    let about: io::Result<std::fs::Metadata> = std::fs::metadata(path);
    let about = about.ok()?;
    (about.gid() != 0 && about.mode() & 0o060 == 0o060).then(|| about.gid())
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

    fn open(fake: &Fake) -> Device {
        let uio = Uio::find_in(&fake.roots, "card").expect("the device");
        uio.open().expect("to open it")
    }

    #[test]
    fn the_step_of_the_count_says_what_was_missed_also_where_it_wraps() {
        let fake = Fake::new();
        let mut node = fake.device(0, "card", u32::MAX - 2);
        let mut device = open(&fake);
        for (count, missed) in [
            (u32::MAX - 1, 0),
            (u32::MAX, 0),
            (0, 0),
            (5, 4),
            (4, u32::MAX - 1),
        ] {
            node.interrupt(count);
            assert_eq!(
                device.wait().expect("an interrupt"),
                Interrupt { count, missed }
            );
        }
        assert_eq!(device.read().expect("none"), None);
        assert_eq!(device.count(), 4);
    }

    #[test]
    fn what_came_before_the_opening_is_not_missed() {
        let fake = Fake::new();
        let mut node = fake.device(0, "card", 100);
        // Between the opening and the reading of the count in sysfs, or before: the same for who opens it.
        node.interrupt(103);
        let mut device = open(&fake);
        assert_eq!(device.count(), 103);
        node.interrupt(104);
        let interrupt = device.wait().expect("an interrupt");
        assert_eq!((interrupt.count, interrupt.missed), (104, 0));
    }

    #[test]
    fn a_wait_ends_after_its_timeout_and_not_before() {
        let fake = Fake::new();
        let mut node = fake.device(0, "card", 0);
        let mut device = open(&fake);
        let (begin, timeout) = (Instant::now(), Duration::from_millis(30));
        assert_eq!(device.wait_timeout(timeout).expect("to wait"), None);
        assert!(begin.elapsed() >= timeout);
        assert_eq!(device.wait_timeout(Duration::ZERO).expect("to wait"), None);
        node.interrupt(1);
        assert!(
            device
                .wait_timeout(Duration::ZERO)
                .expect("to wait")
                .is_some()
        );
        node.interrupt(2);
        assert!(
            device
                .wait_timeout(Duration::MAX)
                .expect("to wait")
                .is_some()
        );
    }

    #[test]
    fn enabling_and_disabling_is_a_word_of_four_bytes() {
        let fake = Fake::new();
        let mut node = fake.device(0, "card", 0);
        let device = open(&fake);
        for (on, word) in [(true, 1), (false, 0)] {
            device.control(on).expect("to write");
            assert_eq!(node.written(), word);
        }
    }

    #[test]
    fn a_device_that_cannot_be_opened_says_what_to_do() {
        let fake = Fake::new();
        let node = fake.device(0, "card", 0);
        let uio = Uio::find_in(&fake.roots, "card").expect("the device");
        node.remove();
        let error = uio.open().expect_err("no node");
        assert!(
            error
                .to_string()
                .contains("opening its device file failed: No such file"),
            "{error}"
        );
        fake.unplug(0);
        assert!(uio.open().expect_err("no device").is_gone());
        let error = Error::NoPermission {
            name: "card".into(),
            path: "/dev/uio0".into(),
            group: Some(123),
        };
        assert_eq!(
            error.to_string(),
            "UIO device card: no permission to open /dev/uio0 (it is of the group 123); be root, become a member of \
             its group, or add a udev rule: SUBSYSTEM==\"uio\", GROUP=\"uio\", MODE=\"0660\""
        );
    }

    #[test]
    fn a_register_is_counted_from_where_the_devices_memory_begins() {
        let fake = Fake::new();
        let _node = fake.device_of_pages(0, "card", 3);
        fake.map(0, 2, "registers", 0, 0x1000, 0x40);
        let device = open(&fake);
        let memory = device.map(2).expect("the map");
        assert_eq!(memory.bytes(), 0x1000 - 0x40);
        let register = |offset, width| memory.register(offset, width).map(|r| r.read());
        assert_eq!(register(0, 4), Some(2 << 16 | 0x40), "page 2, byte 0x40");
        assert_eq!(register(8, 4), Some(2 << 16 | 0x48));
        assert_eq!(register(0x1000 - 0x40, 4), None);
        assert_eq!(register(u64::MAX, 1), None);
        let error = device.map(0).expect_err("no map 0");
        assert_eq!(error.to_string(), "UIO device card: no map 0; it has 2");
    }
}
