//! The output of one running job on its worker thread.

use std::fs::File;
use std::ops::Range;

use minder::Stream;
use minder_record::event::{OsBytes, TAIL_MAX};

use crate::context::RunContext;
use crate::output::decorate::{LineDecorator, LineStyle};
use crate::output::gathered::GatheredOutput;
use crate::output::line_buffer::{LineBuffer, LineSink};
use crate::output::sequencer::{LineDecoration, OutputSequencer};
use crate::output::store::{JobFile, Location};
use crate::output::stored::OutputCopy;
use crate::results::{JobResults, cannot_write};
use crate::text::os_error_text;

/// The output of a running job, and the way in which it is shown. Streams are indexed by
/// `Stream as usize`.
#[derive(Debug, Default)]
pub(crate) struct JobOutput {
    /// `true` if it is written as it arrives.
    pub(crate) is_live: bool,
    /// `true` if it may be shown live: not if the job may run again, and not if its color depends
    /// on how the job ends.
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
    /// `true` if forwarding by the kernel was tried.
    pub(crate) forward_tried: bool,
    /// `true` if the kernel forwards its standard output.
    pub(crate) is_forwarded: bool,
    /// The files that the job writes to directly.
    pub(crate) spool: Vec<JobFile>,
    /// Boxed, because few runs have result files.
    pub(crate) results: Option<Box<JobResults>>,
    /// The output that is written after the end of the job.
    pub(crate) gathered: GatheredOutput,
    /// The copy of the output for the record, with `--keep-output`.
    pub(crate) copy: Option<Box<OutputCopy>>,
}

impl JobOutput {
    /// Returns the number of files that it may have open.
    pub(crate) fn open_files(&self) -> usize {
        self.spool.len() + if self.results.is_some() { 2 } else { 0 } + self.gathered.open_files()
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
        context: &'a RunContext<'_>,
        job: u64,
    ) -> (&'a mut LineBuffer, LineSink<'a>) {
        let sink = LineSink {
            sequencer: context.sequencer,
            job,
            line_max: context.line_max,
            style: self.style.as_ref(),
            decorators: &mut self.decorators,
        };
        (&mut self.lines, sink)
    }

    /// Writes the header before output that is shown live.
    pub(crate) fn show_header(&mut self, sequencer: &OutputSequencer) {
        let header = std::mem::take(&mut self.header);
        sequencer.show(Stream::Stdout, &header, self.line_decoration(Stream::Stdout));
    }

    /// Closes the colored lines of output that was shown live.
    pub(crate) fn close_styled_lines(&mut self, sequencer: &OutputSequencer) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Some(line_decoration) = self.line_decoration(stream) {
                sequencer.end_line(stream, line_decoration);
            }
        }
    }

    /// Notes bytes that do not come to the gathered output.
    pub(crate) fn note_passed(&mut self, stream: Stream, bytes: &[u8]) {
        self.tails[stream as usize].push(bytes);
        if let Some(copy) = &mut self.copy {
            copy.push(stream, bytes);
        }
    }

    /// Notes a part of a file that does not come to the gathered output.
    pub(crate) fn note_passed_file(&mut self, stream: Stream, file: &File, range: Range<u64>) {
        self.tails[stream as usize].push(&last_bytes(file, range.end));
        if let Some(copy) = &mut self.copy {
            copy.push_file(stream, file, range);
        }
    }

    /// Completes the copy for the record by what is in the gathered output.
    ///
    /// # Errors
    /// One line: a file cannot be read or written.
    fn complete_copy(&mut self) -> Result<(), String> {
        let Some(copy) = &mut self.copy else { return Ok(()) };
        let mut result = Ok(());
        for stream in [Stream::Stdout, Stream::Stderr] {
            let shows = self.results.as_ref().is_none_or(|results| results.shows(stream));
            // Of lines, the gathered output repeats the last ones.
            if copy.passed(stream) > 0 || !shows {
                continue;
            }
            let segments = self.gathered.segments().iter().filter(|segment| segment.stream == stream);
            let all: u64 = segments.map(|segment| segment.location.len()).sum();
            // The header before the output is not the job's.
            let mut header = all.saturating_sub(self.written[stream as usize]);
            let copied = self.gathered.for_each_chunk(stream, &mut |bytes| {
                let skipped = usize::try_from(header).unwrap_or(usize::MAX).min(bytes.len());
                header -= skipped as u64;
                copy.push(stream, &bytes[skipped..]);
                Ok(())
            });
            result = result.and(copied);
        }
        result.map_err(|error| format!("cannot read the output of a job: {}", os_error_text(&error)))?;
        copy.finish().map_err(|(dir, error)| {
            format!("cannot write the record in `{}`: {}", dir.display(), os_error_text(&error))
        })
    }

    /// Moves what was not written of the lines of both streams to the gathered output.
    pub(crate) fn gather_rest_of_lines(&mut self) {
        self.lines.take_rest(|stream, bytes| self.gathered.push(stream, bytes));
    }

    /// Moves the rest of the output of a job that has ended to the gathered output: the files that it wrote
    /// to, incomplete lines, and the line that names its result files.
    ///
    /// # Errors
    /// One line: a file cannot be read or written.
    pub(crate) fn gather_rest(&mut self) -> Result<(), String> {
        let mut gathered = Ok(());
        for (stream, mut job_file) in [Stream::Stdout, Stream::Stderr].into_iter().zip(self.spool.drain(..)) {
            let len = job_file.written().unwrap_or_else(|error| {
                gathered = Err(format!("cannot read the output of a job: {}", os_error_text(&error)));
                0
            });
            self.written[stream as usize] = len;
            job_file.range = 0..len;
            if let (Some(results), Some(file)) = (&mut self.results, &job_file.file)
                && let Err(error) = results.push_file(stream, file, 0, len)
            {
                gathered = Err(cannot_write(results.place(), &error));
            }
            match len {
                0 => job_file.remove(),
                _ => self.gathered.push_file(stream, job_file),
            }
        }
        gathered?;
        self.gather_rest_of_lines();
        let Some(results) = &self.results else { return self.complete_copy() };
        for stream in [Stream::Stdout, Stream::Stderr] {
            let written = results.handed_over(stream);
            let written = written.map_err(|error| cannot_write(results.place(), &error))?;
            if let Some((file, len)) = written {
                self.written[stream as usize] = len;
                let end = file.metadata().map_or(len, |metadata| metadata.len());
                self.tails[stream as usize].push(&last_bytes(file, end));
                if let Some(copy) = &mut self.copy {
                    copy.push_file(stream, file, end - len..end);
                }
            }
        }
        let line = results.line();
        self.complete_copy()?;
        if let Some(line) = line {
            self.gathered.push(Stream::Stdout, &line);
        }
        Ok(())
    }

    /// Returns the last bytes that a failed job wrote to one of its streams, once all are gathered.
    pub(crate) fn tail(&mut self, stream: Stream) -> Option<OsBytes> {
        // With `--files` a file name is gathered instead of the job's output.
        let is_own = self.results.as_ref().is_none_or(|results| results.shows(stream));
        let tail = &mut self.tails[stream as usize];
        for segment in self.gathered.segments().iter().filter(|segment| is_own && segment.stream == stream) {
            match &segment.location {
                Location::Batch(range) => tail.push(self.gathered.slice(range.clone())),
                Location::Own(JobFile { file: Some(file), range, .. }) => {
                    tail.push(&last_bytes(file, range.end))
                }
                _ => (),
            }
        }
        let tail = tail.take();
        // The header before the output is not the job's either.
        let written = usize::try_from(self.written[stream as usize]).unwrap_or(usize::MAX);
        let tail = &tail[tail.len().saturating_sub(written)..];
        (!tail.is_empty()).then(|| OsBytes::from(tail))
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

impl Drop for JobOutput {
    fn drop(&mut self) {
        if !self.spool.is_empty() {
            self.spool.drain(..).for_each(JobFile::remove);
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
