//! `--follow`: shows jobs as they finish.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use minder::poll::{Events, Poller};

use super::jobs::Printer;
use super::select::{damage_text, run_id};
use crate::ui::message;
use minder_record::event::{JobFinished, JournalEvent};
use minder_record::reader::tail_from;
use minder_record::store::{attempt_name, attempts, is_alive};
use minder_ui::rows::Format;

/// The interval between two reads of the journals.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Prints the jobs of a run as they finish, until no process works on the run.
pub(super) fn run(out: &mut dyn Write, dir: &Path, format: Option<Format>, failed: bool) -> Result<()> {
    let mut printer = Printer::new(out, &run_id(dir), format, failed)?;
    let poller = Poller::new()?;
    let mut events = Events::new();
    let mut offsets = BTreeMap::new();
    loop {
        // Checked before reading: everything written before the lock was released is then read.
        let alive = is_alive(dir);
        let mut print_error = None;
        let result = read_new_events(dir, &mut offsets, |job| {
            if print_error.is_none() {
                print_error = printer.print(&job).err();
            }
        });
        if let Some(error) = print_error {
            return Err(error.into());
        }
        result?;
        if !alive {
            return Ok(printer.finish()?);
        }
        printer.flush()?;
        // No source is registered: this is a sleep that Ctrl-C interrupts.
        poller.wait(&mut events, Some(POLL_INTERVAL))?;
    }
}

/// Reads the events that were appended to the journals of a run since the last call.
fn read_new_events(
    dir: &Path,
    offsets: &mut BTreeMap<u32, u64>,
    mut print: impl FnMut(JobFinished),
) -> Result<()> {
    let context = || format!("cannot read the record of run {}", run_id(dir));
    for number in attempts(dir).with_context(context)? {
        let offset = offsets.entry(number).or_insert(0);
        let path = dir.join(attempt_name(number));
        let read = tail_from(&path, *offset, |event| {
            if let JournalEvent::JobFinished(job) = event {
                print(job);
            }
        });
        let (next, damage) = read.with_context(context)?;
        // Line numbers are known only when reading from the start.
        if let Some(why) = damage_text(number, &damage, None, true) {
            match *offset {
                0 => message(&format!("run {} is damaged: {why}", run_id(dir))),
                _ => message(&format!("run {} is damaged: {}", run_id(dir), attempt_name(number))),
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
    fn read_new_events_reports_each_complete_event_once() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let mut file = std::fs::File::create(dir.path().join(attempt_name(1))).expect("create journal");
        let line = |job| {
            let mut line = Vec::new();
            encode(&JournalEvent::JobFinished(JobFinished { job, ..JobFinished::default() }), &mut line);
            line
        };
        let mut offsets = BTreeMap::new();
        let new_jobs = |offsets: &mut BTreeMap<u32, u64>| {
            let mut jobs = Vec::new();
            read_new_events(dir.path(), offsets, |job| jobs.push(job.job)).expect("read journal");
            jobs
        };
        assert_eq!(new_jobs(&mut offsets), [0; 0]);
        let one = line(1);
        let two = line(2);
        file.write_all(&[&one[..], &two[..10]].concat()).expect("append to journal");
        assert_eq!(new_jobs(&mut offsets), [1]);
        file.write_all(&two[10..]).expect("append to journal");
        std::fs::write(dir.path().join(attempt_name(2)), line(3)).expect("write journal");
        assert_eq!(new_jobs(&mut offsets), [2, 3]);
        assert_eq!(new_jobs(&mut offsets), [0; 0]);
    }
}
