//! What all Unix systems say in the same way: resource limits, the controlling terminal.

use rustix::process::{Resource, getrlimit};

use super::types::{Capability, grouped, limit};

/// Descriptors that a program needs for itself: its streams, wait backend, journal, and a few to
/// spare.
const RESERVE: u64 = 32;
/// Limits beyond this are none.
const SENSIBLE_MAX: u64 = 1 << 20;

/// How many descriptors, and how many children that is. A child takes a pidfd and a pipe for each
/// output.
pub(super) fn descriptors(each: u64) -> Capability {
    let both = getrlimit(Resource::Nofile);
    let hard = both.maximum.unwrap_or(SENSIBLE_MAX).min(SENSIBLE_MAX);
    let soft = both.current.unwrap_or(hard).min(hard);
    let raised = if soft < hard { format!(" (soft {}, raised)", grouped(soft)) } else { String::new() };
    let kids = |each: u64| grouped(rounded(hard.saturating_sub(RESERVE) / each.max(1)));
    let text = format!(
        "{} descriptors{raised} → about {} children with two captured outputs, {} with one",
        grouped(hard),
        kids(each),
        kids(each - 1)
    );
    limit("descriptors", Some(hard), text)
}

/// Two leading digits: more would be a promise.
fn rounded(number: u64) -> u64 {
    let unit = 10u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number / unit * unit
}

/// The user's limit of processes, if there is one.
pub(super) fn user_processes() -> Option<u64> {
    getrlimit(Resource::Nproc).current
}

pub(super) fn terminal() -> Capability {
    let mechanism = Capability::there("children", "terminal");
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
