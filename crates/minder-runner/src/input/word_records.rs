//! Words, or lines of words, as records (`--words`).

use std::ffi::OsString;
use std::fs::File;

use anyhow::{Result, bail};

use super::plan::{InvalidArgument, Record, WordUnit};
use super::words::{Separation, WordError, WordSplitter};
use crate::text::os_error_text;

/// The most bytes that the words of a line take, with what is stored for each. The arguments of a command
/// have at most 6 MiB on Linux.
const LINE_BYTES_MAX: usize = 8 << 20;

/// The records of one source whose records are words.
#[derive(Debug)]
pub(super) struct WordRecords {
    splitter: WordSplitter,
    name: String,
    unit: WordUnit,
    bytes_max: usize,
    /// A word with this text ends the source.
    eof: Option<Vec<u8>>,
    finished: bool,
}

impl WordRecords {
    /// Creates the records of `file`. `name` is for messages.
    pub(super) fn new(
        file: File,
        name: String,
        unit: WordUnit,
        bytes_max: usize,
        eof: Option<Vec<u8>>,
    ) -> Self {
        let splitter = WordSplitter::new(file, Separation::Blanks, bytes_max);
        Self { splitter, name, unit, bytes_max, eof, finished: false }
    }

    /// Returns the next record: a word, or the words of a line.
    ///
    /// # Errors
    /// The file cannot be read, a quote is not closed in its line, or a word or a line is too long.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        let mut columns: Vec<OsString> = Vec::new();
        let mut line_bytes = 0;
        while !self.finished {
            let word = match self.splitter.next_word() {
                Ok(Some(word)) => word,
                Ok(None) => break,
                Err(error) => {
                    self.finished = true;
                    return self.fail(&error);
                }
            };
            if self.eof.as_deref() == Some(word.bytes) {
                break;
            }
            line_bytes += word.bytes.len() + size_of::<OsString>();
            if line_bytes > LINE_BYTES_MAX {
                self.finished = true;
                let name = &self.name;
                let line = self.splitter.line();
                bail!(
                    "{name}, line {line}: its words take more than {LINE_BYTES_MAX} bytes (-n limits them)"
                );
            }
            let is_complete = word.ends_line || self.unit == WordUnit::Word;
            match minder_os::encoding::os_string_from_bytes(word.bytes.to_vec()) {
                Ok(value) => columns.push(value),
                Err(bytes) => {
                    let wrong = bytes.utf8_chunks().find_map(|chunk| chunk.invalid().first().copied());
                    return Ok(Some(Record::Unfit(InvalidArgument::NoText(wrong.unwrap_or_default()))));
                }
            }
            if is_complete {
                return Ok(Some(Record::Columns(columns)));
            }
        }
        self.finished = true;
        Ok((!columns.is_empty()).then_some(Record::Columns(columns)))
    }

    fn fail(&self, error: &WordError) -> Result<Option<Record>> {
        let Self { name, splitter, bytes_max, .. } = self;
        match error {
            WordError::Read(error) => bail!("cannot read {name}: {}", os_error_text(error)),
            WordError::Unclosed(quote) => bail!(
                "{name}, line {}: the quote `{}` is not closed (--words; without it, each line is one \
                 argument)",
                splitter.line(),
                char::from(*quote)
            ),
            WordError::TooLong => {
                bail!("{name}, line {}: a word has more than {bytes_max} bytes", splitter.line())
            }
        }
    }
}
