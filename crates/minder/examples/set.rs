//! Reads many children with one wait, on one thread.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::HashMap;

use minder::{ChildId, ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};

const CHILDREN: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(number) = std::env::args().nth(1) {
        println!("I am number {number}");
        return Ok(());
    }
    let mut set = ChildSet::new(ChildSetOptions::default())?;
    let mut texts: HashMap<ChildId, Vec<u8>> = HashMap::new();
    for number in 0..CHILDREN {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(number.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        texts.insert(set.spawn(&command, SpawnOptions::default())?, Vec::new());
    }
    let mut done = 0;
    // Without a deadline the wait ends when all children are done.
    while let NextEvent::Event(event) = set.next_event(None)? {
        match event {
            Event::Output { child, chunk: bytes, .. } => {
                texts.entry(child).or_default().extend_from_slice(&bytes)
            }
            Event::Done { outcome, .. } => {
                assert!(outcome.exit.status.success(), "a child exited with {}", outcome.exit.status);
                done += 1;
            }
            _ => (),
        }
    }
    let mut lines: Vec<_> = texts.into_values().map(String::from_utf8).collect::<Result<_, _>>()?;
    lines.sort();
    assert_eq!(done, CHILDREN);
    assert_eq!(lines.len(), CHILDREN);
    assert!(lines.iter().all(|text| text.starts_with("I am number ")));

    println!("set: read {done} children, the first line is: {}", lines[0].trim_end());
    Ok(())
}
