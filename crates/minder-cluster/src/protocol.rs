//! What a link and the agent at its other end say to each other, over the standard input and output of ssh.
//!
//! Each message is a frame: its length in four bytes, the kind in one, and the content. The link is the
//! process that started ssh. It makes the claims and keeps the journal; the agent runs jobs that it is given.
//!
//! | from the link | from the agent |
//! | --- | --- |
//! | | [`Hello`]: version, machine |
//! | [`Start`]: the command, the flags | |
//! | | `Ready`: how many jobs it runs at once |
//! | `Shared`, `File`: a part of a file that jobs need | `Output`: bytes of a file with saved output |
//! | `Job`: a number and arguments | `File`: a part of a file that a job has made |
//! | `Unfit`: why a job cannot run | `Missing`: a file that it has not made |
//! | `Finish`: no job follows | `Journal`: lines for the journal |
//! | `Cancel`: end the jobs that run | `End`: everything was sent |
//! | `Beat`: the answer to one | `Beat`: a number, every [`BEAT_INTERVAL`] |
//! | `Taken`: the oldest part was taken | `Taken`: the oldest part was taken |
//!
//! Both notice a dead link without comparing clocks. The agent kills its jobs if the newest beat that was
//! answered was *sent* more than [`AGENT_SILENCE_MAX`] ago. The link counts the agent as lost if it
//! *received* nothing for [`LINK_SILENCE_MAX`], and never answers again. What is received was sent before, so
//! the jobs are dead before they run elsewhere, whichever direction fails.
//!
//! A connection that breaks off says nothing about the agent, which may not have noticed. So the link lets no
//! other agent run the jobs until [`AGENT_SILENCE_MAX`] and [`AGENT_END_MAX`] after its last answer.

use std::io;
use std::time::Duration;

use minder::frame::{FrameDecoder, FrameFormat};
use minder_record::event::OsBytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::transfer::{Part, PartKind};

/// The version of the messages. Both ends have the same.
pub const VERSION: u32 = 2;
/// The longest message: a line of a journal, and its kind.
pub const MESSAGE_MAX: usize = minder_record::codec::LINE_MAX + 1;
/// The most bytes of output in one message.
pub const OUTPUT_MAX: usize = 64 << 10;
/// The time between two beats.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(5);
/// An agent kills its jobs if the newest beat that was answered is older.
pub const AGENT_SILENCE_MAX: Duration = Duration::from_secs(12);
/// The time that an agent needs to kill its jobs after that, with a second of reserve.
pub const AGENT_END_MAX: Duration = Duration::from_secs(4);
/// A link counts its agent as lost after this time without a message.
pub const LINK_SILENCE_MAX: Duration = Duration::from_secs(20);

const FORMAT: FrameFormat = FrameFormat::LengthBe32;

/// The first message of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the messages.
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// The name of its machine.
    pub node: String,
}

/// What an agent has to know of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The id of the run.
    pub run: String,
    /// The name by which the user knows the host.
    pub login: String,
    /// The attempt that submitted the jobs.
    pub attempt: u32,
    /// The manifest of the run, with the command and the flags. It has no arguments.
    pub manifest: serde_json::Value,
    /// The names of the columns of arguments.
    pub names: Vec<OsBytes>,
    /// How many jobs run at once, in place of what the run asks for.
    pub jobs: Option<String>,
    /// Variables of the environment of jobs.
    pub env: Vec<(OsBytes, OsBytes)>,
    /// The directory of jobs.
    pub dir: JobsDir,
    /// Files that were sent before the first job, and are removed after the last.
    pub removed: Vec<OsBytes>,
}

/// The directory of jobs on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobsDir {
    /// The home directory of the login.
    Home,
    /// This one, below the home directory if it is relative. It is created if it is missing.
    Named(OsBytes),
    /// A new one, which is removed at the end.
    Temporary,
}

/// A message of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToAgent {
    /// The first one.
    Start(Box<Start>),
    /// A job to run.
    Job {
        /// Its number.
        number: u64,
        /// Its arguments.
        columns: Vec<OsBytes>,
        /// The files that come back after it.
        returned: Vec<OsBytes>,
        /// The files that are removed after it.
        removed: Vec<OsBytes>,
    },
    /// A job that cannot run, for this reason. It fails.
    Unfit {
        /// Its number.
        number: u64,
        /// The reason.
        why: String,
        /// Its arguments.
        columns: Vec<OsBytes>,
    },
    /// A part of a file that the next job needs.
    File(Part),
    /// A part of a file that all jobs need.
    Shared(Part),
    /// No job follows.
    Finish,
    /// The jobs that run are to end.
    Cancel,
    /// The beat with this number has arrived.
    Beat(u64),
    /// The oldest message with [`FromAgent::bulk`] was taken.
    Taken,
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromAgent {
    /// The first one.
    Hello(Hello),
    /// The number of jobs that it runs at once.
    Ready(u64),
    /// It cannot work, for this reason.
    Refused(String),
    /// More of a file with saved output.
    Output {
        /// The name of the file.
        file: String,
        /// The bytes that follow those sent before.
        bytes: Vec<u8>,
    },
    /// A part of a file that a job has made.
    File {
        /// The number of the job.
        job: u64,
        /// The part.
        part: Part,
    },
    /// A job has not made a file that was to come back, or it cannot be read.
    Missing {
        /// The number of the job.
        job: u64,
        /// What is wrong.
        why: String,
    },
    /// Complete lines for its journal. The output that they refer to was sent before, and so were the files
    /// of the jobs.
    Journal(Vec<u8>),
    /// It works.
    Beat(u64),
    /// The oldest message with [`ToAgent::bulk`] was taken.
    Taken,
    /// Nothing follows.
    End,
}

impl ToAgent {
    /// Returns the number of bytes that a [`Flow`](crate::flow::Flow) counts, if the agent answers this
    /// message.
    pub fn bulk(&self) -> Option<usize> {
        match self {
            Self::File(part) | Self::Shared(part) => Some(part.bytes.len()),
            _ => None,
        }
    }
}

impl FromAgent {
    /// Returns the number of bytes that a [`Flow`](crate::flow::Flow) counts, if the link answers this
    /// message.
    pub fn bulk(&self) -> Option<usize> {
        match self {
            Self::Output { bytes, .. } | Self::Journal(bytes) => Some(bytes.len()),
            Self::File { part, .. } => Some(part.bytes.len()),
            _ => None,
        }
    }
}

const START: u8 = b's';
const JOB: u8 = b'j';
const FINISH: u8 = b'f';
const CANCEL: u8 = b'c';
const BEAT: u8 = b'b';
const HELLO: u8 = b'h';
const READY: u8 = b'r';
const REFUSED: u8 = b'x';
const OUTPUT: u8 = b'o';
const JOURNAL: u8 = b'l';
const END: u8 = b'e';
const UNFIT: u8 = b'u';
const FILE: u8 = b'F';
const MISSING: u8 = b'm';
const SHARED: u8 = b'S';
const TAKEN: u8 = b't';

/// A message that can be sent.
pub trait Message: Sized {
    /// Appends the kind and the content.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads them back. `None` if no message is written in this way.
    fn read(kind: u8, content: &[u8]) -> Option<Self>;

    /// Appends the message as a frame. A message that is too long for one is left out, and `false` returned.
    ///
    /// ```
    /// use minder_cluster::protocol::{Decoder, Message as _, ToAgent};
    ///
    /// let mut bytes = Vec::new();
    /// assert!(ToAgent::Beat(7).encode(&mut bytes));
    /// let mut decoder = Decoder::new();
    /// let mut rest = &bytes[..];
    /// assert_eq!(decoder.next(&mut rest)?, Some(ToAgent::Beat(7)));
    /// assert_eq!(decoder.next::<ToAgent>(&mut rest)?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn encode(&self, out: &mut Vec<u8>) -> bool {
        let mut message = Vec::new();
        self.write(&mut message);
        message.len() <= MESSAGE_MAX && FORMAT.encode(&message, out).is_ok()
    }
}

impl Message for ToAgent {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start(start) => write_json(START, start, out),
            Self::Job { number, columns, returned, removed } => {
                write_number(JOB, *number, out);
                for list in [returned, removed, columns] {
                    write_list(list, out);
                }
            }
            Self::Unfit { number, why, columns } => {
                write_number(UNFIT, *number, out);
                write_bytes(why.as_bytes(), out);
                write_list(columns, out);
            }
            Self::File(part) | Self::Shared(part) => {
                out.push(if matches!(self, Self::File(_)) { FILE } else { SHARED });
                write_part(part, out);
            }
            Self::Finish => out.push(FINISH),
            Self::Cancel => out.push(CANCEL),
            Self::Beat(number) => write_number(BEAT, *number, out),
            Self::Taken => out.push(TAKEN),
        }
    }

    fn read(kind: u8, mut content: &[u8]) -> Option<Self> {
        Some(match kind {
            START => Self::Start(read_json(content)?),
            JOB => {
                let number = take_number(&mut content)?;
                let returned = take_list(&mut content)?;
                let removed = take_list(&mut content)?;
                Self::Job { number, columns: take_list(&mut content)?, returned, removed }
            }
            UNFIT => {
                let number = take_number(&mut content)?;
                let why = String::from_utf8_lossy(&take_bytes(&mut content)?).into_owned();
                Self::Unfit { number, why, columns: take_list(&mut content)? }
            }
            FILE => Self::File(take_part(content)?),
            SHARED => Self::Shared(take_part(content)?),
            FINISH => Self::Finish,
            CANCEL => Self::Cancel,
            BEAT => Self::Beat(take_number(&mut content)?),
            TAKEN => Self::Taken,
            _ => return None,
        })
    }
}

impl Message for FromAgent {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => write_json(HELLO, hello, out),
            Self::Ready(slots) => write_number(READY, *slots, out),
            Self::Refused(why) => {
                out.push(REFUSED);
                out.extend(why.as_bytes());
            }
            Self::Output { file, bytes } => {
                out.push(OUTPUT);
                out.extend(file.as_bytes());
                out.push(0);
                out.extend(bytes);
            }
            Self::File { job, part } => {
                write_number(FILE, *job, out);
                write_part(part, out);
            }
            Self::Missing { job, why } => {
                write_number(MISSING, *job, out);
                out.extend(why.as_bytes());
            }
            Self::Journal(lines) => {
                out.push(JOURNAL);
                out.extend(lines);
            }
            Self::Beat(number) => write_number(BEAT, *number, out),
            Self::Taken => out.push(TAKEN),
            Self::End => out.push(END),
        }
    }

    fn read(kind: u8, mut content: &[u8]) -> Option<Self> {
        Some(match kind {
            HELLO => Self::Hello(read_json(content)?),
            READY => Self::Ready(take_number(&mut content)?),
            REFUSED => Self::Refused(String::from_utf8_lossy(content).into_owned()),
            OUTPUT => {
                let end = content.iter().position(|byte| *byte == 0)?;
                let (file, bytes) = content.split_at(end);
                let file = str::from_utf8(file).ok()?.to_owned();
                Self::Output { file, bytes: bytes[1..].to_vec() }
            }
            FILE => {
                let job = take_number(&mut content)?;
                Self::File { job, part: take_part(content)? }
            }
            MISSING => {
                let job = take_number(&mut content)?;
                Self::Missing { job, why: String::from_utf8_lossy(content).into_owned() }
            }
            JOURNAL => Self::Journal(content.to_vec()),
            BEAT => Self::Beat(take_number(&mut content)?),
            TAKEN => Self::Taken,
            END => Self::End,
            _ => return None,
        })
    }
}

fn write_number(kind: u8, number: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(number.to_be_bytes());
}

fn take_number(content: &mut &[u8]) -> Option<u64> {
    let (number, rest) = content.split_first_chunk::<8>()?;
    *content = rest;
    Some(u64::from_be_bytes(*number))
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u64).to_be_bytes());
    out.extend(bytes);
}

fn take_bytes(content: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(take_number(content)?).ok()?;
    let (bytes, rest) = content.split_at_checked(len)?;
    *content = rest;
    Some(bytes.to_vec())
}

fn write_list(list: &[OsBytes], out: &mut Vec<u8>) {
    out.extend((list.len() as u64).to_be_bytes());
    list.iter().for_each(|text| write_bytes(&text.0, out));
}

fn take_list(content: &mut &[u8]) -> Option<Vec<OsBytes>> {
    (0..take_number(content)?).map(|_| take_bytes(content).map(OsBytes)).collect()
}

fn write_part(part: &Part, out: &mut Vec<u8>) {
    let kind = PartKind::ALL.iter().position(|kind| *kind == part.kind).unwrap_or(0);
    out.push(kind.to_le_bytes()[0]);
    out.extend(part.mode.to_be_bytes());
    write_bytes(&part.name.0, out);
    out.extend(&part.bytes);
}

fn take_part(content: &[u8]) -> Option<Part> {
    let (kind, content) = content.split_first()?;
    let (mode, mut content) = content.split_first_chunk::<4>()?;
    let name = OsBytes(take_bytes(&mut content)?);
    let kind = *PartKind::ALL.get(usize::from(*kind))?;
    Some(Part { name, mode: u32::from_be_bytes(*mode), kind, bytes: content.to_vec() })
}

fn write_json(kind: u8, content: &impl Serialize, out: &mut Vec<u8>) {
    out.push(kind);
    // It has texts and numbers only, so nothing can fail.
    out.extend(serde_json::to_vec(content).unwrap_or_default());
}

fn read_json<T: DeserializeOwned>(content: &[u8]) -> Option<T> {
    serde_json::from_slice(content).ok()
}

/// Makes messages of bytes as they arrive.
#[derive(Debug)]
pub struct Decoder(FrameDecoder);

impl Decoder {
    /// Creates one that has read nothing.
    #[allow(clippy::new_without_default)] // A default of a decoder says nothing.
    pub fn new() -> Self {
        Self(FrameDecoder::new(FORMAT).max_frame_bytes(MESSAGE_MAX))
    }

    /// Takes the next message from `bytes`, or all of them if it is not complete.
    ///
    /// # Errors
    /// The bytes are not a message. The connection cannot be used any more.
    pub fn next<M: Message>(&mut self, bytes: &mut &[u8]) -> io::Result<Option<M>> {
        let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let frame = self.0.next_frame(bytes).map_err(|error| damaged(error.to_string()))?;
        let Some(frame) = frame else { return Ok(None) };
        let message = frame.bytes().split_first().and_then(|(kind, content)| M::read(*kind, content));
        message.map(Some).ok_or_else(|| damaged("a message that minder does not write".to_owned()))
    }
}

#[cfg(test)]
mod tests;
