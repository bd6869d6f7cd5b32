//! Parts of the input, and the values that jobs get beside them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use anyhow::{Result, bail};
use minder::exec::Supply;

use super::pipe::{Part, Pipe};
use crate::input::{Arguments, Opened};

/// How many values are read ahead at most.
const AHEAD_MAX: usize = 64;

/// Where jobs of `--pipe` come from.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) pipe: Arc<Pipe>,
    /// The first job gets the first of them, and so on.
    pub(super) values: Values,
    /// Whether a value is the command, so that a job without one cannot be.
    pub(super) runs_values: bool,
    /// For a file with the part: this path with the job's number behind it. It takes the place of
    /// the first value.
    pub(super) name: Option<PathBuf>,
    /// The part whose values are not there yet.
    pub(super) held: Option<Part>,
}

/// Values beside parts.
#[derive(Debug)]
pub(super) enum Values {
    None,
    Here(Box<Opened>),
    /// A thread reads them: the loops wait for no file.
    Ahead(Receiver<Result<Arguments>>),
}

impl Values {
    /// How many there are, where that is known without reading.
    pub(super) fn total(&self) -> Option<u64> {
        match self {
            Self::Here(opened) => opened.total(),
            _ => None,
        }
    }

    /// Has them read ahead, if reading may block. Returns what a thread is to read, and where it
    /// puts that.
    pub(super) fn read_ahead(&mut self) -> Option<(Box<Opened>, SyncSender<Result<Arguments>>)> {
        match std::mem::replace(self, Self::None) {
            Self::Here(opened) if opened.blocks => {
                let (sender, receiver) = sync_channel(AHEAD_MAX);
                *self = Self::Ahead(receiver);
                Some((opened, sender))
            }
            other => {
                *self = other;
                None
            }
        }
    }

    fn next(&mut self) -> Result<Supply<Arguments>> {
        Ok(match self {
            Self::None => Supply::Job(Arguments::Columns(Vec::new())),
            Self::Here(opened) => opened.next()?.map_or(Supply::End, Supply::Job),
            Self::Ahead(receiver) => match receiver.try_recv() {
                Ok(arguments) => Supply::Job(arguments?),
                Err(TryRecvError::Empty) => Supply::Later,
                Err(TryRecvError::Disconnected) => Supply::End,
            },
        })
    }
}

impl Parts {
    /// The next part, with the arguments of job `number`.
    pub(super) fn next(&mut self, number: u64) -> Result<Supply<(Part, Arguments)>> {
        let part = match self.held.take() {
            Some(part) => part,
            None => match self.pipe.next() {
                Supply::Job(part) => part,
                Supply::Later => return Ok(Supply::Later),
                Supply::End => return Ok(Supply::End),
            },
        };
        let values = match self.values.next()? {
            Supply::Job(values) => values,
            Supply::Later => {
                self.held = Some(part);
                return Ok(Supply::Later);
            }
            Supply::End if self.runs_values => bail!(
                "the input has a part for job {number}, and no command for it: `:::` names fewer of them"
            ),
            // As with GNU parallel, the placeholders of the others stand for nothing.
            Supply::End => Arguments::Columns(vec![OsString::new()]),
        };
        Ok(Supply::Job((part, self.named(number, values))))
    }

    /// With the name of the part's file before the values.
    fn named(&self, number: u64, values: Arguments) -> Arguments {
        match (&self.name, values) {
            (Some(name), Arguments::Columns(mut columns)) => {
                // What has this name is made anew, and goes with the job.
                let mut name = name.clone().into_os_string();
                name.push(number.to_string());
                columns.splice(..columns.len().min(1), [name]);
                Arguments::Columns(columns)
            }
            (_, values) => values,
        }
    }
}
