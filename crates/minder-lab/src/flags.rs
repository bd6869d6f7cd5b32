//! The flags of both commands. A flag is a field, and its doc comment is its help text.

mod file_name;
mod output;
mod sizes;
mod turnaround;
mod bench;
mod clock;

pub use self::{bench::BenchFlags, clock::ClockFlags};
pub(crate) use self::{
    bench::{Bench, CellSweepFlags, ChildLine, ComputeFlags, ExitFlags, MeasureFlags, SpawnFlags, WaitFlags},
    clock::{Clock, SleepFlags, SweepFlags, WatchFlags},
    output::OutputFlags,
    sizes::Sizes,
    turnaround::TurnaroundFlags,
};
