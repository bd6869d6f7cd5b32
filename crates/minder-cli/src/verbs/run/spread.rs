//! From what was asked for to the engine that gives the input out in parts, and what a job is fed
//! with.

use std::num::NonZeroU64;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use minder::Token;
use minder::jobs::ChildControl;
use minder_os::stdio::{StdStream, std_file};

use super::pipe::{
    self, BlockSize, Bytes, Column, Distribution, Header, InputSplitter, JobInput, ReadResult,
    SplitterSource, unescape,
};
use crate::plan::PipeConfig;
use crate::report::format_error;
use crate::units;

/// Opens what gives the input out. `slots`: how many jobs run at once.
pub(super) fn open(asked: &PipeConfig, slots: usize) -> Result<Arc<InputSplitter>> {
    let flags = &asked.flags;
    let block = block(flags.block.as_deref())?;
    let number = |count: Option<u64>| count.and_then(NonZeroU64::new);
    let records = match (number(asked.records), number(asked.lines)) {
        (Some(records), Some(lines)) => Some(records.saturating_mul(lines)),
        (records, lines) => records.or(lines),
    };
    let text =
        |text: &Option<std::ffi::OsString>| text.as_ref().map(|text| unescape(text.as_encoded_bytes()));
    let plan = pipe::SplitterConfig {
        spread: spread(asked),
        block,
        records,
        start: if flags.regexp {
            flags.recstart.as_ref().map(|text| text.as_encoded_bytes().to_vec())
        } else {
            text(&flags.recstart)
        },
        end: if flags.regexp {
            flags.recend.as_ref().map(|text| text.as_encoded_bytes().to_vec())
        } else {
            text(&flags.recend)
        },
        regexp: flags.regexp,
        remove_separator: flags.remove_rec_sep,
        skip_blank: asked.skip_blank,
        skip_first: asked.skip_first,
        all_streams: asked.has_values,
        header: asked.header.as_deref().map(header),
        group_by: flags.group_by.as_deref().map(column),
        colsep: asked.colsep.clone(),
        block_timeout: flags.block_timeout,
    };
    let source = match asked.files.as_slice() {
        [] => SplitterSource::Reader(std_file(StdStream::Input).context("cannot read standard input")?),
        files => SplitterSource::Files(files.to_vec()),
    };
    InputSplitter::open(plan, source, slots)
}

fn spread(asked: &PipeConfig) -> Distribution {
    let flags = &asked.flags;
    match (&flags.shard, &flags.bin) {
        _ if flags.tee => Distribution::Tee,
        (Some(text), _) => Distribution::Shard(column(text)),
        (None, Some(text)) => Distribution::Bin(column(text)),
        _ if flags.round_robin => Distribution::RoundRobin,
        _ => Distribution::Blocks,
    }
}

fn block(text: Option<&str>) -> Result<BlockSize> {
    let Some(text) = text else { return Ok(BlockSize::Bytes(pipe::BLOCK)) };
    let (shares, number) = match text.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, text),
    };
    let count = units::positive(number).map_err(|why| anyhow::anyhow!("--block: {why}"))?;
    match NonZeroU64::new(count) {
        Some(count) if shares => Ok(BlockSize::Shares(count)),
        Some(count) => Ok(BlockSize::Bytes(count.get())),
        None => bail!("--block: `{text}` is too little: at least 1"),
    }
}

fn header(text: &str) -> Header {
    match text.parse() {
        _ if text == ":" => Header::Lines(1),
        Ok(lines) => Header::Lines(lines),
        Err(_) => Header::Pattern(text.as_bytes().to_vec()),
    }
}

fn column(text: &str) -> Column {
    match text.parse() {
        Ok(number) => Column::Number(number),
        Err(_) => Column::Name(text.to_owned()),
    }
}

/// Whether a failed write means that the job takes no more: it closed its input, as `head` does, or
/// is over.
fn is_closed(error: &minder::Error) -> bool {
    error.kind() == minder::ErrorKind::Unknown || error.io_error().kind() == std::io::ErrorKind::BrokenPipe
}

/// How many pieces a job gets before others have their turn.
const PIECES: usize = 16;

/// A job's part, on its way into its standard input.
#[derive(Debug)]
pub(super) struct StdinFeeder {
    part: Box<JobInput>,
    /// What was taken from the part and not written yet.
    left: Option<(Bytes, usize)>,
    /// Whether there was nothing, or others had their turn: it is to be fed again when the loop is
    /// woken.
    pub(super) waiting: bool,
    /// How many bytes the job took.
    pub(super) sent: u64,
    over: bool,
    /// Whether its input could not be written to its end.
    is_broken: bool,
}

impl StdinFeeder {
    pub(super) fn new(part: Box<JobInput>) -> Self {
        Self { part, left: None, waiting: false, sent: 0, over: false, is_broken: false }
    }

    /// Writes as much as the job takes. Says whether others had their turn in between, so that the
    /// loop has to come again.
    pub(super) fn write(
        &mut self,
        pipe: &InputSplitter,
        token: Token,
        outputs: &mut ChildControl<'_>,
    ) -> bool {
        self.waiting = false;
        for _ in 0..PIECES {
            if self.over {
                return false;
            }
            let (bytes, from) = match self.left.take() {
                Some(left) => left,
                None => match pipe.more(&mut self.part) {
                    ReadResult::Bytes(bytes) => (bytes, 0),
                    ReadResult::Pending => {
                        self.waiting = true;
                        return false;
                    }
                    ReadResult::Eof => {
                        self.end(pipe);
                        // It fails only for a child that is over.
                        let _ = outputs.close_stdin(token);
                        return false;
                    }
                },
            };
            let written = outputs.write(token, &bytes[from..]);
            self.sent += written.as_ref().map_or(0, |count| *count as u64);
            match written {
                Ok(count) if from + count == bytes.len() => (),
                // The job is told of when it takes more.
                Ok(count) => {
                    self.left = Some((bytes, from + count));
                    return false;
                }
                Err(error) => {
                    if !is_closed(&error) {
                        // It has read a part, and takes that for all. `is_torn` keeps it from counting.
                        self.is_broken = true;
                        pipe.fail(format_error(&error.into()));
                    }
                    self.end(pipe);
                    return false;
                }
            }
        }
        self.waiting = true;
        true
    }

    /// The job takes nothing more.
    pub(super) fn end(&mut self, pipe: &InputSplitter) {
        self.over = true;
        self.left = None;
        pipe.give_up(&mut self.part);
    }

    /// Whether the job got less than its part, since the input could not be read or not be written.
    pub(super) fn is_torn(&self) -> bool {
        self.is_broken || self.part.is_torn()
    }

    /// The part, for the job to run again, if it can be had from the start.
    pub(super) fn again(mut self, pipe: &InputSplitter) -> Option<Box<JobInput>> {
        pipe.again(&mut self.part).then_some(self.part)
    }

    /// All of the part, piece by piece.
    pub(super) fn write_all<E>(
        &mut self,
        pipe: &InputSplitter,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let ReadResult::Bytes(bytes) = pipe.more(&mut self.part) {
            take(&bytes)?;
            self.sent += bytes.len() as u64;
        }
        self.over = true;
        Ok(())
    }
}
