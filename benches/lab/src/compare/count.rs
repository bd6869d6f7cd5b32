//! Counts and memory of one run, by strace, callgrind and /proc.

use super::Setting;
use crate::meter;
use crate::processes::{children, entries, status};
use crate::programs::{calls_of, state};
use crate::samples::Numbers;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use xtask::{run, tree};

/// Returns the system calls of all processes for each job, with those of the start.
pub(super) fn calls(setting: &Setting, program: &Path) -> Result<Numbers> {
    let out = tree::target_dir().join("compare/calls");
    let mut words: Vec<String> = vec!["strace".into(), "-f".into(), "-c".into(), "-o".into()];
    words.push(out.display().to_string());
    words.extend(setting.words(program, &[], &setting.tiny()));
    meter::measure(&words, &setting.input(setting.jobs)?)?.checked(setting.jobs)?;
    let table = fs::read_to_string(out)?;
    let calls = calls_of(&table).context("strace counted nothing")?;
    Ok(vec![("calls".into(), calls / setting.jobs as f64)])
}

/// Returns the instructions in user space for each job without a record: the difference of two runs.
pub(super) fn instructions(setting: &Setting, program: &Path) -> Result<Numbers> {
    let sizes = [setting.jobs / 5, setting.jobs];
    let mut counts = Vec::new();
    for jobs in sizes {
        counts.push(callgrind(setting, program, jobs)?);
    }
    Ok(vec![("instructions".into(), (counts[1] - counts[0]) / (sizes[1] - sizes[0]) as f64)])
}

/// Returns the count of the process with the most instructions, which is the runner.
fn callgrind(setting: &Setting, program: &Path, jobs: usize) -> Result<f64> {
    let dir = tree::target_dir().join("compare/callgrind");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let out = format!("--callgrind-out-file={}/%p", dir.display());
    let mut words: Vec<String> = vec!["valgrind".into(), "--tool=callgrind".into(), out];
    words.extend(setting.words(program, &["--no-record"], &setting.tiny()));
    meter::measure(&words, &setting.input(jobs)?)?.checked(jobs)?;
    let mut most = 0.0_f64;
    for file in fs::read_dir(&dir)? {
        let text = fs::read_to_string(file?.path())?;
        if let Some(total) = text.lines().rev().find_map(|line| line.strip_prefix("totals: ")) {
            most = most.max(total.trim().parse()?);
        }
    }
    ensure!(most > 0.0, "callgrind counted nothing");
    Ok(most)
}

/// Returns the memory while the run waits for more input.
#[expect(clippy::disallowed_methods, reason = "xtask builds without minder and its Command")]
pub(super) fn memory(setting: &Setting, program: &Path) -> Result<Numbers> {
    let words = setting.words(program, &[], "/bin/echo");
    let mut cmd = run::command(&words[0]);
    cmd.args(&words[1..]).env("MINDER_STATE_DIR", state().join("minder"));
    cmd.env("XDG_STATE_HOME", state());
    let mut child = cmd.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run minder")?;
    let mut input = child.stdin.take().context("no pipe")?;
    let output = BufReader::new(child.stdout.take().context("no pipe")?);
    let text: String = (0..setting.jobs).map(|job| format!("{job:05}\n")).collect();
    // The input is shorter than what a pipe holds.
    input.write_all(text.as_bytes())?;
    let shown = output.lines().take(setting.jobs).count();
    ensure!(shown == setting.jobs, "only {shown} jobs printed something");
    let front = child.id().to_string();
    let runner = runner(&front);
    let number = |pid: &str, name: &str| status(pid, name).context("no such line in status");
    let numbers = vec![
        ("private_runner".into(), number(&runner, "RssAnon")?),
        ("peak_front".into(), number(&front, "VmHWM")?),
        ("peak_runner".into(), number(&runner, "VmHWM")?),
    ];
    drop(input);
    ensure!(child.wait()?.success(), "minder failed");
    Ok(numbers)
}

/// Returns the process below the front that has the most threads.
fn runner(front: &str) -> String {
    let mut tree = vec![front.to_string()];
    let mut next = 0;
    while let Some(pid) = tree.get(next) {
        tree.extend(children(pid));
        next += 1;
    }
    let threads = |one: &String, other: &String| entries(one, "task").total_cmp(&entries(other, "task"));
    tree.into_iter().max_by(threads).unwrap_or_default()
}
