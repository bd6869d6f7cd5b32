//! What a thread of ours must be to a host: a place where none of its signals arrive.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::without_signals;
#[cfg(windows)]
pub(crate) use self::windows::without_signals;

/// Names the calling thread, as long as it lives; never 0.
pub(crate) fn here() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
