//! The guard: after any kill, no process of the tree lives one second later; signals and exits are
//! those of one process.
//!
//! The runner, the jobs and the shell are `guard_child`. Processes are found by a word in their
//! environment, since those that matter have left their parent, group and session. Nothing is
//! killed that does not carry the word.

pub(crate) mod harness;
mod exit_status;
mod kill;
mod signals;
mod startup;
mod watchdog;
