//! `--on`: where the jobs of a run are run, and the flags that cannot be used with it.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder_cluster::ssh::Host;
use minder_runner::config::{AgentsConfig, Coordination, OnInterrupt, Place, RecordConfig};

use crate::flags::{self, RunFlags};

/// The most agents on one machine.
const LOCAL_MAX: u32 = 64;
/// The most hosts.
const HOSTS_MAX: usize = 1000;
/// The least time after which others run the jobs of a link. The host has to kill them before: it notices
/// after 12 s that the link does not answer, and has 3 s.
const LOST_AFTER_MIN: u64 = 30;
/// The largest file of hosts.
const FILE_MAX: u64 = 1 << 20;

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
///
/// # Errors
/// The place is not known, or another flag needs what agents do not have.
fn agents(flags: &RunFlags) -> Result<Option<AgentsConfig>> {
    let machines = &flags.machines;
    let mut places = Vec::new();
    if let Some(place) = &machines.on {
        places = parse(place).with_context(|| format!("--on: invalid place `{place}`"))?;
    }
    if let Some(path) = &machines.hosts {
        let mut add = || -> Result<()> {
            for (line, number) in read_hosts(path)?.lines().map(str::trim).zip(1..) {
                if !line.is_empty() && !line.starts_with('#') {
                    places.push(place_of(line).with_context(|| format!("line {number}"))?);
                }
            }
            Ok(())
        };
        add().with_context(|| format!("--hosts: cannot use `{}`", path.display()))?;
        if places.is_empty() {
            bail!("--hosts: `{}` names no host", path.display());
        }
    }
    if places.is_empty() {
        if let Some(flag) = machines.dependent_flag() {
            bail!("`{flag}` is for jobs on other machines: it needs --on or --hosts");
        }
        return Ok(None);
    }
    let has_host = places.iter().any(|place| place.host.is_some());
    if has_host && machines.lost_after < LOST_AFTER_MIN {
        bail!("--lost-after: a host by ssh may need {LOST_AFTER_MIN} s to end its jobs");
    }
    if places.len() > HOSTS_MAX {
        bail!("--on: {} hosts are more than {HOSTS_MAX}", places.len());
    }
    if let Some((flag, why)) = refused(flags) {
        bail!("`{flag}` cannot be used with `--on`: {why}");
    }
    let program = std::env::current_exe().context("cannot find the program of an agent")?;
    let ssh = ssh_command(&machines.ssh)?;
    Ok(Some(AgentsConfig { places, program, ssh, lost_after: Duration::from_secs(machines.lost_after) }))
}

/// Returns the words of --ssh.
///
/// # Errors
/// It has none.
pub(crate) fn ssh_command(text: &OsStr) -> Result<Vec<OsString>> {
    let bytes = text.as_encoded_bytes();
    let words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<OsString> =
        words.map(|word| minder_os::encoding::os_string_from_encoded(word.to_vec())).collect();
    if words.is_empty() {
        bail!("--ssh: no command");
    }
    Ok(words)
}

fn parse(place: &str) -> Result<Vec<Place>> {
    if let Some(number) = place.strip_prefix("local:") {
        let number = number.parse().ok().filter(|number| (1..=LOCAL_MAX).contains(number));
        let number = number.with_context(|| format!("expected local:N, with N from 1 to {LOCAL_MAX}"))?;
        return Ok(vec![Place { host: None, jobs: None }; number as usize]);
    }
    let Some(hosts) = place.strip_prefix("ssh:") else { bail!("expected ssh:HOST,HOST…") };
    hosts.split(',').map(place_of).collect()
}

/// Returns the agent of one host.
fn place_of(text: &str) -> Result<Place> {
    let host: Host = text.trim().parse().map_err(anyhow::Error::msg)?;
    let jobs = host.jobs.clone();
    Ok(Place { host: (host.login != Host::HERE).then_some(host), jobs })
}

fn read_hosts(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        bail!("it is larger than {} MiB", FILE_MAX >> 20);
    }
    Ok(text)
}

/// Returns how this process coordinates agents.
fn coordination(flags: &RunFlags) -> Coordination {
    let on_interrupt = match flags.machines.on_interrupt {
        None | Some(flags::OnInterrupt::Ask) => OnInterrupt::Ask,
        Some(flags::OnInterrupt::Cancel) => OnInterrupt::Cancel,
        Some(flags::OnInterrupt::Detach) => OnInterrupt::Detach,
    };
    Coordination { attaches: false, detaches: flags.machines.detach, on_interrupt }
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
