//! One running job, as its loop knows it.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use minder::{Exit, Outcome, Status, Stream, Token};

use super::gates::Permit;
use super::lines::Lines;
use super::output::Own;
use super::results::{Copies, Results};
use super::spread::Meal;
use super::stage::Marking;
use super::tags::{Marker, Marks};
use crate::report::Cause;
use minder_record::event::{JobFinished, OsBytes, OutputSegment, TAIL_MAX, since_1970};

/// See the module.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) number: u64,
    pub(super) token: Option<Token>,
    pub(super) begun: Instant,
    /// How long it took, once it is over.
    pub(super) took: Option<Duration>,
    at: SystemTime,
    /// Whether its output is shown as it comes.
    pub(super) live: bool,
    /// Whether it was killed by a failure of ours: the torn pieces that it wrote are not shown.
    pub(super) torn: bool,
    pub(super) marks: Option<Marks>,
    pub(super) markers: [Marker; 2],
    /// Bytes that it wrote to its outputs.
    pub(super) wrote: [u64; 2],
    /// The last of its outputs, as far as they are not kept elsewhere.
    pub(super) tails: [Tail; 2],
    /// Whether its standard output may pass without us.
    pub(super) forwards: bool,
    /// The files that are its outputs.
    pub(super) spool: Vec<Own>,
    pub(super) results: Option<Results>,
    /// What was made for it and goes with it.
    pub(super) copies: Copies,
    pub(super) lines: Lines,
    /// Whether a failure of this attempt is the job's last word.
    pub(super) last: bool,
    /// Whether it may be seen as it writes: nobody puts it back.
    pub(super) may_live: bool,
    /// How long it has.
    pub(super) timeout: Option<Duration>,
    /// Whether its end was held back, in case that the run ends as well.
    pub(super) held: bool,
    /// Whether it was ended to run again later.
    pub(super) put_back: bool,
    /// What is printed before its output.
    pub(super) head: Vec<u8>,
    /// What it reads.
    pub(super) meal: Option<Meal>,
    /// Files that go with it.
    pub(super) files: Vec<PathBuf>,
    /// Given back at its end.
    pub(super) permit: Option<Permit>,
}

impl Running {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            token: None,
            begun: Instant::now(),
            took: None,
            at: SystemTime::now(),
            live: false,
            torn: false,
            marks: None,
            markers: Default::default(),
            wrote: [0; 2],
            tails: Default::default(),
            forwards: false,
            spool: Vec::new(),
            results: None,
            copies: Copies::default(),
            lines: Lines::default(),
            last: true,
            may_live: true,
            timeout: None,
            held: false,
            put_back: false,
            head: Vec::new(),
            meal: None,
            files: Vec::new(),
            permit: None,
        }
    }

    pub(super) fn wall(&self) -> Duration {
        self.took.unwrap_or_else(|| self.begun.elapsed())
    }

    /// How many files are open for it, at most.
    pub(super) fn files_open(&self) -> usize {
        self.spool.len() + if self.results.is_some() { 2 } else { 0 }
    }

    /// How its lines are marked when they are shown as they come.
    pub(super) fn marking(&mut self, stream: Stream) -> Option<Marking<'_>> {
        self.marks.as_ref().map(|marks| (marks, &mut self.markers[stream as usize]))
    }

    /// Bytes that were just heard.
    pub(super) fn count(&mut self, stream: Stream, bytes: u64) {
        self.wrote[stream as usize] += bytes;
    }

    /// Why it ended, if not by itself.
    pub(super) fn cause(&self, outcome: &Outcome, halted_now: bool) -> Cause {
        match self.timeout {
            _ if self.put_back => Cause::Memory,
            Some(limit) if outcome.timed_out => Cause::TimedOut(limit),
            _ if halted_now => Cause::Halted,
            _ => Cause::Own,
        }
    }

    /// Its row.
    pub(super) fn row(&self, args: Vec<OsBytes>, exit: Exit, kept: Vec<OutputSegment>) -> JobFinished {
        let (code, signal) = match exit.status {
            Status::Exited(code) => (Some(code), None),
            Status::Signaled { signal, .. } => (None, Some(signal)),
            _ => (None, None),
        };
        JobFinished {
            job: self.number,
            args,
            at: since_1970(self.at),
            wall: self.wall().as_secs_f64(),
            user: exit.usage.map(|usage| usage.user.as_secs_f64()),
            system: exit.usage.map(|usage| usage.system.as_secs_f64()),
            rss: exit.usage.and_then(|usage| usage.max_rss),
            exit: code,
            signal,
            error: None,
            out: self.wrote[0],
            err: self.wrote[1],
            sent: self.meal.as_ref().map_or(0, |meal| meal.sent),
            leaked: false,
            timed_out: false,
            kept,
            tail: None,
            out_tail: None,
            attempts: None,
            cause: None,
        }
    }
}

/// The row of a job that could not be started.
pub(super) fn refused(number: u64, args: Vec<OsBytes>, why: &str) -> JobFinished {
    let at = since_1970(SystemTime::now());
    JobFinished { job: number, args, at, error: Some(why.to_owned()), ..JobFinished::default() }
}

/// Whether a job that ended so was cut off by our order to end, or with the whole run.
pub(super) fn is_cut(outcome: &Outcome, cancelled: bool) -> bool {
    cancelled && !outcome.exit.status.success()
}

impl Drop for Running {
    fn drop(&mut self) {
        for path in &self.files {
            // Whoever prunes the record finds what is left.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL_MAX)..];
        let room = TAIL_MAX - last.len();
        if self.0.len() > room {
            self.0.drain(..self.0.len() - room);
        }
        self.0.extend_from_slice(last);
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_last_bytes() {
        let mut tail = Tail::default();
        tail.push(&[1; TAIL_MAX - 1]);
        tail.push(&[2; 3]);
        let bytes = tail.take();
        assert_eq!((bytes.len(), &bytes[TAIL_MAX - 4..]), (TAIL_MAX, &[1, 2, 2, 2][..]));
        tail.push(&[3; TAIL_MAX * 2]);
        assert_eq!(tail.take(), [3; TAIL_MAX]);
    }
}
