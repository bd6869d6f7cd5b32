//! The control group of this process (cgroups(7)), and what the process may do there.

use minder_os::cgroup::Place;
use rustix::fs::{Access, AtFlags, accessat};

use super::types::Capability;

/// Returns the limit of processes of our group, if there is one.
pub(super) fn processes_max() -> Option<u64> {
    Place::find().ok()??.own.read("pids.max").ok()?.trim().parse().ok()
}

/// Returns whether this process may make cgroups, for the limits of its children.
pub(super) fn delegated() -> Capability {
    let mechanism = Capability::available("children", "cgroup");
    let Ok(Some(Place { own, .. })) = Place::find() else {
        return mechanism.absent("version 2 is not mounted");
    };
    let is_writable = |path| accessat(own.dir(), path, Access::WRITE_OK, AtFlags::empty()).is_ok();
    if !is_writable(".") || !is_writable("cgroup.procs") {
        return mechanism.refused("not delegated");
    }
    let controllers = own.read("cgroup.controllers").unwrap_or_default();
    let has_memory = controllers.split_ascii_whitespace().any(|name| name == "memory");
    if has_memory { mechanism } else { mechanism.note("without the controller of memory") }
}
