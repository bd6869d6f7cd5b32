//! What holds jobs back from outside, and how a run ends that was halted.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use minder::exec::{Crew, HaltOn, Threshold};

use super::Found;
use super::gates::{self, Admission, Gate, Gates, Jobs, Machine, Tokens};
use super::input::Task;
use super::roster::{Order, Roster};
use super::shared::Shared;
use super::stage::Stage;
use crate::exit;
use crate::plan::{Control, Plan, Timeout};
use crate::report::{Halted, Summary, say};

/// Whether it has to be known who runs.
pub(super) fn needs_roster(control: &Control) -> bool {
    control.conditions.any() || matches!(control.timeout, Some(Timeout::Median(_)))
}

/// All that is asked before a start.
pub(super) fn admission(
    plan: &Plan,
    jobserver: Found,
    crew: &Arc<Crew<Task>>,
    roster: &Arc<Roster>,
    stage: &Arc<Stage>,
) -> Result<Admission> {
    let mut admission = Admission::default();
    if plan.control.conditions.any() {
        let over = Arc::new(AtomicBool::new(false));
        let machine = Machine::new(plan.shell.clone(), plan.descriptors.clone(), Arc::clone(&over));
        let gate = Gate::new(plan.control.conditions.clone(), Box::new(machine))?;
        let handle = Handle { crew: Arc::clone(crew), roster: Arc::clone(roster), stage: Arc::clone(stage) };
        let gates = Gates::start(gate, Arc::new(handle), over);
        admission.gates = Some(gates.context("cannot start a thread that watches the machine")?);
    }
    let stream = plan.pipe.as_ref().and_then(|pipe| pipe.flags.stream());
    if plan.control.jobserver {
        match (jobserver, stream) {
            (Ok(None), _) => (),
            (Ok(Some(_)), Some(stream)) => {
                // With fewer tokens than jobs those that run would wait for the others for ever.
                if !plan.quiet {
                    say(&format!("the jobs of {stream} run all at once: not by the build's jobserver"));
                }
            }
            (Ok(Some(server)), None) => {
                let crew = Arc::clone(crew);
                admission.tokens = Some(Tokens::start(server, move || crew.wake())?);
            }
            (Err(why), _) if !plan.quiet => say(&why),
            (Err(_), _) => (),
        }
    }
    Ok(admission)
}

/// The crew, for the gates.
struct Handle {
    crew: Arc<Crew<Task>>,
    roster: Arc<Roster>,
    stage: Arc<Stage>,
}

impl gates::Control for Handle {
    fn jobs(&self) -> Jobs {
        let (running, suspended) = self.roster.counts();
        Jobs { running, suspended, wanted: false }
    }

    fn hold(&self, held: bool) {
        self.crew.hold(held);
    }

    fn kill_youngest(&self) {
        self.order(Order::PutBack);
    }

    fn suspend_youngest(&self) {
        self.order(Order::Suspend);
    }

    fn resume_oldest(&self) {
        self.order(Order::Resume);
    }

    fn tell(&self, line: &str) {
        self.stage.screen.aside(|| say(line));
    }
}

impl Handle {
    fn order(&self, order: Order) {
        if self.roster.order(order) {
            self.crew.wake();
        }
    }
}

/// Why the run ended before its input, if a rule ended it.
pub(super) fn halted(shared: &Shared<'_>) -> Option<Halted> {
    let by = shared.crew.halted_by()?;
    let counts = shared.crew.counts();
    let why = match by.on {
        HaltOn::Failed => "enough have failed",
        HaltOn::Succeeded => "enough have succeeded",
        HaltOn::Ended => "enough are done",
    };
    let over = counts.succeeded + counts.failed;
    Some(Halted {
        why: why.to_owned(),
        not_run: shared.input.total().map(|total| total.saturating_sub(over)),
    })
}

/// The exit status of a run that ended by itself: GNU parallel's.
pub(super) fn status(shared: &Shared<'_>, summary: &Summary) -> u8 {
    let failed = summary.counts.failed;
    let percent = shared.plan.control.halt.is_some_and(|halt| matches!(halt.at, Threshold::Percent(_)));
    let first = shared.plan.control.halt.is_some_and(|halt| halt.at == Threshold::Count(1));
    match (shared.crew.halted_by().map(|by| by.on), shared.first_failure()) {
        (Some(HaltOn::Succeeded), _) => exit::SUCCESS,
        (Some(HaltOn::Failed), Some(status)) if failed == 1 || first => status,
        (_, Some(_)) if percent => {
            let jobs = shared.input.total().unwrap_or(summary.counts.succeeded + failed).max(1);
            u8::try_from(failed.saturating_mul(100) / jobs).unwrap_or(100).max(1)
        }
        _ => exit::of_failed(failed),
    }
}
