//! The table that GNU parallel calls a joblog: written beside the record, and read to go on where a
//! run stopped.
//!
//! Columns and formats are those of GNU parallel 20221122 (`print_joblog`): tabs between columns,
//! and each newline in a command a NUL, which GNU's own `--retry-failed` turns back. Tabs in a
//! command stay: it is the last column.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::append_file::LineWriter;
use super::event::JobFinished;
use super::reader::{Corruption, lines};
use super::run_state::RunState;

/// The first line.
const HEADER: &[u8] = b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
/// What GNU parallel writes for a job that took too long.
const TIMED_OUT: i32 = -1;
/// The exit code of a command that could not be started, as a shell would give it.
const NOT_STARTED: i32 = 127;
/// The longest line that is read.
const LINE_MAX: usize = 16 << 20;

/// A joblog that is being written. Shared by the loops.
#[derive(Debug)]
pub struct Joblog {
    lines: Mutex<LineWriter<File>>,
    cut: bool,
}

impl Joblog {
    /// Opens a joblog and gives it a header if it is empty. `append`: what is in it stays, but for
    /// a last line that is not whole. Otherwise it is emptied. A pipe or a terminal will do.
    /// While it is open, no other minder writes to it.
    ///
    /// # Errors
    /// Whatever the file system says; `InvalidData` if it is to be appended to and is no joblog.
    pub fn open(path: &Path, append: bool) -> io::Result<Self> {
        let stream = std::fs::metadata(path).is_ok_and(|about| !about.is_file());
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

    /// Whether a last line that was not whole was cut off.
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// Appends lines that [`encode`] made: all of them or, with an error, none.
    pub fn append(&self, lines: &[u8]) -> io::Result<()> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).append(lines)
    }
}

/// Appends the line of a job.
pub fn encode(ended: &JobFinished, command: &[u8], out: &mut Vec<u8>) {
    let exit = exit_of(ended);
    let signal = ended.signal.unwrap_or(0);
    // `:` is GNU's name for this machine; the two columns before the last but two count bytes sent and
    // received.
    let (job, at, wall, sent, received) = (ended.job, ended.at, ended.wall, ended.sent, ended.out);
    let columns = format!("{job}\t:\t{at:.3}\t{wall:10.3}\t{sent}\t{received}\t{exit}\t{signal}\t");
    out.extend_from_slice(columns.as_bytes());
    out.extend(command.iter().map(|&byte| if byte == b'\n' { 0 } else { byte }));
    out.push(b'\n');
}

/// What stands for the exit code of a job.
pub fn exit_of(ended: &JobFinished) -> i32 {
    match ended.exit {
        _ if ended.timed_out => TIMED_OUT,
        Some(exit) => exit,
        None if ended.error.is_some() => NOT_STARTED,
        None => 0,
    }
}

/// Reads a joblog, ours or GNU's. The last line of a job counts.
///
/// # Errors
/// When it cannot be read; `InvalidData` when its first line is no header. Damaged lines are
/// skipped, and counted.
pub fn read(path: &Path) -> io::Result<(RunState, Corruption)> {
    let mut reader = BufReader::with_capacity(64 << 10, File::open(path)?);
    let (mut progress, mut damage, mut foreign) = (RunState::default(), Corruption::default(), false);
    let rest = lines(&mut reader, LINE_MAX, |number, line, _| {
        if line.is_some_and(is_header) {
            // The first line, or two joblogs that were joined.
        } else if number == 1 {
            foreign = true;
        } else {
            match line.and_then(decode) {
                Some((job, succeeded)) => progress.end(job, succeeded),
                None => damage.bad(number),
            }
        }
    })?;
    if foreign {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is no joblog: its first line is no header",
        ));
    }
    damage.torn_tail = rest > 0;
    Ok((progress, damage))
}

/// The number of the job, and whether it succeeded.
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

/// Later versions may have other columns behind these.
fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal")
}

/// Goes behind the last whole line, and cuts off what follows it. Gives the length, and whether
/// there was something.
fn cut_tail(file: &mut File) -> io::Result<(u64, bool)> {
    let len = file.metadata()?.len();
    let mut first = Vec::new();
    (&*file).take(HEADER.len() as u64).read_to_end(&mut first)?;
    if !first.is_empty() && !is_header(&first) && !HEADER.starts_with(&first) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is no joblog: its first line is no header",
        ));
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
        if let Some(place) = memchr::memrchr(b'\n', part) {
            break start + place as u64 + 1;
        }
        whole = start;
    };
    if end < len {
        file.set_len(end)?;
    }
    file.seek(SeekFrom::Start(end))?;
    Ok((end, end < len))
}
