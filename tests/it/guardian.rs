//! The guardian of a host that may not fork: after any end of the host, no guarded child lives one
//! second later; what the guardian does not guard lives on.
//!
//! The host is `guardian_host`, the children are jobs of `guard_child`. Processes are found by a word in
//! their environment, as in the tests of the guard.

mod api;
mod host;
mod startup;
