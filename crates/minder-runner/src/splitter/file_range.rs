//! Parts of files by offset: where they are cut is found by reading a little at each cut.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::splitter::buffer::Bytes;
use crate::splitter::config::BlockSize;
use crate::splitter::config::HEADER_MAX;
use crate::splitter::config::PIECE;
use crate::splitter::config::RECORD_MAX;
use crate::splitter::header::HeaderMatch;
use crate::splitter::input_splitter::InputSplitter;
use crate::splitter::input_splitter::ReadyBlock;
use crate::splitter::record_bounds::RecordBounds;
use crate::text::os_error_text;

/// How far from a cut the line's beginning is looked for.
const LINE_MAX: u64 = 1 << 20;

/// A part of a file, behind its header.
#[derive(Clone, Debug)]
pub(crate) struct FileRange {
    file: Arc<Shared>,
    header: Option<Bytes>,
    /// Where the header begins.
    header_at: u64,
    range: Range<u64>,
}

/// One file for all its parts, however many there are.
#[derive(Debug)]
struct Shared {
    file: Mutex<File>,
    path: PathBuf,
}

impl FileRange {
    /// A command for a POSIX shell that writes the same, with `tail`, which passes over the bytes
    /// before without reading them.
    pub(crate) fn as_shell(&self) -> Option<String> {
        let path = format!("'{}'", self.file.path.to_str()?.replace('\'', r"'\''"));
        let piece = |at: u64, len: u64| format!("tail -c +{} <{path} | head -c {len}", at + 1);
        let part = piece(self.range.start, self.range.end - self.range.start);
        Some(match &self.header {
            Some(header) => format!("{{ {}; {part}; }}", piece(self.header_at, header.len() as u64)),
            None => part,
        })
    }

    /// The bytes at `at`; none at the end.
    pub(crate) fn read(&self, at: u64) -> Result<Bytes, String> {
        let header = self.header.as_ref().map_or(0, |header| header.len());
        if let (Some(header), Ok(at)) = (&self.header, usize::try_from(at))
            && at < header.len()
        {
            return Ok(header.slice(at, PIECE));
        }
        let at = self.range.start + (at - header as u64);
        let len = usize::try_from(self.range.end - at).unwrap_or(usize::MAX).min(PIECE);
        let mut bytes = vec![0; len];
        let count = self.file.read_at(at, &mut bytes)?;
        if count == 0 && len > 0 {
            return Err(format!("`{}` became shorter while it was read", self.file.path.display()));
        }
        bytes.truncate(count);
        Ok(Bytes::from(bytes))
    }
}

impl Shared {
    /// Fills the buffer, as far as the file goes.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<usize, String> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = || {
            file.seek(SeekFrom::Start(at))?;
            let mut filled = 0;
            while filled < buffer.len() {
                match file.read(&mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(filled)
        };
        read().map_err(|error| unreadable(&self.path, &error))
    }

    /// Reads as many bytes again as are known from `base` on, and some at least; says whether there
    /// were any.
    fn extend(&self, known: &mut Vec<u8>, base: u64) -> Result<bool, String> {
        let len = known.len();
        let more = len.max(PIECE);
        known.resize(len + more, 0);
        let count = self.read_at(base + len as u64, &mut known[len..])?;
        known.truncate(len + count);
        Ok(count > 0)
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read `{}`: {}", path.display(), os_error_text(error))
}

impl InputSplitter {
    /// Cuts one file into parts of about a block each.
    pub(crate) fn take_parts(&self, path: &Path, is_first: bool) -> Result<(), String> {
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        // The size of a device is where its end is.
        let size = file.seek(SeekFrom::End(0)).map_err(|error| match error.kind() {
            io::ErrorKind::NotSeekable => {
                format!(
                    "`{}` cannot be read in parts: give it to standard input, with `--pipe`",
                    path.display()
                )
            }
            _ => unreadable(path, &error),
        })?;
        let file = Arc::new(Shared { file: Mutex::new(file), path: path.to_owned() });
        let skipped = if self.plan.skip_first && is_first { first_line(&file)? } else { 0 };
        let header = self.header_of(&file, skipped)?;
        let mut cutter = self.cutter()?;
        if let RecordBounds::Group(key) = cutter.splitter_mut() {
            key.resolve(header.as_deref().unwrap_or_default())?;
        }
        let mut start = skipped + header.as_deref().map_or(0, <[u8]>::len) as u64;
        let block = match self.plan.block {
            BlockSize::Bytes(bytes) => bytes,
            BlockSize::Shares(count) => {
                let parts = count.get().saturating_mul(self.slots as u64);
                size.saturating_sub(start).div_ceil(parts).max(1)
            }
        };
        while start < size {
            let least = start.saturating_add(block);
            let end = match least < size {
                true => cut(&file, cutter.splitter(), start, least)?.unwrap_or(size).min(size),
                false => size,
            };
            let span = FileRange {
                file: Arc::clone(&file),
                header: header.clone(),
                header_at: skipped,
                range: start..end,
            };
            if !self.push(ReadyBlock::Span(span)) {
                return Ok(());
            }
            start = end;
        }
        Ok(())
    }

    /// The header, which begins at `base`.
    fn header_of(&self, file: &Shared, base: u64) -> Result<Option<Bytes>, String> {
        let Some(finder) = self.finder()? else { return Ok(None) };
        let mut bytes = Vec::new();
        loop {
            let is_whole = !file.extend(&mut bytes, base)?;
            match finder.find(&bytes, is_whole) {
                HeaderMatch::At(end) => {
                    bytes.truncate(end);
                    return Ok(Some(Bytes::from(bytes)));
                }
                HeaderMatch::Nowhere => return Ok(None),
                HeaderMatch::Later if bytes.len() > HEADER_MAX => {
                    let path = file.path.display();
                    return Err(format!(
                        "the header of `{path}` does not end within {} MiB",
                        HEADER_MAX >> 20
                    ));
                }
                HeaderMatch::Later => {}
            }
        }
    }
}

/// How long the first line is, with its end.
fn first_line(file: &Shared) -> Result<u64, String> {
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    loop {
        let count = file.read_at(at, &mut piece)?;
        match memchr::memchr(b'\n', &piece[..count]) {
            Some(end) => return Ok(at + end as u64 + 1),
            None if count == 0 => return Ok(at),
            None => at += count as u64,
        }
    }
}

/// The first split whose separator begins at `least` or behind; the part begins at `start`.
fn cut(file: &Shared, splitter: &RecordBounds, start: u64, least: u64) -> Result<Option<u64>, String> {
    if let RecordBounds::Anywhere = splitter {
        return Ok(Some(least));
    }
    let (mut base, mut from) = match splitter {
        RecordBounds::Group(_) => (line_start(file, start, least)?, 0),
        // Within a line the leftmost matches count, and of a match that crosses `least` no part does. Whether
        // a line begins here is seen at the byte before.
        RecordBounds::Pattern(_) => match line_start(file, start.max(least.saturating_sub(LINE_MAX)), least)?
        {
            base if base > start => (base - 1, (least - base + 1) as usize),
            base => (base, (least - base) as usize),
        },
        _ => (least, 0),
    };
    let mut bytes = Vec::new();
    loop {
        let is_whole = !file.extend(&mut bytes, base)?;
        if let Some(at) = splitter.first(&bytes, from, is_whole) {
            return Ok(Some(base + at as u64));
        }
        if is_whole {
            return Ok(None);
        }
        let passed = splitter.passed(&bytes);
        bytes.drain(..passed);
        from = from.saturating_sub(passed);
        base += passed as u64;
        if bytes.len() > RECORD_MAX {
            let path = file.path.display();
            return Err(format!("a record of `{path}` is longer than {RECORD_MAX} bytes (`--recend`)"));
        }
    }
}

/// Where the line begins whose end is at `least` or behind.
fn line_start(file: &Shared, start: u64, least: u64) -> Result<u64, String> {
    let mut end = least;
    while end > start {
        let begin = end.saturating_sub(PIECE as u64).max(start);
        let mut bytes = vec![0; (end - begin) as usize];
        let count = file.read_at(begin, &mut bytes)?;
        bytes.truncate(count);
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(start)
}
