//! Probes that are the same on all Unix systems: resource limits, the controlling terminal.

use minder_os::grouped;
use rustix::process::{Resource, getrlimit};

use super::types::{Capability, limit};

/// Descriptors that a program needs for itself: its streams, wait backend, journal, and a few to
/// spare.
const RESERVE: u64 = 32;
/// A greater limit counts as this one.
const SENSIBLE_MAX: u64 = 1 << 20;

/// Returns the limit of descriptors, and the number of children that it allows. A child with
/// two captured outputs takes `each` descriptors: two pipes, and a pidfd where there is one.
pub(super) fn descriptors(each: u64) -> Capability {
    let both = getrlimit(Resource::Nofile);
    let hard = both.maximum.unwrap_or(SENSIBLE_MAX).min(SENSIBLE_MAX);
    let soft = both.current.unwrap_or(hard).min(hard);
    let raised = if soft < hard { format!(" (soft {}, raised)", grouped(soft)) } else { String::new() };
    let children = |each: u64| grouped(rounded(hard.saturating_sub(RESERVE) / each.max(1)));
    let text = format!(
        "{} descriptors{raised} → about {} children with two captured outputs, {} with one",
        grouped(hard),
        children(each),
        children(each - 1)
    );
    limit("descriptors", Some(hard), text)
}

/// Rounds down to two leading digits: the number is an estimate.
fn rounded(number: u64) -> u64 {
    let unit = 10u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number / unit * unit
}

/// Returns the user's limit of processes, if there is one.
pub(super) fn user_processes() -> Option<u64> {
    getrlimit(Resource::Nproc).current
}

pub(super) fn terminal() -> Capability {
    let mechanism = Capability::available("children", "terminal");
    match std::fs::File::open("/dev/tty") {
        Ok(_) => mechanism,
        Err(_) => mechanism.absent("no controlling terminal"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn estimates_have_two_digits() {
        assert_eq!([0, 7, 64, 341, 6656].map(super::rounded), [0, 7, 64, 340, 6600]);
    }
}
