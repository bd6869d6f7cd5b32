//! One child after the other: `output()`, or a start and the wait for its exit.

use crate::Options;
use crate::posix::PosixSpawn;
use crate::usage::{Stopwatch, note_threads};
use anyhow::{Result, ensure};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// Children before the measurement.
const WARM_UP: u32 = 50;

pub(crate) fn measure(options: &Options) -> Result<String> {
    let mut run = contestant(options)?;
    for _ in 0..WARM_UP {
        run()?;
    }
    let stopwatch = Stopwatch::start()?;
    for _ in 0..options.children {
        run()?;
    }
    note_threads()?;
    stopwatch.rows(options.children)
}

/// Returns what starts one child and waits for its exit.
#[expect(clippy::disallowed_methods, reason = "the standard library is an opponent")]
fn contestant(options: &Options) -> Result<Box<dyn FnMut() -> Result<()>>> {
    let mut ours = minder::Command::new(&options.child);
    let mut std = std::process::Command::new(&options.child);
    // As every child of minder.
    std.process_group(0);
    let captures = !options.contestant.ends_with("inherit");
    if captures {
        ours.stdin(minder::Stdio::null()).stdout(minder::Stdio::piped()).stderr(minder::Stdio::piped());
        std.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    Ok(match options.contestant.as_str() {
        "minder-output" => Box::new(move || {
            let output = ours.output()?;
            ensure!(output.status.success() && output.stdout.is_empty(), "the child failed");
            Ok(())
        }),
        "std-output" => Box::new(move || {
            let output = std.output()?;
            ensure!(output.status.success() && output.stdout.is_empty(), "the child failed");
            Ok(())
        }),
        "minder" | "minder-inherit" => Box::new(move || {
            ensure!(ours.spawn()?.wait()?.status.success(), "the child failed");
            Ok(())
        }),
        "std" | "std-inherit" => Box::new(move || {
            ensure!(std.spawn()?.wait()?.success(), "the child failed");
            Ok(())
        }),
        "posix_spawn" | "posix_spawn-inherit" => {
            let posix = PosixSpawn::new(&options.child, captures)?;
            Box::new(move || posix.run())
        }
        _ => return Err(options.unknown()),
    })
}
