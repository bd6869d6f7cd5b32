//! Prints what GNU parallel prints about itself and the machine, as far as it applies to minder.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::args::ParallelArgs;
use super::options::OptionKey;
use super::profile;
use minder_ui::symbols::Symbols;
use minder_ui::{exit, units};

use crate::ui;

/// The version of GNU parallel whose manual minder follows.
const PARALLEL_VERSION: u64 = 20_221_122;

/// The maximum length of a command line that GNU parallel measures on Linux, and how much of it
/// GNU parallel uses.
const LINE_MAX: usize = 130_329;
const USABLE_MAX: usize = LINE_MAX / 2 - 1_500;

/// The text of `--help`, of `sem` as well.
pub(in crate::compat) const HELP: &str = "\
minder as GNU parallel: its command line, run by minder.

Usage: parallel [FLAGS] [COMMAND…] < ARGUMENTS
       parallel [FLAGS] [COMMAND…] (::: ARGUMENT… | :::: FILE…)…
       … | parallel --pipe [FLAGS] COMMAND…
       sem [--fg] [--id NAME] [-j N] [--st SECONDS] COMMAND…

  -j N            run N jobs at once       -k           output in input order
  -X              many arguments per job   --colsep R   split lines: {1} {2} …
  --bar --eta     show the progress        --joblog F   a line for each job
  --resume        resume from a joblog     --halt now,fail=1   stop at a failure
  {} {.} {/} {//} {/.} {#} {%}             the argument and its parts
  --env-setup     print env_parallel and parset for bash or zsh, read by eval

Without a command, each line of the input is a command. The flags of
`minder run` work as well: see `minder run --help`. Jobs run only on this
machine. minder does not run Perl.
";

/// Prints what the options request. Returns `None` if they request a run.
///
/// # Errors
/// Standard output cannot be written, or the value of `--minversion` is not a version.
pub(in crate::compat) fn print_info(args: &ParallelArgs) -> Result<Option<ExitCode>> {
    let has = |key| args.has(key);
    if has(OptionKey::ShowLimits) {
        // GNU parallel runs the command afterwards as well.
        print(&limits(args))?;
    }
    if has(OptionKey::RecordEnv) {
        profile::record_environment()?;
        return Ok(Some(ExitCode::SUCCESS));
    }
    let text = if has(OptionKey::Help) {
        HELP.to_owned()
    } else if has(OptionKey::Version) {
        format!(
            "minder {}\nAs `parallel`, it follows the manual of GNU parallel {PARALLEL_VERSION}.\n",
            env!("CARGO_PKG_VERSION")
        )
    } else if let Some(required) = args.value(OptionKey::MinVersion) {
        return print_version(required).map(Some);
    } else if has(OptionKey::Citation) {
        "This is minder. It requires no citation.\n".to_owned()
    } else if has(OptionKey::Threads) {
        format!("{}\n", threads())
    } else if has(OptionKey::Cores) {
        format!("{}\n", count_distinct(&["physical_package_id", "core_id"]))
    } else if has(OptionKey::Sockets) {
        format!("{}\n", count_distinct(&["physical_package_id"]))
    } else if has(OptionKey::LineLength) {
        format!("{LINE_MAX}\n")
    } else {
        return Ok(None);
    };
    print(&text).map(Some)
}

/// Returns what `--show-limits` prints; `-s` sets the usable size.
fn limits(args: &ParallelArgs) -> String {
    let asked = args.run_flag_value("--max-chars").and_then(|size| units::size(size).ok());
    let usable = asked.filter(|size| (1..USABLE_MAX).contains(size)).unwrap_or(USABLE_MAX);
    format!(
        "Maximal size of command: {LINE_MAX}\nMaximal usable size of command: {usable}\n\n\
         Execution will continue now, and it will try to read its input\n\
         and run commands; if this is not what you wanted to happen, please\n\
         press CTRL-D or CTRL-C\n"
    )
}

/// Prints the version, and fails if a newer one is required.
fn print_version(required: &OsStr) -> Result<ExitCode> {
    let version = required.to_str().and_then(|text| text.parse::<u64>().ok());
    let version = version.with_context(|| {
        let required = required.display();
        format!("invalid value `{required}` for --minversion: expected a number such as {PARALLEL_VERSION}")
    })?;
    let code = print(&format!("{PARALLEL_VERSION}\n"))?;
    Ok(if version > PARALLEL_VERSION { ExitCode::from(exit::OTHER) } else { code })
}

fn print(text: &str) -> Result<ExitCode> {
    let text = Symbols::of_locale().convert(text);
    ui::with_stdout(|out| Ok(out.write_all(text.as_bytes())?))
}

fn threads() -> usize {
    minder_os::host_stats::processors()
}

/// Returns how many processors differ in these topology files of Linux. Where the files cannot be
/// read, returns the number of processors.
fn count_distinct(files: &[&str]) -> usize {
    let topology = |cpu_dir: &Path| -> Option<Vec<String>> {
        files.iter().map(|file| std::fs::read_to_string(cpu_dir.join("topology").join(file)).ok()).collect()
    };
    let cpu_dirs = std::fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let distinct: BTreeSet<Vec<String>> = cpu_dirs.filter_map(|dir| topology(&dir.path())).collect();
    if distinct.is_empty() { threads() } else { distinct.len() }
}
