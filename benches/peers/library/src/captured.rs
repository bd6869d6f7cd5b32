//! Many captured children, some at once: a set on one thread, tasks of tokio, threads of std.

use crate::Options;
use crate::usage::{Stopwatch, note_threads};
use anyhow::{Context, Result, anyhow, ensure};
use minder::{CaptureOptions, ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Children before the measurement.
const WARM_UP: u32 = 64;

pub(crate) fn measure(options: &Options) -> Result<String> {
    run(options, WARM_UP)?;
    let stopwatch = Stopwatch::start()?;
    run(options, options.children)?;
    stopwatch.rows(options.children)
}

/// Runs all children, with everything that the contestant needs for that.
fn run(options: &Options, children: u32) -> Result<()> {
    let config = ChildSetOptions::new();
    match options.contestant.as_str() {
        "minder" => in_set(options, children, config),
        "minder-delay" => in_set(options, children, config.read_delay(Duration::from_millis(2))),
        "tokio-current" => in_tokio(options, children, tokio::runtime::Builder::new_current_thread()),
        "tokio-multi" => in_tokio(options, children, tokio::runtime::Builder::new_multi_thread()),
        "minder-tokio-current" => {
            in_minder_tokio(options, children, tokio::runtime::Builder::new_current_thread())
        }
        "minder-tokio-multi" => {
            in_minder_tokio(options, children, tokio::runtime::Builder::new_multi_thread())
        }
        "std-threads" => in_threads(options, children),
        _ => Err(options.unknown()),
    }
}

/// Returns the command of minder.
pub(crate) fn command(child: &OsStr) -> Command {
    let mut command = Command::new(child);
    command.stdin(minder::Stdio::null()).stdout(minder::Stdio::piped()).stderr(minder::Stdio::piped());
    command
}

/// Counts the children of a set.
pub(crate) struct Tally {
    pub(crate) left: u32,
    pub(crate) done: u32,
}

impl Tally {
    pub(crate) fn new(children: u32) -> Self {
        Self { left: children, done: 0 }
    }

    /// Starts children as long as fewer than `at_once` live.
    pub(crate) fn fill(&mut self, set: &mut ChildSet, command: &Command, at_once: usize) -> Result<()> {
        while self.left > 0 && set.len() < at_once {
            set.spawn(command, SpawnOptions::default())?;
            self.left -= 1;
        }
        Ok(())
    }

    pub(crate) fn count(&mut self, event: &Event) -> Result<()> {
        if let Event::Done { outcome, .. } = event {
            ensure!(outcome.exit.status.success() && !outcome.leaked, "a child failed");
            self.done += 1;
        }
        Ok(())
    }
}

pub(crate) fn in_set(options: &Options, children: u32, config: ChildSetOptions) -> Result<()> {
    let command = command(&options.child);
    let mut set = ChildSet::new(config)?;
    let mut tally = Tally::new(children);
    tally.fill(&mut set, &command, options.at_once)?;
    note_threads()?;
    while let NextEvent::Event(event) = set.next_event(None)? {
        tally.count(&event)?;
        tally.fill(&mut set, &command, options.at_once)?;
    }
    ensure!(tally.done == children, "{} of {children} children are done", tally.done);
    Ok(())
}

/// One task for each child that runs at once: each takes the next child when its own is done.
fn in_tokio(options: &Options, children: u32, mut runtime: tokio::runtime::Builder) -> Result<()> {
    let runtime = runtime.enable_io().build()?;
    let left = Arc::new(AtomicU32::new(children));
    let tasks: Vec<_> = (0..options.at_once)
        .map(|_| {
            let left = Arc::clone(&left);
            let mut command = tokio::process::Command::new(&options.child);
            command.stdin(Stdio::null()).process_group(0);
            runtime.spawn(async move {
                while take(&left) {
                    let output = command.output().await?;
                    ensure!(output.status.success() && output.stdout.is_empty(), "a child failed");
                }
                Ok(())
            })
        })
        .collect();
    note_threads()?;
    runtime.block_on(async {
        for task in tasks {
            task.await.context("a task failed")??;
        }
        Ok(())
    })
}

/// The same with the functions of minder-tokio.
fn in_minder_tokio(options: &Options, children: u32, mut runtime: tokio::runtime::Builder) -> Result<()> {
    let runtime = runtime.enable_all().build()?;
    let left = Arc::new(AtomicU32::new(children));
    let tasks: Vec<_> = (0..options.at_once)
        .map(|_| {
            let left = Arc::clone(&left);
            let command = Command::new(&options.child);
            runtime.spawn(async move {
                while take(&left) {
                    let output = minder_tokio::output(&command, CaptureOptions::new()).await?;
                    ensure!(output.status.success() && output.stdout.is_empty(), "a child failed");
                }
                Ok(())
            })
        })
        .collect();
    note_threads()?;
    runtime.block_on(async {
        for task in tasks {
            task.await.context("a task failed")??;
        }
        Ok(())
    })
}

/// One thread for each child that runs at once.
fn in_threads(options: &Options, children: u32) -> Result<()> {
    let left = AtomicU32::new(children);
    std::thread::scope(|scope| {
        let body = || {
            let mut command = std::process::Command::new(&options.child);
            command.stdin(Stdio::null()).process_group(0);
            while take(&left) {
                let output = command.output()?;
                ensure!(output.status.success() && output.stdout.is_empty(), "a child failed");
            }
            Ok(())
        };
        let threads: Vec<_> = (0..options.at_once).map(|_| scope.spawn(body)).collect();
        note_threads()?;
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok(())
    })
}

/// Takes one of the children that are left; returns whether there was one.
fn take(left: &AtomicU32) -> bool {
    left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
