//! A mutex and a condition variable that ignore poisoning.
//!
//! A poisoned lock reports that a thread panicked while it held the lock. Every state behind these
//! locks is valid after each statement, so the other threads continue with it.

use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub use std::sync::MutexGuard;

/// A mutual exclusion lock, as [`std::sync::Mutex`], whose [`lock`](Self::lock) cannot fail.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Blocks until the lock is free, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the mutex if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the value; the caller owns the mutex, so no lock is needed.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable, as [`std::sync::Condvar`], for guards of a [`Mutex`].
///
/// A wait may return without a notification. The caller checks its condition in a loop.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Creates a condition variable on which no thread waits.
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Unlocks the mutex, blocks until a notification, and locks the mutex again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `condition` holds.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        // That of std ends at the first notification of a poisoned mutex.
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Waits as [`wait`](Self::wait) does, for at most `timeout`.
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        self.0.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits while `condition` holds, for at most `timeout`.
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let since = Instant::now();
        while condition(&mut guard) {
            let Some(left) = timeout.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) else {
                break;
            };
            guard = self.wait_timeout(guard, left);
        }
        guard
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn lock_succeeds_after_a_holder_panicked() {
        let mutex = Arc::new(Mutex::new(1));
        let shared = Arc::clone(&mutex);
        let thread = std::thread::spawn(move || {
            let _guard = shared.lock();
            panic!("while the lock is held");
        });
        assert!(thread.join().is_err());
        assert_eq!(*mutex.lock(), 1);
        assert_eq!(mutex.try_lock().as_deref(), Some(&1));
    }

    #[test]
    fn wait_timeout_while_ends_without_a_notification() {
        let mutex = Mutex::new(());
        let timeout = Duration::from_millis(5);
        let start = Instant::now();
        drop(Condvar::new().wait_timeout_while(mutex.lock(), timeout, |()| true));
        assert!(start.elapsed() >= timeout);
    }
}
