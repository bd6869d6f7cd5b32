//! The state of one running job on its worker thread.

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

/// A job between its start and its event. Streams are indexed by `Stream as usize`.
#[derive(Debug)]
pub(crate) struct RunningJob {
    pub(crate) number: u64,
    pub(crate) token: Option<Token>,
    pub(crate) started_at: Instant,
    /// The wall time, once the job has finished.
    pub(crate) wall_time: Option<Duration>,
    at: SystemTime,
    /// Whether its output is written as it arrives.
    pub(crate) is_live_output: bool,
    /// Whether minder killed it because minder itself failed. Its incomplete output is not shown.
    pub(crate) is_interrupted: bool,
    pub(crate) style: Option<LineStyle>,
    pub(crate) decorators: [LineDecorator; 2],
    /// Bytes that it wrote to each stream.
    pub(crate) written: [u64; 2],
    /// The last bytes of each stream, if they are not kept elsewhere.
    pub(crate) tails: [StderrTail; 2],
    /// Whether forwarding by the kernel was tried.
    pub(crate) forward_tried: bool,
    /// The files that it writes its output to.
    pub(crate) spool: Vec<JobFile>,
    pub(crate) results: Option<JobResults>,
    /// Copies of `--template` files, which are removed with the job.
    pub(crate) copies: TemplateFiles,
    pub(crate) lines: LineBuffer,
    /// Whether a failure of this attempt is final.
    pub(crate) is_last_attempt: bool,
    /// Whether its output may be shown live: not if the job may run again, and not if its color
    /// depends on how it ends.
    pub(crate) may_show_live: bool,
    /// How long it may run.
    pub(crate) timeout: Option<Duration>,
    /// Whether its event was held back, in case the run ends as well.
    pub(crate) is_held: bool,
    /// Whether it was killed to run again later.
    pub(crate) is_requeued: bool,
    /// Bytes that are written before its output.
    pub(crate) header: Vec<u8>,
    /// The rest of its standard input.
    pub(crate) stdin: Option<StdinFeeder>,
    /// Files that are removed with the job.
    pub(crate) files: Vec<PathBuf>,
    /// The permission to run, which is given back when the job ends.
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

    /// Returns the most files that are open for it.
    pub(crate) fn files_open(&self) -> usize {
        self.spool.len() + if self.results.is_some() { 2 } else { 0 }
    }

    /// Returns the decoration of one stream, if its output is shown live and decorated.
    pub(crate) fn line_decoration(&mut self, stream: Stream) -> Option<LineDecoration<'_>> {
        self.style.as_ref().map(|style| (style, &mut self.decorators[stream as usize]))
    }

    /// Counts bytes that the job wrote.
    pub(crate) fn count(&mut self, stream: Stream, bytes: u64) {
        self.written[stream as usize] += bytes;
    }

    /// Returns why minder ended the job, or [`EndCause::Own`].
    pub(crate) fn cause(&self, outcome: &Outcome, is_halted: bool) -> EndCause {
        match self.timeout {
            _ if self.is_requeued => EndCause::Memory,
            Some(limit) if outcome.timed_out => EndCause::TimedOut(limit),
            _ if is_halted => EndCause::Halted,
            _ => EndCause::Own,
        }
    }

    /// Returns its journal event.
    pub(crate) fn finished_event(
        &self,
        args: Vec<OsBytes>,
        exit: ExitInfo,
        kept: Vec<OutputSegment>,
    ) -> JobFinished {
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

/// Returns the event of a job that could not be started.
pub(crate) fn unstarted_event(number: u64, args: Vec<OsBytes>, why: &str) -> JobFinished {
    let at = since_1970(SystemTime::now());
    JobFinished { job: number, args, at, error: Some(why.to_owned()), ..JobFinished::default() }
}

/// Returns `true` if a job was cut off because the run was cancelled.
pub(crate) fn was_cancelled(outcome: &Outcome, cancelled: bool) -> bool {
    cancelled && !outcome.exit.status.success()
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        for path in &self.files {
            // If this fails, the file is removed when the record is pruned.
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
    fn tail_keeps_last_bytes() {
        let mut tail = StderrTail::default();
        tail.push(&[1; TAIL_MAX - 1]);
        tail.push(&[2; 3]);
        let bytes = tail.take();
        assert_eq!((bytes.len(), &bytes[TAIL_MAX - 4..]), (TAIL_MAX, &[1, 2, 2, 2][..]));
        tail.push(&[3; TAIL_MAX * 2]);
        assert_eq!(tail.take(), [3; TAIL_MAX]);
    }
}
