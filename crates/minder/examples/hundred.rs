//! `hundred [COUNT]`: a hundred copies of itself and one wait, in which every byte, end and exit
//! code is checked.

use std::{collections::HashMap, io::Write, process::ExitCode};

use minder::{ChildSet, ChildSetConfig, Command, Event, SpawnOptions, Stdio, Stream};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let args = std::env::args().skip(1).collect::<Vec<_>>();
    match &args[..] {
        [verb, number] if verb == "child" => child(number.parse()?),
        [count] => parent(count.parse()?),
        _ => parent(100),
    }
}

/// What child `number` writes to a stream: up to 20,000 bytes.
fn text(number: u32, stream: Stream) -> Vec<u8> {
    format!("{number} {stream:?}\n").repeat(number as usize % 1000 + 1).into_bytes()
}

fn child(number: u32) -> Result<ExitCode, Failure> {
    std::io::stdout().write_all(&text(number, Stream::Stdout))?;
    std::io::stderr().write_all(&text(number, Stream::Stderr))?;
    Ok(ExitCode::from((number % 256) as u8))
}

fn parent(count: u32) -> Result<ExitCode, Failure> {
    let (mut numbers, mut heard) = (HashMap::new(), HashMap::new());
    let mut set = ChildSet::new(ChildSetConfig::default())?;
    for number in 0..count {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["child", &number.to_string()]);
        command.stdin(Stdio::Null).stdout(Stdio::Piped).stderr(Stdio::Piped);
        numbers.insert(set.spawn(&command, SpawnOptions::default())?, number);
    }
    let (mut bytes, mut ends, mut exits) = (0, 0, 0);
    while let Some(event) = set.next(None)? {
        match event {
            Event::Output(token, stream, chunk) => {
                heard.entry((token, stream)).or_insert_with(Vec::new).extend_from_slice(&chunk);
            }
            Event::Eof(token, stream) => {
                let all: Vec<u8> = heard.remove(&(token, stream)).unwrap_or_default();
                (bytes, ends) = (bytes + all.len(), ends + u32::from(all == text(numbers[&token], stream)));
            }
            Event::Done(token, outcome) => {
                exits += u32::from(outcome.exit.status.code() == Some((numbers[&token] % 256) as i32));
            }
            _ => (),
        }
    }
    if ends != 2 * count || exits != count {
        return Err(format!("of {count} children {ends} ends and {exits} exits are right").into());
    }
    writeln!(std::io::stdout(), "{count} children, {bytes} bytes, every exit right")?;
    Ok(ExitCode::SUCCESS)
}
