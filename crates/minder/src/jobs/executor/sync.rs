//! The locks of the executor. A model of its threads puts loom's in their place.

#[cfg(not(loom))]
pub(super) use {
    minder_os::sync::{Condvar, Mutex, MutexGuard},
    std::sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

#[cfg(loom)]
pub(super) use {
    self::model::{Condvar, Mutex, MutexGuard},
    loom::sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

#[cfg(loom)]
mod model {
    use std::time::Duration;

    pub(in super::super) use loom::sync::MutexGuard;

    #[derive(Debug)]
    pub(in super::super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no thread of a model panics with the lock")
        }

        pub(in super::super) fn into_inner(self) -> T {
            self.0.into_inner().expect("no thread of a model panics with the lock")
        }
    }

    #[derive(Debug)]
    pub(in super::super) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(in super::super) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(in super::super) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(in super::super) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(in super::super) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).expect("no thread of a model panics with the lock")
        }

        /// Waits for a notification: time does not pass in a model.
        pub(in super::super) fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _timeout: Duration,
        ) -> MutexGuard<'a, T> {
            self.wait(guard)
        }
    }
}
