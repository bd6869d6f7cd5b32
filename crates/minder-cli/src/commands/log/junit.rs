//! The jobs of a run as a report in the form of JUnit, which continuous integration services read.
//!
//! The elements and attributes are those that Jenkins and GitLab document: `testsuites`, `testsuite`,
//! `testcase`, `failure`, `error`, `system-out` and `system-err`. `flakyFailure` and `rerunFailure` are those
//! of Maven's Surefire, for tries of a job that succeeded in the end and of one that did not.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use super::jobs::exit_text;
use super::select::{read_run, run_id};
use crate::recorded::command_text;
use minder_record::event::{JobFinished, OsBytes};

/// Writes the finished jobs of a run. With `failed`, those that failed.
pub(super) fn write(out: &mut dyn Write, dir: &Path, failed: bool) -> Result<()> {
    let run = read_run(dir)?;
    let id = run_id(dir);
    let command = run.manifest.as_ref().map_or_else(|_| id.clone(), |manifest| command_text(&manifest.words));
    let jobs: Vec<&JobFinished> = run.jobs.values().filter(|job| !(failed && job.succeeded())).collect();
    Ok(suite(out, &command, &id, &jobs, &run.tries)?)
}

fn suite(
    out: &mut dyn Write,
    command: &str,
    id: &str,
    jobs: &[&JobFinished],
    tries: &BTreeMap<u64, Vec<JobFinished>>,
) -> io::Result<()> {
    let errors = jobs.iter().filter(|job| job.error.is_some()).count();
    let failures = jobs.iter().filter(|job| !job.succeeded()).count() - errors;
    let seconds = jobs.iter().map(|job| job.wall).fold(0.0, |sum, wall| sum + wall);
    let name = escape(command.as_bytes());
    let counts =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"", jobs.len());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"minder\" {counts}>")?;
    writeln!(out, "  <testsuite name=\"{name}\" id=\"{id}\" {counts}>")?;
    for job in jobs {
        case(out, &name, job, tries.get(&job.job).map_or(&[], Vec::as_slice))?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

/// Writes a job. `class` is the command of the run, as it stands in an attribute.
fn case(out: &mut dyn Write, class: &str, job: &JobFinished, tries: &[JobFinished]) -> io::Result<()> {
    let arguments: Vec<&[u8]> = job.args.iter().map(|arg| arg.0.as_slice()).collect();
    let arguments = if arguments.is_empty() { "" } else { &format!(" {}", escape(&arguments.join(&b' '))) };
    let head = format!(
        "    <testcase classname=\"{class}\" name=\"{}{arguments}\" time=\"{:.3}\"",
        job.job, job.wall
    );
    if job.succeeded() && tries.is_empty() {
        return writeln!(out, "{head}/>");
    }
    writeln!(out, "{head}>")?;
    let kind = if job.succeeded() { "flakyFailure" } else { "rerunFailure" };
    for tried in tries {
        let why = failure_text(&JobFinished { attempts: None, ..tried.clone() });
        writeln!(out, "      <{kind} message=\"{}\" type=\"failure\">", escape(why.as_bytes()))?;
        write_tails(out, tried, "  ")?;
        writeln!(out, "      </{kind}>")?;
    }
    if job.succeeded() {
        return writeln!(out, "    </testcase>");
    }
    let element = if job.error.is_some() { "error" } else { "failure" };
    writeln!(out, "      <{element} message=\"{}\"/>", escape(failure_text(job).as_bytes()))?;
    write_tails(out, job, "")?;
    writeln!(out, "    </testcase>")
}

fn failure_text(job: &JobFinished) -> String {
    match (&job.error, job.exit) {
        (Some(error), _) => error.clone(),
        (None, Some(_)) if !job.timed_out => format!("exit {}", exit_text(job)),
        (None, _) => exit_text(job),
    }
}

fn write_tails(out: &mut dyn Write, job: &JobFinished, indent: &str) -> io::Result<()> {
    for (element, tail) in [("system-out", &job.out_tail), ("system-err", &job.tail)] {
        if let Some(OsBytes(tail)) = tail {
            writeln!(out, "{indent}      <{element}>{}</{element}>", escape(tail))?;
        }
    }
    Ok(())
}

/// Returns text for an element or an attribute. XML 1.0 has no way to write most control characters, so
/// they become U+FFFD, as bytes that are not UTF-8 do.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // In an attribute, a parser turns them into spaces otherwise.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_writes_what_xml_allows() {
        assert_eq!(escape(b"a<b>&\"c\"\n\t"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;&#9;");
        assert_eq!(escape(b"\x1b[1m\0\xff"), "\u{fffd}[1m\u{fffd}\u{fffd}");
        assert_eq!(escape("ä \u{ffff}".as_bytes()), "ä \u{fffd}");
    }
}
