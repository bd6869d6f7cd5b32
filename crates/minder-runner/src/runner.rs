//! Builds the components of a run, runs it to its end, and closes its record.
//!
//! Three kinds of threads, four at most: the main thread handles signals and offers snapshots; one
//! or two equal worker threads start, watch and finish the jobs; one thread reads the input where a
//! read may block.

use std::ffi::OsString;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use minder::guard::{ProcessGuard, Watchdog};
use minder::jobs::{JobPool, RetryPolicy, SchedulerOptions};
use minder::poll::Poller;
use minder::{Backlog, ChildSet, ChildSetOptions, Descriptors, Signal};
use minder_cluster::round::Round;
use minder_os::stdio::{StdStream, std_was_closed};
use minder_os::sync::Mutex;

use crate::admission::jobserver::{self, JobserverLookup};
use crate::admission::setup;
use crate::agent::Agent;
use crate::commit::Committer;
use crate::config::{Control, OrderConfig, OutputView, RecordConfig, RunConfig};
use crate::confirm::{Confirm, ConfirmPrompt};
use crate::context::{PanicGuard, RunContext, RunStatus};
use crate::coordinator::{self, Coordinator};
use crate::exit_status;
use crate::history;
use crate::input::{ArgumentReader, ColumnCount};
use crate::job_environment::JobEnvironment;
use crate::job_source::job_source;
use crate::job_table::JobTable;
use crate::main_loop::MainLoop;
use crate::memory_cap;
use crate::notice::Notice;
use crate::observer::Observer;
use crate::outcome;
use crate::output::batch::OutputBatch;
use crate::output::line_buffer::line_max;
use crate::output::sequencer::{LineBreaks, OutputSequencer};
use crate::output::stdio::StdioWriter;
use crate::output::store::HeldMemory;
use crate::output::waiting::ShowOrder;
use crate::queue::{JobQueue, JobSource, Task};
use crate::reader_wait::wait_for_readers;
use crate::recorder::{ResumeState, RunRecorder};
use crate::report::{RunEnd, RunReport, RunStats};
use crate::results::table::ResultsTable;
use crate::resume::ResumeFilter;
use crate::text::{count, os_error_text};
use crate::worker::HELD_FILES_MAX;
use crate::worker::RunWorker;

/// The most worker threads. A second one gains the most on two processors; a third gains nothing
/// there.
const WORKERS_MAX: usize = 2;
/// The most bytes of output in memory of one job that waits for its end: enough for most jobs, and
/// little to write twice.
const JOB_BYTES_MAX: usize = 256 << 10;
/// Without a record, this part of the memory for output is for that of finished jobs that wait.
const HELD_SHARE: usize = 8;
/// As long as less output than this waits in files, all jobs are read. Above it, those whose output
/// is written first are: the others would only fill the disk.
const BACKLOG_EVEN_MAX: u64 = 16 << 20;
/// Descriptors that are not the jobs': streams, backends, guards, files of the program, and of
/// finished jobs that are held back.
const DESCRIPTORS_OWN: u64 = 40 + (WORKERS_MAX * HELD_FILES_MAX) as u64;
/// Descriptors of one job: two outputs, the process, and two files for output that does not fit
/// into memory.
const DESCRIPTORS_JOB: u64 = 5;
/// A job that ends sooner is read at its end.
const READ_DELAY: Duration = Duration::from_millis(2);
/// The jitter of the delays before retries, so that jobs that failed together do not run again
/// together.
const RETRY_JITTER: f64 = 0.5;
/// Of how many short jobs each worker thread reads the times of the main thread in a second. `minder
/// advise` needs a sample only, and reading those of every job takes a quarter of what a minimal job
/// costs (measured).
const THREAD_TIMES_PER_SECOND: u32 = 20;
/// The interval at which the worker threads look for stopped jobs, if there is a terminal to stop for.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The descriptors and the jobserver that this process has inherited, for its jobs.
#[derive(Debug)]
pub struct Inherited {
    descriptors: Descriptors,
    jobserver: JobserverLookup,
}

impl Inherited {
    /// Lists the descriptors, and looks for the jobserver of a surrounding make. Call it before
    /// anything else is opened: some descriptors are known by their numbers only.
    pub fn find() -> Self {
        Self { descriptors: Descriptors::inherited(), jobserver: jobserver::find() }
    }

    /// Makes a guard also watch over the tokens of the jobserver.
    pub fn guarded(&self, options: minder::guard::GuardOptions) -> minder::guard::GuardOptions {
        match &self.jobserver {
            Ok(Some(server)) => server.guarded_by(options),
            _ => options,
        }
    }
}

/// Everything that [`run`] needs.
#[derive(Debug)]
pub struct RunRequest {
    /// The configuration of the run.
    pub config: RunConfig,
    /// The arguments.
    pub arguments: ArgumentReader,
    /// The descriptors and the jobserver for the jobs.
    pub inherited: Inherited,
    /// Receives what the engine reports.
    pub observer: Arc<dyn Observer>,
    /// Asked before each job, if [`Control::interactive`] is set.
    pub confirm: Option<Box<dyn Confirm>>,
}

/// Runs all jobs to their end. `guard` was installed before any thread was started.
///
/// The caller ends the process as [`RunReport::end`] says.
///
/// # Errors
/// The run could not begin: its record, input or standard streams cannot be opened, or a limit of
/// the operating system leaves no room for one job.
pub fn run(request: RunRequest, guard: &mut ProcessGuard) -> Result<RunReport> {
    let started_at = Instant::now();
    let RunRequest { config, arguments, inherited, observer, confirm } = request;
    let Inherited { descriptors, jobserver } = inherited;
    check_names(&config.names, arguments.total())?;
    let environment = job_environment(&config, descriptors, &jobserver);
    let Slots { slots, max_slots } = Slots::new(&config, &environment, &arguments, guard)?;
    let pool = Arc::new(JobPool::new(scheduler_config(&config.control, slots), config.grace));
    let pipes = wait_for_readers(&config, guard)?;
    let (recorder, resumed) = open_record(&config, arguments.total(), slots, &observer, guard)?;
    let filter = Arc::clone(&resumed.filter);
    if resumed.is_idle {
        return Ok(report_idle(&config, &filter, &*observer));
    }
    let jobs = arguments.total();
    let confirm = confirm.map(|confirm| ConfirmPrompt::new(&config.template, confirm));
    let first_job = arguments.first_job();
    let findings = arguments.findings();
    let (coordinator, mut source) = source(&config, arguments, slots, (&recorder, &filter), &observer)?;
    if config.record.coordination.detaches {
        return detach(coordinator.as_ref(), &mut source, &recorder, guard);
    }
    let queue = JobQueue::open(source, Arc::clone(&resumed.filter), config.total, confirm);
    let workers = worker_count(&config, slots, queue.total());
    let backlog = Backlog::new(BACKLOG_EVEN_MAX);
    let mut sets = (0..workers)
        .map(|index| ChildSet::new(set_config(&config, workers, &recorder, index, &backlog)))
        .collect::<minder::Result<Vec<_>>>()?;
    let (stdio, table) = open_stdio(&config, first_job, &observer, &recorder, (&pool, &backlog))?;
    drop(pipes);
    let sequencer = sequencer(&config, stdio, resumed);
    let main_poller = Poller::new()?;
    let main_loop = MainLoop::new(workers, &main_poller);
    // No job starts before the guardians are ready.
    guard.wait_ready()?;
    start_reading(&queue, &pool, &*observer)?;
    let job_table = job_table(&config, &*observer);
    let admission = setup::admission(&config, &environment, jobserver, &pool, &job_table, &observer)?;
    let context = RunContext {
        config: &config,
        environment: &environment,
        observer: &observer,
        slots,
        max_slots,
        line_max: line_max(config.buffer, slots),
        pool: &pool,
        sequencer: &sequencer,
        queue: &queue,
        recorder: &recorder,
        committer: Committer::new(&sequencer, &recorder, &observer),
        job_table: &job_table,
        expected: history::expected(&config, &*observer),
        admission,
        table,
        cgroups: memory_cap::prepare(config.control.memory_max, guard, &*observer),
        earlier_output: std::sync::Once::new(),
        status: RunStatus::default(),
        main_poller: &main_poller,
        coordinator: coordinator.as_ref(),
    };
    recorder.begin();
    let (stats, signal) = run_threads(&context, &main_loop, &mut sets, guard, started_at);
    end_agents(&context, guard);
    write_rest(&context);
    findings.notices().for_each(|notice| observer.notice(&notice));
    let ended = outcome::report(&context, stats, signal, guard.orphans(), started_at.elapsed());
    let report = finish(&context, &filter, jobs, ended);
    main_loop.wait_for_readers(guard, &context, &report);
    Ok(report)
}

/// Starts the threads that read the input, and those that count the jobs.
fn start_reading(queue: &Arc<JobQueue>, pool: &Arc<JobPool<Task>>, observer: &dyn Observer) -> Result<()> {
    queue.start_reading(pool)?;
    if observer.wants_total() {
        queue.start_counting();
    }
    pool.set_total(queue.total());
    Ok(())
}

/// Opens the record. A coordinator of agents begins to show that it works.
fn open_record(
    config: &RunConfig,
    jobs: Option<u64>,
    slots: usize,
    observer: &Arc<dyn Observer>,
    guard: &mut ProcessGuard,
) -> Result<(RunRecorder, ResumeState)> {
    let mut interrupted = || guard.next_signal().filter(|signal| coordinator::is_end(*signal));
    let opened = RunRecorder::open(config, jobs, slots, &**observer, &mut interrupted)?;
    if let Some(holder) = opened.0.holder() {
        holder.start_beats(observer)?;
    }
    Ok(opened)
}

/// Waits until the agents work, and reports a run that continues without this process.
fn detach(
    coordinator: Option<&Coordinator>,
    source: &mut JobSource,
    recorder: &RunRecorder,
    guard: &mut ProcessGuard,
) -> Result<RunReport> {
    if let (Some(coordinator), JobSource::Remote(results)) = (coordinator, source) {
        coordinator.wait_for_agents(results, guard)?;
        coordinator.leave();
    }
    recorder.begin();
    let run = recorder.run().map(str::to_owned);
    Ok(RunReport { run, end: RunEnd::Detached, ..RunReport::default() })
}

/// Ends the agents, unless they continue without this process.
fn end_agents(context: &RunContext<'_>, guard: &mut ProcessGuard) {
    let Some(coordinator) = context.coordinator else { return };
    // The run does not depend on a later coordinator that cannot do its work.
    let has_failed =
        context.status.has_failed() || context.queue.has_error() || context.sequencer.stdio.is_broken();
    if context.status.is_detached() || has_failed && coordinator.has_others() {
        coordinator.leave();
    }
    coordinator.end(guard, context.config.grace);
}

/// Opens the source of the jobs, and starts the agents that run them, if agents do.
fn source(
    config: &RunConfig,
    arguments: ArgumentReader,
    slots: usize,
    (recorder, filter): (&RunRecorder, &ResumeFilter),
    observer: &Arc<dyn Observer>,
) -> Result<(Option<Coordinator>, JobSource)> {
    let Some(agents) = &config.record.agents else {
        return Ok((None, job_source(config, arguments, slots, Some(recorder), &**observer)?));
    };
    let (coordinator, mut results) =
        Coordinator::begin(config, agents, arguments, recorder, filter, observer)?;
    // The halt policy counts each result at once.
    results.in_order = config.view == OutputView::Ordered && config.control.halt.is_none();
    Ok((Some(coordinator), JobSource::Remote(Box::new(results))))
}

/// Makes what decides whose output is written next.
fn sequencer(config: &RunConfig, stdio: StdioWriter, resumed: ResumeState) -> OutputSequencer {
    let order = if config.view == OutputView::Ordered { ShowOrder::Input } else { ShowOrder::Ended };
    let sequencer = OutputSequencer::new(stdio, order, resumed.filter, resumed.unshown)
        .with_line_breaks(line_breaks(config));
    // In another order than that of the input, the job that all wait for may be the last to start.
    let sequencer =
        if config.order == OrderConfig::Given { sequencer } else { sequencer.without_backlog_limit() };
    match &config.record {
        RecordConfig { agent: Some(_), .. } => sequencer.without_output(),
        // A result that others wait for may be the last one that arrives.
        RecordConfig { agents: Some(_), .. } => sequencer.without_backlog_limit(),
        _ => sequencer,
    }
}

/// Checks the number of names, if that of the jobs is known.
fn check_names(names: &[String], jobs: Option<u64>) -> Result<()> {
    let many = names.len() as u64;
    match jobs {
        Some(jobs) if many > 0 && many != jobs => {
            bail!("--names has {} for {}", count(many, "name"), count(jobs, "job"))
        }
        _ => Ok(()),
    }
}

/// Returns what all jobs inherit.
fn job_environment(
    config: &RunConfig,
    descriptors: Descriptors,
    jobserver: &JobserverLookup,
) -> JobEnvironment {
    let mut environment = JobEnvironment::default();
    if config.control.close_fds {
        descriptors.close_on_exec();
    } else {
        environment.descriptors = descriptors;
    }
    let for_jobserver = jobserver::job_environment(jobserver, &environment.descriptors);
    let for_jobserver = for_jobserver.into_iter().map(|(name, value)| (OsString::from(name), value));
    environment.set_variables(for_jobserver.chain(config.control.env.iter().cloned()));
    environment
}

/// Reports that nothing of the run is left.
fn report_idle(config: &RunConfig, filter: &ResumeFilter, observer: &dyn Observer) -> RunReport {
    let mut report = RunReport { nothing_left: true, ..RunReport::default() };
    if config.record.coordination.attaches {
        report.end = RunEnd::Status(exit_status::of_failed(filter.failed()));
    }
    if let Some(notice) = filter.nothing_notice(&config.record) {
        observer.notice(&notice);
    }
    observer.finished(&report);
    report
}

/// Reports the end of a run, and closes its record. `jobs` is the number of its jobs, if it is known.
fn finish(
    context: &RunContext<'_>,
    filter: &ResumeFilter,
    jobs: Option<u64>,
    mut report: RunReport,
) -> RunReport {
    let RunContext { recorder, observer, sequencer, .. } = context;
    let record = &context.config.record;
    report.nothing_left = outcome::has_run_nothing(context, filter, &report);
    if report.nothing_left
        && let Some(notice) = filter.nothing_notice(record)
    {
        observer.notice(&notice);
    }
    // The number of jobs was not known before their arguments were read. That of a later attempt is less.
    if jobs.is_none()
        && record.mode.is_none()
        && let Err(wrong) = check_names(&context.config.names, context.queue.final_total())
    {
        observer.notice(&Notice::WrongNames { line: wrong.to_string() });
    }
    if let Some((from, to)) = context.queue.splitter().and_then(|splitter| splitter.growth()) {
        observer.notice(&Notice::BlockGrew { from, to });
    }
    let all_shown =
        sequencer.is_done() && !context.status.has_failed() && outcome::has_written_output(&report.end);
    observer.finished(&report);
    if report.nothing_left && recorder.discard() || report.end == RunEnd::Detached {
        return report;
    }
    let left = if record.by_joblog { None } else { filter.left_by_retry(jobs) };
    recorder.close(outcome::attempt_finished(context, &report, left), all_shown, &***observer);
    report
}

/// Returns which jobs get a line break before the tag or the color of another job.
fn line_breaks(config: &RunConfig) -> LineBreaks {
    if config.parallel_env {
        LineBreaks::Never
    } else if config.color_failed && config.tag.is_none() {
        LineBreaks::All
    } else {
        LineBreaks::Decorated
    }
}

/// Creates the table of running jobs, which is kept if anything reads it.
fn job_table(config: &RunConfig, observer: &dyn Observer) -> Arc<JobTable> {
    let is_read = observer.wants_snapshots() || setup::needs_job_table(&config.control);
    Arc::new(JobTable::new(is_read))
}

/// Returns the number of worker threads for this number of slots and of jobs.
fn worker_count(config: &RunConfig, slots: usize, jobs: Option<u64>) -> usize {
    // One worker thread prints the command lines in the order of the starts, as GNU parallel does. The
    // results of agents need no more, and each takes descriptors.
    let most = if config.verbose || config.record.agents.is_some() { 1 } else { WORKERS_MAX };
    most.min(slots).min(jobs.map_or(WORKERS_MAX, |total| total.max(1) as usize))
}

/// Runs the worker threads, and the main loop until they have ended.
fn run_threads(
    context: &RunContext<'_>,
    main_loop: &MainLoop<'_>,
    sets: &mut [ChildSet],
    guard: &mut ProcessGuard,
    started_at: Instant,
) -> (RunStats, Option<Signal>) {
    thread::scope(|scope| {
        let _agent = start_beats(scope, context, guard.watchdog());
        let mut handles = Vec::new();
        let mut workers = sets.len();
        for (index, set) in sets.iter_mut().enumerate().rev() {
            let work = move || {
                main_loop.run_worker(|| run_worker(context, set, index, workers), || write_rest(context))
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(handle) => handles.push(handle),
                // The other worker thread does all of the work.
                Err(error) => {
                    workers = workers.saturating_sub(1).max(1);
                    main_loop.drop_worker();
                    if index == 0 && (handles.is_empty() || context.config.slots.may_change()) {
                        let why = os_error_text(&error);
                        context
                            .fail(format!("cannot start a thread: {why} (`minder doctor` shows the limits)"));
                    }
                }
            }
        }
        let signal = main_loop.run(guard, context, started_at);
        let mut stats = RunStats::default();
        for handle in handles {
            match handle.join() {
                Ok(worker_stats) => stats.merge(worker_stats),
                Err(_) => context.fail("a part of minder panicked; this is a defect of minder".to_owned()),
            }
        }
        if let Some(cgroups) = &context.cgroups {
            cgroups.end();
        }
        (stats, signal)
    })
}

/// Starts the thread that shows that an agent works. It ends when the returned value is dropped.
fn start_beats<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    context: &'scope RunContext<'_>,
    watchdog: Option<Watchdog>,
) -> Option<EndOnDrop<'scope>> {
    let agent = context.recorder.agent()?;
    let beat = move || {
        let cancel = || context.interrupt();
        if let Some(served) = &agent.served {
            return served.watch(watchdog, cancel, |error| context.fail(error));
        }
        match Round::open(&agent.run, agent.attempt) {
            Ok(round) => agent.beat(&round, watchdog, cancel, |error| context.fail(error)),
            Err(error) => context.fail(error.to_string()),
        }
    };
    if let Err(error) = thread::Builder::new().spawn_scoped(scope, beat) {
        context.fail(format!("cannot start a thread: {}", os_error_text(&error)));
    }
    Some(EndOnDrop(agent))
}

/// Ends the beats of an agent.
struct EndOnDrop<'a>(&'a Agent);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs one of `workers` worker threads to its end.
fn run_worker(context: &RunContext<'_>, set: &mut ChildSet, index: usize, workers: usize) -> RunStats {
    context.earlier_output.call_once(|| {
        if let Err(error) = context.committer.write_waiting(false, context.slots) {
            context.fail(error);
        }
    });
    let recorder = context.recorder;
    let mut store = recorder.store(index);
    // Before the first job, so that no job runs in vain. Agents save output themselves.
    if recorder.is_kept()
        && context.config.record.agents.is_none()
        && let Err(error) = store.append(&[], recorder.syncs())
    {
        context.fail(context.committer.cannot_save(&error));
    }
    let memory = HeldMemory::new(held_bytes_max(context.config, recorder, workers));
    let batch = OutputBatch::new(store, memory, recorder.syncs());
    let mut worker = RunWorker::new(context, batch, workers);
    let _panic_guard = PanicGuard(context);
    // The worker has handled the error in `worker_failed`.
    let _ = context.pool.run_worker(set, index, workers, &mut worker);
    worker.into_stats()
}

/// Writes output that waits when no job runs any more, even out of order: the jobs before it were
/// cut off.
fn write_rest(context: &RunContext<'_>) {
    let is_left = context.status.has_failed() || context.status.is_detached();
    if is_left || context.sequencer.stdio.is_broken() {
        return;
    }
    if let Err(error) = context.committer.write_waiting(true, context.slots) {
        context.fail(error);
    }
}

/// The number of jobs that run at once.
struct Slots {
    slots: usize,
    /// The most that there are descriptors for.
    max_slots: usize,
}

impl Slots {
    fn new(
        config: &RunConfig,
        environment: &JobEnvironment,
        arguments: &ArgumentReader,
        guard: &ProcessGuard,
    ) -> Result<Self> {
        let (_, descriptors) = guard.raise_fd_limit()?;
        // Descriptors for the jobs stay open in this process for the whole run.
        let own = DESCRIPTORS_OWN + environment.descriptors.numbers().len() as u64;
        let max_slots = descriptors.saturating_sub(own) / descriptors_per_job(config);
        let max_slots = usize::try_from(max_slots).unwrap_or(usize::MAX);
        let slots = config.slots.now()?.unwrap_or(max_slots).min(max_slots).max(1);
        match (&config.pipe, arguments.total()) {
            // All of these jobs read all of the input at the same time, so they all have to run at
            // once.
            (Some(pipe), Some(jobs)) if pipe.is_tee() => match usize::try_from(jobs) {
                Ok(jobs) if jobs <= max_slots => Ok(Self { slots: slots.max(jobs), max_slots }),
                _ => bail!(
                    "--tee runs {jobs} jobs at once, and there are descriptors for {max_slots} (`minder \
                     doctor` shows the limits)"
                ),
            },
            _ => Ok(Self { slots, max_slots }),
        }
    }
}

/// Returns how many descriptors a job may need at once. Files for its output are counted too: they
/// are created only after it has written, which is too late to find that no descriptor is free.
fn descriptors_per_job(config: &RunConfig) -> u64 {
    let streams = match config.view {
        OutputView::Straight => 1,
        _ => DESCRIPTORS_JOB + 2 * u64::from(config.files.has_job_files()),
    };
    // Its cgroup.
    streams + u64::from(config.control.memory_max.is_some())
}

/// Opens the standard streams, or a table in place of standard output.
fn open_stdio(
    config: &RunConfig,
    first_job: ColumnCount,
    observer: &Arc<dyn Observer>,
    recorder: &RunRecorder,
    (pool, backlog): (&Arc<JobPool<Task>>, &Arc<Backlog>),
) -> Result<(StdioWriter, Option<ResultsTable>)> {
    let (table, replacement) = ResultsTable::open(config, first_job)?.unzip();
    let replacement = replacement.flatten().zip(config.files.table_name());
    if config.view == OutputView::Straight && std_was_closed(StdStream::Output) {
        bail!("cannot hand standard output to the jobs: it is closed");
    }
    let pool = Arc::clone(pool);
    let backlog = Arc::clone(backlog);
    // How many streams are stalled.
    let stalls = Arc::new(Mutex::new(0_usize));
    let on_change = move |is_stalled: bool| {
        let mut stalls = stalls.lock();
        *stalls = if is_stalled { *stalls + 1 } else { stalls.saturating_sub(1) };
        backlog.set_stalled(*stalls > 0);
        drop(stalls);
        if !is_stalled {
            pool.wake();
        }
    };
    let stdio = StdioWriter::open(Arc::clone(observer), replacement, recorder.dir(), on_change)
        .context("cannot use the standard streams")?;
    Ok((stdio, table))
}

fn scheduler_config(control: &Control, slots: usize) -> SchedulerOptions {
    let retry =
        RetryPolicy::new().max_attempts(control.attempts).backoff(control.retry_delay).jitter(RETRY_JITTER);
    SchedulerOptions::new()
        .max_running(slots)
        .delay(control.delay)
        .start_interval(control.start_interval)
        .max_per_key(control.limit_per.as_ref().map(|limit| limit.max))
        .halt(control.halt)
        .retry(retry)
        .seed(u64::from(std::process::id()))
}

/// Returns how much output of finished jobs waits in the memory of one of `workers` worker threads:
/// none if the run has a record, whose output is in files before it is written.
fn held_bytes_max(config: &RunConfig, recorder: &RunRecorder, workers: usize) -> usize {
    if recorder.is_kept() { 0 } else { config.buffer / workers / HELD_SHARE }
}

fn set_config(
    config: &RunConfig,
    workers: usize,
    recorder: &RunRecorder,
    index: usize,
    backlog: &Arc<Backlog>,
) -> ChildSetOptions {
    // Incomplete lines use the other half.
    let share = if config.view == OutputView::Lines { 2 } else { 1 };
    let buffered = config.buffer / workers / share - held_bytes_max(config, recorder, workers);
    let processors = minder_os::host_stats::processors();
    let stop_poll = minder_os::terminal::has_controlling_terminal().then_some(STOP_POLL_INTERVAL);
    ChildSetOptions::new()
        .max_children(usize::MAX)
        .max_buffered_bytes(buffered)
        .max_child_bytes(JOB_BYTES_MAX.min(buffered))
        .spill_dir(recorder.dir())
        .spill_prefix(recorder.file_prefix("spill", index).map(|prefix| format!("{prefix}-")))
        .backlog(Arc::clone(backlog))
        .min_readers(processors.div_ceil(workers))
        .leak_timeout(config.leak_timeout)
        .read_delay(READ_DELAY)
        .backend(config.backend)
        .thread_times(recorder.is_kept())
        .thread_times_per_second(Some(THREAD_TIMES_PER_SECOND))
        .stop_poll_interval(stop_poll)
}
