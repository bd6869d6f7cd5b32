//! Derives from a run how to run it again: serially or concurrently, in which order, how many jobs
//! at once.
//!
//! The code is pure: it gets what was recorded, and returns numbers. `commands::advise` reads the
//! record and prints the result.
//!
//! The model of a job: it computes for its CPU time, and waits for the rest of its wall time,
//! except for the time in which it was ready to run and other processes had the processors. The
//! model of a machine: its processors are shared equally by all threads that compute
//! ([`simulation`]). A job that waits costs nothing, so jobs that wait for the same disk or server
//! are predicted too fast.

mod simulation;
mod facts;
mod advice;

pub(crate) use self::{
    advice::{Advice, Doubt, Limit, Order, Prediction, advise},
    facts::RunFacts,
};
