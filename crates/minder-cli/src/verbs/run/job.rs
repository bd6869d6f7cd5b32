//! One running job, as its loop knows it.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use minder::{ExitInfo, ExitStatus, Outcome, Stream, Token};

use super::gates::JobPermit;
use super::lines::LineBuffer;
use super::output::JobFile;
use super::results::{JobResults, TemplateFiles};
use super::spread::StdinFeeder;
use super::stage::LineDecoration;
use super::tags::{LineDecorator, LineStyle};
use crate::report::EndCause;
use minder_record::event::{JobFinished, OsBytes, OutputSegment, TAIL_MAX, since_1970};

/// See the module.
#[derive(Debug)]
pub(super) struct RunningJob {
    pub(super) number: u64,
    pub(super) token: Option<Token>,
    pub(super) started_at: Instant,
    /// How long it took, once it is over.
    pub(super) wall_time: Option<Duration>,
    at: SystemTime,
    /// Whether its output is shown as it comes.
    pub(super) live: bool,
    /// Whether it was killed by a failure of ours: the torn pieces that it wrote are not shown.
    pub(super) interrupted: bool,
    pub(super) style: Option<LineStyle>,
    pub(super) decorators: [LineDecorator; 2],
    /// Bytes that it wrote to its outputs.
    pub(super) wrote: [u64; 2],
    /// The last of its outputs, as far as they are not kept elsewhere.
    pub(super) tails: [StderrTail; 2],
    /// Whether its standard output may pass without us.
    pub(super) forwards: bool,
    /// The files that are its outputs.
    pub(super) spool: Vec<JobFile>,
    pub(super) results: Option<JobResults>,
    /// What was made for it and goes with it.
    pub(super) copies: TemplateFiles,
    pub(super) lines: LineBuffer,
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
    pub(super) header: Vec<u8>,
    /// What it reads.
    pub(super) stdin: Option<StdinFeeder>,
    /// Files that go with it.
    pub(super) files: Vec<PathBuf>,
    /// Given back at its end.
    pub(super) permit: Option<JobPermit>,
}

impl RunningJob {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            token: None,
            started_at: Instant::now(),
            wall_time: None,
            at: SystemTime::now(),
            live: false,
            interrupted: false,
            style: None,
            decorators: Default::default(),
            wrote: [0; 2],
            tails: Default::default(),
            forwards: false,
            spool: Vec::new(),
            results: None,
            copies: TemplateFiles::default(),
            lines: LineBuffer::default(),
            last: true,
            may_live: true,
            timeout: None,
            held: false,
            put_back: false,
            header: Vec::new(),
            stdin: None,
            files: Vec::new(),
            permit: None,
        }
    }

    pub(super) fn wall(&self) -> Duration {
        self.wall_time.unwrap_or_else(|| self.started_at.elapsed())
    }

    /// How many files are open for it, at most.
    pub(super) fn files_open(&self) -> usize {
        self.spool.len() + if self.results.is_some() { 2 } else { 0 }
    }

    /// How its lines are marked when they are shown as they come.
    pub(super) fn marking(&mut self, stream: Stream) -> Option<LineDecoration<'_>> {
        self.style.as_ref().map(|marks| (marks, &mut self.decorators[stream as usize]))
    }

    /// Bytes that were just heard.
    pub(super) fn count(&mut self, stream: Stream, bytes: u64) {
        self.wrote[stream as usize] += bytes;
    }

    /// Why it ended, if not by itself.
    pub(super) fn cause(&self, outcome: &Outcome, halted_now: bool) -> EndCause {
        match self.timeout {
            _ if self.put_back => EndCause::Memory,
            Some(limit) if outcome.timed_out => EndCause::TimedOut(limit),
            _ if halted_now => EndCause::Halted,
            _ => EndCause::Own,
        }
    }

    /// Its row.
    pub(super) fn row(&self, args: Vec<OsBytes>, exit: ExitInfo, kept: Vec<OutputSegment>) -> JobFinished {
        let (code, signal) = match exit.status {
            ExitStatus::Exited(code) => (Some(code), None),
            ExitStatus::Signaled { signal, .. } => (None, Some(signal)),
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
            sent: self.stdin.as_ref().map_or(0, |meal| meal.sent),
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
pub(super) fn unstarted_row(number: u64, args: Vec<OsBytes>, why: &str) -> JobFinished {
    let at = since_1970(SystemTime::now());
    JobFinished { job: number, args, at, error: Some(why.to_owned()), ..JobFinished::default() }
}

/// Whether a job that ended so was cut off by our order to end, or with the whole run.
pub(super) fn was_cancelled(outcome: &Outcome, cancelled: bool) -> bool {
    cancelled && !outcome.exit.status.success()
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        for path in &self.files {
            // Whoever prunes the record finds what is left.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Vec<u8>);

impl StderrTail {
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
        let mut tail = StderrTail::default();
        tail.push(&[1; TAIL_MAX - 1]);
        tail.push(&[2; 3]);
        let bytes = tail.take();
        assert_eq!((bytes.len(), &bytes[TAIL_MAX - 4..]), (TAIL_MAX, &[1, 2, 2, 2][..]));
        tail.push(&[3; TAIL_MAX * 2]);
        assert_eq!(tail.take(), [3; TAIL_MAX]);
    }
}
