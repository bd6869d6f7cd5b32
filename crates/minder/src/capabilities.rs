//! Which mechanisms this machine has, which it refuses, and how far its limits reach.

use crate::poller::{Poller, backends};
use crate::sys::capabilities;

pub use crate::sys::capabilities::{Availability, Capability};

/// Tries every mechanism that this library may use, without a side effect, and reads the limits
/// that bound it.
///
/// The areas come in this order: `waiting`, `children`, `limits`. A wait backend is opened for
/// real; of the rest the system is asked in a way that changes nothing. No child is started.
///
/// ```
/// let chosen = minder::mechanisms().into_iter().find(|it| it.area == "waiting" && it.chosen);
/// assert_eq!(chosen.map(|it| it.name), minder::backends().next());
/// ```
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    let mut found: Vec<Capability> = backends().map(backend).collect();
    if let Some(first) = found.iter_mut().find(|it| it.state == Availability::Available) {
        first.chosen = true;
    }
    found.extend(capabilities::children());
    found.extend(capabilities::limits());
    found
}

fn backend(name: &'static str) -> Capability {
    let mechanism = Capability::there("waiting", name).note(capabilities::remark(name));
    match Poller::with_backend(name) {
        Ok(_) => mechanism,
        Err(error) => mechanism.refused(capabilities::refusal(name, error.io_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_come_in_order_and_names_once() {
        let found = capabilities();
        let mut areas: Vec<&str> = found.iter().map(|it| it.area).collect();
        areas.dedup();
        assert_eq!(areas, ["waiting", "children", "limits"]);
        for area in areas {
            let mut names: Vec<&str> = found.iter().filter(|it| it.area == area).map(|it| it.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{area}: {names:?}");
        }
        assert_eq!(found.iter().filter(|it| it.area == "waiting" && it.chosen).count(), 1);
        assert!(
            found.iter().any(|it| it.area == "children" && it.chosen && it.state == Availability::Available)
        );
    }
}
