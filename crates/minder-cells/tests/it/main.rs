//! minder-cells by its public interface.

mod chains;
mod depth;
#[cfg(not(miri))] // A step visits more values than Miri does in a minute: see the unit tests of `heap.rs`.
mod incremental;
mod json;
#[cfg(not(miri))]
mod limits;
mod model;
mod print;
mod random;
mod regions;
mod roots;
