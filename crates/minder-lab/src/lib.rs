//! The laboratory of the command `minder`: `minder bench` measures mechanisms, and `minder clock` what clocks
//! and sleeps do. The crate `minder-bench` measures; this one has the flags and what people see.

pub mod chart;
mod flags;
mod measuring;
mod bench;
mod clock;
mod redraw;

pub use self::{
    bench::run as bench,
    clock::run as clock,
    flags::{BenchFlags, ClockFlags},
    redraw::redraw,
};
