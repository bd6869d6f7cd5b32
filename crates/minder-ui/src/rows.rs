//! Rows for programs: JSON with one object per line, and CSV (RFC 4180). Both are lossless.
//!
//! Bytes that are not UTF-8 are `{"base64": "…"}` in JSON. CSV has only text. So a column that may
//! contain such bytes has a second column, after all others, that names its format: `args_form` for
//! `args`. Its values are:
//!
//! - empty: no value;
//! - `text`: unchanged;
//! - `base64`: bytes that are not UTF-8, in base64;
//! - `json`: a list of several values, as in JSON.
//!
//! SQLite supports bytes, so only lists are converted there. Its tables have the same columns, with
//! `bytes` instead of `base64`.
//!
//! [`CsvTable`] reads CSV again, and is the form of rows that are kept in a file.

use std::io::{self, Write};

use anyhow::{Result, anyhow, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minder_record::event::OsBytes;
use serde_json::{Map, json};

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// 0 or 1; in JSON `false` or `true`.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    /// Several values, each text or bytes.
    List(Vec<OsBytes>),
}

/// The name and the columns of a table.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Of the table, for SQL.
    pub name: &'static str,
    /// The names of the columns, in order.
    pub columns: &'static [&'static str],
    /// The columns with a second column.
    pub forms: &'static [&'static str],
}

/// Returns a number, or the largest that a row can have.
pub fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns a number, if there is one.
pub fn real(number: Option<f64>) -> Value {
    number.map_or(Value::Null, Value::Real)
}

/// Returns a text, if there is one.
pub fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

/// Returns text, or bytes that are not UTF-8.
pub fn bytes(bytes: Vec<u8>) -> Value {
    String::from_utf8(bytes).map_or_else(|error| Value::Bytes(error.into_bytes()), Value::Text)
}

impl Value {
    fn json(&self) -> serde_json::Value {
        let of_bytes = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "base64": BASE64_STANDARD.encode(bytes) }),
        };
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Flag(flag) => json!(flag),
            Self::Integer(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::Text(text) => json!(text),
            // A blob of a query stays base64 even if it is valid UTF-8.
            Self::Bytes(bytes) => json!({ "base64": BASE64_STANDARD.encode(bytes) }),
            Self::List(items) => items.iter().map(|item| of_bytes(&item.0)).collect(),
        }
    }

    /// Returns the value without a list, and its format. See the module documentation.
    pub fn plain(&self) -> (Self, &'static str) {
        let value = match self {
            Self::List(items) => match items.as_slice() {
                [] => Self::Null,
                [one] => bytes(one.0.clone()),
                _ => return (Self::Text(self.json().to_string()), "json"),
            },
            other => other.clone(),
        };
        let form = match value {
            Self::Null => "",
            Self::Bytes(_) => "bytes",
            _ => "text",
        };
        (value, form)
    }

    /// Returns the text for a table, not yet escaped.
    pub fn display_bytes(&self) -> Vec<u8> {
        match self {
            Self::Null => Vec::new(),
            Self::Flag(flag) => u8::from(*flag).to_string().into_bytes(),
            Self::Integer(number) => number.to_string().into_bytes(),
            Self::Real(number) => number.to_string().into_bytes(),
            Self::Text(text) => text.clone().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::List(items) => items.iter().map(|item| item.0.as_slice()).collect::<Vec<_>>().join(&b' '),
        }
    }

    /// Returns a field of CSV. An empty text is quoted, which distinguishes it from null.
    fn field(&self) -> String {
        let text = match self {
            Self::Bytes(bytes) => return BASE64_STANDARD.encode(bytes),
            Self::Text(text) => text,
            other => return String::from_utf8_lossy(&other.display_bytes()).into_owned(),
        };
        if text.is_empty() { "\"\"".to_owned() } else { csv_field(text) }
    }
}

/// Returns a field of CSV, in quotes if it needs them.
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) || text.trim() != text {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// Splits the first row off CSV: returns its fields, and the text after it.
fn split_row(text: &str) -> Result<(Vec<String>, &str), &'static str> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let field;
        (field, rest) = split_field(rest)?;
        fields.push(field);
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) {
            return Ok((fields, after));
        } else if rest.is_empty() {
            return Ok((fields, rest));
        } else {
            return Err("text follows the quote that ends a field");
        }
    }
}

/// Splits the first field off CSV. A quote within a field without quotes is text.
fn split_field(text: &str) -> Result<(String, &str), &'static str> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        let has_return = text[..end].ends_with('\r') && text[end..].starts_with('\n');
        let (field, rest) = text.split_at(end - usize::from(has_return));
        return Ok((field.to_owned(), rest));
    };
    let mut field = String::new();
    loop {
        let (part, after) = rest.split_once('"').ok_or("a quote is not closed")?;
        field.push_str(part);
        let Some(after) = after.strip_prefix('"') else { return Ok((field, after)) };
        field.push('"');
        rest = after;
    }
}

/// A format for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One object in each line.
    Json,
    /// RFC 4180, with a line of names.
    Csv,
}

impl Format {
    /// Returns the format that `--csv` and `--json` ask for; `None` for tables.
    pub fn of_flags(csv: bool, json: bool) -> Option<Self> {
        match (csv, json) {
            (true, _) => Some(Self::Csv),
            (_, true) => Some(Self::Json),
            _ => None,
        }
    }
}

/// Writes rows.
pub struct Rows<'a> {
    out: &'a mut dyn Write,
    format: Format,
    columns: Vec<String>,
    /// The indices of the columns with a second column for the format.
    forms: Vec<usize>,
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<'a> Rows<'a> {
    /// Returns a writer for a known table.
    pub fn of(out: &'a mut dyn Write, format: Format, schema: &Schema) -> io::Result<Self> {
        let columns = schema.columns.iter().map(|name| (*name).to_owned()).collect();
        let forms = schema.columns.iter().enumerate().filter(|(_, name)| schema.forms.contains(name));
        Self::start(out, format, columns, forms.map(|(index, _)| index).collect())
    }

    /// Returns a writer for the result of a query.
    pub fn new(out: &'a mut dyn Write, format: Format, columns: Vec<String>) -> io::Result<Self> {
        Self::start(out, format, columns, Vec::new())
    }

    fn start(
        out: &'a mut dyn Write,
        format: Format,
        columns: Vec<String>,
        forms: Vec<usize>,
    ) -> io::Result<Self> {
        if format == Format::Csv {
            let names = columns.iter().cloned();
            let forms = forms.iter().map(|index| format!("{}_form", columns[*index]));
            let fields: Vec<String> = names.chain(forms).map(|name| Value::Text(name).field()).collect();
            write!(out, "{}\r\n", fields.join(","))?;
        }
        Ok(Self { out, format, columns, forms })
    }

    /// Writes a row.
    pub fn row(&mut self, values: &[Value]) -> io::Result<()> {
        let line = match self.format {
            Format::Json => {
                let member = |(name, value): (&String, &Value)| format!("{}:{}", json!(name), value.json());
                let members: Vec<String> = self.columns.iter().zip(values).map(member).collect();
                format!("{{{}}}\n", members.join(","))
            }
            Format::Csv => {
                let plain: Vec<(Value, &str)> = values.iter().map(Value::plain).collect();
                let forms = self.forms.iter().map(|index| match plain[*index].1 {
                    "bytes" => "base64".to_owned(),
                    form => form.to_owned(),
                });
                let fields: Vec<String> = plain.iter().map(|(value, _)| value.field()).chain(forms).collect();
                format!("{}\r\n", fields.join(","))
            }
        };
        self.out.write_all(line.as_bytes())
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Rows of CSV as text, under the names of their columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a field for each column. A field without a value is empty.
    pub rows: Vec<Vec<String>>,
}

impl CsvTable {
    /// Returns a table with these columns and no rows.
    pub fn new(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// Reads CSV (RFC 4180) whose first row has the names of the columns. Rows may end with `\r\n` or
    /// with `\n`.
    ///
    /// # Errors
    /// There is no row, a row has too few or too many fields, a quote is not closed, or text follows a
    /// closed one. The error names the line in which the row begins.
    pub fn read(text: &str) -> Result<Self> {
        let mut all: Vec<Vec<String>> = Vec::new();
        let mut rest = text;
        let mut line = 1;
        while !rest.is_empty() {
            let (row, after) = split_row(rest).map_err(|what| anyhow!("line {line}: {what}"))?;
            let expected = all.first().map_or(row.len(), Vec::len);
            ensure!(row.len() == expected, "line {line}: expected {expected} fields, found {}", row.len());
            all.push(row);
            line += rest[..rest.len() - after.len()].matches('\n').count();
            rest = after;
        }
        ensure!(!all.is_empty(), "there are no rows, not even the names of columns");
        let columns = all.remove(0);
        Ok(Self { columns, rows: all })
    }

    /// Returns the table as CSV. Lines end with `\n`, as in other files of a repository.
    pub fn text(&self) -> String {
        let line = |fields: &Vec<String>| {
            fields.iter().map(|field| csv_field(field)).collect::<Vec<_>>().join(",") + "\n"
        };
        std::iter::once(&self.columns).chain(&self.rows).map(line).collect()
    }

    /// Adds a row that [`Rows`] prints, without second columns.
    pub fn push(&mut self, values: &[Value]) {
        let field = |value: &Value| String::from_utf8_lossy(&value.display_bytes()).into_owned();
        self.rows.push(values.iter().map(field).collect());
    }

    /// Returns the place of a column.
    pub fn index(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    /// Returns each row as the object that JSON has for it: numbers as numbers, and other fields as
    /// text.
    pub fn objects(&self) -> impl Iterator<Item = Map<String, serde_json::Value>> {
        let value = |field: &String| match field.as_str() {
            "" => serde_json::Value::Null,
            text => {
                serde_json::from_str(text).ok().filter(serde_json::Value::is_number).unwrap_or(json!(text))
            }
        };
        self.rows.iter().map(move |row| self.columns.iter().cloned().zip(row.iter().map(value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_read_as_it_was_written() {
        let mut out = Vec::new();
        let mut rows =
            Rows::new(&mut out, Format::Csv, vec!["name".into(), "n".into()]).expect("write columns");
        rows.row(&[Value::Text("a, \"b\"".into()), Value::Real(1.5)]).expect("write row");
        rows.row(&[Value::Text(" c".into()), Value::Null]).expect("write row");
        let text = String::from_utf8(out).expect("decode rows");
        let table = CsvTable::read(&text).expect("read rows");
        assert_eq!(table.rows, [["a, \"b\"", "1.5"], [" c", ""]]);
        assert_eq!(table.text(), text.replace('\r', ""));
        assert_eq!(table.index("n"), Some(1));
        let mut again = CsvTable::new(&["name", "n"]);
        again.push(&[Value::Text("a, \"b\"".into()), Value::Real(1.5)]);
        again.push(&[Value::Text(" c".into()), Value::Null]);
        assert_eq!(again, table);
        let objects: Vec<_> = table.objects().collect();
        assert_eq!(json!(objects), json!([{"name": "a, \"b\"", "n": 1.5}, {"name": " c", "n": null}]));
    }

    #[test]
    fn csv_table_reads_line_ends_and_quotes_in_quoted_fields() {
        let table = CsvTable::read("a,\"b\nc\"\r\n\"1\r\n2\",\"\"\n\"\"\"x\"\"\",y\"z\"").expect("read rows");
        assert_eq!(table.columns, ["a", "b\nc"]);
        assert_eq!(table.rows, [["1\r\n2", ""], ["\"x\"", "y\"z\""]]);
        assert_eq!(CsvTable::read(&table.text()).expect("read rows again"), table);
        let one = CsvTable::read("a\n\n1\n").expect("read a column");
        assert_eq!(one.rows, [[""], ["1"]]);
        assert_eq!(CsvTable::read(&one.text()).expect("read a column again"), one);
    }

    #[test]
    fn error_of_csv_table_names_the_line_in_which_the_row_begins() {
        for (wrong, error) in [
            ("", "there are no rows, not even the names of columns"),
            ("a,b\n1,2\n1\n", "line 3: expected 2 fields, found 1"),
            ("a\n1,2\n", "line 2: expected 1 fields, found 2"),
            ("a,b\n1,2\n\n", "line 3: expected 2 fields, found 1"),
            ("a,b\n\"1\n2\",3\n4,\"5\n\n", "line 4: a quote is not closed"),
            ("\"a\"\"\n1\n", "line 1: a quote is not closed"),
            ("a,b\n\"1\"2,3\n", "line 2: text follows the quote that ends a field"),
        ] {
            assert_eq!(CsvTable::read(wrong).expect_err(wrong).to_string(), error);
        }
    }

    #[test]
    fn numbers_out_of_range_are_null_or_clamped() {
        assert_eq!(Value::Real(f64::NAN).json(), json!(null));
        assert_eq!(integer(u64::MAX), Value::Integer(i64::MAX));
    }
}
