//! Gates: what may hold back the next start, and what may end or suspend a job, by how busy the
//! machine is.
//!
//! How a run uses them:
//!
//! 1. [`jobserver::find`] before anything else is opened and before the guard is entered: the build
//!    that we are a part of may have left us descriptors, and their numbers must not be taken by
//!    others. [`jobserver::job_environment`] says what the jobs' environment must not promise.
//! 2. [`AdmissionPolicy::new`] with the [`Conditions`] of the plan: what this machine cannot tell,
//!    or can never fulfil, is an error here, before any job.
//! 3. [`AdmissionMonitor::start`] with a [`JobControl`] over the crew, when threads may run. Its
//!    thread looks once a second, and sooner when a start waits for an answer that is asked for
//!    each start. [`JobserverClient::start`] likewise, with what was found.
//! 4. Right before each start, [`AdmissionController::admit`]. `None`: put the job back, and wait
//!    to be woken. A [`JobPermit`] is kept as long as the job runs, and dropped at its end.
//! 5. Dropped, both stop; tokens go back with their permits. [`JobserverClient::give_back`] is for
//!    an end that drops nothing (`process::exit`). Only SIGKILL of the runner loses tokens: nobody
//!    else knows of them.
//!
//! What holds a start back, and what does not:
//!
//! | asked for | nothing starts | besides |
//! | --- | --- | --- |
//! | `--load N` | while N processes or more run | at most as many more jobs a second as are missing to N |
//! | `--memfree S` | while less than S is free | below S/2 the youngest job is killed, to run again later; never the only one |
//! | `--memsuspend S` | while less than 2 S is free and a job runs | jobs are suspended, youngest first: one a second, below S all but one |
//! | `--noswap` | while pages are swapped in and out | |
//! | `--limit COMMAND` | unless it exits with 0 | asked before each start; exit 2 kills the youngest job |
//! | `--limit 'io N'` | while a disk is busy for N % of the time | at most one job more a second |
//!
//! Load, swapping and disks are not ours alone: when no job of ours has run for [`PATIENCE`]
//! because of them, one may start. Memory and `--limit` are waited for without end: who asks for
//! them wants nothing started before they allow it.
//!
//! Jobs that end are replaced without a wait while the gate is open, so that short jobs are not
//! slowed down to one look's worth a second; only growth is bounded.

pub(crate) mod jobserver;
mod metrics;
mod monitor;
mod policy;
pub(crate) mod setup;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    jobserver::{JobPermit, JobserverClient},
    monitor::{AdmissionController, AdmissionMonitor},
    policy::{AdmissionPolicy, Decision, Jobs, PERIOD, Quota},
};
