//! Starting a child from a parent of a given size, by `minder` and by baselines.

mod ballast;
mod bench;
mod suite;

pub use self::ballast::Ballast;
pub use self::bench::{SpawnBench, short_command, spawns};
pub use self::suite::SpawnSuite;
