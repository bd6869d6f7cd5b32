//! Short sleeps for attempts that are repeated.

use std::time::{Duration, Instant};

/// Blocks the calling thread for `pause`, or until `deadline` if that is earlier. For pauses
/// between attempts to take a lock that no event reports; everything else waits for the event
/// itself.
///
/// ```
/// use std::time::{Duration, Instant};
/// let start = Instant::now();
/// minder_os::time::pause(Duration::from_secs(9), Some(start + Duration::from_millis(1)));
/// assert!(start.elapsed() < Duration::from_secs(9));
/// ```
#[expect(clippy::disallowed_methods, reason = "no event reports that a file lock is free")]
pub fn pause(pause: Duration, deadline: Option<Instant>) {
    let left = deadline.map_or(pause, |deadline| deadline.saturating_duration_since(Instant::now()));
    std::thread::sleep(pause.min(left));
}
