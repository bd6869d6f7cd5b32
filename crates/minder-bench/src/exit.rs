//! Observing the exit of one of many children, by sets of `minder` and by baselines.

mod set_under_test;
mod bench;
mod suite;

pub use self::bench::{ExitBench, exits, idle_command};
pub use self::suite::ExitSuite;
