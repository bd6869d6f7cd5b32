//! The input of a run: where arguments come from, how they are cut, how sources are combined, and
//! how many a job gets.
//!
//! Everything is read lazily and in one pass, a record at a time; what has to be read twice waits
//! on a [`tape`], which keeps little in memory. Nothing here knows of threads or jobs.

mod records;
mod columns;
mod tape;
mod combine;
mod gather;
mod order;

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use minder_os::stdio::{StdStream, std_file};

pub(crate) use self::columns::Columns;
use self::combine::Combined;
use self::gather::ArgBatcher;
pub(crate) use self::gather::{ArgsPerJob, BYTES_MAX, Fill, LineLimit};
pub(crate) use self::order::{Order, Ordered, fingerprint};
use self::records::Records;
use crate::report::message;

/// Where records come from, and how they are cut.
#[derive(Debug)]
pub(crate) struct InputPlan {
    pub(crate) sources: Vec<Source>,
    /// What ends a record.
    pub(crate) separator: Vec<u8>,
    /// Whether files are text as Windows writes it: a carriage return before the separator, and a
    /// byte order mark at the beginning, are none of a record's.
    pub(crate) windows_text: bool,
    pub(crate) columns: Option<Columns>,
    pub(crate) header: Header,
    pub(crate) trim: Trim,
    /// The record of this text ends its source.
    pub(crate) eof: Option<Vec<u8>>,
    /// Whether records that are empty or blank are passed over.
    pub(crate) skip_blank: bool,
    /// Whether the first record is passed over.
    pub(crate) skip_first: bool,
    /// Whether a source without any record is one empty value beside others.
    pub(crate) empty_counts: bool,
    /// Whether all sources are read side by side, the shorter ones again and again.
    pub(crate) link: bool,
    pub(crate) arity: ArgsPerJob,
}

/// One source of records.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) kind: Kind,
    /// Whether it is read beside the source before it, instead of being combined with it.
    pub(crate) linked: bool,
}

/// Where the records of a source are.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Words(Vec<OsString>),
    Stdin,
    File(PathBuf),
}

/// What the first records are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Header {
    /// Records like all others.
    #[default]
    None,
    /// So many of each source are names of columns.
    Lines(u64),
    /// Files give their own names to their columns.
    FileNames,
}

/// Where blanks are taken from a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// What a source yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Columns(Vec<OsString>),
    /// A record that cannot be an argument.
    Unfit(InvalidArgument),
}

/// Why a record cannot be an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum InvalidArgument {
    /// It has so many bytes.
    TooLong(usize),
    /// It has this byte, which is not UTF-8, where arguments have to be.
    NoText(u8),
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(len) => write!(f, "a line of {len} bytes; an argument has at most 131,071"),
            Self::NoText(byte) => {
                write!(
                    f,
                    "a line with the byte {byte:02x}, which is not UTF-8; cure: save the input as UTF-8"
                )
            }
        }
    }
}

/// The arguments of one job.
pub(crate) type JobArgs = Record;

/// An input that was opened: its headers are read, and nothing else.
#[derive(Debug)]
pub(crate) struct ArgumentReader {
    /// The names of the columns, if the input has such.
    pub(crate) names: Vec<OsString>,
    /// Whether reading may block.
    pub(crate) blocks: bool,
    gathered: ArgBatcher,
    total: Option<u64>,
    /// A regular file of which one record makes a job: its jobs can be counted beforehand.
    countable: Option<(File, u8)>,
}

impl ArgumentReader {
    /// Opens the sources and reads their headers. `slots` share what is shared out among them.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn open(plan: InputPlan, slots: usize) -> Result<Self> {
        let (mut names, mut readers) = (Vec::new(), Vec::new());
        let countable = countable(&plan);
        let blocks = plan.sources.iter().any(|source| !matches!(source.kind, Kind::Words(_)));
        let lone = (plan.arity.is_plain() && !plan.skip_blank && plan.eof.is_none()).then(|| count(&plan));
        for source in &plan.sources {
            let mut records = Records::open(source, &plan)?;
            let mut of_source = Vec::new();
            match (plan.header, &source.kind) {
                (Header::Lines(lines), _) => {
                    for _ in 0..lines {
                        if let Some(Record::Columns(columns)) = records.next()? {
                            of_source = columns;
                        }
                    }
                }
                (Header::FileNames, Kind::File(path)) => of_source = vec![path.clone().into()],
                (Header::FileNames, _) => of_source = vec![OsString::new()],
                (Header::None, _) if plan.skip_first && names.is_empty() && readers.is_empty() => {
                    records.next()?;
                }
                (Header::None, _) => (),
            }
            names.append(&mut of_source);
            readers.push((records, source.linked));
        }
        let combined = Combined::new(readers, plan.link, plan.empty_counts);
        let gathered = ArgBatcher::new(combined, plan.arity, slots);
        Ok(Self { names, blocks, gathered, total: lone.flatten(), countable })
    }

    /// The next job's arguments.
    ///
    /// # Errors
    /// When a source cannot be read any more.
    pub(crate) fn next(&mut self) -> Result<Option<JobArgs>> {
        self.gathered.next()
    }

    /// Says what a command costs, for inputs that put as many arguments into one as fit: without
    /// arguments, and with one more; how many bytes it may have, if its shell takes less than
    /// the system; how many arguments there may be; and what the system takes beside that.
    pub(crate) fn costs(
        &mut self,
        base: usize,
        cost: gather::CostFn,
        bytes_max: Option<usize>,
        most: impl FnOnce() -> usize,
        line: impl FnOnce() -> Option<gather::LineLimit>,
    ) {
        if self.gathered.counts() {
            self.gathered.costs(base, cost, bytes_max, most(), line());
        }
    }

    /// Whether jobs have several records each.
    pub(crate) fn gathers(&self) -> bool {
        self.gathered.counts()
    }

    /// How many jobs there will be, where that is known without reading.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }

    /// The file whose records are the jobs, and what ends them, where they can be counted
    /// beforehand.
    pub(crate) fn take_countable(&mut self) -> Option<(File, u8)> {
        self.countable.take()
    }
}

/// How many jobs these sources make, if all of them are words.
fn count(plan: &InputPlan) -> Option<u64> {
    let mut groups: Vec<Vec<u64>> = Vec::new();
    if plan.sources.is_empty() {
        return None;
    }
    for source in &plan.sources {
        let Kind::Words(words) = &source.kind else { return None };
        let header = match plan.header {
            Header::Lines(lines) => lines,
            _ => u64::from(plan.skip_first && groups.is_empty()),
        };
        let len = (words.len() as u64).saturating_sub(header);
        let len = if plan.empty_counts && plan.sources.len() > 1 { len.max(1) } else { len };
        match groups.last_mut() {
            Some(group) if source.linked || plan.link => group.push(len),
            _ => groups.push(vec![len]),
        }
    }
    let wraps = plan.link;
    let length = |group: &Vec<u64>| match wraps {
        _ if group.contains(&0) => 0,
        true => group.iter().copied().max().unwrap_or(0),
        false => group.iter().copied().min().unwrap_or(0),
    };
    let records = groups.iter().map(length).try_fold(1, u64::checked_mul)?;
    Some(records.div_ceil(plan.arity.records().max(1)))
}

/// The one file or redirected input of which each record is a job.
fn countable(plan: &InputPlan) -> Option<(File, u8)> {
    let plain = plan.arity.is_plain() && plan.arity.records() == 1 && plan.eof.is_none() && !plan.skip_blank;
    let ([Source { kind, .. }], [separator], true, false) =
        (plan.sources.as_slice(), plan.separator.as_slice(), plain, plan.skip_first)
    else {
        return None;
    };
    if plan.header != Header::None {
        return None;
    }
    let path = match kind {
        Kind::File(path) => path.clone(),
        Kind::Stdin => minder_os::stdio::stdin_path()?,
        Kind::Words(_) => return None,
    };
    // Looked at before it is opened: opening a named pipe waits for whoever writes.
    if !std::fs::metadata(&path).is_ok_and(|about| about.is_file()) {
        return None;
    }
    let file = File::open(&path).ok()?;
    file.metadata().is_ok_and(|about| about.is_file()).then_some((file, *separator))
}

/// Opens a source to be read.
fn open_file(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// StdStream input as a source.
fn open_stdin() -> Result<File> {
    if std::io::stdin().is_terminal() {
        message("reading arguments from the terminal, one a line; Ctrl-D ends them");
    }
    std_file(StdStream::Input).context("cannot read standard input")
}
