// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is here.

use std::ffi::{CString, c_char};
use std::ptr;

use strobe::catalogue::Catalogue;
use strobe::machine::{Machine, ThisMachine};

use crate::call::{self, c_text, call, seen};

/// What can be listed.
// C says it by number: what is no kind is then an answer, and no undefined behaviour.
#[allow(dead_code)]
#[repr(C)]
#[derive(Clone, Copy)]
pub enum strobe_listed {
    /// Units of hardware, and the simulator.
    STROBE_DEVICES,
    /// What a row can read.
    STROBE_CHANNELS,
    /// What a row can write.
    STROBE_OUTPUTS,
    /// What can make rows.
    STROBE_EVENTS,
    /// Runs of all programs.
    STROBE_RUNS,
}

/// One of them.
struct Item {
    name: CString,
    description: CString,
    unit: CString,
    engine: &'static std::ffi::CStr,
}

/// What both engines have, as it was when it was asked for.
pub struct strobe_catalogue {
    items: [Vec<Item>; 5],
    no_kernel: Option<CString>,
}

impl strobe_catalogue {
    fn add(&mut self, from: &Catalogue, engine: &'static std::ffi::CStr) {
        let item = |name: &str, description: &str, unit: &str| Item {
            name: c_text(name),
            description: c_text(description),
            unit: c_text(unit),
            engine,
        };
        let [devices, channels, outputs, events, runs] = &mut self.items;
        devices.extend((from.devices.iter()).map(|it| item(&it.name, &it.description, "")));
        channels.extend((from.channels.iter()).map(|it| item(&it.name, &it.description, &it.unit)));
        outputs.extend((from.outputs.iter()).map(|it| item(&it.name, &it.description, &it.unit)));
        events.extend((from.events.iter()).map(|it| item(&it.name, &it.description, "")));
        runs.extend(from.runs.iter().map(|it| {
            let name = format!("{}:{}", it.engine, it.run);
            item(&name, &format!("{}, by {}", it.event, it.program), "")
        }));
    }

    fn of(&self, kind: u32) -> &[Item] {
        self.items.get(kind as usize).map_or(&[], Vec::as_slice)
    }
}

/// What is here: of the user engine, and of the kernel engine if it is loaded. NULL if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn strobe_catalogue_new() -> *mut strobe_catalogue {
    call(ptr::null_mut(), || {
        let found = ThisMachine::default().catalogues()?;
        let mut catalogue = strobe_catalogue {
            items: Default::default(),
            no_kernel: None,
        };
        match &found.kernel {
            Ok(kernel) => catalogue.add(kernel, c"kernel"),
            Err(error) => catalogue.no_kernel = Some(c_text(&error.to_string())),
        }
        catalogue.add(&found.user, c"user");
        Ok(call::handle(catalogue))
    })
}

/// Frees it, and all texts of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_free(catalogue: *mut strobe_catalogue) {
    // SAFETY: as the header demands.
    unsafe { call::free(catalogue) };
}

/// Why the kernel engine is not available; NULL if it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_no_kernel(
    catalogue: *const strobe_catalogue,
) -> *const c_char {
    call(ptr::null(), || {
        // SAFETY: as the header demands.
        let catalogue = unsafe { seen(catalogue, "catalogue") }?;
        Ok(catalogue
            .no_kernel
            .as_ref()
            .map_or(ptr::null(), |text| text.as_ptr()))
    })
}

/// How many there are of a kind (`enum strobe_listed`). 0 of a kind that there is not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_count(
    catalogue: *const strobe_catalogue,
    kind: u32,
) -> usize {
    call(0, || {
        // SAFETY: as the header demands.
        let catalogue = unsafe { seen(catalogue, "catalogue") }?;
        Ok(catalogue.of(kind).len())
    })
}

/// One text of an item; NULL if there is no such item.
///
/// # Safety
/// As of [`seen`].
unsafe fn item(
    catalogue: *const strobe_catalogue,
    kind: u32,
    index: usize,
    part: impl FnOnce(&Item) -> *const c_char,
) -> *const c_char {
    call(ptr::null(), || {
        // SAFETY: as the caller promises.
        let catalogue = unsafe { seen(catalogue, "catalogue") }?;
        let item = catalogue.of(kind).get(index);
        let item = item.ok_or_else(|| {
            call::Failure::new(
                "catalogue",
                format!("no item {index} of kind {kind}"),
                "ask how many there are",
            )
        })?;
        Ok(part(item))
    })
}

/// Its name, as a run takes it; behind the events `timer` and `hpet` a run wants a period, as in `timer:1kHz`. NULL if there
/// is no such item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_name(
    catalogue: *const strobe_catalogue,
    kind: u32,
    index: usize,
) -> *const c_char {
    // SAFETY: as the header demands.
    unsafe { item(catalogue, kind, index, |item| item.name.as_ptr()) }
}

/// What it is, for people.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_description(
    catalogue: *const strobe_catalogue,
    kind: u32,
    index: usize,
) -> *const c_char {
    // SAFETY: as the header demands.
    unsafe { item(catalogue, kind, index, |item| item.description.as_ptr()) }
}

/// The unit of its values; empty if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_unit(
    catalogue: *const strobe_catalogue,
    kind: u32,
    index: usize,
) -> *const c_char {
    // SAFETY: as the header demands.
    unsafe { item(catalogue, kind, index, |item| item.unit.as_ptr()) }
}

/// `kernel` or `user`: the engine that has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strobe_catalogue_engine(
    catalogue: *const strobe_catalogue,
    kind: u32,
    index: usize,
) -> *const c_char {
    // SAFETY: as the header demands.
    unsafe { item(catalogue, kind, index, |item| item.engine.as_ptr()) }
}
