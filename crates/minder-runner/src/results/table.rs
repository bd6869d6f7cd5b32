//! `--results NAME.csv`, `.tsv`, `.json`: one table for all jobs, in GNU parallel's columns.
//!
//! A row replaces the job's output. It is saved, recorded and written like any output, so it is
//! neither lost nor incomplete. It goes to the file, or to standard output.
//!
//! The header line is written with the first row, and counts the arguments of the first job of the
//! input, whichever job finishes first. A job with fewer arguments has empty cells. The arguments
//! that a job has beyond the header line come after its last named column, so that no named column
//! is shifted.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Once, OnceLock};

use anyhow::{Context, Result};
use csv_core::WriteResult;
use minder::Stream;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

use crate::config::RunConfig;
use crate::config::TableForm;
use crate::input::ColumnCount;
use minder_record::event::JobFinished;
use minder_record::joblog::exit_of;

/// The columns before those of the input, as in a joblog, and the ones after them.
const BEFORE: [&str; 9] =
    ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"];
const BEHIND: [&str; 2] = ["Stdout", "Stderr"];

/// The table of a run.
#[derive(Debug)]
pub(crate) struct ResultsTable {
    form: TableForm,
    names: Vec<OsString>,
    /// Set once the header line is written, with the first row.
    header: Once,
    /// The number of arguments of the first job of the input.
    first_job: ColumnCount,
    /// The number of argument columns of the header line. Set before the first row is written.
    columns: OnceLock<usize>,
}

/// Passes one stream of a job to a function, chunk by chunk.
pub(crate) type Output<'a> = &'a dyn Fn(Stream, &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;

impl ResultsTable {
    /// Opens the table of a run, and its file if it has one. A resumed run appends after the last
    /// complete row.
    pub(crate) fn open(config: &RunConfig, first_job: ColumnCount) -> Result<Option<(Self, Option<File>)>> {
        let Some((form, path, names)) = config.files.table() else { return Ok(None) };
        let is_resumed = config.record.mode.is_some();
        let columns = OnceLock::new();
        let mut file = None;
        let mut headed = is_resumed;
        if let Some(path) = path {
            let cannot = || format!("cannot write results in `{}`", path.display());
            let (opened, rows) = open(path, is_resumed, form).with_context(cannot)?;
            headed = rows.len > 0;
            if headed && form != TableForm::Json {
                let _ = columns.set(rows.fields.saturating_sub(BEFORE.len() + BEHIND.len()));
            }
            file = Some(opened);
        }
        let header = Once::new();
        if headed || form == TableForm::Json {
            header.call_once(|| ());
        }
        let table = Self { form, names: names.to_vec(), header, first_job, columns };
        Ok(Some((table, file)))
    }

    /// Writes the header line before the first row, which has this many arguments.
    pub(crate) fn begin(&self, columns: usize, write: impl FnOnce(&[u8])) {
        let columns =
            *self.columns.get_or_init(|| self.first_job.get().unwrap_or(columns).max(self.names.len()));
        let TableForm::Separated(between) = self.form else { return };
        self.header.call_once(|| {
            let mut line = Vec::new();
            let name = |place: usize| match self.names.get(place) {
                Some(name) => name.as_encoded_bytes().to_vec(),
                None => format!("V{}", place + 1).into_bytes(),
            };
            let names = (0..columns).map(name);
            let all = BEFORE.iter().map(|name| name.as_bytes().to_vec()).chain(names);
            for field in all.chain(BEHIND.iter().map(|name| name.as_bytes().to_vec())) {
                quote(&field, between, &mut line);
                line.push(between);
            }
            line.pop();
            line.push(b'\n');
            write(&line);
        });
    }

    /// Writes the row of a job.
    ///
    /// # Errors
    /// The output cannot be read, or the row cannot be written.
    pub(crate) fn row(
        &self,
        (ended, host): (&JobFinished, Option<&str>),
        command: &str,
        columns: &[OsString],
        output: Output<'_>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let facts = facts(ended, host);
        match self.form {
            TableForm::Separated(between) => self.separated(between, &facts, command, columns, output, to),
            TableForm::Json => json(&facts, command, columns, output, to),
        }
    }

    fn separated(
        &self,
        between: u8,
        facts: &[String],
        command: &str,
        columns: &[OsString],
        output: Output<'_>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let mut row = Vec::new();
        for fact in facts {
            quote(fact.as_bytes(), between, &mut row);
            row.push(between);
        }
        quote(command.as_bytes(), between, &mut row);
        let named = self.columns.get().copied().unwrap_or(columns.len());
        for place in 0..named {
            row.push(between);
            quote(columns.get(place).map_or(&b""[..], |column| column.as_encoded_bytes()), between, &mut row);
        }
        to.write_all(&row)?;
        for stream in [Stream::Stdout, Stream::Stderr] {
            to.write_all(&[between])?;
            let mut quotes = false;
            output(stream, &mut |bytes| {
                quotes |= needs_quotes(bytes, between);
                Ok(())
            })?;
            if !quotes {
                output(stream, &mut |bytes| to.write_all(bytes))?;
                continue;
            }
            to.write_all(b"\"")?;
            let mut part = Vec::new();
            output(stream, &mut |bytes| {
                part.clear();
                double(bytes, &mut part);
                to.write_all(&part)
            })?;
            to.write_all(b"\"")?;
        }
        let mut rest = Vec::new();
        for column in columns.iter().skip(named) {
            rest.push(between);
            quote(column.as_encoded_bytes(), between, &mut rest);
        }
        rest.push(b'\n');
        to.write_all(&rest)
    }
}

/// Returns the fields before the command. `:` is GNU's name for the local machine.
fn facts(ended: &JobFinished, host: Option<&str>) -> [String; 8] {
    let JobFinished { job, at, wall, sent, out, .. } = ended;
    [
        job.to_string(),
        host.unwrap_or(":").to_owned(),
        format!("{at:.3}"),
        format!("{wall:.3}"),
        sent.to_string(),
        out.to_string(),
        exit_of(ended).to_string(),
        ended.signal.unwrap_or(0).to_string(),
    ]
}

/// Returns `true` if a field must be quoted. Spaces need no quotes, but GNU parallel quotes them.
fn needs_quotes(field: &[u8], between: u8) -> bool {
    let is_odd = |byte: &u8| *byte == between || matches!(byte, b'"' | 0 | b' ' | b'\t'..=b'\r');
    field.iter().any(is_odd)
}

fn quote(field: &[u8], between: u8, out: &mut Vec<u8>) {
    if needs_quotes(field, between) {
        out.push(b'"');
        double(field, out);
        out.push(b'"');
    } else {
        out.extend_from_slice(field)
    }
}

/// Appends a field and doubles its quotes.
fn double(mut field: &[u8], out: &mut Vec<u8>) {
    let mut part = [0; 4 << 10];
    loop {
        let (result, read, written) = csv_core::quote(field, &mut part, b'"', b'"', true);
        out.extend_from_slice(&part[..written]);
        field = &field[read..];
        if let WriteResult::InputEmpty = result {
            return;
        }
    }
}

fn json(
    facts: &[String; 8],
    command: &str,
    columns: &[OsString],
    output: Output<'_>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let [job, host, at, wall, sent, received, exit, signal] = facts;
    let mut text = JsonStringWriter::default();
    write!(to, "{{ \"Seq\": {job}, \"Host\": \"")?;
    text.push(host.as_bytes(), to)?;
    text.end(to)?;
    write!(
        to,
        "\", \"Starttime\": {at}, \"JobRuntime\": {wall}, \"Send\": {sent}, \
         \"Receive\": {received}, \"Exitval\": {exit}, \"Signal\": {signal}, \"Command\": \""
    )?;
    text.push(command.as_bytes(), to)?;
    to.write_all(b"\", \"V\": [ ")?;
    for (place, column) in columns.iter().enumerate() {
        to.write_all(if place == 0 { b"\"" } else { b",\"" })?;
        text.push(column.as_encoded_bytes(), to)?;
        text.end(to)?;
        to.write_all(b"\"")?;
    }
    to.write_all(b" ]")?;
    for (stream, name) in [(Stream::Stdout, "Stdout"), (Stream::Stderr, "Stderr")] {
        write!(to, ", \"{name}\": \"")?;
        output(stream, &mut |bytes| text.push(bytes, to))?;
        text.end(to)?;
        to.write_all(b"\"")?;
    }
    to.write_all(b" }\n")
}

/// Writes a JSON string that arrives in chunks. Bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Default)]
struct JsonStringWriter {
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

impl JsonStringWriter {
    fn push(&mut self, bytes: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            escaped(chunk.valid(), to)?;
            let broken = chunk.invalid();
            // At the end of a chunk, a character may continue in the next one.
            if chunks.peek().is_none()
                && std::str::from_utf8(broken).is_err_and(|it| it.error_len().is_none())
            {
                self.partial = broken.to_vec();
            } else if !broken.is_empty() {
                escaped("\u{fffd}", to)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, to: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.partial).is_empty() { Ok(()) } else { escaped("\u{fffd}", to) }
    }
}

fn escaped(text: &str, to: &mut dyn Write) -> io::Result<()> {
    text.serialize(&mut Serializer::with_formatter(to, BareJsonString)).map_err(io::Error::from)
}

/// Formats the content of a JSON string. Control characters are written by number, as in GNU
/// parallel.
struct BareJsonString;

impl Formatter for BareJsonString {
    fn begin_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, to: &mut W, escape: CharEscape) -> io::Result<()> {
        let number = match escape {
            CharEscape::Quote => return to.write_all(b"\\\""),
            CharEscape::ReverseSolidus => return to.write_all(b"\\\\"),
            CharEscape::Solidus => b'/',
            CharEscape::Backspace => 8,
            CharEscape::FormFeed => 12,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(number) => number,
        };
        write!(to, "\\u{number:04x}")
    }
}

/// Opens the file of a table, emptied or positioned after its last complete row.
fn open(path: &Path, is_resumed: bool, form: TableForm) -> io::Result<(File, CompleteRows)> {
    let mut options = OpenOptions::new();
    let is_file = std::fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    if !is_resumed || !is_file {
        let file = options.write(true).create(true).truncate(is_file).open(path)?;
        return Ok((file, CompleteRows { len: 0, fields: 0 }));
    }
    let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    let rows = complete_rows(BufReader::new(&file), form)?;
    file.set_len(rows.len)?;
    file.seek(SeekFrom::Start(rows.len))?;
    Ok((file, rows))
}

/// The complete rows of a table.
#[derive(Debug, PartialEq, Eq)]
struct CompleteRows {
    /// Their length in bytes.
    len: u64,
    /// The number of fields of the first one.
    fields: usize,
}

/// Reads a table to its end.
fn complete_rows(mut from: impl BufRead, form: TableForm) -> io::Result<CompleteRows> {
    let mut at = 0;
    let mut rows = CompleteRows { len: 0, fields: 1 };
    let mut within = false;
    loop {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            return Ok(rows);
        }
        for byte in bytes {
            at += 1;
            match byte {
                b'"' if form != TableForm::Json => within = !within,
                b'\n' if !within => rows.len = at,
                byte if !within && rows.len == 0 && form == TableForm::Separated(*byte) => rows.fields += 1,
                _ => (),
            }
        }
        let len = bytes.len();
        from.consume(len);
    }
}

#[cfg(test)]
mod tests;
