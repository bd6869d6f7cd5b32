//! What a journal says: one event a line, as JSON.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Row {
    /// An attempt begins: the first line of its file.
    Begun(Begun),
    /// A job ended, or could not be started. Its output is either shown already or lies in `kept`.
    Ended(Ended),
    /// What these jobs had kept was shown.
    Shown(Shown),
    /// The attempt ended by itself or by a signal: its last line.
    Over(Over),
}

/// An attempt begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The version of minder.
    pub(crate) version: String,
    pub(crate) run: String,
    pub(crate) attempt: u32,
    pub(crate) pid: u32,
    /// Seconds since 1970, by the clock of that moment, which may jump.
    pub(crate) at: f64,
}

/// A job ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Its number, from 1, in the order of the input.
    pub(crate) job: u64,
    /// Its argument, by columns; empty where arguments are not to be recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<Text>,
    /// When it started: seconds since 1970, by a clock that may jump.
    pub(crate) at: f64,
    /// How long it ran, in seconds, by a clock that does not.
    pub(crate) wall: f64,
    /// Processor time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<f64>,
    /// Largest resident set, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rss: Option<u64>,
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Bytes that it wrote to its outputs.
    pub(crate) out: u64,
    pub(crate) err: u64,
    /// Whether its outputs were closed while something still held them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) leaked: bool,
    /// Where its output lies until a `Shown` names it. None: it was shown before, or there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<Piece>,
    /// The last of what a failed job wrote to its standard error, at most [`TAIL_MAX`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<Text>,
}

/// How many bytes of standard error a row keeps of a failed job.
pub(crate) const TAIL_MAX: usize = 2048;

impl Ended {
    /// Whether the job did what it was to do.
    pub(crate) fn succeeded(&self) -> bool {
        self.error.is_none() && self.exit == Some(0)
    }
}

/// A part of a job's output: bytes of a file in the run's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// 1: standard output; 2: standard error.
    pub(crate) stream: u8,
    /// A plain name, without any slash.
    pub(crate) file: String,
    pub(crate) at: u64,
    pub(crate) len: u64,
}

/// What these jobs had kept was shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) jobs: Vec<u64>,
}

/// An attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Over {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// Seconds.
    pub(crate) elapsed: f64,
    /// Processor time of its jobs, in seconds.
    pub(crate) cpu: f64,
    /// Whether jobs were left that had not run: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// Bytes that are mostly UTF-8. As JSON: a string, or where they are no UTF-8 `{"base64": "…"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<u8>);

fn is_false(value: &bool) -> bool {
    !value
}
