//! Windows: requests of a faster tick, in whole milliseconds or in units of 100 ns.
//!
//! `timeBeginPeriod` counts its requests, but takes whole milliseconds only. The fastest tick, 0.5 ms on
//! most machines, needs `NtSetTimerResolution`. That call counts nothing: a process has one request,
//! which the last call replaces, and so does winmm, which uses the same call. The requests of this
//! library are therefore counted here. When one of them ends, the shortest of the others is requested
//! again. Requests that other code of the process makes by `timeBeginPeriod` may be lost when the last
//! request below 1 ms ends; neither Wine nor the documentation can show it.
//!
//! `timeBeginPeriod` lies in a library that brings half of the desktop along, so it is loaded when it is
//! asked for: each process of the command would start much later with it (measured under Wine).

#![expect(unsafe_code, reason = "timeBeginPeriod, NtQueryTimerResolution and NtSetTimerResolution")]

use std::ffi::CStr;
use std::io;
use std::time::Duration;

use minder_os::sync::Mutex;
use windows_sys::Win32::Media::TIMERR_NOERROR;
use windows_sys::w;

use crate::sys::dynlib;

/// The form of `timeBeginPeriod` and `timeEndPeriod`.
type Period = unsafe extern "system" fn(u32) -> u32;
/// The form of `NtQueryTimerResolution`: longest, shortest, current.
type Query = unsafe extern "system" fn(*mut u32, *mut u32, *mut u32) -> i32;
/// The form of `NtSetTimerResolution`: the period, whether it is wanted, the period that is set.
type Set = unsafe extern "system" fn(u32, u8, *mut u32) -> i32;

/// The units of 100 ns in a millisecond.
const UNITS: u32 = 10_000;

/// The requests of this process that exist.
static REQUESTS: Mutex<Vec<Request>> = Mutex::new(Vec::new());

/// A request of a faster tick. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TickRequest(Request);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Request {
    /// The period in units of 100 ns.
    units: u32,
    /// `true` if it was made by `timeBeginPeriod`.
    by_winmm: bool,
}

impl TickRequest {
    /// Requests a tick: in whole milliseconds, rounded down, or the fastest one for less than one.
    ///
    /// # Errors
    /// - `InvalidInput`: there is no such tick.
    /// - `Unsupported`: this system lacks the functions.
    pub(crate) fn new(period: Duration) -> io::Result<Self> {
        let mut requests = REQUESTS.lock();
        let millis = u32::try_from(period.as_millis()).unwrap_or(u32::MAX);
        let request = if millis > 0 {
            winmm(c"timeBeginPeriod", millis)?;
            Request { units: millis.saturating_mul(UNITS), by_winmm: true }
        } else {
            let wanted = u32::try_from(period.as_nanos().div_ceil(100)).unwrap_or(UNITS);
            let shortest = query().map_or(UNITS, |[_, shortest, _]| units_of(shortest));
            let units = wanted.max(shortest).max(1);
            set(units, true)?;
            Request { units, by_winmm: false }
        };
        requests.push(request);
        Ok(Self(request))
    }

    /// Returns the period that was requested.
    pub(crate) fn period(&self) -> Duration {
        duration(self.0.units)
    }
}

impl Drop for TickRequest {
    fn drop(&mut self) {
        let mut requests = REQUESTS.lock();
        if let Some(at) = requests.iter().position(|request| *request == self.0) {
            requests.swap_remove(at);
        }
        // What was requested is known to the system, so neither call can fail.
        if self.0.by_winmm {
            let _ = winmm(c"timeEndPeriod", self.0.units / UNITS);
        } else if requests.is_empty() {
            let _ = set(self.0.units, false);
        }
        // The request of the process may have ended or changed. That of the shortest period applies.
        if !(self.0.by_winmm && requests.iter().all(|request| request.by_winmm))
            && let Some(shortest) = requests.iter().map(|request| request.units).min()
        {
            let _ = set(shortest, true);
        }
    }
}

/// Returns the longest, the shortest and the current period of the tick.
pub(crate) fn query() -> Option<[Duration; 3]> {
    let function = dynlib::find(dynlib::NTDLL, c"NtQueryTimerResolution")?;
    // SAFETY: the function has this form (`ntexapi.h` of System Informer;
    // Microsoft does not document it).
    let function = unsafe { std::mem::transmute::<dynlib::DynamicFunction, Query>(function) };
    let [mut longest, mut shortest, mut current] = [0; 3];
    // SAFETY: the call fills in three numbers.
    let status = unsafe { function(&mut longest, &mut shortest, &mut current) };
    (status >= 0).then(|| [longest, shortest, current].map(duration))
}

/// Sets or ends the request of the process.
fn set(units: u32, wanted: bool) -> io::Result<()> {
    let function = dynlib::find(dynlib::NTDLL, c"NtSetTimerResolution").ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: the function has this form (it is not documented; timerQuerySet of ReactOS and Wine agree).
    let function = unsafe { std::mem::transmute::<dynlib::DynamicFunction, Set>(function) };
    let mut current = 0;
    // SAFETY: two numbers, and memory for a third.
    let status = unsafe { function(units, wanted.into(), &mut current) };
    if status >= 0 { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Calls one of the functions of winmm.
fn winmm(name: &CStr, millis: u32) -> io::Result<()> {
    let function = dynlib::load(w!("winmm.dll"), name).ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: both functions have this form (learn.microsoft.com, `timeBeginPeriod`).
    let function = unsafe { std::mem::transmute::<dynlib::DynamicFunction, Period>(function) };
    // SAFETY: a number only; what the operating system does not have it refuses.
    match unsafe { function(millis) } {
        TIMERR_NOERROR => Ok(()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn units_of(period: Duration) -> u32 {
    u32::try_from(period.as_nanos() / 100).unwrap_or(u32::MAX)
}

fn duration(units: u32) -> Duration {
    Duration::from_nanos(u64::from(units) * 100)
}
