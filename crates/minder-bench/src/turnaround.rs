//! Serial or concurrent: how long computations take together, and how long each waits for its turn.
//!
//! This is a published test suite, THRDPERF, which compares the serial and the concurrent form of the same
//! computations (Asche, "Multithreading Performance", MSDN, 1996), with a clock in place of its loop
//! counts, more mechanisms, and several processors.

mod measurement;
mod computation;
mod form;
mod case;
mod model;
mod plan;
mod bench;

pub use self::{
    bench::TurnaroundBench,
    case::{Lengths, TurnaroundCase, Workload},
    computation::{Calibration, compute},
    form::{Form, Order, Runner},
    measurement::TurnaroundMeasurement,
    model::{Prediction, predict},
    plan::{EmptyPlan, Plan, PlanOptions, PlannedRun},
};
