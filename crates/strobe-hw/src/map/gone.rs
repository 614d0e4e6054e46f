// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware that goes away while it is mapped: the kernel takes the mapping back, and the next access would end
//! the process by SIGBUS. Here it gets a page of all ones instead, as a bus answers where no card is, and the
//! region knows that it is gone.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Regions of this process at once.
const REGIONS_MAX: usize = 256;

/// A place for the bounds of a region. The handler looks through all of them.
struct Slot {
    /// The bounds, in one word: while the handler looks, other threads map and unmap, and it must not take the begin
    /// of one region with the end of another. 0: free. Written by who maps and unmaps.
    bounds: AtomicU64,
    /// Set by the handler, on behalf of who accesses the region; cleared by who unmaps it.
    gone: AtomicBool,
}

static SLOTS: [Slot; REGIONS_MAX] = [const {
    Slot {
        bounds: AtomicU64::new(0),
        gone: AtomicBool::new(false),
    }
}; REGIONS_MAX];

/// Mappings begin and end at multiples of it, whatever the size of a page.
const UNIT: usize = 4096;
/// Bits of the word that say how many units a region has; the others say where it begins.
const LENGTH_BITS: u32 = 28;

/// The word for a region; `None` if it is too large.
fn bounds(start: usize, bytes: usize) -> Option<u64> {
    let (first, units) = (start / UNIT, bytes.div_ceil(UNIT));
    let fits = units >> LENGTH_BITS == 0 && first >> (64 - LENGTH_BITS) == 0;
    fits.then_some((first as u64) << LENGTH_BITS | units as u64)
}

/// Whether the address lies in a region.
fn holds(bounds: u64, address: usize) -> bool {
    let first = bounds >> LENGTH_BITS;
    let units = bounds & ((1 << LENGTH_BITS) - 1);
    (first..first + units).contains(&((address / UNIT) as u64))
}

/// What was done about SIGBUS before us; a leaked box, set once before the handler is.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// The watch over one region. Ends when it is dropped, which must be before the region is unmapped.
#[derive(Debug)]
pub(super) struct Watch(usize);

impl Watch {
    /// Watches over a mapping; `None` if there are too many.
    pub(super) fn new(start: usize, bytes: usize) -> Option<Watch> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install);
        let bounds = bounds(start, bytes)?;
        // Acquire, with the Release of who had the place before: `gone` is cleared.
        let take = |slot: &Slot| {
            let (order, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            let free = slot.bounds.compare_exchange(0, bounds, order, relaxed);
            free.is_ok()
        };
        SLOTS.iter().position(take).map(Watch)
    }

    /// Whether an access found nothing there.
    #[inline]
    pub(super) fn is_gone(&self) -> bool {
        SLOTS[self.0].gone.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let slot = &SLOTS[self.0];
        slot.gone.store(false, Ordering::Relaxed);
        slot.bounds.store(0, Ordering::Release);
    }
}

fn install() {
    // SAFETY: all zero is a value of this structure; every field that matters is set below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    action.sa_sigaction = handle as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: pointers to structures on our stack. The handler goes by atomics and system calls only. That
    // nobody is told of a failure only means that SIGBUS stays what it was.
    unsafe {
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr());
        BEFORE.store(
            Box::into_raw(Box::new(before.assume_init())),
            Ordering::Release,
        );
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a SA_SIGINFO handler a valid pointer.
    let code = unsafe { (*info).si_code };
    // What a process has sent comes from no access, and has no address.
    let is_fault = code > 0;
    // SAFETY: as above, and a SIGBUS of an access has an address.
    if is_fault && replace(unsafe { (*info).si_addr() } as usize) {
        return;
    }
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: set before this handler was, to a structure that lives for ever. A handler that was here before is
    // called as the kernel would call it; without one all is left to the kernel, as if we had never been here: an
    // access is repeated, and a signal that was sent is sent again, both to come when this returns.
    unsafe {
        match (*before).sa_sigaction {
            libc::SIG_IGN if !is_fault => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, before, ptr::null_mut());
                if !is_fault {
                    libc::raise(signal);
                }
            }
            handler if (*before).sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: Handler = std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

/// A handler that is told where it was.
type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Puts a page of all ones where nothing is any more; false if this is no address of ours.
fn replace(address: usize) -> bool {
    let of = |slot: &&Slot| holds(slot.bounds.load(Ordering::Relaxed), address);
    let Some(slot) = SLOTS.iter().find(of) else {
        return false;
    };
    slot.gone.store(true, Ordering::Relaxed);
    let bytes = page_size();
    let page = (address & !(bytes - 1)) as *mut libc::c_void;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let moved = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: makes a page of its own, and moves it to the place of a page of a mapping that is ours, and that
    // nothing but registers is read from. It is filled before: no other thread may read anything else there. All
    // calls are allowed in a signal handler.
    unsafe {
        let new = libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0);
        if new == libc::MAP_FAILED {
            return false;
        }
        ptr::write_bytes(new.cast::<u8>(), 0xff, bytes);
        libc::mremap(new, bytes, bytes, moved, page) != libc::MAP_FAILED
    }
}

fn page_size() -> usize {
    rustix::param::page_size()
}

#[cfg(test)]
mod tests {
    use crate::map::Region;
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::ptr;

    #[test]
    fn a_region_that_goes_reads_as_all_ones_and_ends_nobody() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[7; 16384]).expect("to write");
        let region = Region::map(file.as_file(), 0, 16384, true).expect("a region");
        let other = Region::map(file.as_file(), 0, 4096, false).expect("another");
        let (here, there) = (region.register(0, 4), region.register(8192, 4));
        let (here, there) = (here.expect("a register"), there.expect("a register"));
        assert_eq!(
            (here.read(), there.read(), region.is_gone()),
            (0x0707_0707, 0x0707_0707, false)
        );
        // As the kernel does with a card that is pulled: the pages are taken away.
        file.as_file().set_len(4096).expect("to cut");
        assert_eq!((there.read(), region.is_gone()), (0xffff_ffff, true));
        there.write(1);
        assert_eq!((here.read(), other.is_gone()), (0x0707_0707, false));
    }

    #[test]
    fn a_region_is_where_it_begins_and_ends_and_nowhere_else() {
        use super::{bounds, holds};
        let start = 0x7fff_1234_5000;
        let region = bounds(start, 0x1001).expect("a region");
        for (address, inside) in [
            (start - 1, false),
            (start, true),
            (start + 0x1fff, true),
            (start + 0x2000, false),
            (0, false),
        ] {
            assert_eq!(holds(region, address), inside, "0x{address:x}");
        }
        assert!(!holds(0, 0), "a free place holds nothing");
        assert_eq!(bounds(start, 1 << 40), None, "too large");
        assert!(bounds(start, (1 << 40) - super::UNIT).is_some());
    }

    #[test]
    fn a_region_that_has_gone_leaves_nothing_to_the_next_in_its_place() {
        for _ in 0..2 * super::REGIONS_MAX {
            let (file, region) = watched();
            let register = region.register(4096, 4).expect("a register");
            assert_eq!((register.read(), region.is_gone()), (0x0707_0707, false));
            file.set_len(4096).expect("to cut");
            assert_eq!((register.read(), region.is_gone()), (0xffff_ffff, true));
        }
    }

    /// Whether this is the child of that test; else how the child has ended.
    fn in_child(test: &str) -> Option<std::process::Output> {
        if std::env::var_os("STROBE_TEST_SIGBUS").is_some() {
            return None;
        }
        let itself = std::env::current_exe().expect("this program");
        let name = format!("map::gone::tests::{test}");
        let mut child = std::process::Command::new(itself);
        let child = child
            .args(["--exact", &name])
            .env("STROBE_TEST_SIGBUS", "1");
        Some(child.output().expect("a child"))
    }

    fn watched() -> (std::fs::File, Region) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; 8192]).expect("to write");
        let region = Region::map(&file, 0, 8192, false).expect("a region");
        (file, region)
    }

    /// Reads what nobody watches, and what is not there any more.
    fn read_elsewhere() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[7; 8192]).expect("to write");
        let (read, shared) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), 8192, read, shared, &file, 0) };
        let start = start.expect("a mapping that nobody watches").cast::<u8>();
        file.set_len(0).expect("to cut");
        // SAFETY: inside of that mapping; that nothing is there any more is what this is for.
        let _ = unsafe { start.read_volatile() };
    }

    #[test]
    fn what_is_not_ours_still_ends_the_process() {
        match in_child("what_is_not_ours_still_ends_the_process") {
            Some(child) => assert_eq!(child.status.signal(), Some(7), "{child:?}"),
            None => {
                let _watched = watched();
                read_elsewhere();
            }
        }
    }

    #[test]
    fn a_signal_that_was_sent_still_ends_the_process() {
        match in_child("a_signal_that_was_sent_still_ends_the_process") {
            Some(child) => assert_eq!(child.status.signal(), Some(7), "{child:?}"),
            None => {
                // SAFETY: takes numbers only. (The one of Rust's runtime lets the first such signal pass.)
                unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
                let _watched = watched();
                let me = std::process::id() as libc::pid_t;
                // SAFETY: takes numbers only.
                unsafe { libc::kill(me, libc::SIGBUS) };
                std::thread::sleep(std::time::Duration::from_secs(5));
            }
        }
    }

    /// As a program has it that looks after its own mappings.
    extern "C" fn theirs(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: replaces the page of the test that was accessed.
        unsafe {
            let page = (*info).si_addr() as usize & !0xfff;
            libc::mmap(page as *mut libc::c_void, 4096, access, flags, -1, 0);
        }
    }

    #[test]
    fn who_was_here_before_gets_what_is_theirs_and_we_what_is_ours() {
        if let Some(child) = in_child("who_was_here_before_gets_what_is_theirs_and_we_what_is_ours")
        {
            assert!(child.status.success(), "{child:?}");
            return;
        }
        // SAFETY: an action with all its fields set, for a handler of that kind.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = theirs as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
        let (file, region) = watched();
        let register = region.register(4096, 4).expect("a register");
        for _ in 0..2 {
            read_elsewhere();
        }
        assert_eq!((register.read(), region.is_gone()), (0x0707_0707, false));
        file.set_len(4096).expect("to cut");
        assert_eq!((register.read(), region.is_gone()), (0xffff_ffff, true));
    }
}
