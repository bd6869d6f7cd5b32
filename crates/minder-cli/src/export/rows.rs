//! The tables of a record, for every export: runs, attempts, jobs and tries.
#![cfg_attr(not(feature = "sql"), allow(dead_code, reason = "some items are only used for SQL"))]

use minder_record::agents::AgentKey;
use minder_record::event::{AttemptFinished, AttemptHost, AttemptStarted, JobFinished, OsBytes};
use minder_ui::rows::{Schema, Value, bytes, integer, real, text};

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
        "node",
        "agent",
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

/// The agent that has run a job, and the name of its machine.
pub(crate) type Place<'a> = (AgentKey, Option<&'a str>);

/// Returns a row of [`JOBS`]. `place` is where it ran, if that was on an agent.
pub(crate) fn job(run: &str, ended: &JobFinished, place: Option<Place<'_>>) -> Vec<Value> {
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
        text(place.and_then(|(_, node)| node)),
        text(place.map(|(agent, _)| agent.to_string()).as_deref()),
    ]
}

fn code(code: Option<i32>) -> Value {
    code.map_or(Value::Null, |code| Value::Integer(code.into()))
}

fn tail(tail: Option<&OsBytes>) -> Value {
    tail.map_or(Value::Null, |tail| bytes(tail.0.clone()))
}

#[cfg(test)]
mod tests {
    use minder_ui::rows::{Format, Rows};
    use serde_json::json;

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
        rows.iter().for_each(|row| to.row(&job("61c0aa00", row, None)).expect("write to memory"));
        String::from_utf8(out).expect("rows are UTF-8")
    }

    #[test]
    fn schemas_match_their_rows() {
        let begun =
            AttemptStarted { version: "1".into(), run: "a".into(), attempt: 1, node: None, pid: 2, at: 3.0 };
        assert_eq!(attempt(&begun, None, None).len(), ATTEMPTS.columns.len());
        let row = attempt(&begun, Some(&AttemptHost::default()), Some(&AttemptFinished::default()));
        assert_eq!(row.len(), ATTEMPTS.columns.len());
        assert_eq!(job("a", &JobFinished::default(), None).len(), JOBS.columns.len());
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
                    out_tail,timed_out,attempts,cause,node,agent,args_form,tail_form,out_tail_form\r\n";
        let wanted = [
            head,
            "61c0aa00,3,\"a \"\"b\"\",\nc\",1.5,0.25,,,,,,2,,,10,0,0,,,0,1,,,,text,,\r\n",
            "61c0aa00,3,/w==,1.5,0.25,,,,,,2,,,10,0,0,/go=,,0,1,,,,base64,base64,\r\n",
            "61c0aa00,3,\"[\"\"a\"\",{\"\"base64\"\":\"\"/w==\"\"}]\",1.5,0.25,,,,,,2,,,10,0,0,no,,0,1,,,,\
             json,text,\r\n",
            "61c0aa00,3,\"\",1.5,0.25,,,,,,2,,,10,0,0,,,0,1,,,,text,,\r\n",
            "61c0aa00,3,,1.5,0.25,,,,,,2,,,10,0,0,,,0,1,,,,,,\r\n",
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
}
