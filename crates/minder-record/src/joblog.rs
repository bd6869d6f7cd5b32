//! The joblog of GNU parallel: a table that is written in addition to the record, and that is read
//! to resume a run.
//!
//! Columns and formats are those of GNU parallel 20221122 (`print_joblog`). Tabs separate columns.
//! Each newline in a command is written as NUL, which `--retry-failed` of GNU parallel reverses.
//! Tabs in a command stay, since it is the last column.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use minder_os::sync::Mutex;

use crate::append_file::LineWriter;
use crate::event::JobFinished;
use crate::journal::{Corruption, lines};
use crate::run_state::RunState;

/// The host of jobs that ran on this machine.
pub const HERE: &str = ":";
/// The first line.
const HEADER: &[u8] = b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
/// The exit value that GNU parallel writes for a job that ran too long. Here it is also that of any other
/// job that minder asked to exit, and that answered with 0.
const TIMED_OUT: i32 = -1;
/// The exit status of shells for a command that cannot be started.
const NOT_STARTED: i32 = 127;
/// The maximum length of a line in bytes. Longer lines count as damaged.
const LINE_MAX: usize = 16 << 20;

/// A joblog that is being written. Several threads may append to it: `lines` is locked for each
/// call.
#[derive(Debug)]
pub struct Joblog {
    lines: Mutex<LineWriter<File>>,
    cut: bool,
}

impl Joblog {
    /// Opens a joblog, and writes the header if it is empty. With `append`, its lines are kept,
    /// except an incomplete last one. Otherwise it is truncated. The path may name a pipe or a
    /// terminal. A lock keeps other processes of minder from writing to the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or written, or if another process writes to it. `InvalidData`
    /// if lines are to be kept and the file is not a joblog.
    pub fn open(path: &Path, append: bool) -> io::Result<Self> {
        let stream = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let (mut lines, empty, cut) = if stream {
            (LineWriter::stream(OpenOptions::new().write(true).open(path)?), true, false)
        } else {
            let mut options = OpenOptions::new();
            let mut file = options.read(append).write(true).create(true).truncate(false).open(path)?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(io::Error::other("another minder writes to it"));
            }
            if !append {
                file.set_len(0)?;
            }
            let (whole, cut) = if append { cut_tail(&mut file)? } else { (0, false) };
            (LineWriter::new(file, whole, false), whole == 0, cut)
        };
        if empty {
            lines.append(HEADER)?;
        }
        Ok(Self { lines: Mutex::new(lines), cut })
    }

    /// Returns whether an incomplete last line was removed.
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// Appends lines of [`encode`].
    ///
    /// # Errors
    ///
    /// If the lines cannot be written. Then the file contains none of them.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        self.lines.lock().append(lines)
    }
}

/// Appends the line of a job to `out`. `command` is the command as the user would type it, and `node` the
/// name of the machine if an agent has run it.
pub fn encode(ended: &JobFinished, node: Option<&str>, command: &[u8], out: &mut Vec<u8>) {
    let exit = exit_of(ended);
    let signal = ended.signal.unwrap_or(0);
    // `Send` and `Receive` count bytes.
    let JobFinished { job, at, wall, sent, out: received, .. } = ended;
    let host = node.unwrap_or(":").replace(char::is_control, "?");
    let columns = format!("{job}\t{host}\t{at:.3}\t{wall:10.3}\t{sent}\t{received}\t{exit}\t{signal}\t");
    out.extend_from_slice(columns.as_bytes());
    out.extend(command.iter().map(|&byte| if byte == b'\n' { 0 } else { byte }));
    out.push(b'\n');
}

/// Returns the `Exitval` of a job: its exit code, -1 if it ran too long, 127 if it could not be
/// started.
pub fn exit_of(ended: &JobFinished) -> i32 {
    match ended.exit {
        _ if ended.timed_out => TIMED_OUT,
        Some(0) if !ended.succeeded() => TIMED_OUT,
        Some(exit) => exit,
        None if ended.error.is_some() => NOT_STARTED,
        None => 0,
    }
}

/// Reads a joblog of minder or of GNU parallel. The last line of a job counts. Damaged lines are
/// skipped and counted.
///
/// # Errors
///
/// If the file cannot be read. `InvalidData` if its first line is not the header.
pub fn read(path: &Path) -> io::Result<(RunState, Corruption)> {
    let mut reader = BufReader::with_capacity(64 << 10, File::open(path)?);
    let mut state = RunState::default();
    let mut corruption = Corruption::default();
    let mut has_header = true;
    let rest = lines(&mut reader, LINE_MAX, |number, line, _| {
        if line.is_some_and(is_header) {
            // The first line, or the start of a second joblog that was appended.
        } else if number == 1 {
            has_header = false;
        } else {
            match line.and_then(decode) {
                Some((job, succeeded)) => state.set_finished(job, succeeded),
                None => corruption.bad(number),
            }
        }
    })?;
    if !has_header {
        return Err(not_a_joblog());
    }
    corruption.torn_tail = rest > 0;
    Ok((state, corruption))
}

/// Returns the number of the job, and whether it succeeded.
fn decode(line: &[u8]) -> Option<(u64, bool)> {
    let mut columns = line.splitn(9, |&byte| byte == b'\t').map(|column| str::from_utf8(column).ok());
    let job = columns.next()??.parse().ok().filter(|&job: &u64| job > 0)?;
    let _host = columns.next()?;
    for _ in 0..2 {
        let _seconds: f64 = columns.next()??.trim_start().parse().ok()?;
    }
    for _ in 0..2 {
        let _bytes: i64 = columns.next()??.parse().ok()?;
    }
    let exit: i64 = columns.next()??.parse().ok()?;
    let signal: i64 = columns.next()??.parse().ok()?;
    let _command = columns.next()?;
    Some((job, exit == 0 && signal == 0))
}

/// Returns whether the line is a header. Later versions may have more columns.
fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal")
}

fn not_a_joblog() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a joblog: its first line is not the header")
}

/// Truncates the file after its last complete line, and moves the position there. Returns the new
/// length, and whether something was removed.
fn cut_tail(file: &mut File) -> io::Result<(u64, bool)> {
    let len = file.metadata()?.len();
    let mut first = Vec::new();
    (&*file).take(HEADER.len() as u64).read_to_end(&mut first)?;
    if !first.is_empty() && !is_header(&first) && !HEADER.starts_with(&first) {
        return Err(not_a_joblog());
    }
    let mut whole = len;
    let mut block = vec![0; 64 << 10];
    let end = loop {
        if whole == 0 {
            break 0;
        }
        let start = whole.saturating_sub(block.len() as u64);
        let part = &mut block[..usize::try_from(whole - start).unwrap_or(0)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(index) = memchr::memrchr(b'\n', part) {
            break start + index as u64 + 1;
        }
        whole = start;
    };
    if end < len {
        file.set_len(end)?;
    }
    file.seek(SeekFrom::Start(end))?;
    Ok((end, end < len))
}
