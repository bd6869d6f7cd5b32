//! What the input is asked for, and what it yields.

use std::ffi::OsString;
use std::fmt;
use std::io::IsTerminal;
use std::path::PathBuf;

use super::batching::ArgsPerJob;
use super::columns::Columns;

/// Where records come from, and how they are cut.
#[derive(Debug, Default)]
pub struct InputPlan {
    pub sources: Vec<Source>,
    /// What ends a record.
    pub separator: Vec<u8>,
    /// Whether files are text as Windows writes it: a carriage return before the separator, and a
    /// byte order mark at the beginning, are none of a record's.
    pub windows_text: bool,
    pub columns: Option<Columns>,
    pub header: Header,
    pub trim: Trim,
    /// The record of this text ends its source.
    pub eof: Option<Vec<u8>>,
    /// Whether records that are empty or blank are passed over.
    pub skip_blank: bool,
    /// Whether the first record is passed over.
    pub skip_first: bool,
    /// Whether a source without any record is one empty value beside others.
    pub empty_counts: bool,
    /// Whether all sources are read side by side, the shorter ones again and again.
    pub link: bool,
    pub arity: ArgsPerJob,
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
    pub kind: Kind,
    /// Whether it is read beside the source before it, instead of being combined with it.
    pub linked: bool,
}

/// Where the records of a source are.
#[derive(Clone, Debug)]
pub enum Kind {
    Words(Vec<OsString>),
    Stdin,
    File(PathBuf),
}

/// What the first records are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
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
pub struct Trim {
    pub left: bool,
    pub right: bool,
}

/// What a source yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Columns(Vec<OsString>),
    /// A record that cannot be an argument.
    Unfit(InvalidArgument),
}

/// Why a record cannot be an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidArgument {
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
pub type JobArgs = Record;
