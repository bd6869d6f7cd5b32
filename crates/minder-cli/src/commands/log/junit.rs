//! The jobs of a run as a report in the form of JUnit, which continuous integration services read.
//!
//! The elements and attributes are those that Jenkins and GitLab document: `testsuites`, `testsuite`,
//! `testcase`, `failure`, `error`, `system-out` and `system-err`. `flakyFailure` and `rerunFailure` are those
//! of Maven's Surefire, for tries of a job that succeeded in the end and of one that did not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use super::jobs::{Filter, exit_text};
use super::select::{read_run, run_id};
use crate::recorded::command_text;
use minder_record::event::{JobFinished, OsBytes};

/// Writes the finished jobs of a run that are selected. Their names are those of the whole report.
pub(super) fn write(out: &mut dyn Write, dir: &Path, filter: &Filter<'_>) -> Result<()> {
    let run = read_run(dir)?;
    let id = run_id(dir);
    let command = run.manifest.as_ref().map_or_else(|_| id.clone(), |manifest| command_text(&manifest.words));
    let cases = named(run.jobs.values(), &command);
    let selected = filter.select(&run, dir);
    let mut by_job: HashMap<u64, _> = cases.into_iter().map(|(name, job)| (job.job, (name, job))).collect();
    let cases: Vec<_> = selected.iter().filter_map(|job| by_job.remove(&job.job)).collect();
    Ok(suite(out, &command, &id, &cases, &run.tries)?)
}

/// Returns the jobs with their names: their arguments, or the command of the run where a job has none.
/// A name does not depend on the order of the jobs, so that a service finds the history of a case. Equal
/// names get a number.
fn named<'a>(jobs: impl Iterator<Item = &'a JobFinished>, command: &str) -> Vec<(String, &'a JobFinished)> {
    let text = |job: &JobFinished| {
        let arguments: Vec<&[u8]> = job.args.iter().map(|arg| arg.0.as_slice()).collect();
        if arguments.is_empty() { command.as_bytes().to_vec() } else { arguments.join(&b' ') }
    };
    let jobs: Vec<_> = jobs.map(|job| (escape(&text(job)), job)).collect();
    let mut taken: HashSet<String> = jobs.iter().map(|(name, _)| name.clone()).collect();
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut unique = |name: String| {
        let count = counts.entry(name.clone()).or_insert(0);
        *count += 1;
        let mut numbered = name.clone();
        while *count > 1 {
            numbered = format!("{name} ({count})");
            if taken.insert(numbered.clone()) {
                break;
            }
            *count += 1;
        }
        numbered
    };
    jobs.into_iter().map(|(name, job)| (unique(name), job)).collect()
}

fn suite(
    out: &mut dyn Write,
    command: &str,
    id: &str,
    jobs: &[(String, &JobFinished)],
    tries: &BTreeMap<u64, Vec<JobFinished>>,
) -> io::Result<()> {
    let errors = jobs.iter().filter(|(_, job)| job.error.is_some()).count();
    let failures = jobs.iter().filter(|(_, job)| !job.succeeded()).count() - errors;
    let seconds = jobs.iter().map(|(_, job)| job.wall).fold(0.0, |sum, wall| sum + wall);
    let name = escape(command.as_bytes());
    let counts =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"", jobs.len());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"minder\" {counts}>")?;
    writeln!(out, "  <testsuite name=\"{name}\" id=\"{id}\" {counts}>")?;
    for (case_name, job) in jobs {
        case(out, &name, case_name, job, tries.get(&job.job).map_or(&[], Vec::as_slice))?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

/// Writes a job. `class` is the command of the run, as it stands in an attribute, and so is `name`.
fn case(
    out: &mut dyn Write,
    class: &str,
    name: &str,
    job: &JobFinished,
    tries: &[JobFinished],
) -> io::Result<()> {
    let head = format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{:.3}\"", job.wall);
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
    if !job.succeeded() {
        let element = if job.error.is_some() { "error" } else { "failure" };
        writeln!(out, "      <{element} message=\"{}\"/>", escape(failure_text(job).as_bytes()))?;
        write_tails(out, job, "")?;
    }
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

/// Returns text for an element or an attribute, without the escape sequences of terminals. XML 1.0 has no
/// way to write other control characters, so they become U+FFFD, as bytes that are not UTF-8 do.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(&without_sequences(bytes)).chars() {
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

/// Removes escape sequences (ECMA-48): `ESC [ … m`, `ESC ] … BEL`, `ESC ( B`. An incomplete one at the end
/// is removed, too.
fn without_sequences(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\x1b') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let length = match rest.first() {
            Some(b'[') => rest[1..].iter().position(|byte| !(b' '..=b'?').contains(byte)).map(|end| end + 2),
            // A text up to BEL or `ESC \`, whose backslash is removed with the next sequence.
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                let end = rest.iter().position(|byte| b"\x07\x1b\n".contains(byte));
                end.map(|end| end + usize::from(rest[end] == b'\x07'))
            }
            _ => rest.iter().position(|byte| !(b' '..=b'/').contains(byte)).map(|end| end + 1),
        };
        // A control character ends an incomplete sequence, and stays.
        let length = length.unwrap_or(rest.len());
        let keeps_last = length > 0 && matches!(rest[length - 1], 0..=6 | 8..=0x1f | 0x80..);
        rest = &rest[length - usize::from(keeps_last)..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_writes_what_xml_allows() {
        assert_eq!(escape(b"a<b>&\"c\"\n\t"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;&#9;");
        assert_eq!(escape(b"\x1b[1m\0\xff"), "\u{fffd}\u{fffd}");
        assert_eq!(escape("ä \u{ffff}".as_bytes()), "ä \u{fffd}");
    }

    #[test]
    fn escape_drops_whole_sequences() {
        for (text, expected) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[38;2;1;2;3m\x1b[?25la\x1b[K", "a"),
            ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
            ("\x1b(Ba\x1b7b\x1bMc", "abc"),
            ("a\x1b[", "a"),
            ("a\x1b", "a"),
            ("a\x1b[31\nb", "a&#10;b"),
            ("a\x1bä", "aä"),
        ] {
            assert_eq!(escape(text.as_bytes()), expected, "{text:?}");
        }
    }
}
