//! Cuts regular files into ranges. It reads them only around the bounds.

use crate::splitter::buffer::Bytes;
use crate::splitter::chunker::Chunker;
use crate::splitter::config::{BlockSize, CHUNK_MAX, HEADER_MAX, RECORD_MAX, SplitterConfig};
use crate::splitter::header::HeaderMatch;
use crate::splitter::input_queue::InputQueue;
use crate::splitter::input_queue::ReadyBlock;
use crate::splitter::record_bounds::RecordBounds;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minder_os::sync::Mutex;

use super::file_range::{FileRange, LINE_MAX, SharedFile, unreadable};

/// Cuts files, and adds their ranges to the queue.
pub(super) struct FileCutter<'a> {
    config: &'a SplitterConfig,
    /// How many jobs run at once.
    slots: usize,
    queue: &'a InputQueue,
}

impl<'a> FileCutter<'a> {
    pub(super) fn new(config: &'a SplitterConfig, slots: usize, queue: &'a InputQueue) -> Self {
        Self { config, slots, queue }
    }

    /// Cuts one file after the other.
    pub(super) fn cut_files(&self, paths: &[PathBuf]) -> Result<(), String> {
        let mut base = 0;
        for (index, path) in paths.iter().enumerate() {
            base += self.cut_file(path, index == 0, base)?;
        }
        Ok(())
    }

    /// Cuts one file into ranges of about one block. `base` is the offset of the file in the input.
    /// Returns the length of the file.
    fn cut_file(&self, path: &Path, is_first: bool, base: u64) -> Result<u64, String> {
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        // `metadata` reports no size for a device, but its end can be sought.
        let size = file.seek(SeekFrom::End(0)).map_err(|error| match error.kind() {
            io::ErrorKind::NotSeekable => {
                format!(
                    "`{}` cannot be read in parts: give it to standard input, with `--pipe`",
                    path.display()
                )
            }
            _ => unreadable(path, &error),
        })?;
        let file = Arc::new(SharedFile { file: Mutex::new(file), path: path.to_owned(), base });
        let skipped = if self.config.skip_first && is_first { first_line(&file)? } else { 0 };
        let header = self.header_of(&file, skipped)?;
        let mut chunker = Chunker::new(self.config)?;
        if let RecordBounds::Group(key) = chunker.bounds_mut() {
            key.resolve(header.as_deref().unwrap_or_default())?;
        }
        let mut start = skipped + header.as_deref().map_or(0, <[u8]>::len) as u64;
        let block = match self.config.block {
            BlockSize::Bytes(bytes) => bytes,
            BlockSize::Shares(count) => {
                let slots = self.config.share_slots.map_or(self.slots as u64, NonZeroU64::get);
                let parts = count.get().saturating_mul(slots);
                size.saturating_sub(start).div_ceil(parts).max(1)
            }
        };
        while start < size {
            let least = start.saturating_add(block);
            let end = if least < size {
                cut(&file, chunker.bounds(), start, least)?.unwrap_or(size).min(size)
            } else {
                size
            };
            let span = FileRange {
                file: Arc::clone(&file),
                header: header.clone(),
                header_at: skipped,
                range: start..end,
            };
            if !self.queue.push(ReadyBlock::Span(span)) {
                return Ok(size);
            }
            start = end;
        }
        Ok(size)
    }

    /// Returns the header, which starts at `base`.
    fn header_of(&self, file: &SharedFile, base: u64) -> Result<Option<Bytes>, String> {
        let Some(finder) = self.config.header_parser()? else { return Ok(None) };
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

/// Returns the length of the first line, with its line break.
fn first_line(file: &SharedFile) -> Result<u64, String> {
    let mut segment = vec![0; CHUNK_MAX];
    let mut at = 0;
    loop {
        let count = file.read_at(at, &mut segment)?;
        match memchr::memchr(b'\n', &segment[..count]) {
            Some(end) => return Ok(at + end as u64 + 1),
            None if count == 0 => return Ok(at),
            None => at += count as u64,
        }
    }
}

/// Returns the first split whose separator starts at `least` or later. The range starts at `start`.
fn cut(file: &SharedFile, bounds: &RecordBounds, start: u64, least: u64) -> Result<Option<u64>, String> {
    if let RecordBounds::Anywhere = bounds {
        return Ok(Some(least));
    }
    let (mut base, mut from) = match bounds {
        RecordBounds::Group(_) => (line_start(file, start, least)?, 0),
        // A pattern matches from the beginning of a line: of a match that crosses `least`, no part
        // counts. Whether a line starts here is visible only in the byte before.
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
        if let Some(at) = bounds.first(&bytes, from, is_whole) {
            return Ok(Some(base + at as u64));
        }
        if is_whole {
            return Ok(None);
        }
        let passed = bounds.passed(&bytes);
        bytes.drain(..passed);
        from = from.saturating_sub(passed);
        base += passed as u64;
        if bytes.len() > RECORD_MAX {
            let path = file.path.display();
            return Err(format!("a record of `{path}` is longer than {RECORD_MAX} bytes (`--recend`)"));
        }
    }
}

/// Returns the beginning of the line that ends at `least` or later.
fn line_start(file: &SharedFile, start: u64, least: u64) -> Result<u64, String> {
    let mut end = least;
    while end > start {
        let begin = end.saturating_sub(CHUNK_MAX as u64).max(start);
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
