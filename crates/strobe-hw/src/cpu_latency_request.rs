// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that wake soon: the kernel's promise that none sleeps deeply while a run is there.
//!
//! A CPU with nothing to do goes to sleep, and is the slower to wake the deeper it slept: some microseconds to a
//! millisecond, in which no interrupt is served. Who holds `/dev/cpu_dma_latency` open says how long that may take
//! (Documentation/power/pm_qos_interface.rst); it costs power, on all CPUs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use crate::rt::Step;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// No CPU of this machine takes longer to wake than was asked for. It ends when this is dropped.
#[derive(Debug)]
pub struct CpuLatencyRequest {
    /// Whether it was wanted, what was got, or why nothing was.
    pub step: Step,
    /// The promise is of the open file; nobody looks at it.
    _held: Option<File>,
}

impl CpuLatencyRequest {
    /// Asks for it: so many us; `None`: as long as they like.
    pub fn hold(us: Option<u32>) -> CpuLatencyRequest {
        let (ok, got, held) = match us {
            None => (true, "not asked for".to_owned(), None),
            Some(asked) => match ask(asked) {
                Ok((file, us)) => (
                    u32::try_from(us).is_ok_and(|us| us <= asked),
                    format!("wake within {us} us ({DEVICE})"),
                    Some(file),
                ),
                Err(error) => (false, refused(&error), None),
            },
        };
        let what = "awake CPUs".into();
        CpuLatencyRequest {
            step: Step { what, ok, got },
            _held: held,
        }
    }
}

/// Holds it, and reads what the kernel makes of all who hold it, us.
fn ask(us: u32) -> io::Result<(File, i32)> {
    let mut file = OpenOptions::new().read(true).write(true).open(DEVICE)?;
    file.write_all(&us.to_ne_bytes())?;
    let mut got = [0; 4];
    file.read_exact(&mut got)?;
    Ok((file, i32::from_ne_bytes(got)))
}

fn refused(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; become a member of the group strobe, which has access by strobe's udev rule, or be root"
        }
        _ => "",
    };
    format!("{DEVICE}: {error}: a CPU that sleeps deeply wakes late{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_is_not_held() {
        let awake = CpuLatencyRequest::hold(None);
        assert!(awake.step.ok && awake._held.is_none());
    }

    #[test]
    fn what_was_got_is_what_the_kernel_says() {
        let awake = CpuLatencyRequest::hold(Some(3));
        let us = || -> io::Result<i32> {
            let mut us = [0; 4];
            File::open(DEVICE)?.read_exact(&mut us)?;
            Ok(i32::from_ne_bytes(us))
        };
        match us() {
            Ok(us) => assert_eq!(awake.step.ok, (0..=3).contains(&us), "{:?}", awake.step),
            Err(_) => assert!(!awake.step.ok, "{:?}", awake.step),
        }
    }

    #[test]
    fn who_may_not_have_it_is_told_what_to_do() {
        let said = refused(&io::Error::from_raw_os_error(libc::EACCES));
        assert!(said.contains("group strobe"), "{said}");
    }
}
