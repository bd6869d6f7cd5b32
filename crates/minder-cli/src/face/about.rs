//! What GNU parallel prints about itself and the machine, as far as it is true of minder.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::{OptionKey, ParallelArgs, Translation, profile};
use crate::{exit, report};

/// The version of GNU parallel whose manual is followed.
const FOLLOWED: u64 = 20_221_122;

/// What it finds on Linux when it tries how long a line may be, and what it then uses of that.
const LINE_MAX: usize = 130_329;
const USABLE_MAX: usize = LINE_MAX / 2 - 1_500;

const HELP: &str = "\
minder as GNU parallel: the same command line, run by minder.

Usage: parallel [FLAGS] [COMMAND…] < ARGUMENTS
       parallel [FLAGS] [COMMAND…] (::: ARGUMENT… | :::: FILE…)…
       … | parallel --pipe [FLAGS] COMMAND…
       sem [--fg] [--id NAME] [-j N] [--st SECONDS] COMMAND…

  -j N            run N jobs at once          -k           output in the order of the input
  -X              many arguments a job        --colsep R   columns, for {1} {2} …
  {} {.} {/} {//} {/.} {#} {%}                what stands for the argument and its parts
  --bar --eta     show how far it is          --joblog F   write a row for each job
  --resume        go on by a joblog           --halt now,fail=1   end at the first failure

Without a command, each line of the input is a command. Flags of minder's own are
known, too: `minder run --help` has them all. Jobs run on this machine only, and
no Perl is run.
";

/// Prints what is asked for; nothing if something is to be run.
pub(super) fn said(wishes: &ParallelArgs) -> Result<Option<Translation>> {
    let has = |wish| wishes.has(wish);
    if let Some(shell) = wishes.value(OptionKey::Completion) {
        return Ok(Some(Translation::Verb(vec!["completions".into(), shell.clone()])));
    }
    if has(OptionKey::ShowLimits) {
        // It goes on afterwards, as GNU parallel does.
        print(&format!(
            "Maximal size of command: {LINE_MAX}\nMaximal usable size of command: {USABLE_MAX}\n"
        ))?;
    }
    if has(OptionKey::RecordEnv) {
        profile::record_environment()?;
        return Ok(Some(Translation::Said(ExitCode::SUCCESS)));
    }
    let text = if has(OptionKey::Help) {
        HELP.to_owned()
    } else if has(OptionKey::Version) {
        format!(
            "minder {}\nIts command line as `parallel` follows the manual of GNU parallel {FOLLOWED}.\n",
            env!("CARGO_PKG_VERSION")
        )
    } else if let Some(least) = wishes.value(OptionKey::MinVersion) {
        let least: u64 = least.to_str().and_then(|text| text.parse().ok()).with_context(|| {
            format!("`--minversion {}` is no version: it is a number such as {FOLLOWED}", least.display())
        })?;
        let code = print(&format!("{FOLLOWED}\n"))?;
        return Ok(Some(Translation::Said(if least > FOLLOWED {
            ExitCode::from(exit::OTHER)
        } else {
            code
        })));
    } else if has(OptionKey::Citation) {
        "This is minder; it asks for no citation.\n".to_owned()
    } else if has(OptionKey::Threads) {
        format!("{}\n", threads())
    } else if has(OptionKey::Cores) {
        format!("{}\n", distinct(&["physical_package_id", "core_id"]))
    } else if has(OptionKey::Sockets) {
        format!("{}\n", distinct(&["physical_package_id"]))
    } else if has(OptionKey::LineLength) {
        format!("{LINE_MAX}\n")
    } else {
        return Ok(None);
    };
    Ok(Some(Translation::Said(print(&text)?)))
}

fn print(text: &str) -> Result<ExitCode> {
    report::with_stdout(|out| Ok(out.write_all(text.as_bytes())?))
}

fn threads() -> usize {
    minder_os::host_stats::processors()
}

/// How many processors differ in these marks of where they are; where the system does not tell, as
/// many as there are.
fn distinct(marks: &[&str]) -> usize {
    let of_one = |folder: &Path| -> Option<Vec<String>> {
        let read = |mark: &&str| std::fs::read_to_string(folder.join("topology").join(mark)).ok();
        marks.iter().map(read).collect()
    };
    let folders = std::fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let places: BTreeSet<Vec<String>> = folders.filter_map(|folder| of_one(&folder.path())).collect();
    if places.is_empty() { threads() } else { places.len() }
}
