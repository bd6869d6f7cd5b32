//! The output of one running job on its worker thread.

use minder::Stream;
use minder_record::event::TAIL_MAX;

use crate::output::decorate::{LineDecorator, LineStyle};
use crate::output::line_buffer::{LineBuffer, LineSink};
use crate::output::sequencer::{LineDecoration, OutputSequencer};
use crate::output::store::JobFile;
use crate::results::JobResults;

/// What a running job wrote, and how that is shown. Streams are indexed by `Stream as usize`.
#[derive(Debug, Default)]
pub(crate) struct JobOutput {
    /// Whether it is written as it arrives.
    pub(crate) is_live: bool,
    /// Whether it may be shown live: not if the job may run again, and not if its color depends on
    /// how the job ends.
    pub(crate) may_be_live: bool,
    /// Bytes that are written before it.
    pub(crate) header: Vec<u8>,
    pub(crate) style: Option<LineStyle>,
    decorators: [LineDecorator; 2],
    lines: LineBuffer,
    /// The number of bytes that the job wrote to each stream.
    pub(crate) written: [u64; 2],
    /// The last bytes of each stream, if they are not kept elsewhere.
    pub(crate) tails: [OutputTail; 2],
    /// Whether forwarding by the kernel was tried.
    pub(crate) forward_tried: bool,
    /// Whether the kernel forwards its standard output.
    pub(crate) is_forwarded: bool,
    /// The files that the job writes to directly.
    pub(crate) spool: Vec<JobFile>,
    pub(crate) results: Option<JobResults>,
}

impl JobOutput {
    /// Returns the number of files that it may have open.
    pub(crate) fn open_files(&self) -> usize {
        self.spool.len() + if self.results.is_some() { 2 } else { 0 }
    }

    /// Decorates each line of live output by the style.
    pub(crate) fn decorate_lines(&mut self) {
        self.decorators = [(); 2].map(|()| LineDecorator::new(self.style.as_ref()));
    }

    /// Returns the decoration of one stream, if the output has a style.
    pub(crate) fn line_decoration(&mut self, stream: Stream) -> Option<LineDecoration<'_>> {
        self.style.as_ref().map(|style| (style, &mut self.decorators[stream as usize]))
    }

    /// Returns the lines of `job`, and the sink that writes them.
    pub(crate) fn lines<'a>(
        &'a mut self,
        sequencer: &'a OutputSequencer,
        job: u64,
        line_max: usize,
    ) -> (&'a mut LineBuffer, LineSink<'a>) {
        let style = self.style.as_ref();
        (&mut self.lines, LineSink { sequencer, job, line_max, style, decorators: &mut self.decorators })
    }

    /// Passes what was not written of the lines of both streams to `take`.
    pub(crate) fn take_rest_of_lines(&mut self, take: impl FnMut(Stream, &[u8])) {
        self.lines.take_rest(take);
    }

    /// Counts bytes that the job wrote.
    pub(crate) fn count(&mut self, stream: Stream, bytes: u64) {
        self.written[stream as usize] += bytes;
    }

    /// Deletes the files that the job wrote to.
    pub(crate) fn delete_files(&mut self) {
        self.spool.drain(..).for_each(JobFile::remove);
        if let Some(results) = self.results.take() {
            results.discard();
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct OutputTail(Vec<u8>);

impl OutputTail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL_MAX)..];
        let room = TAIL_MAX - last.len();
        if self.0.len() > room {
            self.0.drain(..self.0.len() - room);
        }
        self.0.extend_from_slice(last);
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Returns the last bytes of a file, up to `end`; nothing if it cannot be read.
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
        let mut tail = OutputTail::default();
        tail.push(&[1; TAIL_MAX - 1]);
        tail.push(&[2; 3]);
        let bytes = tail.take();
        assert_eq!((bytes.len(), &bytes[TAIL_MAX - 4..]), (TAIL_MAX, &[1, 2, 2, 2][..]));
        tail.push(&[3; TAIL_MAX * 2]);
        assert_eq!(tail.take(), [3; TAIL_MAX]);
    }
}
