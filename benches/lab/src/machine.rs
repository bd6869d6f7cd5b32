//! What a figure is worth nothing without: machine, system, load, versions.

use crate::peers::Peers;
use anyhow::Result;
use std::fmt::Write;
use xtask::run;

/// The load of the last minute, five and fifteen.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// A list in Markdown.
pub(crate) fn describe(peers: &Peers, rounds: usize, load_before: &str) -> Result<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let line = |text: &str, name: &str| {
        let found = text.lines().find(|l| l.starts_with(name)).and_then(|l| l.split_once(':'));
        found.map_or_else(|| "unknown".to_string(), |(_, value)| value.trim().to_string())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = String::new();
    writeln!(
        text,
        "- machine: {}, {cores} cores, {}",
        line(&read("/proc/cpuinfo"), "model name"),
        line(&read("/proc/meminfo"), "MemTotal")
    )?;
    writeln!(text, "- kernel: {} {}", std::env::consts::OS, read("/proc/sys/kernel/osrelease").trim())?;
    let limit = read("/proc/self/limits");
    let files = limit.lines().find_map(|l| l.strip_prefix("Max open files")).unwrap_or_default();
    let files: Vec<&str> = files.split_whitespace().take(2).collect();
    writeln!(text, "- descriptors, soft and hard: {}", files.join(" and "))?;
    let date = run::read(run::command("date").args(["-u", "+%Y-%m-%d"])).unwrap_or_default();
    writeln!(
        text,
        "- date: {}; rounds: {rounds}; load before: {load_before}; after: {}",
        date.trim(),
        load()
    )?;
    for runner in &peers.runners {
        if let Some(words) = runner.version() {
            let printed = run::read(run::command(&words[0]).args(&words[1..])).unwrap_or_default();
            writeln!(text, "- {}: {}", runner.name(), printed.lines().next().unwrap_or("unknown"))?;
        }
    }
    Ok(text)
}
