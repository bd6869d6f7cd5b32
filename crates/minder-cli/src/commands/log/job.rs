//! Everything that is recorded of one job.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use minder_record::event::{JobFinished, OsBytes, OutputSegment, TAIL_MAX};
use minder_record::reader::Start;
use minder_record::writer::has_stored_all;

use super::jobs::{exit_text, last_lines};
use super::request::Request;
use super::runs::seconds;
use super::select::{read_run, run_id};
use super::stored::{LIMIT_REACHED, Starts, Stream, stored_tail};
use crate::export::rows::{JOBS, job as job_row};
use crate::recorded::{self, command_text};
use crate::ui::{format_bytes, time};
use minder_ui::format::{exact_date, fill_lines, local_zone};
use minder_ui::rows::{Format, Rows, Value, bytes};
use minder_ui::symbols::Symbols;
use minder_ui::table::{escape, terminal_width};

/// The maximum number of lines shown of each output. The record has at most
/// [`TAIL_MAX`](minder_record::event::TAIL_MAX) bytes.
const LINES_MAX: usize = 40;
/// The same for each earlier try.
const TRY_LINES_MAX: usize = 3;
/// The width of the labels.
const LABEL_WIDTH: usize = 12;

/// Shows a job of a run, for people or as one row of data.
pub(super) fn show(out: &mut dyn Write, dir: &Path, number: u64, format: Option<Format>) -> Result<()> {
    let run = read_run(dir)?;
    let id = run_id(dir);
    let starts = Starts::read(dir, &run, number)?;
    let recorded = RecordedJob {
        dir,
        id: &id,
        job: &starts.all[starts.shown].ended,
        starts: &starts,
        request: run.manifest.as_ref().ok().map(|manifest| Request::of(manifest, dir)),
        waiting: run.unshown.get(&number).map_or(&[], Vec::as_slice),
    };
    match format {
        Some(format) => Ok(recorded.write_row(out, format)?),
        None => recorded.write_page(out),
    }
}

/// A job, and what is known of its run.
struct RecordedJob<'a> {
    /// The directory of the run.
    dir: &'a Path,
    /// The id of the run.
    id: &'a str,
    job: &'a JobFinished,
    /// All starts of it, in all attempts at the run.
    starts: &'a Starts,
    /// `None` if the manifest cannot be read.
    request: Option<Request<'a>>,
    /// The segments of output that was not shown yet.
    waiting: &'a [OutputSegment],
}

/// Returns where the output of a job can be found that is not in the record.
fn rest(request: &Request<'_>) -> String {
    let output = request.flags.as_ref().map(|flags| &flags.output);
    match output.and_then(|output| output.results.as_ref()) {
        _ if output.is_some_and(|output| output.ungroup) => "with -u, jobs write past minder".to_owned(),
        Some(name) => format!("all of it is in the files of --results {}", name.display()),
        None => "not stored; --keep-output stores it".to_owned(),
    }
}

/// Returns the files with output that was not shown yet.
fn places(dir: &Path, waiting: &[OutputSegment]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = waiting.iter().map(|segment| dir.join(&segment.file)).collect();
    places.dedup();
    places
}

/// A label, and the lines after it. They may contain any bytes.
type Entry = (&'static str, Vec<String>);

impl RecordedJob<'_> {
    /// Writes the row of the table of jobs, with what belongs to the run.
    fn write_row(&self, out: &mut dyn Write, format: Format) -> std::io::Result<()> {
        let Self { dir, id, job, waiting, .. } = *self;
        let request = self.request.as_ref();
        let mut columns: Vec<String> = JOBS.columns.iter().map(|name| (*name).to_owned()).collect();
        columns.extend(["command", "cwd", "environment", "output"].map(str::to_owned));
        let start = &self.starts.all[self.starts.shown];
        let place = start.agent.map(|agent| (agent, start.node.as_deref()));
        let mut values = job_row(id, job, place);
        let files = places(dir, waiting).iter().map(|path| OsBytes::from(path.as_os_str())).collect();
        values.extend([
            request.and_then(|request| request.command(job)).map_or(Value::Null, Value::Text),
            request.map_or(Value::Null, |request| bytes(request.manifest.cwd.0.clone())),
            Value::List(request.map(Request::environment).unwrap_or_default()),
            Value::List(files),
        ]);
        let mut rows = Rows::new(out, format, columns)?;
        rows.row(&values)?;
        rows.flush()
    }

    /// Writes a page for people: how the job ended, what it was, its output, its environment.
    fn write_page(&self, out: &mut dyn Write) -> Result<()> {
        let Self { id, job, starts, .. } = *self;
        let request = self.request.as_ref();
        let symbols = Symbols::of_locale();
        let mut ended = end(job);
        if starts.all[starts.shown].is_tried {
            ended.push_str("; another try was to follow");
        }
        let mut entries: Vec<Entry> = vec![("ended", vec![symbols.convert(&ended).into_owned()])];
        let place = place(&starts.all[starts.shown]);
        entries.extend(place.map(|place| ("node", vec![place])));
        entries.extend(times(job, symbols));
        let others = (1..).zip(&starts.all).filter(|(number, _)| *number != starts.shown + 1);
        let mut tried: Vec<String> =
            others.flat_map(|(number, start)| try_lines(number, &start.ended, symbols)).collect();
        tried.extend(starts.superseded.iter().map(|start| superseded_line(start, symbols)));
        if !tried.is_empty() {
            entries.push(("earlier", tried));
        }
        let all = request.and_then(|request| request.total).map(|total| format!(" of {total}"));
        let run = request.map(|request| format!(": {}", command_text(&request.manifest.words)));
        entries.push(("run", vec![format!("{id}{}", run.unwrap_or_default())]));
        entries.push(("job", vec![format!("{}{}", job.job, all.unwrap_or_default())]));
        match request.and_then(|request| request.command(job)) {
            Some(command) => entries.push(("command", vec![command])),
            None => entries.push(("arguments", job.args.iter().map(ToString::to_string).collect())),
        }
        if let Some(request) = request {
            let mut dirs = vec![request.manifest.cwd.to_string()];
            let wd = request.flags.as_ref().and_then(|flags| flags.control.wd.as_ref());
            dirs.extend(wd.map(|wd| format!("jobs in --wd {}", wd.display())));
            entries.push(("directory", dirs));
        }
        write_entries(out, &entries)?;
        self.write_output(out, symbols)?;
        let environment = request.map(Request::environment).unwrap_or_default();
        Ok(write_entries(out, &[("environment", environment.iter().map(ToString::to_string).collect())])?)
    }

    /// Writes the end of both outputs, and where the rest is.
    fn write_output(&self, out: &mut dyn Write, symbols: Symbols) -> std::io::Result<()> {
        let Self { dir, id, job, waiting, .. } = *self;
        let request = self.request.as_ref();
        let is_straight =
            request.and_then(|request| request.flags.as_ref()).is_some_and(|it| it.output.ungroup);
        let resume = request.and_then(|request| recorded::resume_command(request.manifest, id));
        let resume = resume.map(|command| format!("; {} shows it", symbols.convert(&command)));
        let resume = resume.unwrap_or_default();
        for (label, len, tail, stream) in [
            ("stdout", job.out, &job.out_tail, Stream::Stdout),
            ("stderr", job.err, &job.tail, Stream::Stderr),
        ] {
            let number = stream.number();
            let stored = stored_tail(dir, job, stream, TAIL_MAX);
            let is_stored = stored.is_some();
            let tail = tail.as_ref().or(stored.as_ref());

            let waiting: Vec<_> =
                waiting.iter().filter(|segment| segment.stream == number).cloned().collect();
            let lines = tail.map_or_else(Vec::new, |tail| last_lines(tail, LINES_MAX));
            let whole = tail.is_some_and(|tail| tail.0.len() as u64 == len && lines.len() < LINES_MAX);
            let place = match places(dir, &waiting).first() {
                Some(path) => format!(" (waits in `{}`{resume})", path.display()),
                None if is_stored && !whole => format!(" (minder log {id} {} --{label} shows it)", job.job),
                None if whole || (len == 0 && !is_straight) => String::new(),
                None if has_stored_all(dir, self.starts.all[self.starts.shown].attempt) => {
                    format!(" (not stored: {LIMIT_REACHED})")
                }
                None => request.map_or_else(String::new, |request| format!(" ({})", rest(request))),
            };
            let shown = if lines.is_empty() || whole { "" } else { "; its last lines:" };
            writeln!(out, "{label:<LABEL_WIDTH$}{}{}{shown}", format_bytes(len), escape(place.as_bytes()))?;
            lines.iter().try_for_each(|line| writeln!(out, "    {line}"))?;
        }
        Ok(())
    }
}

/// Writes labels, each with its lines.
fn write_entries(out: &mut dyn Write, entries: &[Entry]) -> std::io::Result<()> {
    for (label, lines) in entries {
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            writeln!(out, "{label:<LABEL_WIDTH$}{}", escape(line.as_bytes()))?;
        }
    }
    Ok(())
}

/// Returns the machine and the agent that have run a job, if an agent has.
fn place(start: &Start) -> Option<String> {
    let agent = start.agent?;
    let node = start.node.as_deref().unwrap_or("unknown");
    Some(format!("{node} (agent {agent})"))
}

/// Returns the line about a result that does not count.
fn superseded_line(start: &Start, symbols: Symbols) -> String {
    let how = end(&start.ended);
    let place = place(start).unwrap_or_default();
    let line = format!("superseded: {how}, {}, on {place}", time(seconds(start.ended.wall)));
    symbols.convert(&line).into_owned()
}

/// Returns the lines about another start than the one that is shown.
fn try_lines(number: usize, tried: &JobFinished, symbols: Symbols) -> Vec<String> {
    let how = end(&JobFinished { attempts: None, ..tried.clone() });
    let line = format!("{number}: {how}, {}", time(seconds(tried.wall)));
    let tails = [&tried.out_tail, &tried.tail].into_iter().flatten();
    let last = tails.flat_map(|tail| last_lines(tail, TRY_LINES_MAX)).map(|line| format!("    {line}"));
    std::iter::once(symbols.convert(&line).into_owned()).chain(last).collect()
}

/// Returns the lines about times and memory.
fn times(job: &JobFinished, symbols: Symbols) -> Vec<Entry> {
    let separator = symbols.pick(" · ", ", ");
    let text = |seconds_of: Option<f64>, what: &str| {
        seconds_of.map(|value| format!("{} {what}", time(seconds(value))))
    };
    let parts = [
        Some(time(seconds(job.wall))),
        text(job.user, "user"),
        text(job.system, "system"),
        text(job.ready, "waiting for a processor"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let width = terminal_width().map_or(usize::MAX, |width| width.saturating_sub(LABEL_WIDTH));
    let mut entries: Vec<Entry> = vec![("took", fill_lines(&parts, separator, width))];
    entries.push(("started", vec![exact_date(job.at, &local_zone())]));
    entries
        .extend(job.rss.map(|rss| ("memory", vec![format!("{} (maximum resident set)", format_bytes(rss))])));
    if job.block_len > 0 {
        let block = format!("{} of the input, from byte {}", format_bytes(job.block_len), job.block_at);
        entries.push(("block", vec![block]));
    }
    entries.extend(
        job.attempts
            .filter(|tries| *tries > 1)
            .map(|tries| ("tries", vec![format!("{tries}, and the last one is shown here")])),
    );
    entries
}

/// Describes how a job ended, and why.
fn end(job: &JobFinished) -> String {
    let how = match (&job.error, job.exit) {
        (Some(error), _) => format!("not started: {error}"),
        _ if job.timed_out => "killed: it ran longer than --timeout".to_owned(),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => {
            let signal = JobFinished { attempts: None, cause: None, ..job.clone() };
            format!("killed by {}", exit_text(&signal))
        }
    };
    let why = match job.cause.as_deref() {
        Some("memory") => " because memory was short",
        Some("memory limit") => " because it used more memory than --memory-max",
        Some("halted") => " because the run was halted",
        _ => "",
    };
    let leaked = if job.leaked { "; another process kept its output open" } else { "" };
    format!("{how}{why}{leaked}")
}
