//! Starts children, some at once, and hears each to its end: the twin of `spawn.c`. `cargo bench-lab c`
//! compares them.
//!
//! `spawn PROGRAM CHILDREN AT-ONCE`
#![expect(clippy::print_stdout, reason = "it prints its result")]

use minder::{BackgroundSet, BackgroundSetOptions, Command, Event, SpawnOptions, Stdio};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, program, children, at_once] = &words[..] else {
        return Err("usage: spawn PROGRAM CHILDREN AT-ONCE".into());
    };
    let children: u64 = children.parse()?;
    let at_once: u64 = at_once.parse()?;
    let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());

    let mut events = Vec::new();
    let mut started = 0;
    let mut done = 0;
    let mut bytes = 0;
    while done < children {
        while started < children && started - done < at_once {
            set.spawn(&command, SpawnOptions::new())?;
            started += 1;
        }
        set.wait(None)?;
        set.drain_events(&mut events, usize::MAX);
        for event in events.drain(..) {
            match event {
                Event::Output { chunk, .. } => bytes += chunk.len(),
                Event::Done { .. } => done += 1,
                _ => (),
            }
        }
    }
    println!("{done} children, {bytes} bytes");
    set.stop(Duration::ZERO)?;
    Ok(())
}
