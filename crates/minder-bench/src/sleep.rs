//! Sleeps: how late each way to sleep is, idle and while other threads compute.

mod way;
mod lateness;
mod busy_threads;
mod probe;
mod sweep;

pub use self::{
    busy_threads::BusyThreads,
    lateness::{Lateness, SleepStats},
    probe::{PROBE_SLEEP, ProbeOptions, ProbeReport},
    sweep::{SweepBench, SweepReport, TimerSetting},
    way::SleepWay,
};
