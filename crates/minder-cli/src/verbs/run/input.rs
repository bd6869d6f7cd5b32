//! Where the arguments come from: the command line, or the lines of standard input or of a file, which are read lazily.
//! They are numbered here. Those that do not run this time are counted and passed over.
//!
//! Lines are read by a thread of their own, since a read may block for ever, and no loop must. It stops when `AHEAD_MAX`
//! bytes wait, and goes on when half of them are taken.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use minder::exec::{Crew, Supply};
use minder::os::{Standard, standard};

use super::again::Again;
use super::ready;
use crate::plan::Origin;
use crate::report::{reason, say};

/// How many bytes are read ahead of the jobs at most.
const AHEAD_MAX: usize = 64 << 10;
/// The longest line. A longer one cannot be an argument on Linux (128 KiB with its end mark, execve(2)).
const LINE_MAX: usize = 128 << 10;

/// One argument, or what is left of a line that is too long to be one.
#[derive(Debug)]
pub(super) enum Item {
    Value(OsString),
    TooLong(usize),
}

/// Why a line is no argument.
pub(super) fn too_long(len: usize) -> String {
    format!("a line of {len} bytes; an argument has at most 131,071")
}

/// A job: its number, from 1, in the order of the input, and its argument.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) item: Item,
}

/// The source of a run.
#[derive(Debug)]
pub(super) struct Input {
    state: Mutex<State>,
    /// Told when room was made for the reader.
    room: Condvar,
    total: Option<u64>,
    /// Which jobs do not run.
    again: Arc<Again>,
    /// A file to read from, instead of standard input.
    file: Mutex<Option<File>>,
}

#[derive(Debug)]
struct State {
    ready: VecDeque<Item>,
    /// The number of the last job that was taken.
    taken: u64,
    /// Bytes in `ready`.
    bytes: usize,
    ended: bool,
    /// Whether somebody asked while there was nothing.
    asked: bool,
    /// What kept the reader from reading on.
    error: Option<String>,
    /// Whether nothing more is taken, whatever is read.
    stopped: bool,
}

impl Input {
    /// Takes the arguments from where they come.
    pub(super) fn open(origin: Origin, again: Arc<Again>) -> Result<Arc<Self>> {
        let (ready, total, file) = match origin {
            Origin::Words(words) => {
                let total = words.len() as u64;
                (words.into_iter().map(Item::Value).collect(), Some(total), None)
            }
            Origin::Stdin => (VecDeque::new(), None, None),
            Origin::File(path) => {
                let file = File::open(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
                (VecDeque::new(), None, Some(file))
            }
        };
        let state = State {
            ready,
            taken: 0,
            bytes: 0,
            ended: total.is_some(),
            asked: false,
            error: None,
            stopped: false,
        };
        let total = total.map(|total| total - again.skipped(total));
        let (state, file) = (Mutex::new(state), Mutex::new(file));
        Ok(Arc::new(Self { state, room: Condvar::new(), total, again, file }))
    }

    /// How many jobs there are to run, where that is known beforehand.
    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Starts to read standard input, if that is the source. The thread is left to itself: it may block for ever, and
    /// ends with the process.
    pub(super) fn read_on(self: &Arc<Self>, crew: &Arc<Crew<Task>>) -> Result<()> {
        if self.total.is_some() {
            return Ok(());
        }
        let mut stdin = self.source()?;
        let (input, crew) = (Arc::clone(self), Arc::clone(crew));
        let reader = thread::Builder::new().name("minder-input".to_owned()).stack_size(128 << 10);
        reader.spawn(move || input.read(&mut stdin, &crew)).context("cannot start a thread for the input")?;
        Ok(())
    }

    /// What is read lazily.
    fn source(&self) -> Result<File> {
        if let Some(file) = self.file.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(file);
        }
        if std::io::stdin().is_terminal() {
            say("reading arguments from the terminal, one a line; Ctrl-D ends them");
        }
        standard(Standard::Input).context("cannot read standard input")
    }

    /// Whether all was taken, and nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.ended && state.ready.is_empty()
    }

    /// Takes all jobs that are to run, one after the other.
    pub(super) fn each(&self, mut take: impl FnMut(Task) -> Result<()>) -> Result<()> {
        if self.total.is_none() {
            let (mut source, mut buffer) = (self.source()?, vec![0; AHEAD_MAX / 4]);
            let mut lines = Lines::default();
            let mut result = Ok(());
            loop {
                let mut add = |item| {
                    self.lock().ready.push_back(item);
                    while let (Ok(()), Supply::Job(task)) = (&result, self.supply()) {
                        result = take(task);
                    }
                };
                match ready::read(&mut source, &mut buffer).context("cannot read standard input")? {
                    0 => {
                        lines.end(add);
                        break;
                    }
                    count => lines.push(&buffer[..count], &mut add),
                }
                if result.is_err() {
                    break;
                }
            }
            return result.and(self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error))));
        }
        while let Supply::Job(task) = self.supply() {
            take(task)?;
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// The next job, if one is there. Never blocks.
    pub(super) fn supply(&self) -> Supply<Task> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Supply::End;
            }
            let Some(item) = state.ready.pop_front() else {
                state.asked = true;
                let (had, least) = (state.taken, self.again.last());
                if state.ended && had < least && state.error.is_none() {
                    let why =
                        format!("the input is not what it was: it has {had} lines, and had {least} at least");
                    (state.error, state.stopped) = (Some(why), true);
                }
                return if state.ended { Supply::End } else { Supply::Later };
            };
            state.taken += 1;
            let number = state.taken;
            self.make_room(&mut state, &item);
            if !self.again.skips(number) {
                return Supply::Job(Task { number, item });
            }
            if let Item::Value(value) = &item
                && self.again.differs(number, value)
            {
                state.error = Some(format!("job {number} of the input is not what it was: nothing is run"));
                state.stopped = true;
            }
        }
    }

    fn make_room(&self, state: &mut State, item: &Item) {
        let before = state.bytes;
        state.bytes = before.saturating_sub(item.len());
        // A long line may need all of the room, so an empty queue is told, too.
        if state.ready.is_empty() || (before > AHEAD_MAX / 2 && state.bytes <= AHEAD_MAX / 2) {
            self.room.notify_one();
        }
    }

    /// What kept standard input from being read to its end.
    pub(super) fn error(&self) -> Option<String> {
        self.lock().error.take()
    }

    fn read(&self, stdin: &mut File, crew: &Crew<Task>) {
        let mut buffer = vec![0; AHEAD_MAX / 4];
        let mut lines = Lines::default();
        loop {
            match ready::read(stdin, &mut buffer) {
                Ok(0) => {
                    lines.end(|item| self.add(item, crew));
                    break;
                }
                Ok(count) => lines.push(&buffer[..count], |item| self.add(item, crew)),
                // A line that the error cut is no argument.
                Err(error) => {
                    self.lock().error = Some(format!("cannot read standard input: {}", reason(&error)));
                    break;
                }
            }
        }
        self.lock().ended = true;
        crew.wake();
    }

    /// Adds one argument, when there is room.
    fn add(&self, item: Item, crew: &Crew<Task>) {
        let mut state = self.lock();
        while state.bytes + item.len() > AHEAD_MAX && !state.ready.is_empty() {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += item.len();
        state.ready.push_back(item);
        let asked = std::mem::take(&mut state.asked);
        drop(state);
        if asked {
            crew.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Item {
    /// Its bytes on the input, with the end of the line.
    fn len(&self) -> usize {
        match self {
            Self::Value(value) => value.len() + 1,
            Self::TooLong(_) => 1,
        }
    }
}

/// Cuts a stream into lines. The last may lack its newline.
#[derive(Debug, Default)]
struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// How many bytes of it were passed over.
    dropped: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Item)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            take(self.line());
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    fn end(&mut self, take: impl FnOnce(Item)) {
        if !self.begun.is_empty() {
            take(self.line());
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(LINE_MAX - self.begun.len());
        self.begun.extend_from_slice(&bytes[..fits]);
        self.dropped += bytes.len() - fits;
    }

    fn line(&mut self) -> Item {
        let line = std::mem::take(&mut self.begun);
        match std::mem::take(&mut self.dropped) {
            0 => Item::Value(from_bytes(line)),
            dropped => Item::TooLong(line.len() + dropped),
        }
    }
}

/// Bytes as an argument. On Unix any bytes are one; elsewhere they are taken for UTF-8.
fn from_bytes(bytes: Vec<u8>) -> OsString {
    minder::os::argument(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(parts: &[&[u8]]) -> Vec<String> {
        let mut got = Vec::new();
        let mut lines = Lines::default();
        let mut take = |item| {
            got.push(match item {
                Item::Value(value) => value.to_string_lossy().into_owned(),
                Item::TooLong(len) => format!("<{len}>"),
            });
        };
        parts.iter().for_each(|part| lines.push(part, &mut take));
        lines.end(&mut take);
        got
    }

    #[test]
    fn lines_are_cut_wherever_the_reads_fall() {
        assert_eq!(cut(&[b"a\nb", b"c\n\n", b"d"]), ["a", "bc", "", "d"]);
        assert_eq!(cut(&[b""]), [""; 0]);
        assert_eq!(cut(&[b"a\n"]), ["a"]);
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_memory() {
        let long = vec![b'x'; LINE_MAX];
        assert_eq!(cut(&[&long, b"yz\nnext\n"]), [format!("<{}>", LINE_MAX + 2), "next".to_owned()]);
    }
}
