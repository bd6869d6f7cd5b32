//! `language_server SECONDS PROGRAM [ARGUMENT…] < FILE`: sends each line of the file, a JSON message, to a
//! language server, and prints its messages. A request is followed by its answer, or fails after SECONDS.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]

use std::{error::Error, process::ExitCode, time::Duration, time::Instant};

use minder::frame::{FrameDecoder, FrameFormat::ContentLength};
use minder::{ChildSet, ChildSetOptions, Command, Event, Signal, SpawnOptions, Stdio, Termination};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let result = converse(&mut set).inspect_err(|error| eprintln!("language_server: {error}"));
    // It may exit by itself first: SIGCONT does not ask for anything.
    let second = Duration::from_secs(1);
    set.kill_all(Termination::signals(&[(Signal::CONT, second), (Signal::TERM, second)])?)?;
    set.wait_all(Some(Duration::from_secs(5)), drop)?;
    Ok(ExitCode::from(u8::from(result.is_err())))
}

fn converse(set: &mut ChildSet) -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().unwrap_or_default().parse::<u32>();
    let timeout = Duration::from_secs(seconds.map_err(|error| format!("SECONDS: {error}"))?.into());
    let mut command = Command::from_argv(args.map(Into::into).collect());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).die_with_parent(true);
    let child = set.spawn(&command, SpawnOptions::new())?;
    let server = command.get_program().display();
    let mut decoder = FrameDecoder::new(ContentLength).label(&server);
    for line in std::io::stdin().lines() {
        let mut input = Vec::new();
        let request: serde_json::Value = serde_json::from_str(&line?)?;
        let mut awaited = request.get("id");
        ContentLength.encode(request.to_string().as_bytes(), &mut input)?;
        let deadline = Instant::now() + timeout;
        loop {
            input.drain(..set.write(child, &input).unwrap_or(input.len())); // a broken pipe: it ends soon
            if input.is_empty() && awaited.is_none() {
                break;
            }
            match set.next_event_deadline(Some(deadline))?.into_event() {
                Some(Event::Output { chunk, .. }) => {
                    let mut rest = &chunk[..];
                    while let Some(message) = decoder.next_frame(&mut rest)? {
                        let message: serde_json::Value = serde_json::from_slice(&message)?;
                        println!("{message}");
                        if message.get("method").is_none() && message.get("id") == awaited {
                            awaited = None;
                        }
                    }
                }
                Some(Event::Exited { .. }) => set.kill(child, Termination::IMMEDIATE)?, // and what it left
                Some(Event::Done { outcome, .. }) => Err(format!("{server}: {}", outcome.exit.status))?,
                None => Err(format!("{server}: no answer within {timeout:?}"))?,
                _ => (),
            }
        }
    }
    Ok(set.close_stdin(child)?)
}
