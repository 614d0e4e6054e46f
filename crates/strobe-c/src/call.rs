// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all calls have in common: pointers that come in, and errors that go out.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use strobe::error::{Error, Words};

/// Why a call failed.
pub struct Failure(Words);

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(object: &str, reason: impl Display, remedy: &str) -> Failure {
        Failure(Words::new(object, reason.to_string()).mend(remedy))
    }

    /// Of a text `object: reason; remedy`.
    pub fn text(error: impl Display) -> Failure {
        let text = error.to_string();
        let (object, reason) = text.split_once(": ").unwrap_or(("strobe", &text));
        Failure(match reason.rsplit_once("; ") {
            Some((reason, remedy)) => Words::new(object, reason).mend(remedy),
            None => Words::new(object, reason),
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.words())
    }
}

/// The last error of a thread, as C has texts.
struct Last {
    text: CString,
    object: CString,
    reason: CString,
    remedy: Option<CString>,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// A text for C. What stands after a byte 0, which no name has, is left out.
pub fn c_text(text: &str) -> CString {
    let whole = text.split('\0').next().unwrap_or_default();
    CString::new(whole).unwrap_or_default()
}

/// Does it, and keeps the error for [`strobe_error`]; then the answer is `failed`. Rust's panics end here, too.
pub fn call<T>(failed: T, work: impl FnOnce() -> Result<T>) -> T {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(
            "libstrobe",
            said(&*panic),
            "this is a fault of libstrobe: report it",
        ),
    };
    let Failure(words) = failure;
    let last = Last {
        text: c_text(&words.to_string()),
        object: c_text(&words.object),
        reason: c_text(&words.reason),
        remedy: words.remedy.as_deref().map(c_text),
    };
    // At the end of a thread nobody can be told any more.
    let _ = LAST.try_with(|place| place.replace(Some(last)));
    failed
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it has panicked".to_owned())
}

/// What a handle is of.
///
/// # Safety
/// It is NULL, or points to a `T` that lives as long as `'a` and that nobody changes meanwhile.
pub unsafe fn seen<'a, T>(handle: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| none(what))
}

/// What a handle is of, to be changed.
///
/// # Safety
/// It is NULL, or points to a `T` that lives as long as `'a` and that nobody else uses meanwhile.
pub unsafe fn held<'a, T>(handle: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_mut() }.ok_or_else(|| none(what))
}

/// Where an answer is to be written. What is there need not be a value yet: it is never looked at.
pub fn place<T>(to: *mut T, what: &str) -> Result<NonNull<T>> {
    NonNull::new(to).ok_or_else(|| none(what))
}

/// A text that C gives.
///
/// # Safety
/// It is NULL, or ends with a byte 0 and lives as long as `'a`.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(none(what));
    }
    // SAFETY: not NULL, and as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    let wrong = |_| Failure::new(what, "it is not UTF-8", "give a text in UTF-8");
    text.to_str().map_err(wrong)
}

/// A text that C gives, or does not.
///
/// # Safety
/// As of [`text`].
pub unsafe fn optional<'a>(given: *const c_char, what: &str) -> Result<Option<&'a str>> {
    match given.is_null() {
        true => Ok(None),
        // SAFETY: as the caller promises.
        false => unsafe { text(given, what) }.map(Some),
    }
}

/// Copies as many values as there is room for, and answers how many there are.
///
/// # Safety
/// There is room for `room` values at `to`, which may be NULL if that is 0.
pub unsafe fn give<T>(
    values: impl ExactSizeIterator<Item = T>,
    to: *mut T,
    room: usize,
) -> Result<isize> {
    let count = values.len();
    if to.is_null() && room > 0 {
        return Err(none("the place for values"));
    }
    for (index, value) in values.take(room).enumerate() {
        // SAFETY: the index is less than `room`.
        unsafe { to.add(index).write(value) };
    }
    // No more values than fit into memory.
    Ok(count as isize)
}

/// A handle, to be given to C.
pub fn handle<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes a handle back.
///
/// # Safety
/// It is NULL, or comes from [`handle`] and is not used any more.
pub unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: as the caller promises.
        let value = unsafe { Box::from_raw(handle) };
        call((), || {
            drop(value);
            Ok(())
        });
    }
}

fn none(what: &str) -> Failure {
    Failure::new(what, "it is NULL", "check the result of the call before")
}

fn last(part: impl FnOnce(&Last) -> Option<&CString>) -> *const c_char {
    let text = LAST.try_with(|last| {
        let last = last.borrow();
        let text = last.as_ref().and_then(part);
        text.map_or(ptr::null(), |text| text.as_ptr())
    });
    text.unwrap_or(ptr::null())
}

/// The last error of this thread in one line, `object: reason; remedy`; NULL if no call of it has failed. It is good
/// until the next call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn strobe_error() -> *const c_char {
    last(|last| Some(&last.text))
}

/// What the last error of this thread is about, such as `channel sim.sinus`.
#[unsafe(no_mangle)]
pub extern "C" fn strobe_error_object() -> *const c_char {
    last(|last| Some(&last.object))
}

/// What is wrong with it.
#[unsafe(no_mangle)]
pub extern "C" fn strobe_error_reason() -> *const c_char {
    last(|last| Some(&last.reason))
}

/// What to do about it; NULL if nothing can be done.
#[unsafe(no_mangle)]
pub extern "C" fn strobe_error_remedy() -> *const c_char {
    last(|last| last.remedy.as_ref())
}

/// The version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn strobe_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
