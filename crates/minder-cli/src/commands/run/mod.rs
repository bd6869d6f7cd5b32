//! `minder run`: opens the files that the flags name, runs the jobs, and exits with the status of
//! the run.

mod confirm;
mod console;
mod request;
mod hints;
mod plan;
mod host_link;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
use minder::{Availability, Backend};
use minder_runner::config::ResumeMode;
use minder_runner::{
    Inherited, Interrupted, Notice, Observer, RunEnd, RunReport, RunRequest, exit_status, list_commands,
};
use minder_runner::{link, served};

use self::confirm::TerminalPrompt;
use self::console::Console;
pub(crate) use self::plan::Plan;
use self::request::ResumeRequest;
use crate::config::CompatMode;
use crate::flags::{AgentFlags, AttachFlags, AttemptFlags, RunFlags};
use crate::settings::{Setting, name_source};
use crate::ui::{format_error, message, os_error_text, with_stdout};

/// Runs the command. `args` is the complete command line of minder, and `settings` are those in it. Returns
/// as [`execute`] does.
pub(crate) fn run(
    flags: RunFlags,
    args: &[OsString],
    compat: CompatMode,
    settings: &[Setting],
) -> Result<ExitCode> {
    execute(|| Plan::new(flags, args, compat), settings).map_err(|error| name_source(settings, error))
}

/// Makes one more attempt at a run: `minder resume` and `minder retry`. Returns as [`execute`] does.
pub(crate) fn resume(flags: AttemptFlags, mode: ResumeMode) -> Result<ExitCode> {
    execute(|| Plan::resume(&ResumeRequest::new(flags, mode)?, CompatMode::Own), &[])
}

/// Takes the results of agents that continue alone: `minder attach`. Returns as [`execute`] does.
pub(crate) fn attach(flags: &AttachFlags) -> Result<ExitCode> {
    execute(|| Plan::attach(flags), &[])
}

/// Runs jobs of a run as one of its agents: `minder agent`. Returns as [`execute`] does.
pub(crate) fn agent(flags: &AgentFlags) -> Result<ExitCode> {
    if let Some(mark) = &flags.serve {
        let start = served::greet(mark, env!("CARGO_PKG_VERSION"))?;
        return execute(
            || Plan::served(&start, mark).inspect_err(|error| served::refuse(&format_error(error))),
            &[],
        );
    }
    let Some(host) = &flags.host else { return execute(|| Plan::agent(flags), &[]) };
    let config = host_link::link(flags, host)?;
    let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    match link::work(&config, &mut guard, &message) {
        Ok(()) => guard.exit(0),
        Err(error) => fail(guard, &error),
    }
}

/// Runs what is planned. Returns only from a dry run, or if the run cannot start before the guard is
/// installed. Otherwise the guard ends the process.
fn execute(plan: impl FnOnce() -> Result<Plan>, settings: &[Setting]) -> Result<ExitCode> {
    // Runs before any file is opened: inherited descriptors are identified by their numbers.
    let inherited = Inherited::find();
    let Plan { mut config, arguments, display, dry_run, surroundings } = plan()?;
    let console = Console::new(display, &config.record.command);
    if dry_run {
        surroundings.iter().for_each(|text| message(text));
        let mut refused = 0;
        let code = with_stdout(|out| {
            refused = list_commands(config, arguments, &console, out)?;
            Ok(())
        })?;
        // The status that the run itself would have.
        let is_complete = code == ExitCode::SUCCESS;
        return Ok(if is_complete { ExitCode::from(exit_status::of_failed(refused)) } else { code });
    }
    // The guardians are forked here, before any thread runs.
    // A coordinator has none: they would end its agents, which are to continue when it is killed.
    let has_guardians = config.guardians && config.record.agents.is_none();
    let options = GuardOptions::new().guardians(has_guardians).watchdog(config.record.agent.is_some());
    let options = inherited.guarded(options);
    let mut guard = ProcessGuard::install(&options)?;
    let detaches = config.record.coordination.detaches;
    if has_guardians
        && !guard.kills_descendants()
        && let Some(reason) = guard.unavailable_reason()
    {
        console.notice(&Notice::NoGuardians { reason: reason.to_owned() });
    }
    if let Some(backend) = config.backend
        && let Some(reason) = refusal(backend)
    {
        console.notice(&Notice::BackendRefused { name: backend.name(), reason });
        config.backend = None;
    }
    let mut confirm = None;
    if config.control.interactive {
        match TerminalPrompt::open(console.progress()) {
            Ok(prompt) => confirm = Some(Box::new(prompt) as Box<_>),
            Err(error) => fail(guard, &error),
        }
    }
    let observer: Arc<dyn Observer> = Arc::new(console);
    match minder_runner::run(RunRequest { config, arguments, inherited, observer, confirm }, &mut guard) {
        Ok(report) => {
            if detaches
                && report.end == RunEnd::Detached
                && let Err(error) = print_id(&report)
            {
                // The run continues, which its id would say.
                fail(guard, &error);
            }
            end(guard, &report)
        }
        Err(error) => match error.downcast_ref::<Interrupted>() {
            Some(Interrupted(signal)) => guard.terminate(ExitMode::Signal(*signal)),
            None => fail(guard, &name_source(settings, error)),
        },
    }
}

/// Prints the id of a run that continues without this process.
///
/// # Errors
/// It cannot be written.
fn print_id(report: &RunReport) -> Result<()> {
    let line = format!("{}\n", report.run.as_deref().unwrap_or_default());
    minder_runner::blocking_io::write_all(&std::io::stdout(), line.as_bytes())
        .map_err(|error| anyhow::anyhow!("cannot write to standard output: {}", os_error_text(&error)))
}

/// Ends the process because the run cannot start.
fn fail(guard: ProcessGuard, error: &anyhow::Error) -> ! {
    message(&format_error(error));
    guard.exit(exit_status::OTHER)
}

/// Ends the process with the status or the signal of the run. Processes that jobs left running
/// survive only if the run ended with a status.
fn end(guard: ProcessGuard, report: &RunReport) -> ! {
    match report.end {
        RunEnd::Status(status) => guard.exit(status),
        RunEnd::Detached => guard.exit(exit_status::SUCCESS),
        RunEnd::Signal(signal) => guard.terminate(ExitMode::Signal(signal)),
        RunEnd::StdoutClosed => guard.terminate(ExitMode::Status(exit_status::BROKEN_PIPE)),
        RunEnd::Failed(_) | RunEnd::InputFailed(_) => guard.terminate(ExitMode::Status(report.error_status)),
    }
}

/// Returns why this machine refuses a wait backend, if it does.
fn refusal(backend: Backend) -> Option<String> {
    let capability = minder::capabilities()
        .into_iter()
        .find(|capability| capability.area == "waiting" && capability.name == backend.name())?;
    match capability.state {
        Availability::Refused(why) => Some(why),
        _ => None,
    }
}
