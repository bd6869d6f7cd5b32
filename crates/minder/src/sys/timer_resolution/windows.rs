//! Windows: the multimedia timer's minimum resolution, which is the process's.
//!
//! It lies in a library that brings half of the desktop along, so it is loaded when it is asked
//! for: each process of the command would start much later with it (measured under Wine).

#![expect(unsafe_code, reason = "timeBeginPeriod and timeEndPeriod")]

use std::ffi::CStr;
use std::io;

use windows_sys::Win32::Media::TIMERR_NOERROR;
use windows_sys::w;

use crate::sys::dynlib;

/// The form of both functions.
type Period = unsafe extern "system" fn(u32) -> u32;

/// Requests a tick of this many milliseconds.
pub(crate) fn begin(millis: u32) -> io::Result<()> {
    match call(c"timeBeginPeriod", millis) {
        Some(TIMERR_NOERROR) => Ok(()),
        Some(_) => Err(io::ErrorKind::InvalidInput.into()),
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Takes that back. It fails for what was not asked for, which cannot be.
pub(crate) fn end(millis: u32) {
    let _ = call(c"timeEndPeriod", millis);
}

/// None where the operating system has no such function.
fn call(name: &CStr, millis: u32) -> Option<u32> {
    let function = dynlib::load(w!("winmm.dll"), name)?;
    // SAFETY: both functions have this form (learn.microsoft.com, `timeBeginPeriod`).
    let function = unsafe { std::mem::transmute::<dynlib::DynamicFunction, Period>(function) };
    // SAFETY: a number only; what the operating system does not have it refuses.
    Some(unsafe { function(millis) })
}
