//! Errors of a shared directory that may pass: it is full or read-only for a while, or its server restarts.

use std::io;
use std::time::{Duration, Instant};

use minder_os::time::pause;

/// An error that lasts this long ends what meets it.
pub(crate) const ERROR_MAX: Duration = Duration::from_secs(30);
/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Writes, and tries again as [`retry`] does, unless each step waits for the disk: if that fails, it is not
/// known what is written, and nothing must be written twice.
///
/// # Errors
/// The last one.
pub(crate) fn retry_unless_synced<T>(syncs: bool, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    if syncs { write() } else { retry(write) }
}

/// Tries something again as long as it fails, for at most [`ERROR_MAX`].
///
/// # Errors
/// The last one.
pub(crate) fn retry<T>(mut tried: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let begun = Instant::now();
    loop {
        match tried() {
            Err(error) if error.kind() != io::ErrorKind::InvalidData && begun.elapsed() < ERROR_MAX => {
                pause(PAUSE, None);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_that_passes_is_not_returned_and_damage_is_returned_at_once() {
        let mut tries = 0;
        let done = retry(|| {
            tries += 1;
            if tries < 3 { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(tries) }
        });
        assert_eq!(done.expect("the third try"), 3);
        let begun = Instant::now();
        let failed: io::Result<()> = retry(|| Err(io::ErrorKind::InvalidData.into()));
        assert!(failed.is_err() && begun.elapsed() < PAUSE);
    }
}
