//! Measures the memory of a run that is in progress.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::invocation::Setting;
use crate::cli::children;

/// The jobs that have finished when the memory is read.
const JOBS: usize = 2000;

/// Kibibytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// The anonymous pages of the runner, while it waits for more input.
    pub(super) private_runner: f64,
    /// The most memory that the process that was started has had, with pages of the program.
    pub(super) peak_front: f64,
    /// The same of the runner.
    pub(super) peak_runner: f64,
}

/// Reads the memory when all output of the jobs has been shown, and the input is still open.
#[expect(clippy::disallowed_methods, reason = "the environment of `Invocation` is that of std's Command")]
pub(super) fn measure(setting: &Setting) -> Memory {
    let invocation = setting.echo();
    let mut child = invocation
        .command("", &[])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the program under test");
    let mut input = child.stdin.take().expect("take pipe");
    let text: String = (0..JOBS).map(|job| format!("{job:05}\n")).collect();
    let output = BufReader::new(child.stdout.take().expect("take pipe"));
    // The input is shorter than what a pipe holds.
    input.write_all(text.as_bytes()).expect("write input");
    let shown = output.lines().take(JOBS).filter(|line| line.as_ref().is_ok_and(|line| line.len() == 5));
    assert_eq!(shown.count(), JOBS, "{}", invocation.errors());
    let runner = runner(child.id());
    let memory = Memory {
        private_runner: number(runner, "RssAnon"),
        peak_front: number(child.id(), "VmHWM"),
        peak_runner: number(runner, "VmHWM"),
    };
    drop(input);
    let status = child.wait().expect("wait for the program under test");
    assert!(status.success(), "{status}: {}", invocation.errors());
    memory
}

/// Returns the process that runs the jobs: of the tree, the one with the most threads.
fn runner(front: u32) -> u32 {
    let mut tree = vec![front];
    let mut next = 0;
    while next < tree.len() {
        tree.extend(children(tree[next]));
        next += 1;
    }
    let threads = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    tree.into_iter().max_by_key(threads).expect("at least one process")
}

fn number(pid: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("read status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.expect("find line").trim().trim_end_matches(" kB");
    number.parse().expect("parse number")
}
