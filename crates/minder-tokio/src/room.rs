//! Starts that wait for a free descriptor or process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use minder::{ErrorKind, Operation, Result};
use tokio::sync::Notify;
use tokio::time::timeout;

/// The longest time between two attempts. Other code may have made room meanwhile.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The number of children of this process that run for an [`output`](crate::output()) or a
/// [`status`](crate::status()). Descriptors belong to the process, whatever the number of runtimes.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// Wakes one start that waits.
static ENDED: Notify = Notify::const_new();

/// Counts a child until it has ended.
#[derive(Debug)]
pub(crate) struct Place(());

impl Place {
    fn take() -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        ENDED.notify_one();
    }
}

/// Starts a child. If descriptors, processes or memory run out, waits until a child has ended, and tries
/// again. Fails if it is so twice in a row, with a pause between, while no child runs.
pub(crate) async fn start<T>(mut start: impl FnMut() -> Result<T>) -> Result<(T, Place)> {
    let mut was_alone = false;
    loop {
        let error = match start() {
            Ok(child) => return Ok((child, Place::take())),
            Err(error) => error,
        };
        let is_alone = RUNNING.load(Ordering::Relaxed) == 0;
        // With any other operation, the child was started: it is killed by now.
        let may_retry = error.kind() == ErrorKind::Exhausted && error.operation() == Operation::Spawn;
        if !may_retry || (is_alone && was_alone) {
            return Err(error);
        }
        // An end since the attempt is reported as well: the notification is kept. One of long ago is kept,
        // too, and ends the wait at once.
        let has_paused = timeout(RETRY_PAUSE, ENDED.notified()).await.is_err();
        was_alone = is_alone && has_paused;
    }
}
