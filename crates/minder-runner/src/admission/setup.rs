//! Builds the admission control of a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use minder::jobs::JobPool;

use super::jobserver::{JobserverClient, JobserverLookup};
use super::metrics::HostMetrics;
use super::monitor::{AdmissionController, AdmissionMonitor, JobControl};
use super::policy::{AdmissionPolicy, Jobs};
use crate::config::{Control, RunConfig, Timeout};
use crate::job_environment::JobEnvironment;
use crate::job_table::{JobRequest, JobTable};
use crate::notice::Notice;
use crate::observer::Observer;
use crate::queue::Task;

/// Returns `true` if requests or time-outs need the table of running jobs.
pub(crate) fn needs_job_table(control: &Control) -> bool {
    control.conditions.any() || matches!(control.timeout, Some(Timeout::Median(_)))
}

/// Builds the admission controller.
pub(crate) fn admission(
    config: &RunConfig,
    environment: &JobEnvironment,
    jobserver: JobserverLookup,
    pool: &Arc<JobPool<Task>>,
    job_table: &Arc<JobTable>,
    observer: &Arc<dyn Observer>,
) -> Result<AdmissionController> {
    let mut admission = AdmissionController::default();
    if config.control.conditions.any() {
        let stopped = Arc::new(AtomicBool::new(false));
        let descriptors = environment.descriptors.clone();
        let metrics = HostMetrics::new(config.shell.clone(), descriptors, Arc::clone(&stopped));
        let policy = AdmissionPolicy::new(config.control.conditions.clone(), Box::new(metrics))?;
        let control = PoolJobControl {
            pool: Arc::clone(pool),
            job_table: Arc::clone(job_table),
            observer: Arc::clone(observer),
        };
        let monitor = AdmissionMonitor::start(policy, Arc::new(control), stopped)
            .context("cannot start a thread that watches the machine")?;
        admission.monitor = Some(monitor);
    }
    if !config.control.jobserver {
        return Ok(admission);
    }
    match (jobserver, config.pipe.as_ref().and_then(|pipe| pipe.stream_flag())) {
        (Ok(None), _) => (),
        // With fewer tokens than jobs, the running ones would wait for the others for ever.
        (Ok(Some(_)), Some(flag)) => observer.notice(&Notice::JobserverIgnored { flag }),
        (Ok(Some(server)), None) => {
            let pool = Arc::clone(pool);
            admission.jobserver = Some(JobserverClient::start(server, move || pool.wake())?);
        }
        (Err(reason), _) => observer.notice(&Notice::JobserverUnavailable { reason }),
    }
    Ok(admission)
}

/// The job pool, as the admission monitor controls it.
struct PoolJobControl {
    pool: Arc<JobPool<Task>>,
    job_table: Arc<JobTable>,
    observer: Arc<dyn Observer>,
}

impl JobControl for PoolJobControl {
    fn jobs(&self) -> Jobs {
        let (running, suspended) = self.job_table.counts();
        Jobs { running, suspended, wanted: false }
    }

    fn set_paused(&self, paused: bool) {
        self.pool.set_paused(paused);
    }

    fn kill_youngest(&self) {
        self.request(JobRequest::Requeue);
    }

    fn suspend_youngest(&self) {
        self.request(JobRequest::Suspend);
    }

    fn resume_oldest(&self) {
        self.request(JobRequest::Resume);
    }

    fn warn(&self, line: &str) {
        self.observer.notice(&Notice::Condition { line: line.to_owned() });
    }
}

impl PoolJobControl {
    fn request(&self, request: JobRequest) {
        if self.job_table.request(request) {
            self.pool.wake();
        }
    }
}
