//! The events of a journal, one JSON object for each line.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One event of a run: one line of a journal. The names in JSON are those of the format, not of the
/// variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum JournalEvent {
    /// An attempt started. This is the first line of a journal.
    #[serde(rename = "begun")]
    AttemptStarted(AttemptStarted),
    /// The files with output of this attempt are outside of the run's directory.
    #[serde(rename = "outputs")]
    OutputDir(OutputDir),
    /// A job exited, or could not be started. Its output was shown before, or is in `kept`.
    #[serde(rename = "ended")]
    JobFinished(JobFinished),
    /// The kept output of these jobs was shown.
    #[serde(rename = "shown")]
    OutputShown(JobList),
    /// The kept output of these jobs could not be read when it was to be shown. The jobs run again.
    #[serde(rename = "lost")]
    OutputLost(JobList),
    /// The attempt ended by itself or by a signal. This is the last line of a journal.
    #[serde(rename = "over")]
    AttemptFinished(AttemptFinished),
}

/// An attempt begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// The version of minder.
    pub version: String,
    /// The id of the run.
    pub run: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The process id of the runner.
    pub pid: u32,
    /// Seconds since 1970, by the clock of that moment, which may jump.
    #[serde(serialize_with = "seconds")]
    pub at: f64,
}

/// Where the files with output of an attempt are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputDir {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The directory.
    pub folder: OsBytes,
}

/// A job ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFinished {
    /// Its number, from 1, in the order of the input.
    pub job: u64,
    /// Its argument, by columns; empty where arguments are not to be recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<OsBytes>,
    /// When it started: seconds since 1970, by a clock that may jump.
    #[serde(serialize_with = "seconds")]
    pub at: f64,
    /// How long it ran, in seconds, by a clock that does not.
    #[serde(serialize_with = "seconds")]
    pub wall: f64,
    /// Processor time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub user: Option<f64>,
    /// System time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub system: Option<f64>,
    /// Largest resident set, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes that it wrote to its outputs.
    pub out: u64,
    /// Bytes that it wrote to its standard error.
    pub err: u64,
    /// Bytes that it took from us as its input.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent: u64,
    /// Whether its outputs were closed while something still held them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaked: bool,
    /// Whether it was ended since it took too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// Where its output is until an `OutputShown` event names the job. Empty if it was shown
    /// before, or if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<OutputSegment>,
    /// The last of what a failed job wrote to its standard error, at most [`TAIL_MAX`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<OsBytes>,
    /// The same of its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_tail: Option<OsBytes>,
    /// How often it was started, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Why it was ended, if not by itself and not for its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// How many bytes of each output a row keeps of a failed job.
pub const TAIL_MAX: usize = 2048;

impl JobFinished {
    /// Whether the job did what it was to do.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && self.exit == Some(0)
    }
}

/// A part of a job's output: bytes of a file in the run's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputSegment {
    /// 1: standard output; 2: standard error.
    pub stream: u8,
    /// A plain name, without any slash.
    pub file: String,
    /// The offset of the first byte.
    pub at: u64,
    /// The number of bytes.
    pub len: u64,
}

/// What these jobs had kept was shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobList {
    /// The numbers of the jobs.
    pub jobs: Vec<u64>,
}

/// An attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptFinished {
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Seconds.
    #[serde(serialize_with = "seconds")]
    pub elapsed: f64,
    /// Processor time of its jobs, in seconds.
    #[serde(serialize_with = "seconds")]
    pub cpu: f64,
    /// Whether jobs were left that had not run: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Failed jobs that took too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_out: u64,
    /// How often a job was started again since it had failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u64,
    /// Jobs that our order ended. They have no row, and run again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// Jobs that were not started, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<u64>,
}

/// Bytes that are mostly UTF-8. As JSON: a string, or where they are no UTF-8 `{"base64": "…"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsBytes(pub Vec<u8>);

impl OsBytes {
    /// As an argument or a path again.
    pub fn to_os(&self) -> OsString {
        minder_os::encoding::os_string_from_encoded(self.0.clone())
    }
}

impl From<&OsStr> for OsBytes {
    fn from(text: &OsStr) -> Self {
        Self(text.as_encoded_bytes().to_vec())
    }
}

impl From<&[u8]> for OsBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for OsBytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

/// For people: what is no UTF-8 is replaced.
impl fmt::Display for OsBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for OsBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for OsBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OsBytesVisitor)
    }
}

struct OsBytesVisitor;

impl<'de> Visitor<'de> for OsBytesVisitor {
    type Value = OsBytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an object with `base64`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OsBytes, E> {
        Ok(text.into())
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<OsBytes, E> {
        Ok(OsBytes(text.into_bytes()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OsBytes, A::Error> {
        let mut bytes = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "base64" {
                return Err(A::Error::unknown_field(&key, &["base64"]));
            }
            let text: String = map.next_value()?;
            bytes = Some(STANDARD.decode(text).map_err(A::Error::custom)?);
        }
        bytes.map(OsBytes).ok_or_else(|| A::Error::missing_field("base64"))
    }
}

/// Seconds since 1970, by a clock that may jump.
pub fn now() -> f64 {
    since_1970(SystemTime::now())
}

/// Seconds since 1970, in whole microseconds; 0 for what was before.
pub fn since_1970(time: SystemTime) -> f64 {
    whole_micros(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64())
}

/// Shorter as text, and read back exactly.
fn whole_micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Whole microseconds. What is no number, which JSON cannot say, becomes 0.
fn seconds<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = whole_micros(*value);
    serializer.serialize_f64(if whole.is_finite() { whole } else { 0.0 })
}

fn some_seconds<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    seconds(&value.unwrap_or_default(), serializer)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(value: &bool) -> bool {
    !value
}
