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

#![cfg_attr(not(feature = "sql"), allow(dead_code, reason = "some items are only used for SQL"))]

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use minder_record::event::{AttemptFinished, AttemptHost, AttemptStarted, JobFinished, OsBytes};

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Flag(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    List(Vec<OsBytes>),
}

/// The name and the columns of a table. `forms` are the columns with a second column for the format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) forms: &'static [&'static str],
}

pub(crate) const RUNS: Schema = Schema {
    name: "runs",
    columns: &["run", "at", "command", "jobs", "failed", "elapsed", "state", "note"],
    forms: &["command"],
};

pub(crate) const ATTEMPTS: Schema = Schema {
    name: "attempts",
    columns: &[
        "run",
        "attempt",
        "version",
        "pid",
        "at",
        "succeeded",
        "failed",
        "elapsed",
        "cpu",
        "why",
        "timed_out",
        "retried",
        "cut",
        "not_run",
        "slots",
        "cpus",
        "memory",
        "cpu_busy",
        "cpu_idle",
        "own_rss",
    ],
    forms: &[],
};

pub(crate) const JOBS: Schema = Schema {
    name: "jobs",
    columns: &[
        "run",
        "job",
        "args",
        "at",
        "wall",
        "user",
        "system",
        "ready",
        "main",
        "rss",
        "exit",
        "signal",
        "error",
        "out",
        "err",
        "leaked",
        "tail",
        "out_tail",
        "timed_out",
        "attempts",
        "cause",
    ],
    forms: &["args", "tail", "out_tail"],
};

/// The failed tries of jobs that were started again.
pub(crate) const TRIES: Schema = Schema {
    name: "tries",
    columns: &[
        "run",
        "job",
        "try",
        "at",
        "wall",
        "user",
        "system",
        "exit",
        "signal",
        "out",
        "err",
        "tail",
        "out_tail",
        "timed_out",
        "cause",
    ],
    forms: &["tail", "out_tail"],
};

/// Returns a row of [`TRIES`].
pub(crate) fn tried(run: &str, tried: &JobFinished) -> Vec<Value> {
    vec![
        Value::Text(run.to_owned()),
        integer(tried.job),
        Value::Integer(tried.attempts.unwrap_or(1).into()),
        Value::Real(tried.at),
        Value::Real(tried.wall),
        real(tried.user),
        real(tried.system),
        code(tried.exit),
        code(tried.signal),
        integer(tried.out),
        integer(tried.err),
        tail(tried.tail.as_ref()),
        tail(tried.out_tail.as_ref()),
        Value::Flag(tried.timed_out),
        text(tried.cause.as_deref()),
    ]
}

/// The data about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunFacts {
    pub(crate) run: String,
    /// The start time, in seconds since 1970.
    pub(crate) at: Option<f64>,
    pub(crate) command: Vec<OsBytes>,
    /// The finished jobs, and the failed ones among them.
    pub(crate) jobs: u64,
    pub(crate) failed: u64,
    /// Seconds, of all attempts together.
    pub(crate) elapsed: Option<f64>,
    /// `over`, `running`, `killed`, `damaged`.
    pub(crate) state: &'static str,
    pub(crate) note: Option<String>,
}

impl RunFacts {
    /// Returns the row of [`RUNS`].
    pub(crate) fn values(&self) -> Vec<Value> {
        vec![
            Value::Text(self.run.clone()),
            real(self.at),
            Value::List(self.command.clone()),
            integer(self.jobs),
            integer(self.failed),
            real(self.elapsed),
            Value::Text(self.state.to_owned()),
            text(self.note.as_deref()),
        ]
    }
}

/// Returns a row of [`ATTEMPTS`]. A killed attempt has no end.
pub(crate) fn attempt(
    started: &AttemptStarted,
    host: Option<&AttemptHost>,
    finished: Option<&AttemptFinished>,
) -> Vec<Value> {
    let known = |number: Option<u64>| number.map_or(Value::Null, integer);
    vec![
        Value::Text(started.run.clone()),
        Value::Integer(started.attempt.into()),
        Value::Text(started.version.clone()),
        Value::Integer(started.pid.into()),
        Value::Real(started.at),
        finished.map_or(Value::Null, |finished| integer(finished.succeeded)),
        finished.map_or(Value::Null, |finished| integer(finished.failed)),
        real(finished.map(|finished| finished.elapsed)),
        real(finished.map(|finished| finished.cpu)),
        text(finished.and_then(|finished| finished.why.as_deref())),
        finished.map_or(Value::Null, |finished| integer(finished.timed_out)),
        finished.map_or(Value::Null, |finished| integer(finished.retried)),
        finished.map_or(Value::Null, |finished| integer(finished.cut)),
        known(finished.and_then(|finished| finished.not_run)),
        known(host.map(|host| host.slots)),
        known(host.map(|host| host.cpus)),
        known(host.and_then(|host| host.memory)),
        real(finished.and_then(|finished| finished.cpu_busy)),
        real(finished.and_then(|finished| finished.cpu_idle)),
        known(finished.and_then(|finished| finished.own_rss)),
    ]
}

/// Returns a row of [`JOBS`].
pub(crate) fn job(run: &str, ended: &JobFinished) -> Vec<Value> {
    vec![
        Value::Text(run.to_owned()),
        integer(ended.job),
        Value::List(ended.args.clone()),
        Value::Real(ended.at),
        Value::Real(ended.wall),
        real(ended.user),
        real(ended.system),
        real(ended.ready),
        real(ended.main),
        ended.rss.map_or(Value::Null, integer),
        code(ended.exit),
        code(ended.signal),
        text(ended.error.as_deref()),
        integer(ended.out),
        integer(ended.err),
        Value::Flag(ended.leaked),
        tail(ended.tail.as_ref()),
        tail(ended.out_tail.as_ref()),
        Value::Flag(ended.timed_out),
        Value::Integer(ended.attempts.unwrap_or(1).into()),
        text(ended.cause.as_deref()),
    ]
}

fn code(code: Option<i32>) -> Value {
    code.map_or(Value::Null, |code| Value::Integer(code.into()))
}

fn tail(tail: Option<&OsBytes>) -> Value {
    tail.map_or(Value::Null, |tail| bytes(tail.0.clone()))
}

fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn real(number: Option<f64>) -> Value {
    number.map_or(Value::Null, Value::Real)
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

/// Returns text, or bytes that are not UTF-8.
pub(crate) fn bytes(bytes: Vec<u8>) -> Value {
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
    pub(crate) fn plain(&self) -> (Self, &'static str) {
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
    pub(crate) fn display_bytes(&self) -> Vec<u8> {
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
        if text.is_empty() || text.contains([',', '"', '\r', '\n']) || text.trim() != text {
            return format!("\"{}\"", text.replace('"', "\"\""));
        }
        text.clone()
    }
}

/// A format for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Csv,
}

impl Format {
    /// Returns the format that `--csv` and `--json` ask for; `None` for tables.
    pub(crate) fn of_flags(csv: bool, json: bool) -> Option<Self> {
        match (csv, json) {
            (true, _) => Some(Self::Csv),
            (_, true) => Some(Self::Json),
            _ => None,
        }
    }
}

/// Writes rows.
pub(crate) struct Rows<'a> {
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
    pub(crate) fn of(out: &'a mut dyn Write, format: Format, schema: &Schema) -> io::Result<Self> {
        let columns = schema.columns.iter().map(|name| (*name).to_owned()).collect();
        let forms = schema.columns.iter().enumerate().filter(|(_, name)| schema.forms.contains(name));
        Self::start(out, format, columns, forms.map(|(index, _)| index).collect())
    }

    /// Returns a writer for the result of a query.
    pub(crate) fn new(out: &'a mut dyn Write, format: Format, columns: Vec<String>) -> io::Result<Self> {
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
    pub(crate) fn row(&mut self, values: &[Value]) -> io::Result<()> {
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
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(args: &[&[u8]], tail: Option<&[u8]>) -> JobFinished {
        let text = |bytes: &[u8]| OsBytes(bytes.to_vec());
        JobFinished {
            job: 3,
            args: args.iter().map(|arg| text(arg)).collect(),
            at: 1.5,
            wall: 0.25,
            exit: Some(2),
            out: 10,
            tail: tail.map(text),
            ..JobFinished::default()
        }
    }

    fn written(format: Format, rows: &[JobFinished]) -> String {
        let mut out = Vec::new();
        let mut to = Rows::of(&mut out, format, &JOBS).expect("write to memory");
        rows.iter().for_each(|row| to.row(&job("61c0aa00", row)).expect("write to memory"));
        String::from_utf8(out).expect("rows are UTF-8")
    }

    #[test]
    fn schemas_match_their_rows() {
        let begun = AttemptStarted { version: "1".into(), run: "a".into(), attempt: 1, pid: 2, at: 3.0 };
        assert_eq!(attempt(&begun, None, None).len(), ATTEMPTS.columns.len());
        let row = attempt(&begun, Some(&AttemptHost::default()), Some(&AttemptFinished::default()));
        assert_eq!(row.len(), ATTEMPTS.columns.len());
        assert_eq!(job("a", &JobFinished::default()).len(), JOBS.columns.len());
        assert_eq!(RunFacts::default().values().len(), RUNS.columns.len());
    }

    #[test]
    fn csv_follows_the_rfc_and_names_formats() {
        let rows = [
            ended(&[b"a \"b\",\nc"], None),
            ended(&[b"\xff"], Some(b"\xfe\n")),
            ended(&[b"a", b"\xff"], Some(b"no")),
            ended(&[b""], None),
            ended(&[], None),
        ];
        let head = "run,job,args,at,wall,user,system,ready,main,rss,exit,signal,error,out,err,leaked,tail,\
                    out_tail,timed_out,attempts,cause,args_form,tail_form,out_tail_form\r\n";
        let wanted = [
            head,
            "61c0aa00,3,\"a \"\"b\"\",\nc\",1.5,0.25,,,,,,2,,,10,0,0,,,0,1,,text,,\r\n",
            "61c0aa00,3,/w==,1.5,0.25,,,,,,2,,,10,0,0,/go=,,0,1,,base64,base64,\r\n",
            "61c0aa00,3,\"[\"\"a\"\",{\"\"base64\"\":\"\"/w==\"\"}]\",1.5,0.25,,,,,,2,,,10,0,0,no,,0,1,,\
             json,text,\r\n",
            "61c0aa00,3,\"\",1.5,0.25,,,,,,2,,,10,0,0,,,0,1,,text,,\r\n",
            "61c0aa00,3,,1.5,0.25,,,,,,2,,,10,0,0,,,0,1,,,,\r\n",
        ];
        assert_eq!(written(Format::Csv, &rows), wanted.concat());
    }

    #[test]
    fn json_is_one_object_per_line_in_column_order() {
        let text = written(Format::Json, &[ended(&[b"a\x1b", b"\xff"], Some(b"x")), ended(&[], None)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0]
                .starts_with(r#"{"run":"61c0aa00","job":3,"args":["a\u001b",{"base64":"/w=="}],"at":1.5,"#)
        );
        let read: serde_json::Value = serde_json::from_str(lines[1]).expect("parse JSON");
        assert_eq!(
            (&read["args"], &read["tail"], &read["leaked"]),
            (&json!([]), &json!(null), &json!(false))
        );
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn numbers_out_of_range_are_null_or_clamped() {
        assert_eq!(Value::Real(f64::NAN).json(), json!(null));
        assert_eq!(integer(u64::MAX), Value::Integer(i64::MAX));
    }
}
