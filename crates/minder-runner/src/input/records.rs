//! Cuts a source into records, and records into columns.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use minder_os::stdio::{StdStream, std_file};

use crate::blocking_io;
use crate::input::InputFindings;
use crate::input::InputPlan;
use crate::input::InvalidArgument;
use crate::input::Kind;
use crate::input::Record;
use crate::input::Source;
use crate::input::Trim;
use crate::input::columns::Columns;
use crate::input::word_records::WordRecords;

/// The most bytes that are read at once.
const READ_SIZE: usize = 16 << 10;
/// The longest record that is one value. Linux accepts no longer argument (128 KiB with the
/// terminating zero byte, execve(2)).
const VALUE_MAX: usize = 128 << 10;
/// The longest record that is split into columns.
const COLUMNS_MAX: usize = 16 << 20;
/// The byte order marks, which may precede a text and are not part of it.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The records of one source.
#[derive(Debug)]
pub(crate) struct Records {
    from: ValueSource,
    columns: Option<Columns>,
    trim: Trim,
    eof: Option<Vec<u8>>,
    skip_blank: bool,
    /// What becomes of comments.
    comments: Comments,
    finished: bool,
}

/// What becomes of lines that begin with `#`.
#[derive(Debug)]
enum Comments {
    /// They are skipped, and empty lines, too.
    Skipped,
    /// They are values. The first that looks like a comment is noted.
    Values(Arc<InputFindings>),
    /// They are values, and one was noted or they are not looked for.
    Noted,
}

#[derive(Debug)]
enum ValueSource {
    List(VecDeque<OsString>),
    Splitter(Box<RecordSplitter>),
    Words(Box<WordRecords>),
}

impl Records {
    pub(crate) fn open(source: &Source, plan: &InputPlan) -> Result<Self> {
        let open = |file: File, name: String| {
            if let Some(unit) = plan.words {
                let words = WordRecords::new(file, name, unit, VALUE_MAX - 1, plan.eof.clone());
                return ValueSource::Words(Box::new(words));
            }
            let most = if plan.columns.is_some() { COLUMNS_MAX } else { VALUE_MAX };
            let mut splitter = RecordSplitter::new(file, name, plan.separator.clone(), most);
            splitter.windows_text = plan.windows_text;
            if plan.columns.is_none() && !plan.trim.right && plan.separator == b"\n" {
                splitter.carriage_returns = Some((0, Arc::clone(&plan.findings)));
            }
            ValueSource::Splitter(Box::new(splitter))
        };
        let from = match &source.kind {
            Kind::Arguments(values) => ValueSource::List(values.iter().cloned().collect()),
            Kind::Stdin => open(open_stdin()?, "standard input".to_owned()),
            Kind::File(path) => open(open_file(path)?, format!("`{}`", path.display())),
        };
        Ok(Self {
            from,
            columns: plan.columns.clone(),
            trim: plan.trim,
            eof: plan.eof.clone(),
            skip_blank: plan.skip_blank,
            comments: match (&source.kind, plan.skip_comments) {
                (Kind::Arguments(_), _) => Comments::Noted,
                (_, true) => Comments::Skipped,
                (_, false) => Comments::Values(Arc::clone(&plan.findings)),
            },
            finished: false,
        })
    }

    /// Returns the next record, its columns trimmed.
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        while !self.finished {
            let item = match &mut self.from {
                ValueSource::Words(words) => return words.next(),
                ValueSource::List(values) => values.pop_front().map(Item::Value),
                ValueSource::Splitter(splitter) => {
                    splitter.next(self.columns.as_ref().and_then(Columns::quoted_fields))?
                }
            };
            let value = match item {
                None => break,
                Some(Item::Unfit(_, Some(b'#'))) if matches!(self.comments, Comments::Skipped) => continue,
                Some(Item::Unfit(why, _)) => return Ok(Some(Record::Unfit(why))),
                Some(Item::Value(value)) => value,
            };
            if let (ValueSource::List(_), Some(between)) =
                (&self.from, self.columns.as_ref().and_then(Columns::quoted_fields))
            {
                let after = |field: FieldState, byte: &u8| field.after(*byte, between);
                if value.as_encoded_bytes().iter().fold(FieldState::Start, after) == FieldState::Quoted {
                    bail!("`{}`: a quote is not closed (--csv)", value.display());
                }
            }
            if self.eof.as_deref().is_some_and(|eof| eof == value.as_encoded_bytes()) {
                break;
            }
            if self.skip_blank && value.as_encoded_bytes().iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match &self.comments {
                Comments::Skipped => {
                    let text = value.as_encoded_bytes().trim_ascii_start();
                    if text.is_empty() || text.starts_with(b"#") {
                        continue;
                    }
                }
                Comments::Values(findings) if value.as_encoded_bytes().starts_with(b"# ") => {
                    findings.comments.store(true, Ordering::Relaxed);
                    self.comments = Comments::Noted;
                }
                Comments::Values(_) | Comments::Noted => (),
            }
            let mut columns = match &self.columns {
                Some(columns) => columns.cut(value),
                None => vec![value],
            };
            if self.trim != Trim::default() {
                columns.iter_mut().for_each(|value| trim(value, self.trim));
            }
            return Ok(Some(Record::Columns(columns)));
        }
        self.finished = true;
        Ok(None)
    }
}

fn trim(value: &mut OsString, trim: Trim) {
    let bytes = value.as_encoded_bytes();
    let bytes = if trim.left { bytes.trim_ascii_start() } else { bytes };
    let bytes = if trim.right { bytes.trim_ascii_end() } else { bytes };
    if bytes.len() < value.len() {
        *value = minder_os::encoding::os_string_from_encoded(bytes.to_vec());
    }
}

/// A record before it is split, or why it cannot be an argument, with its first byte other than white
/// space.
#[derive(Debug)]
enum Item {
    Value(OsString),
    Unfit(InvalidArgument, Option<u8>),
}

/// A position within a CSV field, as the CSV reader that splits the record sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldState {
    /// Before its first byte.
    Start,
    /// After a byte outside quotes. A quote there is text.
    Unquoted,
    /// Inside quotes.
    Quoted,
    /// After a quote inside quotes, which closes them or is the first half of a doubled one.
    AfterQuote,
}

impl FieldState {
    fn after(self, byte: u8, between: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::AfterQuote,
            (Self::Quoted, _) => Self::Quoted,
            (Self::Start | Self::AfterQuote, b'"') => Self::Quoted,
            (_, byte) if byte == between => Self::Start,
            _ => Self::Unquoted,
        }
    }
}

/// Cuts a stream at a separator. The last record may lack it.
#[derive(Debug)]
struct RecordSplitter {
    file: File,
    name: String,
    separator: Vec<u8>,
    most: usize,
    /// See [`InputPlan::windows_text`].
    windows_text: bool,
    /// The number of records that end in a carriage return so far, until one does not, and the flag
    /// that three of them set.
    carriage_returns: Option<(u8, Arc<InputFindings>)>,
    /// `true` if no record was returned yet.
    first: bool,
    buffer: Vec<u8>,
    /// Up to where the buffer was searched.
    at: usize,
    filled: usize,
    /// The beginning of an incomplete record, and how many more bytes of it were skipped.
    partial: Vec<u8>,
    dropped: usize,
    /// The position of its end within a CSV field.
    field: FieldState,
    /// The number of newlines read, and of those before the last quote that opened a field.
    newlines: u64,
    quoted_at: u64,
    /// `true` if any byte of the record was read.
    open: bool,
    finished: bool,
}

impl RecordSplitter {
    fn new(file: File, name: String, separator: Vec<u8>, most: usize) -> Self {
        Self {
            file,
            name,
            separator,
            most,
            windows_text: false,
            carriage_returns: None,
            first: true,
            buffer: vec![0; READ_SIZE],
            at: 0,
            filled: 0,
            partial: Vec::new(),
            dropped: 0,
            field: FieldState::Start,
            newlines: 0,
            quoted_at: 0,
            open: false,
            finished: false,
        }
    }

    /// Returns the next record. With `quoted`, which is the byte between CSV fields, a record
    /// continues while a double quote is open.
    ///
    /// # Errors
    /// The stream cannot be read, or ends inside quotes.
    fn next(&mut self, quoted: Option<u8>) -> Result<Option<Item>> {
        while !self.finished {
            if self.at == self.filled {
                let read = blocking_io::read(&mut self.file, &mut self.buffer);
                self.filled = read.with_context(|| format!("cannot read {}", self.name))?;
                self.at = 0;
                if self.filled == 0 {
                    self.finished = true;
                    break;
                }
            }
            if self.take(quoted) {
                return self.finish_record().map(Some);
            }
        }
        if self.open && self.dropped == 0 && self.field == FieldState::Quoted {
            bail!("{}, line {}: a quote is not closed (--csv)", self.name, self.quoted_at + 1);
        }
        std::mem::take(&mut self.open).then(|| self.finish_record()).transpose()
    }

    /// Moves bytes from the buffer to the record. Returns `true` at the end of the record.
    fn take(&mut self, quoted: Option<u8>) -> bool {
        let last = self.separator.last().copied().unwrap_or(b'\n');
        let rest = &self.buffer[self.at..self.filled];
        self.open = true;
        let Some(end) = memchr::memchr(last, rest) else {
            let len = rest.len();
            self.keep(len, quoted);
            return false;
        };
        self.keep(end + 1, quoted);
        let is_complete = self.dropped > 0 || self.partial.ends_with(&self.separator);
        if !is_complete || (self.dropped == 0 && self.field == FieldState::Quoted) {
            return false;
        }
        match self.dropped {
            0 => self.partial.truncate(self.partial.len() - self.separator.len()),
            _ => self.dropped -= 1,
        }
        self.open = false;
        true
    }

    fn keep(&mut self, count: usize, quoted: Option<u8>) {
        let fits = count.min((self.most + self.separator.len()).saturating_sub(self.partial.len()));
        if let Some(between) = quoted {
            // Bytes are examined once, as they arrive: after a quote that is never closed, all
            // following lines are one record.
            for byte in &self.buffer[self.at..self.at + count] {
                let field = self.field.after(*byte, between);
                if self.field == FieldState::Start && field == FieldState::Quoted {
                    self.quoted_at = self.newlines;
                }
                self.field = field;
                self.newlines += u64::from(*byte == b'\n');
            }
        }
        self.partial.extend_from_slice(&self.buffer[self.at..self.at + fits]);
        self.dropped += count - fits;
        self.at += count;
    }

    /// Returns the record that was read, or why it cannot be an argument.
    fn finish_record(&mut self) -> Result<Item> {
        let mut bytes = std::mem::take(&mut self.partial);
        let first = std::mem::take(&mut self.first);
        self.field = FieldState::Start;
        let dropped = std::mem::take(&mut self.dropped);
        let is_too_long = dropped > 0 || bytes.len() > self.most;
        let whole_len = bytes.len() + dropped;
        if self.windows_text {
            bytes.truncate(bytes.strip_suffix(b"\r").map_or(bytes.len(), <[u8]>::len));
            if first && bytes.starts_with(UTF8_MARK) {
                bytes.drain(..UTF8_MARK.len());
            }
        }
        let begins = |bytes: &[u8]| bytes.trim_ascii_start().first().copied();
        if is_too_long {
            return Ok(Item::Unfit(InvalidArgument::TooLong(whole_len), begins(&bytes)));
        }
        if let Some((count, found)) = &mut self.carriage_returns {
            *count += 1;
            let is_more = bytes.ends_with(b"\r") && *count < 3;
            found.carriage_returns.fetch_or(bytes.ends_with(b"\r") && *count == 3, Ordering::Relaxed);
            if !is_more {
                self.carriage_returns = None;
            }
        }
        match minder_os::encoding::os_string_from_bytes(bytes) {
            Ok(value) => Ok(Item::Value(value)),
            Err(bytes) if first && UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) => {
                bail!("{} is UTF-16, as Windows PowerShell writes it; hint: save it as UTF-8", self.name)
            }
            Err(bytes) => {
                let wrong = bytes.utf8_chunks().find_map(|chunk| chunk.invalid().first().copied());
                Ok(Item::Unfit(InvalidArgument::NoText(wrong.unwrap_or_default()), begins(&bytes)))
            }
        }
    }
}

/// Opens a source for reading.
fn open_file(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Opens standard input as a source.
fn open_stdin() -> Result<File> {
    std_file(StdStream::Input).context("cannot read standard input")
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    fn cut(bytes: &[u8], separator: &[u8]) -> Vec<String> {
        cut_as(bytes, separator, false).expect("read temp file")
    }

    fn cut_as(bytes: &[u8], separator: &[u8], windows_text: bool) -> Result<Vec<String>> {
        let mut file = tempfile::tempfile().expect("create temp file");
        file.write_all(bytes).expect("write temp file");
        file.rewind().expect("rewind temp file");
        let mut splitter = RecordSplitter::new(file, "a test".to_owned(), separator.to_vec(), VALUE_MAX);
        splitter.windows_text = windows_text;
        let mut got = Vec::new();
        while let Some(item) = splitter.next(None)? {
            got.push(match item {
                Item::Value(value) => value.to_string_lossy().into_owned(),
                Item::Unfit(InvalidArgument::TooLong(len), _) => format!("<{len}>"),
                Item::Unfit(InvalidArgument::NoText(byte), _) => format!("<{byte:02x}>"),
            });
        }
        Ok(got)
    }

    #[test]
    fn windows_text_drops_only_its_marks() {
        let lines = |bytes: &[u8]| cut_as(bytes, b"\n", true).expect("text");
        assert_eq!(
            lines(b"\xef\xbb\xbfa\r\nb\n\r\nc\rd\r\r\n\xef\xbb\xbfe\r"),
            ["a", "b", "", "c\rd\r", "\u{feff}e"]
        );
        assert_eq!(lines(b"\xef\xbb\xbf"), [""]);
        assert_eq!(cut(b"\xef\xbb\xbfa\r\n", b"\n"), ["\u{feff}a\r"]);
    }

    #[cfg(windows)]
    #[test]
    fn text_that_is_not_utf8_is_unfit() {
        assert_eq!(cut(b"caf\xe9\ncaf\xc3\xa9\n\xff\xfe\n", b"\n"), ["<e9>", "café", "<ff>"]);
        let error = cut_as(b"\xff\xfea\0\r\0\n\0b\0", b"\n", true).expect_err("UTF-16");
        assert_eq!(
            error.to_string(),
            "a test is UTF-16, as Windows PowerShell writes it; hint: save it as UTF-8"
        );
    }

    #[test]
    fn last_record_may_lack_separator() {
        assert_eq!(cut(b"a\nbc\n\nd", b"\n"), ["a", "bc", "", "d"]);
        assert_eq!(cut(b"a\n", b"\n"), ["a"]);
        assert_eq!(cut(b"", b"\n"), [""; 0]);
        assert_eq!(cut(b"a\0b\n\0", b"\0"), ["a", "b\n"]);
        assert_eq!(cut(b"a::b:c::", b"::"), ["a", "b:c"]);
    }

    #[test]
    fn too_long_record_takes_no_memory() {
        let mut long = vec![b'x'; VALUE_MAX];
        long.extend_from_slice(b"yz\nnext\n");
        assert_eq!(cut(&long, b"\n"), [format!("<{}>", VALUE_MAX + 2), "next".to_owned()]);
        let fits = [vec![b'x'; VALUE_MAX], b"\nnext\n".to_vec()].concat();
        assert_eq!(cut(&fits, b"\n"), ["x".repeat(VALUE_MAX), "next".to_owned()]);
    }

    #[test]
    fn unclosed_quote_takes_linear_time() {
        let mut file = tempfile::tempfile().expect("create temp file");
        let text = [&b"\"a\n"[..], &b"1\n".repeat(4 << 20)].concat();
        file.write_all(&text).expect("write temp file");
        file.rewind().expect("rewind temp file");
        let mut splitter = RecordSplitter::new(file, "a test".to_owned(), b"\n".to_vec(), COLUMNS_MAX);
        // Searching all of the record again for each line would take hours.
        let error = splitter.next(Some(b',')).expect_err("the quote is open").to_string();
        assert_eq!(error, "a test, line 1: a quote is not closed (--csv)");
    }

    /// Returns the records of a CSV text, and the error after them.
    fn csv(text: &str) -> (Vec<String>, Option<String>) {
        let mut file = tempfile::tempfile().expect("create temp file");
        file.write_all(text.as_bytes()).expect("write temp file");
        file.rewind().expect("rewind temp file");
        let mut splitter = RecordSplitter::new(file, "a test".to_owned(), b"\n".to_vec(), COLUMNS_MAX);
        let mut records = Vec::new();
        loop {
            match splitter.next(Some(b',')) {
                Ok(Some(Item::Value(value))) => records.push(value.to_string_lossy().into_owned()),
                Ok(Some(Item::Unfit(why, _))) => panic!("unfit record: {why}"),
                Ok(None) => return (records, None),
                Err(error) => return (records, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn csv_record_continues_only_inside_quotes() {
        let whole = |records: &[&str]| (records.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), None);
        assert_eq!(csv("a,\"b\nc\"\nd\n"), whole(&["a,\"b\nc\"", "d"]));
        // Quotes inside a field that begins without one are text.
        assert_eq!(csv("a 5\" b\n6\" c\nd\n"), whole(&["a 5\" b", "6\" c", "d"]));
        assert_eq!(csv("\"a \"\"b\"\"\n\",c\nd"), whole(&["\"a \"\"b\"\"\n\",c", "d"]));
        let (records, error) = csv("\"a\nb\"\nc,\"d\ne,f\n");
        assert_eq!(records, ["\"a\nb\""]);
        assert_eq!(error.as_deref(), Some("a test, line 3: a quote is not closed (--csv)"));
    }

    #[test]
    fn records_do_not_depend_on_reads() {
        let lines: Vec<String> = (0..5000).map(|number| "y".repeat(number % 97)).collect();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(cut(text.as_bytes(), b"\n"), lines);
    }
}
