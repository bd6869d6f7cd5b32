//! Captured children of minder in a program that runs on tokio's current-thread runtime, driven
//! through the descriptor of a set, compared with the set's own loop.

use crate::Options;
use crate::captured::{Tally, command, in_set};
use crate::usage::{Stopwatch, note_threads};
use anyhow::{Result, bail, ensure};
use minder::{BackgroundSet, ChildSet, ChildSetOptions, NextEvent, SpawnOptions};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Children before the measurement.
const WARM_UP: u32 = 64;

pub(crate) fn measure(options: &Options) -> Result<String> {
    if options.contestant == "loop" {
        in_set(options, WARM_UP, ChildSetOptions::new())?;
        let stopwatch = Stopwatch::start()?;
        in_set(options, options.children, ChildSetOptions::new())?;
        return stopwatch.rows(options.children);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        run(options, WARM_UP).await?;
        let stopwatch = Stopwatch::start()?;
        run(options, options.children).await?;
        stopwatch.rows(options.children)
    })
}

async fn run(options: &Options, children: u32) -> Result<()> {
    match options.contestant.as_str() {
        "set" => in_async_set(options, children).await,
        "background" => in_background_set(options, children).await,
        _ => Err(options.unknown()),
    }
}

/// Registers a descriptor of minder with tokio, which wants to own it: a copy.
#[expect(deprecated, reason = "the constructor without `unsafe`; an OwnedFd keeps its descriptor")]
fn watch(descriptor: BorrowedFd<'_>) -> Result<AsyncFd<OwnedFd>> {
    Ok(AsyncFd::with_interest(descriptor.try_clone_to_owned()?, Interest::READABLE)?)
}

/// Waits until the descriptor is readable. The caller then takes everything, so that the next
/// readiness is a new one.
async fn readable(descriptor: &AsyncFd<OwnedFd>) -> Result<()> {
    descriptor.readable().await?.clear_ready();
    Ok(())
}

async fn in_async_set(options: &Options, children: u32) -> Result<()> {
    let command = command(&options.child);
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let descriptor = watch(set.poll_handle()?)?;
    let past = Instant::now();
    let mut tally = Tally::new(children);
    note_threads()?;
    while tally.done < children {
        tally.fill(&mut set, &command, options.at_once)?;
        match set.next_event_deadline(Some(past))? {
            NextEvent::Event(event) => tally.count(&event)?,
            NextEvent::TimedOut => readable(&descriptor).await?,
            _ => bail!("{} of {children} children are done", tally.done),
        }
    }
    ensure!(set.is_empty(), "{} children are left", set.len());
    Ok(())
}

async fn in_background_set(options: &Options, children: u32) -> Result<()> {
    let command = command(&options.child);
    let set = BackgroundSet::new(ChildSetOptions::new())?;
    let descriptor = watch(set.poll_handle())?;
    let mut tally = Tally::new(children);
    let mut events = Vec::new();
    note_threads()?;
    while tally.done < children {
        while tally.left > 0 && set.len() < options.at_once {
            set.spawn(&command, SpawnOptions::default())?;
            tally.left -= 1;
        }
        if set.drain_events(&mut events, usize::MAX) == 0 {
            readable(&descriptor).await?;
        }
        for event in events.drain(..) {
            tally.count(&event)?;
        }
    }
    ensure!(set.is_empty(), "{} children are left", set.len());
    // Also ends the thread.
    set.stop(Duration::ZERO)?;
    Ok(())
}
