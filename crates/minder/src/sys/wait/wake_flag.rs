//! The order of steps that loses no wake-up. This part of a waker is the same on every operating
//! system; the callers supply the kernel object.
//!
//! Wake-ups are merged: several before one wait end it once. Each wake-up has a reason. Reasons are
//! merged, too.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU8, Ordering};

use super::types::{RECHECK_TOKEN, Ready, WAKE_TOKEN};

/// A caller used the waker.
pub(crate) const WOKEN: u8 = 1;
/// The bound of waits has changed: they have to compute it again.
pub(crate) const RECHECK: u8 = 2;

/// A waking thread makes the kernel object ready, or has done so. Without this bit the next wake-up
/// signals the object.
const SIGNALLED: u8 = 0x80;

/// The reasons of the wake-ups that no wait has taken yet, and [`SIGNALLED`].
#[derive(Debug)]
pub(crate) struct WakeFlag(AtomicU8);

impl WakeFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Wakes with a reason: `signal` makes the kernel object ready. If `signal` fails, the next
    /// call tries again. The reason stays set after a failure, because another thread may have
    /// added its reason meanwhile and relies on this signal.
    pub(crate) fn wake<E>(&self, reason: u8, signal: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.0.fetch_or(reason | SIGNALLED, Ordering::AcqRel) & SIGNALLED != 0 {
            return Ok(());
        }
        signal().inspect_err(|_| _ = self.0.fetch_and(!SIGNALLED, Ordering::AcqRel))
    }

    /// Resets the flag: `clear` makes the kernel object unready. Returns the reasons. Call it
    /// before reading the data that the waking threads have stored.
    pub(crate) fn reset(&self, clear: impl FnOnce()) -> u8 {
        // First clear the object, then allow new wake-ups. A wake-up between the two steps finds a
        // reason set and signals nothing. It is not lost: its thread stored its data before its own
        // step, and the caller reads the data only after the swap. The reverse order would lose a
        // wake-up: one between the two steps would signal, then its signal would be cleared while
        // its reason stays set.
        clear();
        self.0.swap(0, Ordering::AcqRel) & !SIGNALLED
    }
}

/// Appends one report for each reason.
pub(super) fn report_wakes(reasons: u8, ready: &mut Vec<Ready>) {
    for (reason, token) in [(WOKEN, WAKE_TOKEN), (RECHECK, RECHECK_TOKEN)] {
        if reasons & reason != 0 {
            ready.push(Ready { readable: true, ..Ready::none(token) });
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// An eventfd: readable while it is not zero.
    struct Object(AtomicUsize);

    impl Object {
        fn signal(&self) -> Result<(), ()> {
            self.0.fetch_add(1, Ordering::AcqRel);
            Ok(())
        }
    }

    /// Two threads store a value each and wake. One waiter resets the flag whenever the object is
    /// ready, and reads the values. In every interleaving it has seen both values when both threads
    /// have finished and the object is clear.
    #[test]
    fn concurrent_wakes_are_never_lost() {
        loom::model(|| {
            let flag = Arc::new(WakeFlag::new());
            let object = Arc::new(Object(AtomicUsize::new(0)));
            let stored: Arc<[AtomicBool; 2]> = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
            let threads: Vec<_> = [WOKEN, RECHECK]
                .into_iter()
                .enumerate()
                .map(|(at, reason)| {
                    let flag = Arc::clone(&flag);
                    let object = Arc::clone(&object);
                    let stored = Arc::clone(&stored);
                    loom::thread::spawn(move || {
                        stored[at].store(true, Ordering::Relaxed);
                        flag.wake(reason, || object.signal()).expect("signal the object");
                    })
                })
                .collect();
            let mut reasons = 0;
            let mut seen = [false; 2];
            let mut wait = || {
                if object.0.load(Ordering::Acquire) == 0 {
                    return false;
                }
                reasons |= flag.reset(|| object.0.store(0, Ordering::Release));
                for (seen, stored) in seen.iter_mut().zip(stored.iter()) {
                    *seen |= stored.load(Ordering::Relaxed);
                }
                true
            };
            // Two waits meet the waking threads at any point.
            wait();
            wait();
            for thread in threads {
                thread.join().expect("join a waking thread");
            }
            while wait() {}
            assert_eq!((reasons, seen), (WOKEN | RECHECK, [true; 2]));
        });
    }

    /// Two threads wake, and the signal of the first fails once. It wakes again. Then both reasons
    /// are reported, and the value of the other thread is visible.
    #[test]
    fn failed_signal_keeps_reason_of_other_thread() {
        loom::model(|| {
            let flag = Arc::new(WakeFlag::new());
            let object = Arc::new(Object(AtomicUsize::new(0)));
            let stored = Arc::new(AtomicBool::new(false));
            let thread = {
                let flag = Arc::clone(&flag);
                let object = Arc::clone(&object);
                let stored = Arc::clone(&stored);
                loom::thread::spawn(move || {
                    stored.store(true, Ordering::Relaxed);
                    flag.wake(RECHECK, || object.signal()).expect("signal the object");
                })
            };
            if flag.wake(WOKEN, || Err(())).is_err() {
                flag.wake(WOKEN, || object.signal()).expect("signal the object again");
            }
            let mut reasons = 0;
            let mut wait = || {
                let ready = object.0.load(Ordering::Acquire) != 0;
                if ready {
                    reasons |= flag.reset(|| object.0.store(0, Ordering::Release));
                }
                ready
            };
            wait();
            thread.join().expect("join the waking thread");
            while wait() {}
            assert_eq!(reasons, WOKEN | RECHECK);
            assert!(stored.load(Ordering::Relaxed));
        });
    }

    /// A wake-up whose signal failed does not count as signalled.
    #[test]
    fn wake_signals_again_after_failed_signal() {
        loom::model(|| {
            let flag = WakeFlag::new();
            flag.wake(WOKEN, || Err(())).expect_err("return the error of the signal");
            let mut signalled = false;
            flag.wake(WOKEN, || {
                signalled = true;
                Ok::<(), ()>(())
            })
            .expect("signal the object again");
            assert!(signalled && flag.reset(|| ()) == WOKEN);
        });
    }
}
