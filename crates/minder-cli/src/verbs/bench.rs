//! `minder bench`: what mechanisms cost on this machine.
//!
//! A verb supplies a [`BenchSpec`], its [`Case`]s in the order of measuring, and a function that
//! measures one. The rest is here: rounds, Ctrl-C, what this machine refuses, and everything that
//! is shown. Each round measures every point once, so that what else the machine does meanwhile
//! falls on all of them alike.

mod desk;
mod exit;
mod results;
mod spawn;
mod wait;

pub(crate) use self::desk::BenchSession;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder::lab::{self, Meter, Spent};

use self::results::Results;
use crate::export::rows::{Format, Rows};
use crate::flags::{Bench, BenchFlags, ChildLine, MeasureFlags};
use crate::report::{chart::Curve, format_error, message, with_stdout};

/// What a verb is about, in words.
#[derive(Clone, Debug)]
pub(crate) struct BenchSpec {
    /// What is counted and costs: `wait`; the column is called `waits`.
    pub(crate) operation: &'static str,
    /// What a size counts, as a column is called: `objects`, `parent_mib`.
    pub(crate) size: &'static str,
    /// The same for people: `objects`, `MiB of the parent`.
    pub(crate) sizes: &'static str,
    /// Whether points have kinds, which have a column.
    pub(crate) kinds: bool,
    /// Whose CPU is counted: `all threads`.
    pub(crate) whose: &'static str,
    /// The chart's title.
    pub(crate) title: &'static str,
    /// What stands below the chart's horizontal axis.
    pub(crate) axis: &'static str,
    /// Curves that others published, in sizes and nanoseconds.
    pub(crate) published: Vec<Curve>,
    /// What has to stand beside every figure.
    pub(crate) note: Option<&'static str>,
}

/// So many steps of the clock, or this if it is longer.
const fn at_least(steps: u32, time: Duration) -> Duration {
    let steps = Meter::TICK.saturating_mul(steps);
    if steps.as_nanos() > time.as_nanos() { steps } else { time }
}

/// What has to be said of all figures of this machine.
fn note() -> Option<&'static str> {
    lab::is_wine().then_some("under Wine: these are not times of Windows")
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) mechanism: &'static str,
    /// For verbs whose [`BenchSpec::kinds`] says so.
    pub(crate) kind: Option<&'static str>,
    pub(crate) size: u64,
}

/// What one measurement found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// How many operations were measured.
    pub(crate) operations: u64,
    /// Nanoseconds of CPU for one of them.
    pub(crate) cpu_ns: f64,
    /// Nanoseconds for one of them.
    pub(crate) wall_ns: f64,
}

impl Measurement {
    /// What one of so many took, on average.
    fn of(operations: u64, spent: Spent) -> Self {
        let each = |time: Duration| time.as_nanos() as f64 / operations.max(1) as f64;
        Self { operations, cpu_ns: each(spent.cpu), wall_ns: each(spent.wall) }
    }
}

/// An error after which nothing can be measured: what was asked for makes no sense.
#[derive(Debug)]
pub(crate) struct FatalError(pub(crate) minder::Error);

impl std::fmt::Display for FatalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for FatalError {}

/// Measures what the flags ask for, and shows it.
pub(crate) fn run(flags: &BenchFlags) -> Result<ExitCode> {
    match &flags.what {
        Bench::Wait(flags) => wait::run(flags),
        Bench::Exit(flags) => exit::run(flags),
        Bench::Spawn(flags) => spawn::run(flags),
        Bench::Idle => loop {
            std::thread::park();
        },
    }
}

/// The mechanisms that were asked for, of those that there are.
///
/// # Errors
/// For a name that is none.
fn chosen(all: &[&'static str], flags: &MeasureFlags) -> Result<Vec<&'static str>> {
    if all.is_empty() {
        bail!("there is nothing to measure on this system yet");
    }
    if let Some(name) = flags.mechanism.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("there is no mechanism `{name}` to measure here: there are {}", all.join(", "));
    }
    let asked = |name: &&str| flags.mechanism.is_empty() || flags.mechanism.iter().any(|it| it == name);
    Ok(all.iter().copied().filter(asked).collect())
}

/// Each mechanism at each size, in the order of measuring.
fn points(sizes: &[u64], mechanisms: &[&'static str]) -> Vec<Case> {
    let at = |&size| mechanisms.iter().map(move |mechanism| Case { mechanism, kind: None, size });
    sizes.iter().flat_map(at).collect()
}

/// The command that children run.
fn command(line: &ChildLine) -> minder::Command {
    let mut command = minder::Command::new(line.0.first().map_or("", String::as_str));
    command.args(line.0.iter().skip(1));
    command
}

/// Tells what is wrong with the children, where nothing can be measured, from what this machine
/// refuses.
fn judge(error: minder::Error) -> anyhow::Error {
    match error.kind() {
        minder::ErrorKind::InvalidInput => FatalError(error).into(),
        _ => error.into(),
    }
}

/// Measures `points` as often as the flags say, and shows what came. What `measure` fails at is not
/// tried again; it may return early, with any error, once [`BenchSession::is_over`].
fn conduct(
    subject: &BenchSpec,
    flags: &MeasureFlags,
    mut desk: BenchSession,
    points: &[Case],
    measure: impl FnMut(&Case, &mut BenchSession) -> Result<Measurement>,
) -> Result<ExitCode> {
    let chart = match flags.svg.clone() {
        None => None,
        Some(path) => match desk.patiently(move || open(&path).map(|file| (path, file))) {
            Some(opened) => Some(opened?),
            None => return Ok(desk.status()),
        },
    };
    let format = if flags.csv { Some(Format::Csv) } else { flags.json.then_some(Format::Json) };
    let (page, mut results) = (BufferedStdout::default(), Results::new(subject, points));
    let mut sheet = page.clone();
    let mut rows = format.map(|format| Rows::new(&mut sheet, format, subject.columns())).transpose()?;
    let measured = rounds(flags.rounds, &mut results, &mut desk, measure, |desk, point, round, figure| {
        let Some(rows) = &mut rows else { return Ok(()) };
        rows.row(&subject.values(point, round, figure))?;
        page.show(desk)
    });
    desk.clear();
    let shown = measured.and_then(|()| {
        if desk.is_over() {
            message("interrupted; showing what was measured");
        }
        if let Some((path, file)) = chart.filter(|_| !results.is_empty()) {
            write(&path, file, &results.chart(flags.rounds).svg()?)?;
        }
        let gaps = results.gaps();
        match (format, gaps.first()) {
            (_, Some(gap)) if results.is_empty() && !desk.is_over() => bail!("nothing was measured: {gap}"),
            (Some(_), _) => gaps.iter().for_each(|gap| message(gap)),
            (None, _) => results.tables(&mut page.clone(), flags.rounds)?,
        }
        page.show(&mut desk)
    });
    match shown {
        Err(error) => error.downcast::<StdoutClosed>().map(|StdoutClosed(code)| code),
        Ok(()) => Ok(desk.status()),
    }
}

/// What is to be shown.
#[derive(Clone, Debug, Default)]
struct BufferedStdout(Rc<RefCell<Vec<u8>>>);

/// Nobody reads what is shown; the exit status that says so.
#[derive(Debug)]
struct StdoutClosed(ExitCode);

impl std::fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads what is shown")
    }
}

impl std::error::Error for StdoutClosed {}

impl Write for BufferedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BufferedStdout {
    /// Shows what is on it, and takes it off. Whoever reads may be slow; signals are taken
    /// meanwhile.
    ///
    /// # Errors
    /// [`StdoutClosed`], and what keeps us from writing.
    fn show(&self, desk: &mut BenchSession) -> Result<()> {
        let bytes = self.0.take();
        match desk.patiently(move || with_stdout(|out| Ok(out.write_all(&bytes)?))) {
            Some(written) => match written? {
                code if code == ExitCode::SUCCESS => Ok(()),
                code => Err(StdoutClosed(code).into()),
            },
            None => Err(StdoutClosed(desk.status()).into()),
        }
    }
}

/// Measures every point in every round, until all is done or somebody asks for an end.
fn rounds(
    rounds: u32,
    results: &mut Results<'_>,
    desk: &mut BenchSession,
    mut measure: impl FnMut(&Case, &mut BenchSession) -> Result<Measurement>,
    mut tell: impl FnMut(&mut BenchSession, &Case, u32, &Measurement) -> Result<()>,
) -> Result<()> {
    let (subject, points) = (results.subject, results.points);
    desk.expect(points.len(), rounds);
    for round in 1..=rounds {
        for (place, point) in points.iter().enumerate() {
            if results.is_refused(place) {
                continue;
            }
            desk.announce(place, round, &subject.describe(point));
            match measure(point, desk) {
                Ok(figure) => {
                    results.take(place, figure);
                    tell(desk, point, round, &figure)?;
                }
                Err(_) if desk.is_over() => {}
                Err(error) if error.is::<FatalError>() => return Err(error),
                Err(error) => results.refuse(place, format_error(&error)),
            }
            if desk.is_over() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Opens the chart's file before anything is measured: what cannot be written is said at once. What
/// it holds stays until the chart is there.
fn open(path: &Path) -> Result<File> {
    let file = File::options().write(true).create(true).truncate(false).open(path);
    file.with_context(|| format!("cannot write the chart `{}`", path.display()))
}

fn write(path: &Path, mut file: File, svg: &str) -> Result<()> {
    let written = file.write_all(svg.as_bytes()).and_then(|()| match file.metadata()?.is_file() {
        true => file.set_len(svg.len() as u64),
        // A pipe or a device.
        false => Ok(()),
    });
    written.with_context(|| format!("cannot write the chart `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(names: &[&str]) -> MeasureFlags {
        let mechanism = names.iter().map(|name| (*name).to_owned()).collect();
        MeasureFlags { mechanism, rounds: 1, csv: false, json: false, svg: None }
    }

    #[test]
    fn mechanisms_are_chosen_by_name() {
        let all = ["epoll", "poll", "select"];
        assert_eq!(chosen(&all, &flags(&[])).expect("all"), all);
        assert_eq!(chosen(&all, &flags(&["select", "epoll"])).expect("two"), ["epoll", "select"]);
        let error = chosen(&all, &flags(&["magic"])).expect_err("no such").to_string();
        assert!(error.contains("`magic`") && error.ends_with("epoll, poll, select"), "{error}");
        assert!(chosen(&[], &flags(&[])).is_err());
    }

    #[test]
    fn a_chart_replaces_what_the_file_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chart.svg");
        std::fs::write(&path, "something longer").expect("a file");
        let file = open(&path).expect("a file");
        assert_eq!(std::fs::read(&path).expect("a file"), b"something longer");
        write(&path, file, "<svg/>").expect("room");
        assert_eq!(std::fs::read(&path).expect("a file"), b"<svg/>");
        let error = open(&folder.path().join("no/chart.svg")).expect_err("no folder");
        assert!(format_error(&error).starts_with("cannot write the chart `"), "{error}");
    }
}
