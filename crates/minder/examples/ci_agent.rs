//! `ci_agent SECONDS < FILE`: runs each line of the file as a shell command with a time limit, and shows the
//! last MiB of the output of those that fail. What a command has left running ends with it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]

use std::io::{read_to_string, stdin};
use std::time::{Duration, Instant};

use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
use minder::{ChildSet, ChildSetOptions, Command, Event, Outcome, OutputMode, OverflowPolicy, Signal};
use minder::{SpawnOptions, Stdio, Termination};

type Failure = Box<dyn std::error::Error>;

fn main() -> minder::Result<()> {
    let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    let ending = run(&mut guard).unwrap_or_else(|error| {
        eprintln!("ci_agent: {error}");
        ExitMode::Status(2)
    });
    guard.terminate(ending) // with the daemons of all commands
}

fn run(guard: &mut ProcessGuard) -> Result<ExitMode, Failure> {
    let seconds = std::env::args().nth(1).unwrap_or_default().parse::<u32>();
    let limit = Duration::from_secs(seconds.map_err(|error| format!("SECONDS: {error}"))?.into());
    guard.wait_ready()?;
    let mut set = ChildSet::new(ChildSetOptions::new().max_child_bytes(1 << 20))?;
    let options = SpawnOptions::new().output_mode(OutputMode::AtExit).overflow(OverflowPolicy::DropOldest);
    let mut failed = 0;
    for line in read_to_string(stdin())?.lines() {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr_to_stdout();
        let start = Instant::now();
        set.spawn(&command, options.deadline(start + limit, Termination::graceful(Duration::from_secs(2))))?;
        let mut output = Vec::new();
        let outcome = loop {
            if let Some(signal @ (Signal::INT | Signal::TERM | Signal::HUP)) = guard.next_signal() {
                return Ok(ExitMode::Signal(signal));
            }
            match set.next_event(Some(Duration::from_millis(100)))?.into_event() {
                Some(Event::Output { chunk, .. }) => output.extend_from_slice(&chunk),
                Some(Event::Exited { child, .. }) => set.kill(child, Termination::IMMEDIATE)?,
                Some(Event::Done { outcome, .. }) => break outcome,
                _ => (),
            }
        };
        let Outcome { timed_out, dropped, exit, .. } = outcome;
        let result = if timed_out { "timed out".to_owned() } else { exit.status.to_string() };
        println!("{result} after {:.1?}: {line}", start.elapsed());
        if !exit.status.success() || timed_out {
            failed += 1;
            println!("[{dropped} bytes left out]\n{}", String::from_utf8_lossy(&output));
        }
    }
    Ok(ExitMode::Status(u8::from(failed > 0)))
}
