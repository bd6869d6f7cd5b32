//! `hundred [COUNT]`: starts a hundred copies of itself, waits for all of them in one loop, and checks
//! every byte, end of file and exit code.

use std::{collections::HashMap, io::Write, process::ExitCode};

use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio, Stream};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let args = std::env::args().skip(1).collect::<Vec<_>>();
    match &args[..] {
        [role, number] if role == "child" => child(number.parse()?),
        [count] => parent(count.parse()?),
        _ => parent(100),
    }
}

/// Returns what child `number` writes to a stream: up to 20,000 bytes.
fn text(number: u32, stream: Stream) -> Vec<u8> {
    format!("{number} {stream:?}\n").repeat(number as usize % 1000 + 1).into_bytes()
}

fn child(number: u32) -> Result<ExitCode, Failure> {
    std::io::stdout().write_all(&text(number, Stream::Stdout))?;
    std::io::stderr().write_all(&text(number, Stream::Stderr))?;
    Ok(ExitCode::from((number % 256) as u8))
}

fn parent(count: u32) -> Result<ExitCode, Failure> {
    let mut numbers = HashMap::new();
    let mut outputs = HashMap::new();
    let mut set = ChildSet::new(ChildSetOptions::default())?;
    for number in 0..count {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["child", &number.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        numbers.insert(set.spawn(&command, SpawnOptions::default())?, number);
    }
    let mut bytes = 0;
    let mut right_outputs = 0;
    let mut right_exits = 0;
    while let NextEvent::Event(event) = set.next_event(None)? {
        match event {
            Event::Output { child, stream, chunk, .. } => {
                outputs.entry((child, stream)).or_insert_with(Vec::new).extend_from_slice(&chunk);
            }
            Event::Eof { child, stream, .. } => {
                let output: Vec<u8> = outputs.remove(&(child, stream)).unwrap_or_default();
                bytes += output.len();
                right_outputs += u32::from(output == text(numbers[&child], stream));
            }
            Event::Done { child, outcome, .. } => {
                right_exits += u32::from(outcome.exit.status.code() == Some((numbers[&child] % 256) as i32));
            }
            _ => (),
        }
    }
    if right_outputs != 2 * count || right_exits != count {
        return Err(
            format!("of {count} children {right_outputs} outputs and {right_exits} exits are right").into()
        );
    }
    writeln!(std::io::stdout(), "{count} children, {bytes} bytes, every exit right")?;
    Ok(ExitCode::SUCCESS)
}
