//! Talks to a child in messages with `Content-Length` headers, as an editor does with a language server.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::io::{Read, Write};

use minder::frame::{FrameDecoder, FrameFormat};
use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        return answer(std::io::stdin().lock(), std::io::stdout().lock());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let child = set.spawn(&command, SpawnOptions::new())?;
    let requests = ["initialize", "two\nlines", ""];
    let mut input = Vec::new();
    for request in requests {
        FrameFormat::ContentLength.encode(request.as_bytes(), &mut input)?;
    }
    assert_eq!(set.write(child, &input)?, input.len(), "so few bytes fit into a pipe");
    set.close_stdin(child)?;

    // One decoder for each output of each child. Its errors name the child.
    let mut decoder = FrameDecoder::new(FrameFormat::ContentLength).label(format_args!("child {child}"));
    let mut answers = Vec::new();
    while let NextEvent::Event(event) = set.next_event(None)? {
        let Event::Output { chunk, .. } = event else { continue };
        let mut rest: &[u8] = &chunk;
        while let Some(message) = decoder.next_frame(&mut rest)? {
            answers.push(String::from_utf8(message.to_vec())?);
        }
    }
    assert!(decoder.finish()?.is_none(), "the last message is complete");
    assert_eq!(answers, requests.map(str::to_uppercase));
    println!("frames: the child answered {answers:?}");
    Ok(())
}

/// Answers each message with the same in upper case.
fn answer(mut input: impl Read, mut output: impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let mut decoder = FrameDecoder::new(FrameFormat::ContentLength).label("standard input");
    let mut chunk = [0; 16];
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(decoder.finish().map(drop)?);
        }
        let mut rest = &chunk[..count];
        let mut bytes = Vec::new();
        while let Some(message) = decoder.next_frame(&mut rest)? {
            FrameFormat::ContentLength.encode(&message.to_ascii_uppercase(), &mut bytes)?;
        }
        output.write_all(&bytes)?;
        output.flush()?;
    }
}
