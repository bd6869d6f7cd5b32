//! The result of a run: its report, its exit status, and the last event of its journal.

use std::time::Duration;

use minder::Signal;
use minder::jobs::{HaltPolicy, HaltTrigger, JobCounts, Threshold};
use minder_os::host_stats;
use minder_record::event::{AttemptFinished, FAILED};

use crate::config::{ExitStatusRule, ResumeMode};
use crate::context::RunContext;
use crate::exit_status;
use crate::report::{HaltSummary, RunEnd, RunReport, RunStats};
use crate::resume::ResumeFilter;

/// Makes the report of a run whose worker threads have ended, or are not waited for. `signal` is the signal
/// that ended it, and `orphans` are processes that jobs left running.
pub(crate) fn report(
    context: &RunContext<'_>,
    mut stats: RunStats,
    signal: Option<Signal>,
    mut orphans: Vec<(u32, String)>,
    elapsed: Duration,
) -> RunReport {
    let mut counts = context.pool.counts();
    // The scheduler counts no failure of a job that has attempts left. The end of the run cut these off.
    counts.failed += stats.cancelled_early + stats.withdrawn;
    counts.succeeded -= stats.withdrawn;
    counts.retried += stats.retried_by_agents;
    if signal.is_some() {
        // What is left running ends with the run.
        orphans.clear();
        stats.left_running = 0;
    }
    // A run whose input was still being read, such as a mistyped command that reads the terminal.
    let has_job = counts.succeeded + counts.failed + stats.cancelled > 0;
    let is_unbegun = !has_job && context.queue.total().is_none();
    let end = end(context, counts, stats.cancelled, signal);
    RunReport {
        counts,
        stats,
        elapsed,
        orphans,
        halted: halted(context, counts),
        total: context.queue.total(),
        run: context.recorder.run().map(str::to_owned),
        resume: if is_unbegun { None } else { context.recorder.resume(context.config) },
        end,
        nothing_left: false,
        error_status: error_status(context),
    }
}

/// Returns `true` if a run with this end has written all output that it recorded.
pub(crate) fn has_written_output(end: &RunEnd) -> bool {
    matches!(end, RunEnd::Status(_) | RunEnd::Signal(_))
}

/// Returns `true` if an earlier run was to be resumed, and none of its jobs was left.
pub(crate) fn has_run_nothing(context: &RunContext<'_>, filter: &ResumeFilter, report: &RunReport) -> bool {
    let finished = report.counts.succeeded + report.counts.failed;
    (context.config.record.mode == Some(ResumeMode::Failed) || filter.has_nothing_left())
        && matches!(report.end, RunEnd::Status(exit_status::SUCCESS))
        && finished + report.stats.cancelled == 0
}

fn end(context: &RunContext<'_>, counts: JobCounts, cancelled: u64, signal: Option<Signal>) -> RunEnd {
    let stdio = &context.sequencer.stdio;
    if context.status.is_detached() {
        return RunEnd::Detached;
    }
    if let Some(signal) = signal {
        return RunEnd::Signal(signal);
    }
    if stdio.is_closed() {
        return RunEnd::StdoutClosed;
    }
    let error = context.status.take_error().or_else(|| stdio.take_failure().map(RunEnd::Failed));
    if let Some(end) = error.or_else(|| context.queue.error().map(RunEnd::InputFailed)) {
        return end;
    }
    match status(context, counts, cancelled) {
        // Some output that was to be written was not.
        exit_status::SUCCESS if context.committer.has_lost_output() => RunEnd::Status(exit_status::OTHER),
        status => RunEnd::Status(status),
    }
}

/// Returns why the halt policy ended the run, if it did.
fn halted(context: &RunContext<'_>, counts: JobCounts) -> Option<HaltSummary> {
    let by = context.pool.halted_by()?;
    let why = match by.on {
        HaltTrigger::Failed => "enough have failed",
        HaltTrigger::Succeeded => "enough have succeeded",
        // `Finished`, and what a later version of the library may add.
        _ => "enough are done",
    };
    let kind = match by.on {
        HaltTrigger::Failed => "fail",
        HaltTrigger::Succeeded => "success",
        _ => "done",
    };
    let at = match context.config.control.halt.map(HaltPolicy::threshold) {
        Some(Threshold::Count(jobs)) => jobs.to_string(),
        Some(Threshold::Percent(part)) => format!("{part}%"),
        // A later version of the library may add another.
        _ => "…".to_owned(),
    };
    let finished = counts.succeeded + counts.failed;
    Some(HaltSummary {
        why: why.to_owned(),
        rule: format!("{},{kind}={at}", if by.now { "now" } else { "soon" }),
        not_run: context.queue.total().map(|total| total.saturating_sub(finished)),
    })
}

/// Returns the exit status of a run that an error ends.
fn error_status(context: &RunContext<'_>) -> u8 {
    match (context.config.exit_status, context.status.xargs_status()) {
        (ExitStatusRule::Parallel, _) => exit_status::OTHER,
        (ExitStatusRule::Xargs, status) if status >= exit_status::XARGS_NOT_RUN => status,
        (ExitStatusRule::Xargs, _) => exit_status::XARGS_OTHER,
    }
}

/// Returns the exit status of a run that no signal and no error of ours ended. The `cancelled` jobs, which
/// have no result, have not failed.
fn status(context: &RunContext<'_>, counts: JobCounts, cancelled: u64) -> u8 {
    let failed = counts.failed.saturating_sub(cancelled);
    if context.config.exit_status == ExitStatusRule::Xargs && failed > 0 {
        // A job that was not started because of its values has no status.
        return context.status.xargs_status().max(exit_status::XARGS_FAILED);
    }
    let halt = context.config.control.halt;
    let jobs = context.queue.total().unwrap_or(counts.succeeded + counts.failed).max(1);
    let threshold = halt.map(|halt| halt.threshold());
    let percent = matches!(threshold, Some(Threshold::Percent(_)));
    // GNU parallel's rule for a percentage, too: exactly one job.
    let first = match threshold {
        Some(Threshold::Count(count)) => count == 1,
        Some(Threshold::Percent(percent)) => u64::from(percent) * jobs == 100,
        _ => false,
    };
    match (context.pool.halted_by().map(|by| by.on), context.status.first_failure()) {
        (Some(HaltTrigger::Succeeded), _) => exit_status::SUCCESS,
        (Some(HaltTrigger::Failed), Some(status)) if first || (failed == 1 && !percent) => status,
        (Some(HaltTrigger::Finished), Some(status)) if first => status,
        (_, Some(_)) if percent => {
            u8::try_from(failed.saturating_mul(100).div_ceil(jobs)).unwrap_or(100).max(1)
        }
        _ => exit_status::of_failed(failed),
    }
}

/// Makes the last event of the attempt's journal. `left` is why jobs of earlier attempts are left, and
/// how many, if this attempt did not run them.
pub(crate) fn attempt_finished(
    context: &RunContext<'_>,
    report: &RunReport,
    left: Option<(String, Option<u64>)>,
) -> AttemptFinished {
    let why = match &report.end {
        RunEnd::Signal(_) | RunEnd::Detached => Some("interrupted".to_owned()),
        RunEnd::StdoutClosed => Some("its output was closed".to_owned()),
        RunEnd::Failed(_) | RunEnd::InputFailed(_) => Some(FAILED.to_owned()),
        RunEnd::Status(_) => report
            .halted
            .as_ref()
            // A halt that left nothing undone did not cut the run short.
            .filter(|halted| halted.not_run != Some(0) || report.stats.cancelled > 0)
            .map(|halted| halted.why.clone()),
    };
    let finished = report.counts.succeeded + report.counts.failed;
    let not_run = context.queue.total().map(|total| total.saturating_sub(finished)).filter(|jobs| *jobs > 0);
    let (why, not_run) = match (why, left) {
        (None, Some((why, left))) => (Some(why), left),
        (why, _) => (why, not_run),
    };
    // Jobs that were cut off are neither: they run again.
    let [failed, succeeded] = context.status.recorded();
    let processors = context.recorder.processor_times();
    AttemptFinished {
        succeeded,
        failed,
        elapsed: report.elapsed.as_secs_f64(),
        cpu: report.stats.cpu.as_secs_f64(),
        cpu_busy: processors.map(|times| times.busy.as_secs_f64()),
        cpu_idle: processors.map(|times| times.idle.as_secs_f64()),
        own_rss: processors.and_then(|_| host_stats::own_peak_memory().ok()),
        why,
        timed_out: report.stats.timed_out,
        retried: report.counts.retried,
        cut: report.stats.cancelled,
        not_run,
    }
}
