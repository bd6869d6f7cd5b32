//! What /proc tells about processes, for numbers that a program cannot measure of itself.

use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;

/// Returns the processes that a process has started and that still run.
pub(crate) fn children(pid: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}

/// Returns a number of /proc/PID/status, such as `VmHWM` in KiB.
pub(crate) fn status(pid: &str, name: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns how many entries a directory of a process has: its `task`s, its open `fd`s.
pub(crate) fn entries(pid: &str, directory: &str) -> f64 {
    let count = fs::read_dir(format!("/proc/{pid}/{directory}")).map_or(0, Iterator::count);
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns the sum. That of no numbers is 0, and not -0 as by `Iterator::sum`.
pub(crate) fn sum<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> f64 {
    numbers.into_iter().fold(0.0, |sum, number| sum + number)
}

/// Returns how many processes and threads this machine has started since it was booted.
pub(crate) fn started() -> usize {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let number = text.lines().find_map(|line| line.strip_prefix("processes "));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Returns the processors that this process may use.
pub(crate) fn processors() -> Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let mut all = Vec::new();
    for part in list.context("/proc/self/status: no list of processors")?.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>()?..=last.parse::<usize>()?);
    }
    Ok(all)
}

/// The processes of a runner at one moment.
pub(crate) struct Tree {
    /// All below the meter, with the jobs.
    pub(crate) all: Vec<String>,
    /// Those of the runner that the last look saw too: a child before its `exec` is still a copy of
    /// the runner.
    pub(crate) own: Vec<String>,
}

/// Looks at the processes below the meter. Those with the name of a job are not the runner's.
pub(crate) fn look(meter: u32, jobs: &[&str], known: &mut HashSet<String>) -> Tree {
    let mut tree = Tree { all: Vec::new(), own: Vec::new() };
    let mut now = HashSet::new();
    let mut todo = children(&meter.to_string());
    while let Some(pid) = todo.pop() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        tree.all.push(pid.clone());
        if jobs.contains(&name.trim()) {
            continue;
        }
        todo.extend(children(&pid));
        if known.contains(&pid) {
            tree.own.push(pid.clone());
        }
        now.insert(pid);
    }
    *known = now;
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_has_threads_and_processors() {
        assert!(status("self", "Threads").is_some_and(|threads| threads >= 1.0));
        assert!(status("self", "Nonsense").is_none() && entries("self", "fd") >= 1.0);
        assert!(!processors().unwrap().is_empty());
        assert!(sum(&[]).is_sign_positive() && sum(&[1.0, 2.0]) == 3.0);
    }
}
