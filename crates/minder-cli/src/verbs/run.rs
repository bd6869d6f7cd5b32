//! `minder run`: a command for each argument, several at once.
//!
//! Three kinds of threads, four at most: the main thread takes signals and draws the bar; one or
//! two equal loops start, hear and end the jobs; one reads lines where standard input is the
//! source.

mod again;
mod ask;
mod batch;
mod book;
mod control;
mod desk;
mod gates;
mod hand;
mod input;
mod job;
mod kept;
mod lines;
mod output;
mod parts;
mod pipe;
mod results;
mod roster;
mod screen;
mod shared;
mod spread;
mod stage;
mod tags;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::jobs::{JobPool, SchedulerConfig};
use minder::{Backlog, ChildSet, ChildSetConfig, Descriptors, ExitMode, GuardOptions, ProcessGuard, Signal};
use minder_os::stdio::{StdStream, std_was_closed};

use self::ask::ConfirmPrompt;
use self::book::{ResumeState, RunRecorder};
use self::desk::MainLoop;
use self::input::{JobQueue, JobSource};
use self::parts::Values;
use self::results::table::ResultsTable;
use self::roster::JobTable;
use self::screen::{StdStreams, StdioWriter};
use self::shared::{ContextParts, RunContext};
use self::stage::{OutputSequencer, ShowOrder};
use self::tags::LineStyle;
use crate::exit;
use crate::input::{ArgumentReader, JobArgs, Order as InputOrder};
use crate::plan::{Control, InputDelivery, OrderConfig, OutputView, RunConfig};
use crate::report::{
    Progress, ProgressOptions, RunStats, Summary, format_error, message, os_error_text, try_message,
    with_stdout,
};
use crate::ui::color::Palette;
use minder_record::event::AttemptFinished;
use minder_template::Job;

/// Loops that share the work: one a processor brings the most, and a third brings nothing on two.
const LOOPS_MAX: usize = 2;
/// The most bytes of output in memory of one job that waits for its end: enough for most, and
/// little to write twice.
const JOB_BYTES_MAX: usize = 256 << 10;
/// Up to how many bytes in files all jobs are read. Beyond that those that are shown first are: the
/// others would only fill the disk.
const BACKLOG_EVEN_MAX: u64 = 16 << 20;
/// Descriptors that are not the jobs': streams, backends, guards, files of the program, and of ends
/// that are held back.
const DESCRIPTORS_OWN: u64 = 40 + (LOOPS_MAX * hand::held::HELD_FILES_MAX) as u64;
/// Descriptors of one job: two outputs, the process, and two files for output that finds no room in
/// memory.
const DESCRIPTORS_JOB: u64 = 5;
/// Jobs that end sooner are heard at their end.
const LISTEN_AFTER: Duration = Duration::from_millis(2);
/// How much the pauses before retries differ, so that jobs that failed together do not come again
/// together.
const RETRY_JITTER: f64 = 0.5;
/// How often stopped jobs are looked for, where there is a terminal to stop for.
const STOPS: Duration = Duration::from_millis(250);

/// A build's jobserver: none, one, or why it cannot be reached.
pub(crate) type JobserverLookup = std::result::Result<Option<minder::os::Jobserver>, String>;

/// What was open when this process started, and is there for jobs.
#[derive(Debug)]
pub(crate) struct Inherited {
    descriptors: Descriptors,
    jobserver: JobserverLookup,
}

impl Inherited {
    /// Lists the descriptors, and looks for the jobserver of a build that we are a part of.
    pub(crate) fn find() -> Self {
        Self { descriptors: Descriptors::inherited(), jobserver: gates::jobserver::find() }
    }
}

/// Runs the plan to its end. It does not return: the guard ends the process.
pub(crate) fn run(mut plan: RunConfig, opened: ArgumentReader, inherited: Inherited) -> Result<ExitCode> {
    if plan.dry_run {
        return show_commands(plan, opened);
    }
    // The guardians are forked here, before anything is opened and any thread runs.
    let mut options = GuardOptions::new().guardians(plan.guardians);
    if let Ok(Some(server)) = &inherited.jobserver {
        options = server.guarded_by(options);
    }
    let mut guard = ProcessGuard::install(&options)?;
    let wanted = plan.guardians && !plan.quiet && !guard.kills_descendants();
    if let (true, Err(why)) = (wanted, guard.guardians()) {
        message(&format!(
            "no guardians: {why}; after `kill -9` of minder, what its jobs have started would go on running"
        ));
    }
    if let Some((name, why)) = plan.backend.and_then(refused) {
        if !plan.quiet {
            message(&format!(
                "the wait mechanism `{name}` is refused here: {why}; the best of the others is used"
            ));
        }
        plan.backend = None;
    }
    match start(&mut plan, opened, inherited, &mut guard) {
        Ok(RunEnd::Status(status)) => guard.exit(status),
        Ok(RunEnd::Cancelled(ending)) => guard.terminate(ending),
        Err(error) => {
            message(&format_error(&error));
            guard.exit(exit::OTHER)
        }
    }
}

/// Why this machine refuses a wait mechanism, if it does.
fn refused(backend: &'static str) -> Option<(&'static str, String)> {
    let asked = minder::capabilities().into_iter().find(|it| it.area == "waiting" && it.name == backend);
    match asked?.state {
        minder::Availability::Refused(why) => Some((backend, why)),
        _ => None,
    }
}

/// How a run ends.
#[derive(Debug)]
enum RunEnd {
    /// By itself, with this status; what jobs left running lives on.
    Status(u8),
    /// By a signal, or since nobody reads on; what jobs left running goes with it.
    Cancelled(ExitMode),
}

/// Prints the commands that would be run.
fn show_commands(mut plan: RunConfig, opened: ArgumentReader) -> Result<ExitCode> {
    plan.record.keep = false;
    let left = ResumeState::read(&plan)?;
    // A part may be a share of a file for each slot.
    let slots = plan.slots.now()?.unwrap_or(1);
    let input = JobQueue::open(source(&plan, opened, slots, None)?, left.filter, plan.total, None);
    let mut refused = 0;
    let shown = with_stdout(|out| {
        input.each(|task| {
            let number = task.number;
            if let JobArgs::Unfit(why) = &task.item {
                refused += 1;
                message(&format!("cannot run `job {number}`: {why}"));
                return Ok(());
            }
            let job = Job { columns: task.columns(), number, total: input.total(), ..Job::default() };
            match plan.template.argv(&job) {
                Ok(_) => {
                    let line = plan.template.display(&job);
                    let reading = plan.pipe.as_ref().filter(|pipe| pipe.flags.print_parts);
                    let part = reading.and_then(|_| task.block().as_ref()?.as_shell());
                    let line = part.map_or(line.clone(), |part| format!("{part} |({line})")) + "\n";
                    match LineStyle::of(&plan, &job) {
                        Some(marks) => out.write_all(&marks.around(line.as_bytes()))?,
                        None => out.write_all(line.as_bytes())?,
                    }
                }
                // The same for every job.
                Err(error) if error.kind() == minder_template::ErrorKind::Column => return Err(error.into()),
                Err(error) => {
                    refused += 1;
                    message(&format!("cannot run `{}`: {error}", plan.template.display_escaped(&job)));
                }
            }
            Ok(())
        })
    })?;
    // As the run would end.
    Ok(if shown == ExitCode::SUCCESS { ExitCode::from(exit::of_failed(refused)) } else { shown })
}

fn start(
    plan: &mut RunConfig,
    opened: ArgumentReader,
    inherited: Inherited,
    guard: &mut ProcessGuard,
) -> Result<RunEnd> {
    let begun = Instant::now();
    let Inherited { descriptors, jobserver } = inherited;
    if plan.control.close_fds {
        descriptors.close_on_exec();
    } else {
        plan.descriptors = descriptors;
    }
    plan.environment = gates::jobserver::job_environment(&jobserver, &plan.descriptors);
    let (degree, most) = slots(plan, &opened, guard)?;
    let crew = Arc::new(JobPool::new(rules(&plan.control, degree), plan.grace));
    let (book, left) = RunRecorder::open(plan, opened.total())?;
    // With a terminal of its own a job draws there itself.
    let wish = if plan.control.tty { ProgressOptions::default() } else { plan.progress };
    let progress = Progress::new(wish, Palette::stderr(plan.colours), plan.view != OutputView::Straight);
    let ask = if plan.control.ask { Some(ConfirmPrompt::new(&plan.template, &progress)?) } else { None };
    let input =
        JobQueue::open(source(plan, opened, degree, Some(&book))?, Arc::clone(&left.filter), plan.total, ask);
    let loops = LOOPS_MAX.min(degree).min(input.total().map_or(LOOPS_MAX, |total| total.max(1) as usize));
    let backlog = Backlog::new(BACKLOG_EVEN_MAX);
    let mut sets = (0..loops)
        .map(|place| ChildSet::new(limits(plan, loops, &book, place, &backlog)))
        .collect::<minder::Result<Vec<_>>>()?;
    let (screen, table) = open_screen(plan, &progress)?;
    let order = if plan.view == OutputView::Ordered { ShowOrder::Input } else { ShowOrder::Ended };
    let stage = OutputSequencer::new(screen, order, left.filter, left.unshown);
    let stage = Arc::new(if plan.order == OrderConfig::Given { stage } else { stage.unbounded() });
    let desk = MainLoop::new(loops)?;
    // No job before the guardians watch.
    guard.wait_ready()?;
    input.read_on(&crew)?;
    if progress.is_wanted() {
        input.count_on();
    }
    crew.set_total(input.total());
    let is_watched = std::io::stderr().is_terminal() && !plan.quiet;
    let roster =
        Arc::new(JobTable::new(progress.is_wanted() || is_watched || control::needs_roster(&plan.control)));
    let admission = control::admission(plan, jobserver, &crew, &roster, &stage)?;
    let parts = ContextParts {
        degree,
        most,
        crew: &crew,
        stage: &stage,
        input: &input,
        book: &book,
        roster: &roster,
    };
    let shared = RunContext::new(plan, parts, admission, table);
    let (tally, signal) = drive(&shared, &desk, &mut sets, guard, &progress, begun);
    progress.clear();
    shared.show_rest();
    let mut summary = Summary {
        counts: crew.counts(),
        tally,
        elapsed: begun.elapsed(),
        adopted: guard.orphans(),
        run: book.run().map(str::to_owned),
        resume: book.resume(plan),
        cut: signal.is_some(),
        halted: control::halted(&shared),
    };
    if signal.is_some() {
        // What is left running goes with the run.
        summary.adopted.clear();
        summary.tally.left_running = 0;
    }
    let end = close(&shared, &summary, signal);
    let all_shown = stage.is_done()
        && !shared.has_failed()
        && matches!(end, RunEnd::Status(_) | RunEnd::Cancelled(ExitMode::Signal(_)));
    book.close(over(&summary, &shared, &end), all_shown);
    Ok(end)
}

/// Runs the loops, and serves until they have ended.
fn drive(
    shared: &RunContext<'_>,
    desk: &MainLoop,
    sets: &mut [ChildSet],
    guard: &mut ProcessGuard,
    progress: &Progress,
    begun: Instant,
) -> (RunStats, Option<Signal>) {
    thread::scope(|scope| {
        let (mut handles, mut loops) = (Vec::new(), sets.len());
        for (place, set) in sets.iter_mut().enumerate().rev() {
            let work =
                move || desk.run_worker(|| shared.run_worker(set, place, loops), || shared.show_rest());
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                // One loop does all of the work as well.
                Err(error) => {
                    loops = loops.saturating_sub(1).max(1);
                    desk.drop_worker();
                    if place == 0 && (handles.is_empty() || shared.config.slots.may_change()) {
                        let why = os_error_text(&error);
                        shared
                            .fail(format!("cannot start a thread: {why} (`minder doctor` shows the limits)"));
                    }
                }
            }
        }
        let signal = desk.run(guard, shared, progress, begun);
        let parts = handles.into_iter().map(thread::ScopedJoinHandle::join);
        (add_up(parts, shared), signal)
    })
}

/// How many jobs run at once, and how many there are descriptors for.
fn slots(plan: &RunConfig, opened: &ArgumentReader, guard: &ProcessGuard) -> Result<(usize, usize)> {
    let (_, descriptors) = guard.raise_fd_limit()?;
    // Those for the jobs are open here for as long as the run lasts.
    let own = DESCRIPTORS_OWN + plan.descriptors.numbers().len() as u64;
    let most = descriptors.saturating_sub(own) / descriptors_of_a_job(plan);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let degree = plan.slots.now()?.unwrap_or(most).min(most).max(1);
    match (&plan.pipe, opened.total()) {
        // All of them read all of the input, side by side.
        (Some(pipe), Some(jobs)) if pipe.flags.tee => match usize::try_from(jobs) {
            Ok(jobs) if jobs <= most => Ok((degree.max(jobs), most)),
            _ => bail!(
                "--tee runs {jobs} jobs at once, and there are descriptors for {most} (`minder doctor` shows the limits)"
            ),
        },
        _ => Ok((degree, most)),
    }
}

/// The standard streams, or a table in the place of the first.
fn open_screen(
    plan: &RunConfig,
    progress: &Progress,
) -> Result<((StdioWriter, StdStreams), Option<ResultsTable>)> {
    let (table, instead) = ResultsTable::open(plan)?.unzip();
    let instead = instead.flatten().zip(plan.files.table_name());
    if plan.view == OutputView::Straight && std_was_closed(StdStream::Output) {
        bail!("cannot hand standard output to the jobs: it is closed");
    }
    let screen = StdioWriter::open(progress.clone(), instead).context("cannot use the standard streams")?;
    Ok((screen, table))
}

/// What the schedule goes by.
fn rules(control: &Control, degree: usize) -> SchedulerConfig {
    let mut rules = SchedulerConfig::default();
    rules.max_running = degree;
    rules.delay = control.delay;
    rules.halt = control.halt;
    rules.retry.max_attempts = control.attempts;
    rules.retry.backoff = control.retry_delay;
    rules.retry.jitter = RETRY_JITTER;
    rules.seed = u64::from(std::process::id());
    rules
}

/// Where jobs come from: in another order than the input's all of it is read first.
fn source(
    plan: &RunConfig,
    opened: ArgumentReader,
    degree: usize,
    book: Option<&RunRecorder>,
) -> Result<JobSource> {
    if let Some(pipe) = &plan.pipe {
        // The values are words, so that they can be counted. With --tee each is a job that reads all, and
        // they run all at once.
        let jobs = opened.total().filter(|jobs| *jobs > 0);
        let slots =
            jobs.filter(|_| pipe.flags.tee).and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or(degree);
        let name = (pipe.way != InputDelivery::Stdin).then(|| match book {
            // Behind the id of the run, so that no two of them share a file.
            Some(book) => book.folder().join(format!("{}-", book.name("part", 0).unwrap_or_else(part_name))),
            None => "part-".into(),
        });
        return Ok(JobSource::Parts(Box::new(parts::BlockSource {
            pipe: spread::open(pipe, slots)?,
            values: if pipe.has_values { Values::Here(Box::new(opened)) } else { Values::None },
            runs_values: pipe.runs_values,
            name,
            held: None,
        })));
    }
    let order = match plan.order {
        OrderConfig::Given if plan.template.needs_total() && opened.total().is_none() => InputOrder::Given,
        OrderConfig::Given => return Ok(JobSource::Lazy(Box::new(opened))),
        OrderConfig::Random(seed) => InputOrder::Random(seed),
        OrderConfig::Shortest => InputOrder::Shortest(again::costs(plan)),
        OrderConfig::Longest => InputOrder::Longest(again::costs(plan)),
    };
    if opened.blocks && !plan.quiet {
        message("reading all of the input first, for its order or its number of jobs");
    }
    Ok(JobSource::Unread(Box::new(opened), order))
}

/// A name for the files of a run that has no record.
fn part_name() -> String {
    format!("minder-part-{}", std::process::id())
}

/// The last row of the record.
fn over(summary: &Summary, shared: &RunContext<'_>, end: &RunEnd) -> AttemptFinished {
    let why = match end {
        RunEnd::Cancelled(ExitMode::Signal(_)) => Some("interrupted".to_owned()),
        RunEnd::Cancelled(_) if shared.sequencer.stdio.is_closed() => {
            Some("its output was closed".to_owned())
        }
        RunEnd::Cancelled(_) => Some(book::FAILED.to_owned()),
        RunEnd::Status(_) => summary
            .halted
            .as_ref()
            .filter(|halted| {
                // Where nothing was left it is over as any other.
                halted.not_run != Some(0) || summary.tally.cut > 0
            })
            .map(|halted| halted.why.clone()),
    };
    let over = summary.counts.succeeded + summary.counts.failed;
    // Jobs that were cut off are none of these: they run again.
    let [failed, succeeded] = shared.rows();
    AttemptFinished {
        succeeded,
        failed,
        elapsed: summary.elapsed.as_secs_f64(),
        cpu: summary.tally.cpu.as_secs_f64(),
        why,
        timed_out: summary.tally.timed_out,
        retried: summary.counts.retried,
        cut: summary.tally.cut,
        not_run: shared.queue.total().map(|total| total.saturating_sub(over)).filter(|jobs| *jobs > 0),
    }
}

/// How many descriptors a job may need at once. Files are made for it when it has begun to write:
/// it is too late then to find that none is free.
fn descriptors_of_a_job(plan: &RunConfig) -> u64 {
    match plan.view {
        OutputView::Straight => 1,
        _ => DESCRIPTORS_JOB + 2 * u64::from(plan.files.is_wanted()),
    }
}

fn limits(
    plan: &RunConfig,
    loops: usize,
    book: &RunRecorder,
    place: usize,
    backlog: &Arc<Backlog>,
) -> ChildSetConfig {
    let mut limits = ChildSetConfig::default();
    limits.max_children = usize::MAX;
    // Beginnings of lines have the other half.
    let share = if plan.view == OutputView::Lines { 2 } else { 1 };
    limits.max_buffered_bytes = plan.buffer / loops / share;
    limits.max_child_bytes = JOB_BYTES_MAX.min(limits.max_buffered_bytes);
    limits.spill_dir = Some(book.folder().to_owned());
    limits.spill_prefix = book.name("spill", place).map(|name| format!("{name}-"));
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    limits.backlog = Some(Arc::clone(backlog));
    limits.min_readers = processors.div_ceil(loops);
    limits.leak_timeout = plan.leak_after;
    limits.read_delay = LISTEN_AFTER;
    limits.backend = plan.backend;
    limits.stop_poll_interval = minder_os::terminal::has_controlling_terminal().then_some(STOPS);
    limits
}

fn add_up(parts: impl Iterator<Item = thread::Result<RunStats>>, shared: &RunContext<'_>) -> RunStats {
    let mut tally = RunStats::default();
    for part in parts {
        match part {
            Ok(part) => tally.merge(part),
            Err(_) => shared.fail("a part of minder panicked; this is a defect of minder".to_owned()),
        }
    }
    tally
}

/// Says what there is to say, and how to end.
fn close(shared: &RunContext<'_>, summary: &Summary, signal: Option<Signal>) -> RunEnd {
    shared.sequencer.stdio.settle(shared.config.view == OutputView::Straight);
    if let Some(signal) = signal {
        if !shared.config.quiet {
            summary
                .lines(Palette::stderr(shared.config.colours))
                .iter()
                .chain(&summary.resume_line())
                .for_each(|line| try_message(line));
        }
        return RunEnd::Cancelled(ExitMode::Signal(signal));
    }
    if shared.sequencer.stdio.is_closed() {
        return RunEnd::Cancelled(ExitMode::Status(exit::BROKEN_PIPE));
    }
    if let Some(fatal) = shared.take_failure() {
        message(&fatal);
        return RunEnd::Cancelled(ExitMode::Status(exit::OTHER));
    }
    // GNU parallel has no last lines, and what its users' programs read on stderr stays as it was.
    let is_wanted = summary.is_wanted() && (!shared.config.parallel_env || std::io::stderr().is_terminal());
    if !shared.config.quiet && (is_wanted || shared.config.progress != ProgressOptions::default()) {
        summary.lines(Palette::stderr(shared.config.colours)).iter().for_each(|line| message(line));
    }
    match control::status(shared, summary) {
        // Something of what was to be shown was not.
        exit::SUCCESS if shared.has_lost() => RunEnd::Status(exit::OTHER),
        status => RunEnd::Status(status),
    }
}
