//! Waiting for one of many objects, by the backends of `minder` and by baselines.

mod objects;
mod bench;
mod suite;

pub use self::bench::{WaitBench, waits};
pub use self::objects::WaitObjects;
pub use self::suite::WaitSuite;
