//! Jobs as they end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder::{Events, Poller};

use super::jobs::Printer;
use super::{id, wrong};
use crate::export::rows::Format;
use crate::report::message;
use minder_record::event::{JobFinished, JournalEvent};
use minder_record::reader::tail_from;
use minder_record::store::{attempt_name, attempts, is_alive};

/// How often a journal is looked at.
const EVERY: Duration = Duration::from_millis(200);

/// Prints the jobs of a run in the order of their ends, until nobody works on it.
pub(super) fn run(out: &mut dyn Write, folder: &Path, format: Option<Format>, failed: bool) -> Result<()> {
    let mut printer = Printer::new(out, &id(folder), format, failed)?;
    let poller = Poller::new()?;
    let mut events = Events::new();
    let mut offsets = BTreeMap::new();
    loop {
        // Looked at first: what was written before the lock was given back is there to be read.
        let alive = is_alive(folder);
        let mut broken = None;
        let said = read_on(folder, &mut offsets, |ended| {
            if broken.is_none() {
                broken = printer.print(&ended).err();
            }
        });
        if let Some(error) = broken {
            return Err(error.into());
        }
        said?;
        if !alive {
            return Ok(printer.finish()?);
        }
        printer.flush()?;
        // Nothing is watched: this is a sleep that Ctrl-C ends.
        poller.wait(&mut events, Some(Instant::now() + EVERY))?;
    }
}

/// Reads what was added to the journals of a run, from where the last call ended.
fn read_on(
    folder: &Path,
    offsets: &mut BTreeMap<u32, u64>,
    mut print: impl FnMut(JobFinished),
) -> Result<()> {
    let about = || format!("cannot read the record of run {}", id(folder));
    for number in attempts(folder).with_context(about)? {
        let offset = offsets.entry(number).or_insert(0);
        let path = folder.join(attempt_name(number));
        let read = tail_from(&path, *offset, |row| {
            if let JournalEvent::JobFinished(ended) = row {
                print(ended);
            }
        });
        let (next, damage) = read.with_context(about)?;
        // Only a first look knows the numbers of lines.
        if let Some(why) = wrong(number, &damage, None, true) {
            match *offset {
                0 => message(&format!("run {} is damaged: {why}", id(folder))),
                _ => message(&format!("run {} is damaged: {}", id(folder), attempt_name(number))),
            }
        }
        *offset = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_record::codec::encode;

    #[test]
    fn each_row_is_seen_once_and_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = std::fs::File::create(folder.path().join(attempt_name(1))).expect("a journal");
        let line = |job| {
            let mut line = Vec::new();
            encode(&JournalEvent::JobFinished(JobFinished { job, ..JobFinished::default() }), &mut line);
            line
        };
        let mut offsets = BTreeMap::new();
        let seen = |offsets: &mut BTreeMap<u32, u64>| {
            let mut jobs = Vec::new();
            read_on(folder.path(), offsets, |ended| jobs.push(ended.job)).expect("a journal");
            jobs
        };
        assert_eq!(seen(&mut offsets), [0; 0]);
        let (one, two) = (line(1), line(2));
        file.write_all(&[&one[..], &two[..10]].concat()).expect("room");
        assert_eq!(seen(&mut offsets), [1]);
        file.write_all(&two[10..]).expect("room");
        std::fs::write(folder.path().join(attempt_name(2)), line(3)).expect("a journal");
        assert_eq!(seen(&mut offsets), [2, 3]);
        assert_eq!(seen(&mut offsets), [0; 0]);
    }
}
