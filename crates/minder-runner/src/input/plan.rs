//! The configuration of the input, and what it yields.

use std::ffi::OsString;
use std::fmt;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::columns::Columns;
use crate::notice::Notice;

/// The sources of records, and the rules by which they are cut.
#[derive(Debug, Default)]
pub struct InputPlan {
    /// The sources, in the order of the command line.
    pub sources: Vec<Source>,
    /// The bytes that end a record.
    pub separator: Vec<u8>,
    /// `true` if files are Windows text: a carriage return before the separator, and a byte order
    /// mark at the beginning, are not part of a record.
    pub windows_text: bool,
    /// The unit of a record if files are split at blanks.
    pub words: Option<WordUnit>,
    /// The way in which a record is split into columns, if it is.
    pub columns: Option<Columns>,
    /// The meaning of the first records.
    pub header: Header,
    /// The ends of a value at which spaces are removed.
    pub trim: Trim,
    /// A record with this text ends its source.
    pub eof: Option<Vec<u8>>,
    /// `true` if records that are empty or contain only whitespace are skipped.
    pub skip_blank: bool,
    /// `true` if lines of files that are empty, or begin with `#` after any blanks, are skipped.
    pub skip_comments: bool,
    /// `true` if the first record is skipped.
    pub skip_first: bool,
    /// `true` if a source without records counts as one empty value next to other sources.
    pub empty_counts: bool,
    /// `true` if all sources are read side by side, and shorter ones are repeated.
    pub link: bool,
    /// The rules for the number of records of a job.
    pub arity: ArgsPerJob,
    /// What is noticed while files are read.
    pub findings: Arc<InputFindings>,
}

/// What is noticed while files are read, for a message at the end of the run.
#[derive(Debug, Default)]
pub struct InputFindings {
    /// The first three lines of a file end in CR-NL, and the CR stays in the values.
    pub carriage_returns: AtomicBool,
    /// A line that begins with `# ` is a value.
    pub comments: AtomicBool,
}

impl InputFindings {
    /// Returns the messages about what was noticed.
    pub(crate) fn notices(&self) -> impl Iterator<Item = Notice> {
        let carriage_returns = self.carriage_returns.load(Ordering::Relaxed);
        let comments = self.comments.load(Ordering::Relaxed);
        let notices = [(carriage_returns, Notice::CarriageReturns), (comments, Notice::CommentLines)];
        notices.into_iter().filter_map(|(is_found, notice)| is_found.then_some(notice))
    }
}

impl InputPlan {
    /// Returns `true` if arguments are read from standard input and standard input is a terminal.
    pub fn reads_terminal(&self) -> bool {
        let reads_stdin = self.sources.iter().any(|source| matches!(source.kind, Kind::Stdin));
        reads_stdin && std::io::stdin().is_terminal()
    }
}

/// One source of records.
#[derive(Clone, Debug)]
pub struct Source {
    /// The place of its records.
    pub kind: Kind,
    /// `true` if it is read side by side with the source before it, instead of combined with it.
    pub linked: bool,
}

/// The place of the records of a source.
#[derive(Clone, Debug)]
pub enum Kind {
    /// On the command line.
    Arguments(Vec<OsString>),
    /// On standard input.
    Stdin,
    /// In a file.
    File(PathBuf),
}

/// The unit of a record if the input is split at blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordUnit {
    /// One word.
    Word,
    /// The words of a line, as columns.
    Line,
}

/// The meaning of the first records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Records like all others.
    #[default]
    None,
    /// This many records of each source are names of columns.
    Lines(u64),
    /// The column of a file is named after the file.
    FileNames,
}

/// The ends of a value at which spaces are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// At its beginning.
    pub left: bool,
    /// At its end.
    pub right: bool,
}

/// A record of a source, or the arguments of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Its columns.
    Columns(Vec<OsString>),
    /// A record that cannot be an argument.
    Unfit(InvalidArgument),
}

/// Why a record cannot be an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidArgument {
    /// It has this many bytes, which are too many.
    TooLong(usize),
    /// It has this byte, which is not UTF-8, on a system whose arguments are text.
    NoText(u8),
}

impl InvalidArgument {
    /// Returns it as text that [`decode`](Self::decode) understands.
    pub(crate) fn encode(self) -> String {
        match self {
            Self::TooLong(len) => format!("length {len}"),
            Self::NoText(byte) => format!("byte {byte}"),
        }
    }

    pub(crate) fn decode(text: &[u8]) -> Option<Self> {
        let (name, number) = str::from_utf8(text).ok()?.split_once(' ')?;
        match name {
            "length" => number.parse().ok().map(Self::TooLong),
            "byte" => number.parse().ok().map(Self::NoText),
            _ => None,
        }
    }
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(len) => write!(f, "a line of {len} bytes; an argument has at most 131,071"),
            Self::NoText(byte) => {
                write!(
                    f,
                    "a line with the byte {byte:02x}, which is not UTF-8; hint: save the input as UTF-8"
                )
            }
        }
    }
}

/// The arguments of one job.
pub type JobArgs = Record;

/// The rules for the number of arguments of a job.
#[derive(Clone, Copy, Debug)]
pub struct ArgsPerJob {
    /// The most records of a job; `None`: as [`fill`](Self::fill) says.
    pub most: Option<u64>,
    /// `true` if records are lines as with `xargs -L`: empty lines do not count, and a line that ends
    /// in a space continues in the next.
    pub lines: bool,
    /// `true` if a record is read for each job, but not passed to it.
    pub none: bool,
    /// The number of records of a job if `most` is `None`.
    pub fill: Fill,
    /// The most bytes of a command.
    pub bytes_max: usize,
    /// `true` if a command that is too long is an error: with a single record, or with `most`
    /// records.
    pub strict: bool,
    /// `true` if `bytes_max` is a bound that the user has set: a longer command with one record is
    /// then an error, too.
    pub bounded: bool,
}

/// The number of records of a job if no other bound is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// One.
    One,
    /// As many as fit into a command line.
    All,
    /// As many as fit; the last ones are distributed over the slots.
    Shared,
}

/// The longest command with several arguments, in bytes: the limit of xargs and GNU parallel, and
/// that of one argument on Linux.
pub const BYTES_MAX: usize = 131_071;

impl Default for ArgsPerJob {
    fn default() -> Self {
        Self {
            most: None,
            lines: false,
            none: false,
            fill: Fill::One,
            bytes_max: BYTES_MAX,
            strict: false,
            bounded: false,
        }
    }
}

impl ArgsPerJob {
    /// Returns `true` if the number of records of a job does not depend on their content.
    pub fn is_plain(&self) -> bool {
        !self.lines && self.fill == Fill::One
    }

    /// Returns how many records make a job, if that does not depend on their content.
    pub fn records(&self) -> u64 {
        if self.none { 1 } else { self.most.unwrap_or(1) }
    }

    pub(super) fn limit(&self) -> u64 {
        match (self.most, self.fill) {
            (Some(most), _) => most.max(1),
            (None, Fill::One) => 1,
            (None, _) => u64::MAX,
        }
    }
}
