//! The time from a child's last act, which is to read the clock, to the moment at which the program
//! knows of its exit, while others live.

use crate::Options;
use crate::usage::{monotonic, note_threads};
use anyhow::{Context, Result, anyhow, bail, ensure};
use minder::{ChildId, ChildSet, ChildSetOptions, Event, NextEvent, SpawnOptions, Termination};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use tokio::process::Child as TokioChild;

/// Children before the measurement.
const WARM_UP: u32 = 10;
/// The argument with which the other children sleep: for longer than a measurement, and not for
/// ever if this program fails.
const SLEEP: &str = "s120";
/// The stack of a thread that waits for one child.
const STACK: usize = 64 << 10;

pub(crate) fn measure(options: &Options) -> Result<String> {
    let mut exits = match options.contestant.as_str() {
        "minder" => in_set(options),
        "tokio-current" => in_tokio(options, tokio::runtime::Builder::new_current_thread()),
        "tokio-multi" => in_tokio(options, tokio::runtime::Builder::new_multi_thread()),
        "std-threads" => in_threads(options),
        _ => Err(options.unknown()),
    }?;
    exits.delays.drain(..WARM_UP as usize);
    exits.delays.sort_unstable();
    let at = |percent: usize| exits.delays[(exits.delays.len() * percent / 100).min(exits.delays.len() - 1)];
    let middle = at(50);
    let high = at(99);
    Ok(format!("live,{}\nexits,{}\np50_ns,{middle}\np99_ns,{high}\n", options.live, exits.delays.len()))
}

/// Reads what the children wrote, and computes the delays.
struct Exits {
    clocks: File,
    theirs: File,
    delays: Vec<u64>,
}

impl Exits {
    /// Makes a file without a name that all children write to.
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("library-{}", std::process::id()));
        let theirs = File::options().append(true).create_new(true).open(&path)?;
        let clocks = File::open(&path);
        std::fs::remove_file(&path)?;
        Ok(Self { clocks: clocks?, theirs, delays: Vec::new() })
    }

    /// Notes that the exit of the last child was seen at `seen`.
    fn note(&mut self, seen: u64) -> Result<()> {
        let mut clock = [0; 8];
        self.clocks.read_exact(&mut clock).context("the child wrote no time")?;
        let delay = seen.checked_sub(u64::from_ne_bytes(clock)).context("seen before it happened")?;
        self.delays.push(delay);
        Ok(())
    }
}

fn rounds(options: &Options) -> std::ops::Range<u32> {
    0..options.children + WARM_UP
}

fn in_set(options: &Options) -> Result<Exits> {
    let mut exits = Exits::new()?;
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let null = minder::Stdio::null;
    let mut sleeper = minder::Command::new(&options.sleeper);
    sleeper.arg(SLEEP).stdin(null()).stdout(null()).stderr(null());
    for _ in 1..options.live {
        set.spawn(&sleeper, SpawnOptions::default())?;
    }
    let mut command = minder::Command::new(&options.child);
    command.stdin(null()).stdout(exits.theirs.try_clone()?).stderr(null());
    for _ in rounds(options) {
        let child = set.spawn(&command, SpawnOptions::default())?;
        let seen = wait_for(&mut set, child)?;
        exits.note(seen)?;
    }
    ensure!(set.len() >= options.live - 1, "a sleeper has exited");
    set.kill_all(Termination::IMMEDIATE)?;
    while let NextEvent::Event(_) = set.next_event(None)? {}
    Ok(exits)
}

/// Returns the time of the event that reports the exit of the child.
fn wait_for(set: &mut ChildSet, child: ChildId) -> Result<u64> {
    loop {
        match set.next_event(None)? {
            NextEvent::Event(Event::Exited { child: exited, .. }) if exited == child => {
                return Ok(monotonic());
            }
            NextEvent::Event(_) => (),
            _ => bail!("the child was lost"),
        }
    }
}

/// One task waits for each child.
fn in_tokio(options: &Options, mut runtime: tokio::runtime::Builder) -> Result<Exits> {
    let mut exits = Exits::new()?;
    let theirs = exits.theirs.try_clone()?;
    let runtime = runtime.enable_io().build()?;
    let wait = async |mut child: TokioChild| child.wait().await;
    let exits = runtime.block_on(async move {
        let mut sleeper = tokio::process::Command::new(&options.sleeper);
        sleeper.arg(SLEEP).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut pids = Vec::new();
        let mut tasks = Vec::new();
        for _ in 1..options.live {
            let child = sleeper.spawn()?;
            pids.push(child.id().context("a sleeper has exited")?);
            tasks.push(tokio::spawn(wait(child)));
        }
        let mut command = tokio::process::Command::new(&options.child);
        command.stdin(Stdio::null()).stdout(theirs).stderr(Stdio::null()).process_group(0);
        for _ in rounds(options) {
            let child = command.spawn()?;
            // In a task, as the others: the caller of `block_on` is not a worker of the runtime.
            let seen = tokio::spawn(async move { wait(child).await.map(|status| (status, monotonic())) });
            let (status, seen) = seen.await??;
            ensure!(status.success(), "the child failed");
            exits.note(seen)?;
        }
        ensure!(tasks.iter().all(|task| !task.is_finished()), "a sleeper has exited");
        kill_all(&pids)?;
        for task in tasks {
            task.await??;
        }
        Ok::<_, anyhow::Error>(exits)
    })?;
    Ok(exits)
}

/// One thread waits for each child.
#[expect(clippy::disallowed_methods, reason = "the standard library is an opponent")]
fn in_threads(options: &Options) -> Result<Exits> {
    let mut exits = Exits::new()?;
    let mut sleeper = std::process::Command::new(&options.sleeper);
    sleeper.arg(SLEEP).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut pids = Vec::new();
    let mut threads = Vec::new();
    for _ in 1..options.live {
        let mut child = sleeper.spawn()?;
        pids.push(child.id());
        threads.push(std::thread::Builder::new().stack_size(STACK).spawn(move || child.wait())?);
    }
    note_threads()?;
    let mut command = std::process::Command::new(&options.child);
    command.stdin(Stdio::null()).stdout(exits.theirs.try_clone()?).stderr(Stdio::null()).process_group(0);
    for _ in rounds(options) {
        // This thread is the one that waits for the child.
        let status = command.spawn()?.wait()?;
        let seen = monotonic();
        ensure!(status.success(), "the child failed");
        exits.note(seen)?;
    }
    ensure!(threads.iter().all(|thread| !thread.is_finished()), "a sleeper has exited");
    kill_all(&pids)?;
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a thread panicked"))??;
    }
    Ok(exits)
}

fn kill_all(pids: &[u32]) -> Result<()> {
    for pid in pids {
        let pid = Pid::from_raw(i32::try_from(*pid)?).context("a pid of 0")?;
        kill_process(pid, Signal::KILL)?;
    }
    Ok(())
}
