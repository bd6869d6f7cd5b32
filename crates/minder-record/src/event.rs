//! The events of a journal. Each is one JSON object on one line; `docs/record.md` specifies the
//! keys.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::SystemTime;

use crate::agents::AgentKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One event of a run: one line of a journal. The names in JSON differ from those of the variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum JournalEvent {
    /// An attempt started. This is the first line of a journal.
    #[serde(rename = "begun")]
    AttemptStarted(AttemptStarted),
    /// The resources of the machine that the attempt could use.
    #[serde(rename = "host")]
    Host(AttemptHost),
    /// The files with output of this attempt are outside of the run's directory.
    #[serde(rename = "outputs")]
    OutputDir(OutputDir),
    /// A job exited, or could not be started. Its output was shown before, or is in `kept`.
    #[serde(rename = "ended")]
    JobFinished(JobFinished),
    /// A try at a job failed, and the job was to be started again. `attempts` is the number of the try.
    #[serde(rename = "tried")]
    JobTried(JobFinished),
    /// An agent took a range of jobs.
    #[serde(rename = "claimed")]
    Claimed(Claimed),
    /// An agent took over a range, and states how much of older journals counts.
    #[serde(rename = "sealed")]
    Sealed(Sealed),
    /// The kept output of these jobs was shown.
    #[serde(rename = "shown")]
    OutputShown(JobList),
    /// The kept output of these jobs could not be read when it was to be shown. The jobs run again.
    #[serde(rename = "lost")]
    OutputLost(JobList),
    /// The attempt finished, or a signal ended it. This is the last line of a journal. It is
    /// missing after a kill or a power failure.
    #[serde(rename = "over")]
    AttemptFinished(AttemptFinished),
}

/// The start of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// The version of minder.
    pub version: String,
    /// The id of the run.
    pub run: String,
    /// The number of the attempt, counted from 1. In the journal of an agent, that of its round.
    pub attempt: u32,
    /// The name of the machine, in the journal of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The process id of the runner.
    pub pid: u32,
    /// The time at which the attempt started, in seconds since 1970. The clock may jump.
    #[serde(serialize_with = "seconds")]
    pub at: f64,
}

/// The resources of the machine that an attempt could use when it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptHost {
    /// The most jobs that it ran at once. A file with `-j` may have changed that later.
    pub slots: u64,
    /// The number of processors that its jobs could use.
    pub cpus: u64,
    /// The memory that was available, in bytes, if the operating system tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// A range of jobs that an agent took. Its jobs are those of the round with numbers from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The number of the claim in its round, counted from 1.
    pub claim: u64,
    /// How often the claim was made, with this time.
    pub epoch: u32,
    /// The number of its first job.
    pub first: u64,
    /// The number of its last job.
    pub last: u64,
}

/// How much of the journals of older epochs of a claim counts. The agent has read that much before it
/// started the first job of the claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The number of the claim in its round.
    pub claim: u64,
    /// The epoch of the agent that writes this.
    pub epoch: u32,
    /// The agents of older epochs.
    pub journals: Vec<SealedJournal>,
}

/// The part of a journal that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedJournal {
    /// The agent that wrote the journal.
    pub agent: AgentKey,
    /// Events of the claim count if they end within this number of bytes.
    pub bytes: u64,
}

/// The directory with the output of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputDir {
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The directory.
    #[serde(rename = "folder")]
    pub dir: OsBytes,
}

/// The end of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFinished {
    /// The number of the job, counted from 1 in the order of the input.
    pub job: u64,
    /// The arguments of the job, by column. Empty if arguments are not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<OsBytes>,
    /// The time at which it started, in seconds since 1970. The clock may jump.
    #[serde(serialize_with = "seconds")]
    pub at: f64,
    /// The time for which it ran, in seconds of a clock that does not jump.
    #[serde(serialize_with = "seconds")]
    pub wall: f64,
    /// CPU time in user mode, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub user: Option<f64>,
    /// CPU time in system mode, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub system: Option<f64>,
    /// The time for which its main thread was ready to run and waited for a processor, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub ready: Option<f64>,
    /// The time for which its main thread ran, in seconds. Recorded only if its other threads and
    /// its descendants used more than a tenth of its CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub main: Option<f64>,
    /// The maximum resident set size, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// The exit code, if the job exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The number of the signal that terminated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The reason why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The number of bytes that it wrote to its outputs.
    pub out: u64,
    /// The number of bytes that it wrote to its standard error.
    pub err: u64,
    /// The number of bytes that it read from minder on its standard input.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent: u64,
    /// The offset of its block in the input. Several files count as one input.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub block_at: u64,
    /// The length of its block in bytes, without a repeated header. 0 if it read no block.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub block_len: u64,
    /// The checksum of its block with a repeated header, if minder read it to cut the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_crc: Option<u32>,
    /// `true` if another process still had its outputs open when minder stopped reading them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaked: bool,
    /// `true` if it was terminated because it ran too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// The location of its output until an `OutputShown` event names the job. Empty if the output
    /// was shown before, or if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<OutputSegment>,
    /// The location of its output in the files that stay in the directory of the run. Empty if the run
    /// does not store output, or if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<OutputSegment>,
    /// The last bytes that a failed job wrote to its standard error, at most [`TAIL_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<OsBytes>,
    /// The same for its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_tail: Option<OsBytes>,
    /// The number of times that the job was started, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Why minder terminated it, unless it ran too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// The maximum number of bytes of [`JobFinished::tail`] and [`JobFinished::out_tail`].
pub const TAIL_MAX: usize = 2048;

impl JobFinished {
    /// Returns whether the job exited with status 0, and minder had not asked it to exit.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && self.exit == Some(0) && !self.timed_out && self.cause.is_none()
    }
}

/// A part of a job's output: bytes of a file in the directory of the run or of its output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputSegment {
    /// 1 for standard output, 2 for standard error.
    pub stream: u8,
    /// The name of the file, without a directory. See
    /// [`output_path`](crate::writer::output_path).
    pub file: String,
    /// The offset of the first byte.
    pub at: u64,
    /// The number of bytes.
    pub len: u64,
}

/// The jobs of an event about saved output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobList {
    /// The numbers of the jobs.
    pub jobs: Vec<u64>,
}

/// The end of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptFinished {
    /// The number of jobs that succeeded.
    pub succeeded: u64,
    /// The number of jobs that failed.
    pub failed: u64,
    /// The duration of the attempt, in seconds.
    #[serde(serialize_with = "seconds")]
    pub elapsed: f64,
    /// The CPU time of its jobs, in seconds.
    #[serde(serialize_with = "seconds")]
    pub cpu: f64,
    /// The time for which the processors of the machine were busy during the attempt, in seconds,
    /// with all programs; the sum over all processors.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub cpu_busy: Option<f64>,
    /// The time for which they were idle.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub cpu_idle: Option<f64>,
    /// The maximum resident set size of the runner, in bytes. A `rss` of a job that is not above it
    /// may be that of the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_rss: Option<u64>,
    /// Why jobs remain that did not run. `None` if all jobs ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of failed jobs that ran too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_out: u64,
    /// The number of times that failed jobs were started again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u64,
    /// The number of jobs that minder terminated. They have no event, and run again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// The number of jobs that were not started, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run: Option<u64>,
}

/// [`AttemptFinished::why`] of an attempt that ended because minder itself failed.
pub const FAILED: &str = "aborted";

/// [`AttemptFinished::why`] of an attempt that retried failed jobs after one that was killed.
pub const KILLED: &str = "killed";

/// Bytes of an argument, a path or an output. In JSON they are a string, or `{"base64": "…"}` if
/// they are not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsBytes(pub Vec<u8>);

impl OsBytes {
    /// Returns the bytes as an argument or a path.
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

/// Replaces invalid UTF-8, for messages.
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

/// Returns the current time in seconds since 1970. The clock may jump.
pub fn now() -> f64 {
    since_1970(SystemTime::now())
}

/// Returns a time in seconds since 1970, rounded to microseconds. Earlier times are 0.
pub fn since_1970(time: SystemTime) -> f64 {
    whole_micros(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64())
}

/// Rounds to microseconds, so that the text is short and reading it gives the same number.
fn whole_micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Writes seconds, rounded to microseconds. Infinity and NaN, which JSON does not have, become 0.
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
