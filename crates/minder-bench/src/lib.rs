//! Benchmarks of process mechanisms and of published baselines; the measuring part of
//! `minder bench`.
//!
//! Four subjects, each with a type that applies one mechanism and a [`Suite`] that measures it at
//! many sizes:
//!
//! | subject | mechanisms | one mechanism | suite |
//! | --- | --- | --- | --- |
//! | a wait for one of many objects | [`waits`] | [`WaitBench`] | [`WaitSuite`] |
//! | the exit of one of many children | [`exits`] | [`ExitBench`] | [`ExitSuite`] |
//! | a start of a child | [`spawns`] | [`SpawnBench`] | [`SpawnSuite`] |
//! | marking, sweeping and allocating cells | [`cell_heaps`] | [`CellBench`] | [`CellSuite`] |
//!
//! [`run_rounds`] measures every [`Case`] of a suite once in each round and collects [`Results`].
//!
//! A fifth subject is not an operation but a question: are computations to run serially or
//! concurrently? A [`Plan`] has the runs, and [`TurnaroundBench`] measures each.
//!
//! A sixth subject is how late sleeps are: a [`SleepWay`] measures some, and [`Lateness`] has their
//! percentiles. A [`SweepBench`] shows what a setting of one process does for others.
//!
//! The baselines change process state, as their users do: some block `SIGCHLD` or reap every child
//! of the process. Programs that start children use [`minder::ChildSet`], and programs that wait
//! for anything else use [`minder::poll::Poller`].
//!
//! ```
//! use minder_bench::{Case, NoObserver, Results, WaitSuite, run_rounds};
//!
//! let cases = Case::grid(&[2, 64], &["pool"]);
//! let mut results = Results::new(&cases);
//! run_rounds(&mut WaitSuite::new(1024), &mut results, 1, &mut NoObserver)?;
//! let median = results.median(0, |measurement| measurement.cpu_ns);
//! println!("one wait among 2 objects: {:?} ns of CPU time", median);
//! # assert!(median.is_some());
//! # Ok::<(), minder_bench::Error>(())
//! ```

mod median;
mod spread;
mod random;
mod sys;
mod error;
mod free_memory;
mod stopwatch;
mod case;
mod results;
mod rounds;
mod exit;
mod spawn;
mod cells;
mod turnaround;
mod wait;
mod sleep;

pub use crate::{
    case::{Case, Measurement},
    cells::{CellBench, CellPhase, CellSuite, OWN_BLOCK_KIB, cell_heaps},
    error::{Error, Result},
    exit::{ExitBench, ExitSuite, exits, idle_command},
    median::median,
    results::{Results, Unmeasured},
    rounds::{NoObserver, Observer, Suite, run_rounds},
    sleep::{
        BusyThreads, Lateness, PROBE_SLEEP, ProbeOptions, ProbeReport, SleepStats, SleepWay, SweepBench,
        SweepReport, TimerSetting,
    },
    spawn::{Ballast, SpawnBench, SpawnSuite, short_command, spawns},
    spread::Spread,
    stopwatch::{CpuAndWall, Stopwatch, is_wine},
    turnaround::{
        Calibration, EmptyPlan, Form, Lengths, Order, Plan, PlanOptions, PlannedRun, Prediction, Runner,
        TurnaroundBench, TurnaroundCase, TurnaroundMeasurement, Workload, compute, predict,
    },
    wait::{WaitBench, WaitObjects, WaitSuite, waits},
};
