//! Admission: decides whether the next job may start, and whether running jobs have to be killed or
//! suspended, by how busy the machine is.
//!
//! A run uses it in these steps:
//!
//! 1. [`jobserver::find`], before anything else is opened and before the guard is installed: a
//!    surrounding build may have left descriptors open in this process, and their numbers must not
//!    be reused. [`jobserver::job_environment`] then returns the variables that jobs need so that
//!    they do not rely on descriptors that they do not inherit.
//! 2. [`AdmissionPolicy::new`] with the [`Conditions`](crate::conditions::Conditions) of the run. A
//!    condition that this machine cannot measure, or can never meet, is an error here, before any
//!    job starts.
//! 3. [`AdmissionMonitor::start`] with a [`JobControl`](monitor::JobControl) for the pool, once
//!    threads may run. Its thread evaluates the policy once a second, and sooner when a start waits
//!    for a decision that is made for each start. [`JobserverClient::start`] starts the jobserver's
//!    thread.
//! 4. Right before each start, [`AdmissionController::admit`]. After `None`, the job is put back,
//!    and the worker thread waits to be woken. A [`JobPermit`] is kept while the job runs.
//! 5. Dropping the controller stops both threads. Tokens are released with their permits.
//!    [`JobserverClient::release_tokens`] is for an exit that drops nothing (`process::exit`). Only a
//!    SIGKILL of the runner loses tokens: no other process knows which ones it held.
//!
//! The conditions:
//!
//! - `--load N`: no job starts while N processes or more run. Otherwise at most as many jobs start
//!   in a second as are missing to N.
//! - `--memfree S`: no job starts while less than S is free. Below S/2 the youngest job is killed
//!   and requeued, except for the only one.
//! - `--memsuspend S`: while less than 2 S is free, no job starts while another runs, and jobs are
//!   suspended, youngest first: one a second, and below S all but one.
//! - `--noswap`: no job starts while pages are swapped in and out.
//! - `--limit COMMAND`: a job starts only if the command exits with 0. It is run before each start;
//!   exit status 2 kills the youngest job.
//! - `--limit 'io N'`: no job starts while a disk is busy for N % of the time. Otherwise at most
//!   one more job starts in a second.
//!
//! Load, swapping and disks also depend on other programs. When they have kept all jobs from
//! running for [`PATIENCE`](policy::PATIENCE), one job starts anyway. Memory and `--limit` are
//! waited for without end: their user wants no job to start before they allow it.
//!
//! While jobs may start, a finished job is replaced at once, so that short jobs are not limited to
//! one evaluation's starts per second. Only growth is limited.

pub(crate) mod jobserver;
mod metrics;
mod policy;
mod monitor;
pub(crate) mod setup;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    jobserver::{JobPermit, JobserverClient},
    monitor::{AdmissionController, AdmissionMonitor},
    policy::{AdmissionPolicy, Decision, Jobs, PERIOD, Quota},
};
