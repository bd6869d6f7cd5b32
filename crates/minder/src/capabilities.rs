//! The mechanisms that this machine has, those that it refuses, and its limits.

use crate::backend::Backend;
use crate::poll::Poller;
use crate::sys::capabilities;

pub use crate::sys::capabilities::{Availability, Capability};

/// Tries every mechanism that this library may use, without side effects, and reads the limits that
/// apply to it.
///
/// The areas come in this order: `waiting`, `children`, `limits`. Each wait backend is opened. The
/// other mechanisms are queried by system calls that change nothing. No child is started.
///
/// ```
/// let chosen = minder::capabilities().into_iter().find(|found| found.area == "waiting" && found.chosen);
/// let best = minder::Backend::available().next();
/// assert_eq!(chosen.map(|found| found.name), best.map(minder::Backend::name));
/// ```
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    let mut found: Vec<Capability> = Backend::available().map(state_of).collect();
    if let Some(first) = found.iter_mut().find(|found| found.state == Availability::Available) {
        first.chosen = true;
    }
    found.extend(capabilities::children());
    found.extend(capabilities::limits());
    found
}

/// Opens a wait backend and reports whether that succeeded.
fn state_of(backend: Backend) -> Capability {
    let capability = Capability::available("waiting", backend.name());
    match Poller::with_backend(backend) {
        Ok(_) => capability,
        Err(error) => capability.refused(capabilities::refusal(backend, error.io_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_come_in_order_and_names_are_unique() {
        let found = capabilities();
        let mut areas: Vec<&str> = found.iter().map(|found| found.area).collect();
        areas.dedup();
        assert_eq!(areas, ["waiting", "children", "limits"]);
        for area in areas {
            let mut names: Vec<&str> =
                found.iter().filter(|found| found.area == area).map(|found| found.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{area}: {names:?}");
        }
        assert_eq!(found.iter().filter(|found| found.area == "waiting" && found.chosen).count(), 1);
        assert!(
            found.iter().any(|found| found.area == "children"
                && found.chosen
                && found.state == Availability::Available)
        );
    }
}
