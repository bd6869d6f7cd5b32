//! Tests of which job gets which input. The results of the small cases are those of GNU parallel
//! 20221122, except where a comment gives a reason.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::splitter::timed_read::TimedRead;
use std::num::NonZeroU64;
use std::sync::Arc;

use minder::jobs::NextJob;

use super::config::{BLOCKS_OWN, CHUNK_MAX, READY_MAX};
use super::input_queue::ReadResult;
use super::*;

mod files;
mod limits;
mod parts;
mod random;
mod streams;
#[cfg(unix)]
mod unix;

/// Input that arrives in reads of certain sizes. A size of 0 is a pause.
pub(crate) struct Script {
    pub(crate) bytes: Vec<u8>,
    pub(crate) at: usize,
    /// The most bytes of each read, repeated.
    pub(crate) sizes: Vec<usize>,
    pub(crate) turn: usize,
    waited: bool,
}

impl Script {
    pub(crate) fn new(bytes: &[u8], sizes: &[usize]) -> Self {
        Self { bytes: bytes.to_vec(), at: 0, sizes: sizes.to_vec(), turn: 0, waited: false }
    }
}

impl TimedRead for Script {
    fn read(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<Option<usize>> {
        let most = self.sizes.get(self.turn % self.sizes.len().max(1)).copied().unwrap_or(usize::MAX);
        self.turn += 1;
        if most == 0 && deadline.is_some() && !std::mem::replace(&mut self.waited, true) {
            return Ok(None);
        }
        self.waited = false;
        let count = buffer.len().min(self.bytes.len() - self.at).min(most.max(1));
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(Some(count))
    }
}

pub(crate) fn config() -> SplitterConfig {
    SplitterConfig::default()
}

pub(crate) fn block(bytes: u64) -> SplitterConfig {
    SplitterConfig { block: BlockSize::Bytes(bytes), ..config() }
}

pub(crate) fn records(count: u64) -> SplitterConfig {
    SplitterConfig { records: NonZeroU64::new(count), ..config() }
}

/// A source that is not read: the script is read instead.
pub(crate) fn nothing() -> SplitterSource {
    SplitterSource::Streams(vec![StreamSource::Open(tempfile::tempfile().unwrap())])
}

/// Opens a reader for a script, with its queue.
pub(crate) fn open(config: SplitterConfig, slots: usize) -> (InputReader, Arc<InputQueue>) {
    open_source(config, nothing(), slots).unwrap()
}

pub(crate) fn open_source(
    config: SplitterConfig,
    source: SplitterSource,
    slots: usize,
) -> Result<(InputReader, Arc<InputQueue>), String> {
    let reader = InputReader::open(config, source, slots).map_err(|error| error.to_string())?;
    let queue = Arc::clone(reader.queue());
    Ok((reader, queue))
}

/// Reads the rest of a job's input.
pub(crate) fn drain(queue: &InputQueue, part: &mut JobInput) -> Vec<u8> {
    let mut all = Vec::new();
    while let ReadResult::Bytes(segment) = queue.more(part) {
        assert!(!segment.is_empty() && segment.len() <= CHUNK_MAX);
        all.extend_from_slice(&segment);
    }
    all
}

/// Runs jobs until the end: each of `slots` reads a chunk in its turn.
pub(crate) fn run(
    queue: &Arc<InputQueue>,
    slots: usize,
    read: impl FnOnce(mpsc::Sender<()>) + Send,
) -> Vec<Vec<u8>> {
    let (notify, take_wake) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || read(notify));
        let mut all = Vec::new();
        let mut running = Vec::<JobInput>::new();
        let mut finished = false;
        loop {
            let mut moved = false;
            while running.len() < slots && !finished {
                match queue.next() {
                    NextJob::Ready(part) => {
                        all.push(Vec::new());
                        assert_eq!(part.place + 1, all.len());
                        running.push(part);
                        moved = true;
                    }
                    NextJob::Pending => break,
                    NextJob::Exhausted => finished = true,
                }
            }
            running.retain_mut(|part| match queue.more(part) {
                ReadResult::Bytes(segment) => {
                    all[part.place].extend_from_slice(&segment);
                    moved = true;
                    true
                }
                ReadResult::Pending => true,
                ReadResult::Eof => {
                    moved = true;
                    false
                }
            });
            if finished && running.is_empty() {
                return all;
            }
            if !moved {
                take_wake.recv().expect("receive wake of reader");
            }
        }
    })
}

/// Returns what each job gets of an input that arrives in reads of these sizes.
pub(crate) fn spread(
    config: &SplitterConfig,
    slots: usize,
    input: &[u8],
    sizes: &[usize],
) -> Result<Vec<Vec<u8>>, String> {
    let (reader, queue) = open_source(config.clone(), nothing(), slots)?;
    let mut script = Script::new(input, sizes);
    let all = run(&queue, slots, |notify| {
        queue.set_wake(move || notify.send(()).unwrap_or_default());
        queue.finish(reader.read_source(&mut script, true, 0));
    });
    match queue.error() {
        Some(why) => Err(why),
        None => {
            assert_eq!(queue.live(), 0);
            Ok(all)
        }
    }
}

pub(crate) fn texts(all: Vec<Vec<u8>>) -> Vec<String> {
    all.into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

/// Returns what each job gets, with one job at a time.
pub(crate) fn jobs(config: &SplitterConfig, input: &str) -> Vec<String> {
    texts(spread(config, 1, input.as_bytes(), &[]).unwrap())
}

pub(crate) fn seq(last: usize) -> String {
    (1..=last).map(|number| format!("{number}\n")).collect()
}

pub(crate) fn some(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}
