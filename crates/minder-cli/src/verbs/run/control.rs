//! What holds jobs back from outside, and how a run ends that was halted.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use minder::jobs::{HaltTrigger, JobPool, Threshold};

use super::JobserverLookup;
use super::gates::{
    self, AdmissionController, AdmissionMonitor, AdmissionPolicy, HostMetrics, Jobs, JobserverClient,
};
use super::input::Task;
use super::roster::{JobRequest, JobTable};
use super::shared::RunContext;
use super::stage::OutputSequencer;
use crate::exit;
use crate::plan::{Control, RunConfig, Timeout};
use crate::report::{HaltSummary, Summary, message};

/// Whether it has to be known who runs.
pub(super) fn needs_roster(control: &Control) -> bool {
    control.conditions.any() || matches!(control.timeout, Some(Timeout::Median(_)))
}

/// All that is asked before a start.
pub(super) fn admission(
    plan: &RunConfig,
    jobserver: JobserverLookup,
    crew: &Arc<JobPool<Task>>,
    roster: &Arc<JobTable>,
    stage: &Arc<OutputSequencer>,
) -> Result<AdmissionController> {
    let mut admission = AdmissionController::default();
    if plan.control.conditions.any() {
        let over = Arc::new(AtomicBool::new(false));
        let machine = HostMetrics::new(plan.shell.clone(), plan.descriptors.clone(), Arc::clone(&over));
        let gate = AdmissionPolicy::new(plan.control.conditions.clone(), Box::new(machine))?;
        let handle =
            PoolJobControl { crew: Arc::clone(crew), roster: Arc::clone(roster), stage: Arc::clone(stage) };
        let gates = AdmissionMonitor::start(gate, Arc::new(handle), over);
        admission.monitor = Some(gates.context("cannot start a thread that watches the machine")?);
    }
    let stream = plan.pipe.as_ref().and_then(|pipe| pipe.flags.stream());
    if plan.control.jobserver {
        match (jobserver, stream) {
            (Ok(None), _) => (),
            (Ok(Some(_)), Some(stream)) => {
                // With fewer tokens than jobs those that run would wait for the others for ever.
                if !plan.quiet {
                    message(&format!("the jobs of {stream} run all at once: not by the build's jobserver"));
                }
            }
            (Ok(Some(server)), None) => {
                let crew = Arc::clone(crew);
                admission.jobserver = Some(JobserverClient::start(server, move || crew.wake())?);
            }
            (Err(why), _) if !plan.quiet => message(&why),
            (Err(_), _) => (),
        }
    }
    Ok(admission)
}

/// The crew, for the gates.
struct PoolJobControl {
    crew: Arc<JobPool<Task>>,
    roster: Arc<JobTable>,
    stage: Arc<OutputSequencer>,
}

impl gates::JobControl for PoolJobControl {
    fn jobs(&self) -> Jobs {
        let (running, suspended) = self.roster.counts();
        Jobs { running, suspended, wanted: false }
    }

    fn set_paused(&self, held: bool) {
        self.crew.set_paused(held);
    }

    fn kill_youngest(&self) {
        self.order(JobRequest::Requeue);
    }

    fn suspend_youngest(&self) {
        self.order(JobRequest::Suspend);
    }

    fn resume_oldest(&self) {
        self.order(JobRequest::Resume);
    }

    fn warn(&self, line: &str) {
        self.stage.stdio.suspend_progress(|| message(line));
    }
}

impl PoolJobControl {
    fn order(&self, order: JobRequest) {
        if self.roster.request(order) {
            self.crew.wake();
        }
    }
}

/// Why the run ended before its input, if a rule ended it.
pub(super) fn halted(shared: &RunContext<'_>) -> Option<HaltSummary> {
    let by = shared.pool.halted_by()?;
    let counts = shared.pool.counts();
    let why = match by.on {
        HaltTrigger::Failed => "enough have failed",
        HaltTrigger::Succeeded => "enough have succeeded",
        HaltTrigger::Finished => "enough are done",
    };
    let over = counts.succeeded + counts.failed;
    Some(HaltSummary {
        why: why.to_owned(),
        not_run: shared.queue.total().map(|total| total.saturating_sub(over)),
    })
}

/// The exit status of a run that ended by itself: GNU parallel's.
pub(super) fn status(shared: &RunContext<'_>, summary: &Summary) -> u8 {
    let failed = summary.counts.failed;
    let percent = shared.config.control.halt.is_some_and(|halt| matches!(halt.at, Threshold::Percent(_)));
    let first = shared.config.control.halt.is_some_and(|halt| halt.at == Threshold::Count(1));
    match (shared.pool.halted_by().map(|by| by.on), shared.first_failure()) {
        (Some(HaltTrigger::Succeeded), _) => exit::SUCCESS,
        (Some(HaltTrigger::Failed), Some(status)) if failed == 1 || first => status,
        (_, Some(_)) if percent => {
            let jobs = shared.queue.total().unwrap_or(summary.counts.succeeded + failed).max(1);
            u8::try_from(failed.saturating_mul(100) / jobs).unwrap_or(100).max(1)
        }
        _ => exit::of_failed(failed),
    }
}
