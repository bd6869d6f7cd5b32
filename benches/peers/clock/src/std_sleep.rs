//! The sleep of the standard library, which is an opponent.

use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "it is measured")]
pub(crate) fn std_sleep(time: Duration) {
    std::thread::sleep(time);
}
