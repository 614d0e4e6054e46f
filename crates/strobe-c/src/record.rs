// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording a run.

use std::ffi::{c_char, c_int};

use strobe::info::End;
use strobe::ring::State;
use strobe::stop::Stop;
use strobe_files::record::{Options, Progress, record, record_rows};
use strobe_files::sink::Existing;
use strobe_files::summary::Summary;

use crate::call::{Failure, Result, call, seen, text};
use crate::run::{self, Kind, strobe_account, strobe_run, strobe_run_state};

/// Replace files that exist. Without it they are left as they are, and the recording is refused.
pub const STROBE_OVERWRITE: u32 = 1;
/// Journals (`.arrows`) are safe against a power cut: rows made more than a second ago are on the disk.
pub const STROBE_SYNC: u32 = 2;

/// Records a run into `count` sinks, whose names end with `.arrows`, `.h5`, `.parquet` or `.csv` (`-`: CSV on standard
/// output), and returns when the run has ended. A run that was made here is started by that; another thread may stop it.
/// The account is optional (NULL).
///
/// Answers 0 if all is there, 1 if something was missed, lost or failed (then the account says what), and -1 if nothing
/// was recorded, or a sink could not be written to its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_run_record(
    run: *const strobe_run,
    sinks: *const *const c_char,
    count: usize,
    flags: u32,
    account: *mut strobe_account,
) -> c_int {
    call(-1, || {
        // SAFETY: as the header demands.
        let run = unsafe { seen(run, "run") }?;
        let unknown = flags & !(STROBE_OVERWRITE | STROBE_SYNC);
        if unknown != 0 {
            let why = format!("unknown flags {unknown:#x}");
            return Err(Failure::new("recording", why, "use those of libstrobe.h"));
        }
        let mut options = Options {
            sync: flags & STROBE_SYNC != 0,
            ..Options::default()
        };
        if flags & STROBE_OVERWRITE != 0 {
            options.existing = Existing::Overwrite;
        }
        if count > 0 {
            // SAFETY: as the header demands.
            unsafe { seen(sinks, "names of sinks") }?;
        }
        for index in 0..count {
            // SAFETY: there are `count` names, as the header demands.
            let name = unsafe { text(*sinks.add(index), "name of a sink") }?;
            options.sinks.push(name.to_owned());
        }
        let (stop, mut nobody) = (Stop::default(), |_: Progress| {});
        let mut rows = run.run().reader()?;
        let summary = match &run.kind {
            Kind::Own(run) => record(run.as_ref(), &options, &stop, &mut nobody),
            Kind::Others(_) => record_rows(&mut rows, &options, &stop, &mut nobody),
        };
        let summary = summary.map_err(Failure::text)?;
        if !account.is_null() {
            let found = of(&summary, rows.snapshot().state);
            // SAFETY: as the header demands.
            unsafe { found.give(account) }?;
        }
        sinks_are_whole(&summary)?;
        Ok(c_int::from(!is_whole(&summary)))
    })
}

/// Whether all is there that was made until the end, whoever has asked for that.
fn is_whole(summary: &Summary) -> bool {
    !matches!(summary.end, End::Failed(_))
        && summary.missed == 0
        && summary.lost == 0
        && summary.errors == 0
}

/// The account of what was recorded, and where the run is.
fn of(summary: &Summary, now: State) -> strobe_account {
    let state = match summary.end {
        End::Failed(_) => strobe_run_state::STROBE_RUN_FAILED,
        _ => run::state(now),
    };
    strobe_account {
        rows: summary.rows,
        triggers: summary.triggers,
        missed: summary.missed,
        skipped: summary.skipped,
        lost: summary.lost,
        errors: summary.errors,
        state: state as u32,
        ..strobe_account::default()
    }
}

fn sinks_are_whole(summary: &Summary) -> Result<()> {
    let failed = summary.sinks.iter().find_map(|sink| {
        let error = sink.error.as_deref()?;
        Some(Failure::text(format!("{}: {error}", sink.path)))
    });
    failed.map_or(Ok(()), Err)
}
