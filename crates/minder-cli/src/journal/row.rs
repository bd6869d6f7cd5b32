//! What a journal says: one event a line, as JSON.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Row {
    /// An attempt begins: the first line of its file.
    Begun(Begun),
    /// Where the files with output of this attempt are, if not in the run's folder.
    Outputs(OutputsRow),
    /// A job ended, or could not be started. Its output is either shown already or lies in `kept`.
    Ended(Ended),
    /// What these jobs had kept was shown.
    Shown(Shown),
    /// What these jobs had kept could not be read when it was to be shown: they run again.
    Lost(Shown),
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
    #[serde(serialize_with = "seconds")]
    pub(crate) at: f64,
}

/// Where the files with output of an attempt are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OutputsRow {
    pub(crate) attempt: u32,
    pub(crate) folder: Text,
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
    #[serde(serialize_with = "seconds")]
    pub(crate) at: f64,
    /// How long it ran, in seconds, by a clock that does not.
    #[serde(serialize_with = "seconds")]
    pub(crate) wall: f64,
    /// Processor time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
    pub(crate) user: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "some_seconds")]
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
    /// Bytes that it took from us as its input.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) sent: u64,
    /// Whether its outputs were closed while something still held them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) leaked: bool,
    /// Whether it was ended since it took too long.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) timed_out: bool,
    /// Where its output lies until a `Shown` names it. None: it was shown before, or there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<Piece>,
    /// The last of what a failed job wrote to its standard error, at most [`TAIL_MAX`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<Text>,
    /// The same of its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) out_tail: Option<Text>,
    /// How often it was started, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// Why it was ended, if not by itself and not for its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

/// How many bytes of each output a row keeps of a failed job.
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
    #[serde(serialize_with = "seconds")]
    pub(crate) elapsed: f64,
    /// Processor time of its jobs, in seconds.
    #[serde(serialize_with = "seconds")]
    pub(crate) cpu: f64,
    /// Whether jobs were left that had not run: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Failed jobs that took too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) timed_out: u64,
    /// How often a job was started again since it had failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) retried: u64,
    /// Jobs that our order ended. They have no row, and run again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) cut: u64,
    /// Jobs that were not started, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_run: Option<u64>,
}

/// Bytes that are mostly UTF-8. As JSON: a string, or where they are no UTF-8 `{"base64": "…"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl Text {
    /// As an argument or a path again.
    pub(crate) fn to_os(&self) -> OsString {
        minder_os::encoding::os_string_from_encoded(self.0.clone())
    }
}

impl From<&OsStr> for Text {
    fn from(text: &OsStr) -> Self {
        Self(text.as_encoded_bytes().to_vec())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

/// For people: what is no UTF-8 is replaced.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an object with `base64`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(text.into())
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Text, E> {
        Ok(Text(text.into_bytes()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        let mut bytes = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "base64" {
                return Err(A::Error::unknown_field(&key, &["base64"]));
            }
            let text: String = map.next_value()?;
            bytes = Some(STANDARD.decode(text).map_err(A::Error::custom)?);
        }
        bytes.map(Text).ok_or_else(|| A::Error::missing_field("base64"))
    }
}

/// Seconds since 1970, by a clock that may jump.
pub(crate) fn now() -> f64 {
    since_1970(SystemTime::now())
}

/// Seconds since 1970, in whole microseconds; 0 for what was before.
pub(crate) fn since_1970(time: SystemTime) -> f64 {
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
