//! Records that are read more than once: a little in memory, the rest in a file without a name.

use std::ffi::OsString;
use std::fs::File;
use std::io;

use anyhow::{Context, Result};
use minder_os::encoding::os_string_from_encoded;
use minder_os::files::{create_unnamed_file, read_at, write_all_at};
use minder_os::system_paths::TEMP_DIR_VARIABLE;

use crate::input::InvalidArgument;
use crate::input::Record;

/// The most bytes of a buffer in memory.
const MEMORY_MAX: usize = 1 << 20;
/// The number of bytes read at once.
const READ_SIZE: usize = 64 << 10;
/// The number of bytes read at once for a single record.
const READ_ONE_SIZE: usize = 1 << 10;
/// The lengths that mark records that cannot be arguments.
const TOO_LONG: u32 = u32::MAX;
const NO_TEXT: u32 = u32::MAX - 1;

/// Records, one after the other.
#[derive(Debug, Default)]
pub(crate) struct ReplayBuffer {
    /// The last bytes, or all of them while there is no file.
    tail: Vec<u8>,
    file: Option<File>,
    /// The number of bytes in the file.
    file_len: u64,
    records: u64,
}

/// A position in a buffer.
#[derive(Debug, Default)]
pub(crate) struct ReplayCursor {
    at: u64,
    /// Bytes that were read ahead, and the position in them.
    ahead: Vec<u8>,
    within: usize,
    /// `true` if the cursor is for one record, and reads little ahead.
    for_one: bool,
}

impl ReplayBuffer {
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the offset of the next record to be added.
    pub(crate) fn end(&self) -> u64 {
        self.file_len + self.tail.len() as u64
    }

    pub(crate) fn push(&mut self, record: &Record) -> Result<()> {
        match record {
            Record::Unfit(why) => {
                let (mark, detail) = match why {
                    InvalidArgument::TooLong(len) => (TOO_LONG, *len as u64),
                    InvalidArgument::NoText(byte) => (NO_TEXT, u64::from(*byte)),
                };
                self.tail.extend_from_slice(&mark.to_le_bytes());
                self.tail.extend_from_slice(&detail.to_le_bytes());
            }
            Record::Columns(columns) => {
                self.tail.extend_from_slice(&(columns.len() as u32).to_le_bytes());
                for column in columns {
                    let bytes = column.as_encoded_bytes();
                    self.tail.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                    self.tail.extend_from_slice(bytes);
                }
            }
        }
        self.records += 1;
        if self.tail.len() >= MEMORY_MAX {
            self.spill().with_context(|| {
                format!(
                    "cannot save the input in a temporary file \
                     ({TEMP_DIR_VARIABLE} selects another directory)"
                )
            })?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(create_unnamed_file(&std::env::temp_dir())?),
        };
        write_all_at(file, &self.tail, self.file_len)?;
        self.file_len += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// Fills `into` from an offset on.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        if let (Some(file), true) = (&self.file, at < self.file_len) {
            let most = usize::try_from(self.file_len - at).unwrap_or(into.len()).min(into.len());
            return match read_at(file, &mut into[..most], at)? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                read => Ok(read),
            };
        }
        let from = self.tail.get((at - self.file_len) as usize..).unwrap_or_default();
        let read = from.len().min(into.len());
        into[..read].copy_from_slice(&from[..read]);
        Ok(read)
    }
}

impl ReplayCursor {
    /// Returns a cursor for the record at this offset.
    pub(crate) fn at(at: u64) -> Self {
        Self { at, for_one: true, ..Self::default() }
    }

    pub(crate) fn rewind(&mut self) {
        *self = Self::default();
    }

    /// Returns the next record.
    pub(crate) fn next(&mut self, buffer: &ReplayBuffer) -> Result<Option<Record>> {
        let start = self.at - (self.ahead.len() - self.within) as u64;
        if start >= buffer.end() {
            return Ok(None);
        }
        self.record(buffer).map(Some).context("cannot read the input again that was kept in a file")
    }

    fn record(&mut self, buffer: &ReplayBuffer) -> io::Result<Record> {
        let count = self.read_u32(buffer)?;
        if matches!(count, TOO_LONG | NO_TEXT) {
            let detail = u64::from(self.read_u32(buffer)?) | u64::from(self.read_u32(buffer)?) << 32;
            let too_long = InvalidArgument::TooLong(detail as usize);
            return Ok(Record::Unfit(if count == TOO_LONG {
                too_long
            } else {
                InvalidArgument::NoText(detail as u8)
            }));
        }
        let mut columns: Vec<OsString> = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let mut bytes = vec![0; self.read_u32(buffer)? as usize];
            self.fill(buffer, &mut bytes)?;
            columns.push(os_string_from_encoded(bytes));
        }
        Ok(Record::Columns(columns))
    }

    fn read_u32(&mut self, buffer: &ReplayBuffer) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.fill(buffer, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn fill(&mut self, buffer: &ReplayBuffer, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            if self.within == self.ahead.len() {
                self.ahead.resize(if self.for_one { READ_ONE_SIZE } else { READ_SIZE }, 0);
                let read = buffer.read(self.at, &mut self.ahead)?;
                self.ahead.truncate(read);
                self.within = 0;
                self.at += read as u64;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let from = &self.ahead[self.within..];
            let count = from.len().min(into.len());
            into[..count].copy_from_slice(&from[..count]);
            self.within += count;
            into = &mut into[count..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_returns_records_from_any_offset() {
        let mut buffer = ReplayBuffer::default();
        let mut places = Vec::new();
        let record = |number: usize| match number % 100 {
            99 => Record::Unfit(InvalidArgument::TooLong(number << 20)),
            98 => Record::Unfit(InvalidArgument::NoText(number as u8)),
            _ => Record::Columns(vec![format!("{number}").into(), "x".repeat(number % 300).into()]),
        };
        for number in 0..20_000 {
            places.push(buffer.end());
            buffer.push(&record(number)).expect("room");
            if number % 1000 == 999 {
                // Some are read again while others are added.
                let mut cursor = ReplayCursor::at(places[number / 2]);
                assert_eq!(cursor.next(&buffer).expect("read replay buffer"), Some(record(number / 2)));
            }
        }
        assert!(buffer.file.is_some() && buffer.tail.len() < MEMORY_MAX && buffer.records() == 20_000);
        let mut cursor = ReplayCursor::default();
        for number in 0..20_000 {
            assert_eq!(cursor.next(&buffer).expect("read replay buffer"), Some(record(number)));
        }
        assert_eq!(cursor.next(&buffer).expect("read replay buffer"), None);
        cursor.rewind();
        assert_eq!(cursor.next(&buffer).expect("read replay buffer"), Some(record(0)));
        for number in [19_999, 7, 12_345] {
            let mut cursor = ReplayCursor::at(places[number]);
            assert_eq!(cursor.next(&buffer).expect("read replay buffer"), Some(record(number)));
        }
    }
}
