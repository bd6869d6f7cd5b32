//! One running job, as its loop knows it.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use minder::{ExitInfo, ExitStatus, Outcome, Stream, Token};

use crate::admission::JobPermit;
use crate::output::decorate::LineDecorator;
use crate::output::decorate::LineStyle;
use crate::output::line_buffer::LineBuffer;
use crate::output::sequencer::LineDecoration;
use crate::output::store::JobFile;
use crate::report::EndCause;
use crate::results::JobResults;
use crate::results::TemplateFiles;
use crate::splitter::StdinFeeder;
use minder_record::event::{JobFinished, OsBytes, OutputSegment, TAIL_MAX, since_1970};

/// See the module.
#[derive(Debug)]
pub(crate) struct RunningJob {
    pub(crate) number: u64,
    pub(crate) token: Option<Token>,
    pub(crate) started_at: Instant,
    /// How long it took, once it is over.
    pub(crate) wall_time: Option<Duration>,
    at: SystemTime,
    /// Whether its output is shown as it comes.
    pub(crate) is_live_output: bool,
    /// Whether it was killed by a failure of ours: the torn pieces that it wrote are not shown.
    pub(crate) is_interrupted: bool,
    pub(crate) style: Option<LineStyle>,
    pub(crate) decorators: [LineDecorator; 2],
    /// Bytes that it wrote to its outputs.
    pub(crate) written: [u64; 2],
    /// The last of its outputs, as far as they are not kept elsewhere.
    pub(crate) tails: [StderrTail; 2],
    /// Whether its standard output may pass without us.
    pub(crate) forward_tried: bool,
    /// The files that are its outputs.
    pub(crate) spool: Vec<JobFile>,
    pub(crate) results: Option<JobResults>,
    /// What was made for it and goes with it.
    pub(crate) copies: TemplateFiles,
    pub(crate) lines: LineBuffer,
    /// Whether a failure of this attempt is the job's last word.
    pub(crate) is_last_attempt: bool,
    /// Whether it may be seen as it writes: nobody puts it back.
    pub(crate) may_show_live: bool,
    /// How long it has.
    pub(crate) timeout: Option<Duration>,
    /// Whether its end was held back, in case that the run ends as well.
    pub(crate) is_held: bool,
    /// Whether it was ended to run again later.
    pub(crate) is_requeued: bool,
    /// What is printed before its output.
    pub(crate) header: Vec<u8>,
    /// What it reads.
    pub(crate) stdin: Option<StdinFeeder>,
    /// Files that go with it.
    pub(crate) files: Vec<PathBuf>,
    /// Given back at its end.
    pub(crate) permit: Option<JobPermit>,
}

impl RunningJob {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            token: None,
            started_at: Instant::now(),
            wall_time: None,
            at: SystemTime::now(),
            is_live_output: false,
            is_interrupted: false,
            style: None,
            decorators: Default::default(),
            written: [0; 2],
            tails: Default::default(),
            forward_tried: false,
            spool: Vec::new(),
            results: None,
            copies: TemplateFiles::default(),
            lines: LineBuffer::default(),
            is_last_attempt: true,
            may_show_live: true,
            timeout: None,
            is_held: false,
            is_requeued: false,
            header: Vec::new(),
            stdin: None,
            files: Vec::new(),
            permit: None,
        }
    }

    pub(crate) fn wall(&self) -> Duration {
        self.wall_time.unwrap_or_else(|| self.started_at.elapsed())
    }

    /// How many files are open for it, at most.
    pub(crate) fn files_open(&self) -> usize {
        self.spool.len() + if self.results.is_some() { 2 } else { 0 }
    }

    /// How its lines are marked when they are shown as they come.
    pub(crate) fn line_decoration(&mut self, stream: Stream) -> Option<LineDecoration<'_>> {
        self.style.as_ref().map(|style| (style, &mut self.decorators[stream as usize]))
    }

    /// Bytes that were just heard.
    pub(crate) fn count(&mut self, stream: Stream, bytes: u64) {
        self.written[stream as usize] += bytes;
    }

    /// Why it ended, if not by itself.
    pub(crate) fn cause(&self, outcome: &Outcome, is_halted: bool) -> EndCause {
        match self.timeout {
            _ if self.is_requeued => EndCause::Memory,
            Some(limit) if outcome.timed_out => EndCause::TimedOut(limit),
            _ if is_halted => EndCause::Halted,
            _ => EndCause::Own,
        }
    }

    /// Its row.
    pub(crate) fn row(&self, args: Vec<OsBytes>, exit: ExitInfo, kept: Vec<OutputSegment>) -> JobFinished {
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
            out: self.written[0],
            err: self.written[1],
            sent: self.stdin.as_ref().map_or(0, |feeder| feeder.sent),
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
pub(crate) fn unstarted_event(number: u64, args: Vec<OsBytes>, why: &str) -> JobFinished {
    let at = since_1970(SystemTime::now());
    JobFinished { job: number, args, at, error: Some(why.to_owned()), ..JobFinished::default() }
}

/// Whether a job that ended so was cut off by our order to end, or with the whole run.
pub(crate) fn was_cancelled(outcome: &Outcome, cancelled: bool) -> bool {
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
pub(crate) struct StderrTail(Vec<u8>);

impl StderrTail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let is_last_attempt = &bytes[bytes.len().saturating_sub(TAIL_MAX)..];
        let room = TAIL_MAX - is_last_attempt.len();
        if self.0.len() > room {
            self.0.drain(..self.0.len() - room);
        }
        self.0.extend_from_slice(is_last_attempt);
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// The last bytes of a file, up to `end`; nothing if it cannot be read.
pub(crate) fn last_bytes(file: &std::fs::File, end: u64) -> Vec<u8> {
    let mut tail = vec![0; TAIL_MAX.min(usize::try_from(end).unwrap_or(TAIL_MAX))];
    let at = end - tail.len() as u64;
    let read = minder_os::files::read_at(file, &mut tail, at).unwrap_or(0);
    tail.truncate(read);
    tail
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
