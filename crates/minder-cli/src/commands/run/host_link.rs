//! The configuration of a link: what a host has to know of a run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use minder_cluster::protocol::{JobsDir, Start};
use minder_cluster::ssh::{Host, Program};
use minder_record::event::OsBytes;
use minder_runner::config::{AgentConfig, ResumeMode};
use minder_runner::link::LinkConfig;
use minder_runner::link_files::TransferConfig;
use minder_template::Template;

use super::plan::shared_run;
use crate::commands::log::run_id;
use crate::config::{self, CompatMode, Parsed};
use crate::flags::{AgentFlags, Flags, RunFlags, clap_error_line};
use crate::recorded;

/// Returns the configuration of the link to a host.
///
/// # Errors
/// The record of the run cannot be read, or a name of a file leads out of the directory of the jobs.
pub(super) fn link(flags: &AgentFlags, host: &str) -> Result<LinkConfig> {
    let (run, manifest, names) = shared_run(flags)?;
    let saved = recorded::typed_flags(&manifest).context("the manifest is damaged")?;
    let mut all = recorded::parse(&manifest, &[&saved], &[])
        .map_err(|error| anyhow::anyhow!(clap_error_line(&error, &Flags::interface(), &[])))?;
    let dir = PathBuf::from(manifest.cwd.to_os());
    std::env::set_current_dir(&dir)
        .with_context(|| format!("cannot change to the directory of the run, `{}`", dir.display()))?;
    let compat = if all.parallel_env { CompatMode::Parallel } else { CompatMode::Own };
    let ssh = config::ssh_command(&all.machines.ssh)?;
    let grace = Duration::from_secs(all.grace);
    let sync = all.record.sync;
    let is_quiet = all.display.quiet;
    let jobs_dir = jobs_dir(&all, &dir);
    let env = variables(&all)?;
    // Hosts are known already.
    let machines = std::mem::take(&mut all.machines);
    let parsed = Parsed::new(&all, saved, Some(ResumeMode::Rest), compat, None)?;
    let options = parsed.options(&all, &names)?;
    let text = |flag: &OsString| Template::text(flag, &options);
    let mut sent: Vec<Template> = machines.transferfile.iter().map(text).collect();
    if machines.transfer || !machines.trc.is_empty() {
        let argument = all.placeholders.replace.clone().unwrap_or_else(|| "{}".into());
        sent.push(text(&argument));
    }
    let files = TransferConfig {
        dir,
        sent,
        returned: machines.r#return.iter().chain(&machines.trc).map(text).collect(),
        shared: machines.basefile.clone(),
        removes: all.output.cleanup || !machines.trc.is_empty(),
    };
    let host: Host = host.parse().map_err(anyhow::Error::msg)?;
    let start = Start {
        run: run_id(&run),
        login: host.login.clone(),
        attempt: flags.attempt,
        manifest: serde_json::to_value(&manifest)?,
        names: names.iter().map(|name| OsBytes::from(name.as_os_str())).collect(),
        jobs: flags.jobs.as_ref().and_then(|jobs| jobs.to_str()).map(str::to_owned),
        env,
        dir: jobs_dir,
        removed: files.removed_at_end()?,
    };
    let program = Program {
        path: std::env::current_exe().context("cannot find this program")?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let lost_after = Duration::from_secs(flags.lost_after);
    let agent = AgentConfig { run, attempt: flags.attempt, lost_after, login: None, removed: Vec::new() };
    Ok(LinkConfig { agent, host, ssh, program, start, files, grace, sync, is_quiet })
}

/// Returns the directory of jobs on the host. `.` is this directory: below the home directory of the login if
/// it is below that of this user.
fn jobs_dir(flags: &RunFlags, dir: &Path) -> JobsDir {
    match &flags.control.wd {
        None => JobsDir::Home,
        Some(wd) if wd == "..." => JobsDir::Temporary,
        Some(wd) if wd == "." => {
            let home = std::env::home_dir();
            let below = home.as_deref().and_then(|home| dir.strip_prefix(home).ok());
            JobsDir::Named(below.unwrap_or(dir).as_os_str().into())
        }
        Some(wd) => JobsDir::Named(wd.as_os_str().into()),
    }
}

/// Returns the variables of `--env-file` and of `--env NAME`, with their values here. With GNU parallel's
/// command line, NAME may be a list, and may be a function of bash.
fn variables(flags: &RunFlags) -> Result<Vec<(OsBytes, OsBytes)>> {
    let mut variables = Vec::new();
    for file in &flags.control.env_file {
        config::read_env_file(file, &mut variables)?;
    }
    let mut names: Vec<OsString> = Vec::new();
    for name in flags.control.env.iter().filter(|name| !name.as_encoded_bytes().contains(&b'=')) {
        let list = if flags.parallel_env { name.to_str() } else { None };
        let Some(list) = list else {
            names.push(name.clone());
            continue;
        };
        for name in list.split(',') {
            names.extend([name.into(), format!("BASH_FUNC_{name}%%").into()]);
        }
    }
    for name in names {
        variables.extend(std::env::var_os(&name).map(|value| (name, value)));
    }
    let bytes = |(name, value): (OsString, OsString)| (name.as_os_str().into(), value.as_os_str().into());
    Ok(variables.into_iter().map(bytes).collect())
}
