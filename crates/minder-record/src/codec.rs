//! One line of a journal: a JSON object whose last member is the checksum of all that stands before
//! it.

use std::fmt;

use serde::Deserialize;

use super::event::{JobFinished, JobList, JournalEvent};

/// The longest line, with its end. What an argument list can hold (2 MiB on Linux, execve(2)) fits,
/// the few that grow sixfold by JSON's quoting aside: [`encode`] leaves out the arguments of those.
pub const LINE_MAX: usize = 4 << 20;

/// What stands between the checked bytes and the checksum.
const MARK: &[u8] = b",\"crc\":\"";
/// The mark, 8 hex digits, and the end of the string and the object.
const SEAL_LEN: usize = MARK.len() + 8 + 2;
/// How nearly all lines begin.
const ENDED: &[u8] = b"{\"event\":\"ended\",";

/// Why a line cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It has no checksum, or another one: it is damaged.
    Damaged,
    /// The checksum is right and the rest is not what we know of this event.
    Malformed,
    /// An event of a newer version: to be skipped.
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

/// Appends one line. A job's arguments, and the last of its outputs, are left out where the line
/// would become longer than [`LINE_MAX`].
pub fn encode(row: &JournalEvent, out: &mut Vec<u8>) {
    let start = out.len();
    if append(row, out) && out.len() - start <= LINE_MAX {
        return;
    }
    out.truncate(start);
    match row {
        JournalEvent::JobFinished(ended) => {
            let bare = JobFinished { args: Vec::new(), tail: None, out_tail: None, ..ended.clone() };
            append(&JournalEvent::JobFinished(bare), out);
        }
        JournalEvent::OutputShown(shown) => {
            halves(shown).for_each(|half| encode(&JournalEvent::OutputShown(half), out))
        }
        JournalEvent::OutputLost(lost) => {
            halves(lost).for_each(|half| encode(&JournalEvent::OutputLost(half), out))
        }
        JournalEvent::AttemptStarted(_) | JournalEvent::OutputDir(_) | JournalEvent::AttemptFinished(_) => {
            append(row, out);
        }
    }
}

/// Two rows of half of the jobs each say the same as one.
fn halves(row: &JobList) -> impl Iterator<Item = JobList> {
    let (one, other) = row.jobs.split_at(row.jobs.len() / 2);
    [one, other].map(|jobs| JobList { jobs: jobs.to_vec() }).into_iter()
}

/// Appends one line, however long. False: nothing was appended, since the row is nothing that JSON
/// can say, which our rows never are.
fn append(row: &JournalEvent, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if serde_json::to_writer(&mut *out, row).is_err() || out.pop() != Some(b'}') {
        out.truncate(start);
        return false;
    }
    let crc = crc32fast::hash(&out[start..]);
    out.extend_from_slice(MARK);
    out.extend_from_slice(&hex(crc));
    out.extend_from_slice(b"\"}\n");
    true
}

/// Reads one line, without its newline.
pub fn decode(line: &[u8]) -> Result<JournalEvent, DecodeError> {
    let checked = line.len().checked_sub(SEAL_LEN).ok_or(DecodeError::Damaged)?;
    let (text, seal) = line.split_at(checked);
    let digits =
        seal.strip_prefix(MARK).and_then(|seal| seal.strip_suffix(b"\"}")).ok_or(DecodeError::Damaged)?;
    if digits != hex(crc32fast::hash(text)) {
        return Err(DecodeError::Damaged);
    }
    if line.starts_with(ENDED) {
        // Several times faster than by the tag, for which serde keeps all members first.
        return serde_json::from_slice(line)
            .map(JournalEvent::JobFinished)
            .map_err(|_| DecodeError::Malformed);
    }
    serde_json::from_slice(line).map_err(|_| what_is_wrong(line))
}

fn what_is_wrong(line: &[u8]) -> DecodeError {
    #[derive(Deserialize)]
    struct Tag {
        event: String,
    }
    match serde_json::from_slice::<Tag>(line) {
        Ok(tag) if !["begun", "outputs", "ended", "shown", "lost", "over"].contains(&tag.event.as_str()) => {
            DecodeError::Unknown
        }
        _ => DecodeError::Malformed,
    }
}

fn hex(crc: u32) -> [u8; 8] {
    let mut digits = [0; 8];
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(crc >> (28 - 4 * place)) as usize & 15];
    }
    digits
}
