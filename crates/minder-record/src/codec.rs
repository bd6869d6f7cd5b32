//! The lines of a journal. Each is a JSON object whose last member, `crc`, is the CRC-32 of the
//! bytes before it.

use std::fmt;

use serde::Deserialize;

use crate::event::{JobFinished, JobList, JournalEvent};

/// The maximum length of a line in bytes, with its newline. An argument list of the maximum length
/// (2 MiB on Linux, execve(2)) fits. JSON escapes may make it six times as long; then [`encode`]
/// leaves out the arguments.
pub const LINE_MAX: usize = 4 << 20;

/// The text between the checked bytes and the checksum.
const MARK: &[u8] = b",\"crc\":\"";
/// The length of the mark, 8 hexadecimal digits, and the end of the string and the object.
const SEAL_LEN: usize = MARK.len() + 8 + 2;
/// The start of nearly all lines.
const ENDED: &[u8] = b"{\"event\":\"ended\",";

/// The events of this version.
const KNOWN: [&str; 10] =
    ["begun", "host", "outputs", "ended", "tried", "claimed", "sealed", "shown", "lost", "over"];

/// The reason why a line cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The checksum is missing or wrong.
    Damaged,
    /// The checksum is right, but the members are not those of the event.
    Malformed,
    /// An event of a newer version, which a reader skips.
    Unknown,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "damaged",
            Self::Malformed => "not understood",
            Self::Unknown => "of a newer version",
        })
    }
}

/// The longest duration: 100 years.
const SECONDS_MAX: f64 = 100.0 * 365.25 * 86_400.0;
/// The most processors. CPU time passes on each of them.
const PROCESSORS_MAX: f64 = 65_536.0;

/// Appends the line of an event to `out`. If the line would be longer than [`LINE_MAX`], it leaves
/// out the arguments and the last output of a job, or splits a list of jobs into several events.
pub fn encode(event: &JournalEvent, out: &mut Vec<u8>) {
    let start = out.len();
    if append(event, out) && out.len() - start <= LINE_MAX {
        return;
    }
    out.truncate(start);
    match event {
        JournalEvent::JobFinished(ended) => {
            let bare = JobFinished { args: Vec::new(), tail: None, out_tail: None, ..ended.clone() };
            append(&JournalEvent::JobFinished(bare), out);
        }
        JournalEvent::JobTried(tried) => {
            let bare = JobFinished { args: Vec::new(), tail: None, out_tail: None, ..tried.clone() };
            append(&JournalEvent::JobTried(bare), out);
        }
        JournalEvent::OutputShown(shown) => {
            for half in halves(shown) {
                encode(&JournalEvent::OutputShown(half), out);
            }
        }
        JournalEvent::OutputLost(lost) => {
            for half in halves(lost) {
                encode(&JournalEvent::OutputLost(half), out);
            }
        }
        JournalEvent::AttemptStarted(_)
        | JournalEvent::Host(_)
        | JournalEvent::OutputDir(_)
        | JournalEvent::Claimed(_)
        | JournalEvent::Sealed(_)
        | JournalEvent::AttemptFinished(_) => {
            append(event, out);
        }
    }
}

/// Splits a list of jobs into two events that have the same meaning as one.
fn halves(list: &JobList) -> impl Iterator<Item = JobList> {
    let (one, other) = list.jobs.split_at(list.jobs.len() / 2);
    [one, other].map(|jobs| JobList { jobs: jobs.to_vec() }).into_iter()
}

/// Appends one line of any length. Returns whether the event can be written as JSON, which holds
/// for all events of this crate. Otherwise appends nothing.
fn append(event: &JournalEvent, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if serde_json::to_writer(&mut *out, event).is_err() || out.pop() != Some(b'}') {
        out.truncate(start);
        return false;
    }
    let crc = crc32fast::hash(&out[start..]);
    out.extend_from_slice(MARK);
    out.extend_from_slice(&hex(crc));
    out.extend_from_slice(b"\"}\n");
    true
}

/// Decodes one line, given without its newline.
///
/// # Errors
///
/// See [`DecodeError`].
pub fn decode(line: &[u8]) -> Result<JournalEvent, DecodeError> {
    let checked = line.len().checked_sub(SEAL_LEN).ok_or(DecodeError::Damaged)?;
    let (text, seal) = line.split_at(checked);
    let digits =
        seal.strip_prefix(MARK).and_then(|seal| seal.strip_suffix(b"\"}")).ok_or(DecodeError::Damaged)?;
    if digits != hex(crc32fast::hash(text)) {
        return Err(DecodeError::Damaged);
    }
    let event = if line.starts_with(ENDED) {
        // Several times faster than the tagged enum, for which serde buffers all members.
        serde_json::from_slice(line).map(JournalEvent::JobFinished).map_err(|_| DecodeError::Malformed)?
    } else {
        serde_json::from_slice(line).map_err(|_| decode_error(line))?
    };
    if has_possible_times(&event) { Ok(event) } else { Err(DecodeError::Malformed) }
}

/// Returns whether no duration of an event is beyond [`SECONDS_MAX`]. Sums over others would be
/// infinite.
fn has_possible_times(event: &JournalEvent) -> bool {
    let is_possible = |time: Option<f64>, max: f64| time.is_none_or(|time| time <= max);
    let (times, cpu_times) = match event {
        JournalEvent::JobFinished(ended) | JournalEvent::JobTried(ended) => {
            ([Some(ended.wall), ended.ready, ended.main], [ended.user, ended.system, None])
        }
        JournalEvent::AttemptFinished(over) => {
            ([Some(over.elapsed), None, None], [Some(over.cpu), over.cpu_busy, over.cpu_idle])
        }
        _ => return true,
    };
    times.into_iter().all(|time| is_possible(time, SECONDS_MAX))
        && cpu_times.into_iter().all(|time| is_possible(time, SECONDS_MAX * PROCESSORS_MAX))
}

fn decode_error(line: &[u8]) -> DecodeError {
    #[derive(Deserialize)]
    struct Tag {
        event: String,
    }
    match serde_json::from_slice::<Tag>(line) {
        Ok(tag) if !KNOWN.contains(&tag.event.as_str()) => DecodeError::Unknown,
        _ => DecodeError::Malformed,
    }
}

fn hex(crc: u32) -> [u8; 8] {
    let mut digits = [0; 8];
    for (index, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(crc >> (28 - 4 * index)) as usize & 15];
    }
    digits
}
