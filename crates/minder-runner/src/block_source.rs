//! Blocks of the input, and the values that jobs get with them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use anyhow::{Result, bail};
use minder::jobs::NextJob;

use crate::input::ArgumentReader;
use crate::input::JobArgs;
use crate::splitter::InputQueue;
use crate::splitter::InputReader;
use crate::splitter::JobInput;

/// The most values that are read ahead.
const AHEAD_MAX: usize = 64;

/// The source of jobs with `--pipe`.
#[derive(Debug)]
pub(crate) struct BlockSource {
    pub(crate) queue: Arc<InputQueue>,
    /// Fills the queue, until the reader thread takes it.
    pub(crate) reader: Option<InputReader>,
    /// Values for the jobs, in their order.
    pub(crate) values: Values,
    /// `true` if a value is the command, so that a job without one cannot run.
    pub(crate) runs_values: bool,
    /// For blocks as files: the path, to which the job's number is appended. It is the first
    /// argument.
    pub(crate) file_prefix: Option<PathBuf>,
    /// The block whose values are not read yet.
    pub(crate) pending: Option<JobInput>,
}

/// Values that jobs get with their blocks.
#[derive(Debug)]
pub(crate) enum Values {
    None,
    Here(Box<ArgumentReader>),
    /// Read ahead by a thread, so that no worker thread waits for a file.
    Ahead(Receiver<Result<JobArgs>>),
}

impl Values {
    /// Returns how many there are, if that is known without reading.
    pub(crate) fn total(&self) -> Option<u64> {
        match self {
            Self::Here(reader) => reader.total(),
            _ => None,
        }
    }

    /// Switches to reading ahead, if a read may block. Returns what the thread reads, and where it
    /// sends the values.
    pub(crate) fn read_ahead(&mut self) -> Option<(Box<ArgumentReader>, SyncSender<Result<JobArgs>>)> {
        match std::mem::replace(self, Self::None) {
            Self::Here(reader) if reader.may_block => {
                let (sender, receiver) = sync_channel(AHEAD_MAX);
                *self = Self::Ahead(receiver);
                Some((reader, sender))
            }
            other => {
                *self = other;
                None
            }
        }
    }

    fn next(&mut self) -> Result<NextJob<JobArgs>> {
        Ok(match self {
            Self::None => NextJob::Ready(JobArgs::Columns(Vec::new())),
            Self::Here(reader) => reader.next_arguments()?.map_or(NextJob::Exhausted, NextJob::Ready),
            Self::Ahead(receiver) => match receiver.try_recv() {
                Ok(arguments) => NextJob::Ready(arguments?),
                Err(TryRecvError::Empty) => NextJob::Pending,
                Err(TryRecvError::Disconnected) => NextJob::Exhausted,
            },
        })
    }
}

impl BlockSource {
    /// Returns the next block, with the arguments of job `number`.
    pub(crate) fn next(&mut self, number: u64) -> Result<NextJob<(JobInput, JobArgs)>> {
        let block = match self.pending.take() {
            Some(block) => block,
            None => match self.queue.next() {
                NextJob::Ready(block) => block,
                NextJob::Pending => return Ok(NextJob::Pending),
                NextJob::Exhausted => return Ok(NextJob::Exhausted),
            },
        };
        let values = match self.values.next()? {
            NextJob::Ready(values) => values,
            NextJob::Pending => {
                self.pending = Some(block);
                return Ok(NextJob::Pending);
            }
            NextJob::Exhausted if self.runs_values => bail!(
                "the input has a part for job {number}, and no command for it: `:::` names fewer of them"
            ),
            // As with GNU parallel, the placeholders of the remaining jobs are empty.
            NextJob::Exhausted => JobArgs::Columns(vec![OsString::new()]),
        };
        Ok(NextJob::Ready((block, self.with_file_name(number, values))))
    }

    /// Puts the name of the block's file before the values.
    fn with_file_name(&self, number: u64, values: JobArgs) -> JobArgs {
        match (&self.file_prefix, values) {
            (Some(prefix), JobArgs::Columns(mut columns)) => {
                // The file is created for this job and removed with it.
                let mut name = prefix.clone().into_os_string();
                name.push(number.to_string());
                columns.splice(..columns.len().min(1), [name]);
                JobArgs::Columns(columns)
            }
            (_, values) => values,
        }
    }
}
