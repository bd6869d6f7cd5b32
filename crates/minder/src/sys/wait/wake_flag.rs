//! The order of steps that loses no ring: what a waker is on every system, less what makes it
//! heard.
//!
//! Rings are merged: many before one wait end it once. A ring has a reason, and reasons are merged,
//! too.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU8, Ordering};

use super::types::{RECHECK_TOKEN, Ready, WAKE_TOKEN};

/// Somebody used a waker.
pub(crate) const WOKEN: u8 = 1;
/// Something changed that bounds waits: they have to look at it again.
pub(crate) const RECHECK: u8 = 2;

/// A ringer makes the system's object ready, or has done so. Without this bit the next ring does
/// it.
const SIGNALLED: u8 = 0x80;

/// The reasons for which it was rung and not heard yet, and [`SIGNALLED`].
#[derive(Debug)]
pub(crate) struct WakeFlag(AtomicU8);

impl WakeFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Rings: `signal` makes the system's object ready. If that fails, the next ring tries again.
    /// The reasons stay: another ringer may have added its reason meanwhile, and relies on this
    /// ring.
    pub(crate) fn wake<E>(&self, reason: u8, signal: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.0.fetch_or(reason | SIGNALLED, Ordering::AcqRel) & SIGNALLED != 0 {
            return Ok(());
        }
        signal().inspect_err(|_| _ = self.0.fetch_and(!SIGNALLED, Ordering::AcqRel))
    }

    /// Makes it silent: `clear` makes the system's object unready. Returns the reasons. Call it
    /// before looking at what the ringers left.
    pub(crate) fn reset(&self, clear: impl FnOnce()) -> u8 {
        // 1. Empty the object. 2. Allow new rings. A ring between the two finds a reason set and signals
        //    nothing; but what
        // it announces was stored before its own step, and the caller looks only after ours: nothing is
        // lost. The other order would lose one: a ring between them would signal, and be emptied
        // away while its reason stays.
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

    /// Two ringers store something each and ring; one waiter hushes whenever the object is ready,
    /// and looks. In every interleaving it has seen both when nobody rings any more and the
    /// object is silent.
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
                    let (flag, object, stored) =
                        (Arc::clone(&flag), Arc::clone(&object), Arc::clone(&stored));
                    loom::thread::spawn(move || {
                        stored[at].store(true, Ordering::Relaxed);
                        flag.wake(reason, || object.signal()).expect("it never fails");
                    })
                })
                .collect();
            let (mut reasons, mut seen) = (0, [false; 2]);
            let mut wait = || {
                if object.0.load(Ordering::Acquire) == 0 {
                    return false;
                }
                reasons |= flag.clear(|| object.0.store(0, Ordering::Release));
                for (seen, stored) in seen.iter_mut().zip(stored.iter()) {
                    *seen |= stored.load(Ordering::Relaxed);
                }
                true
            };
            // Two waits meet the ringers at any point.
            wait();
            wait();
            threads.into_iter().for_each(|thread| thread.join().expect("a ringer"));
            while wait() {}
            assert_eq!((reasons, seen), (WOKEN | RECHECK, [true; 2]));
        });
    }

    /// Two ringers, and the signal of the first fails once. It rings again; then both reasons are
    /// heard, and what both ringers stored is seen.
    #[test]
    fn failed_signal_keeps_reason_of_other_thread() {
        loom::model(|| {
            let flag = Arc::new(WakeFlag::new());
            let object = Arc::new(Object(AtomicUsize::new(0)));
            let stored = Arc::new(AtomicBool::new(false));
            let thread = {
                let (flag, object, stored) = (Arc::clone(&flag), Arc::clone(&object), Arc::clone(&stored));
                loom::thread::spawn(move || {
                    stored.store(true, Ordering::Relaxed);
                    flag.wake(RECHECK, || object.signal()).expect("it never fails");
                })
            };
            if flag.wake(WOKEN, || Err(())).is_err() {
                flag.wake(WOKEN, || object.signal()).expect("it fails once");
            }
            let mut reasons = 0;
            let mut wait = || {
                let ready = object.0.load(Ordering::Acquire) != 0;
                if ready {
                    reasons |= flag.clear(|| object.0.store(0, Ordering::Release));
                }
                ready
            };
            wait();
            thread.join().expect("a ringer");
            while wait() {}
            assert_eq!(reasons, WOKEN | RECHECK);
            assert!(stored.load(Ordering::Relaxed));
        });
    }

    /// A ring that could not be signalled is not taken for one that was.
    #[test]
    fn wake_signals_again_after_failed_signal() {
        loom::model(|| {
            let flag = WakeFlag::new();
            flag.wake(WOKEN, || Err(())).expect_err("it fails");
            let mut signalled = false;
            flag.wake(WOKEN, || {
                signalled = true;
                Ok::<(), ()>(())
            })
            .expect("it rings");
            assert!(signalled && flag.clear(|| ()) == WOKEN);
        });
    }
}
