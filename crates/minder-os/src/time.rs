//! Short sleeps for attempts that are repeated.

use std::time::{Duration, Instant};

/// Blocks the calling thread for `pause`, or until `deadline` if that is earlier. For pauses
/// between checks of what no event reports, such as a file lock; everything else waits for the
/// event itself.
///
/// ```
/// use std::time::{Duration, Instant};
/// let start = Instant::now();
/// minder_os::time::pause(Duration::from_secs(9), Some(start + Duration::from_millis(1)));
/// assert!(start.elapsed() < Duration::from_secs(9));
/// ```
#[expect(clippy::disallowed_methods, reason = "for what no event reports")]
pub fn pause(pause: Duration, deadline: Option<Instant>) {
    let left = deadline.map_or(pause, |deadline| deadline.saturating_duration_since(Instant::now()));
    std::thread::sleep(pause.min(left));
}
