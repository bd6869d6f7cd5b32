//! `supervisor NAME=COMMAND…`: keeps services running, and shows the lines that they write. SIGHUP restarts
//! them, SIGTERM and SIGINT stop them. None keeps running after a `kill -9` of the supervisor.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]

use std::{collections::HashMap, error::Error, time::Duration};

use minder::frame::{FrameDecoder, FrameFormat};
use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
use minder::{ChildSet, ChildSetOptions, Command, Event, Restart, Signal, SpawnOptions, Stdio, Termination};

fn main() -> minder::Result<()> {
    let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    let result = supervise(&mut guard).inspect_err(|error| eprintln!("supervisor: {error}"));
    guard.terminate(ExitMode::Status(u8::from(result.is_err()))) // with what services have left running
}

fn supervise(guard: &mut ProcessGuard) -> Result<(), Box<dyn Error>> {
    guard.wait_ready()?;
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let mut services = HashMap::new();
    for service in std::env::args().skip(1) {
        let (name, line) = service.split_once('=').ok_or_else(|| format!("no `=` in `{service}`"))?;
        let mut command = Command::from_argv(line.split_whitespace().map(Into::into).collect());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr_to_stdout();
        let child = set.spawn(&command, SpawnOptions::new().restart(Restart::Always))?;
        services.insert(child, (name.to_owned(), FrameDecoder::new(FrameFormat::Lines)));
    }
    let stop = Termination::graceful(Duration::from_secs(5));
    while !set.is_empty() {
        match guard.next_signal() {
            Some(Signal::HUP) => services.keys().for_each(|child| drop(set.restart(*child, stop))),
            Some(Signal::TERM | Signal::INT) => set.kill_all(stop)?,
            _ => (),
        }
        // An event loop watches `guard.signals()` and `set.poll_handle()` instead.
        let event = set.next_event(Some(Duration::from_millis(200)))?.into_event();
        let child = event.as_ref().and_then(Event::child);
        let Some((name, decoder)) = child.and_then(|child| services.get_mut(&child)) else { continue };
        match event {
            Some(Event::Output { chunk, .. }) => show(name, decoder, &chunk),
            Some(Event::Eof { .. }) => show(name, decoder, b"\n"), // of its last line
            Some(Event::Restarting { outcome, .. }) => println!("{name} ended: {}", outcome.exit.status),
            Some(Event::RestartFailed { error, .. }) => println!("{name}: {error}"),
            _ => (),
        }
    }
    Ok(())
}

fn show(name: &str, decoder: &mut FrameDecoder, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match decoder.next_frame(&mut bytes) {
            Ok(Some(line)) if !line.is_empty() => println!("{name}: {}", String::from_utf8_lossy(&line)),
            Ok(_) => (),
            Err(error) => println!("{name}: {error}"),
        }
        decoder.resync(); // behind a line that is too long
    }
}
