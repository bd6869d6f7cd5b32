//! Threads on Windows: there are no signals to keep away.

/// Starts a thread: console events run on one of their own.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}
