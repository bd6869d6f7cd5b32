//! `--on`: where the jobs of a run are run, and the flags that cannot be used with it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder_runner::config::{AgentsConfig, Coordination, OnInterrupt, RecordConfig};

use crate::flags::{self, RunFlags};

/// The most agents on one machine.
const LOCAL_MAX: u32 = 64;

/// Agents, and how this process coordinates them.
#[derive(Debug)]
pub(super) struct Agents(Option<AgentsConfig>, Coordination);

impl Agents {
    /// Reads the flags.
    ///
    /// # Errors
    /// The place is not known, or another flag needs what agents do not have.
    pub(super) fn new(flags: &RunFlags) -> Result<Self> {
        Ok(Self(agents(flags)?, coordination(flags)))
    }

    /// Adds them to the configuration of a record.
    pub(super) fn of_record(self, record: RecordConfig) -> RecordConfig {
        let Self(agents, coordination) = self;
        RecordConfig { agents, coordination, ..record }
    }
}

/// Returns the agents that run the jobs, if any do.
fn agents(flags: &RunFlags) -> Result<Option<AgentsConfig>> {
    let Some(place) = &flags.on else { return Ok(None) };
    let local = place.strip_prefix("local:").and_then(|number| number.parse().ok());
    let Some(local) = local.filter(|local| (1..=LOCAL_MAX).contains(local)) else {
        bail!("--on: invalid place `{place}`: expected local:N, with N from 1 to {LOCAL_MAX}");
    };
    if let Some((flag, why)) = refused(flags) {
        bail!("`{flag}` cannot be used with `--on`: {why}");
    }
    let program = std::env::current_exe().context("cannot find the program of an agent")?;
    Ok(Some(AgentsConfig { local, program, lost_after: Duration::from_secs(flags.lost_after) }))
}

/// Returns how this process coordinates agents.
fn coordination(flags: &RunFlags) -> Coordination {
    let on_interrupt = match flags.on_interrupt {
        None | Some(flags::OnInterrupt::Ask) => OnInterrupt::Ask,
        Some(flags::OnInterrupt::Cancel) => OnInterrupt::Cancel,
        Some(flags::OnInterrupt::Detach) => OnInterrupt::Detach,
    };
    Coordination { attaches: false, detaches: flags.detach, on_interrupt }
}

/// Returns a flag that agents cannot obey, and why.
fn refused(flags: &RunFlags) -> Option<(&'static str, &'static str)> {
    const TERMINAL: &str = "jobs of agents have no terminal";
    const ORDER: &str = "agents take jobs in the order of the input";
    const FILES: &str = "files of agents cannot be collected yet";
    const SHARED: &str = "agents work together by the record of the run";
    let RunFlags { output, control, record, pipe, input, .. } = flags;
    let halts_soon = control.halt.as_ref().is_some_and(|halt| halt.starts_with("soon") || halt == "1");
    let has_files = output.results.as_ref().is_some_and(|path| !is_table(path));
    let rows = [
        (output.ungroup, "--ungroup", TERMINAL),
        (output.pty, "--pty", TERMINAL),
        (control.tty, "--tty", TERMINAL),
        (control.interactive, "--interactive", TERMINAL),
        (control.stdin.is_some(), "--stdin", "jobs of agents have an empty standard input"),
        (pipe.is_wanted(), "--pipe", "blocks of the input cannot be given to agents yet"),
        (record.no_record, "--no-record", SHARED),
        (record.redact_args, "--redact-args", "arguments are given to agents in files of the record"),
        (record.keep_output, "--keep-output", FILES),
        (halts_soon, "--halt soon", "jobs that run are ended, as by --halt now"),
        (input.shuf, "--shuf", ORDER),
        (input.order.is_some(), "--order", ORDER),
        (has_files, "--results", FILES),
        (output.files, "--files", FILES),
        (!flags.placeholders.template.is_empty(), "--template", FILES),
        (output.tmpdir.is_some(), "--tmpdir", "agents save output in the record of the run"),
    ];
    rows.into_iter().find(|row| row.0).map(|(_, flag, why)| (flag, why))
}

/// Returns whether the results go into one table.
fn is_table(path: &std::ffi::OsStr) -> bool {
    let path = std::path::Path::new(path);
    path.extension().is_some_and(|end| end == "csv" || end == "tsv" || end == "json")
}
