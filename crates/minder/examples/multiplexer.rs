//! `multiplexer SECONDS DIRECTORY PROGRAM [ARGUMENT…]`: runs a program in 20 terminals for at most SECONDS.
//! A line of input is typed into all of them; `size ROWS COLUMNS` resizes them. Output goes to a file each.

#![expect(clippy::print_stderr, reason = "a program of the command line")]

use std::io::{Write, stdin};
use std::{collections::HashMap, error::Error, fs::File, process::ExitCode, time::Duration, time::Instant};

use minder::{ChildSet, ChildSetOptions, Command, Event, Group, Size, SpawnOptions, Termination};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let result = run(&mut set).inspect_err(|error| eprintln!("multiplexer: {error}"));
    set.kill_all(Termination::IMMEDIATE)?;
    set.wait_all(Some(Duration::from_secs(5)), drop)?;
    Ok(ExitCode::from(u8::from(result.is_err())))
}

fn run(set: &mut ChildSet) -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().unwrap_or_default().parse::<u32>();
    let limit = Duration::from_secs(seconds.map_err(|error| format!("SECONDS: {error}"))?.into());
    let directory = args.next().unwrap_or_default();
    let mut command = Command::from_argv(args.map(Into::into).collect());
    command.group(Group::Terminal(Size::new(24, 80))).die_with_parent(true);
    let options = SpawnOptions::new().deadline(Instant::now() + limit, Termination::IMMEDIATE);
    let mut terminals = HashMap::new();
    for number in 1..=20 {
        let file = File::create(format!("{directory}/{number}"))?;
        terminals.insert(set.spawn(&command, options)?, (file, Vec::new()));
    }
    let (sender, inputs) = std::sync::mpsc::channel();
    let waker = set.waker();
    std::thread::spawn(move || {
        let lines = stdin().lines().map_while(Result::ok).map(|line| line + "\n");
        let mut inputs = lines.chain(["\x04".to_owned()]); // Ctrl-D is the last
        inputs.all(|input| sender.send(input).is_ok_and(|()| waker.wake().is_ok()))
    });
    while !set.is_empty() {
        for text in inputs.try_iter() {
            let words: Vec<&str> = text.split_whitespace().collect();
            if let ["size", rows, columns] = words[..] {
                let size = Size::new(rows.parse()?, columns.parse()?);
                terminals.keys().try_for_each(|child| set.resize_terminal(*child, size))?;
            } else {
                terminals.values_mut().for_each(|(_, input)| input.extend_from_slice(text.as_bytes()));
            }
        }
        for (child, (_, input)) in terminals.iter_mut().filter(|(_, (_, input))| !input.is_empty()) {
            input.drain(..set.write(*child, input).unwrap_or(input.len()));
        }
        match set.next_event(None)?.into_event() {
            Some(Event::Output { child, chunk, .. }) => (&terminals[&child].0).write_all(&chunk)?,
            Some(Event::Exited { child, .. }) => set.kill(child, Termination::IMMEDIATE)?,
            Some(Event::Done { child, .. }) => drop(terminals.remove(&child)),
            _ => (),
        }
    }
    Ok(())
}
