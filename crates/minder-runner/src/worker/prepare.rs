//! Turns the arguments of a job into a command, its files and its options.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minder::jobs::{Attempt, SpawnRequest};
use minder::{Command, Group, OutputMode, OverflowPolicy, Resource, Size, SpawnOptions, Stdio, Stream};
use minder_os::terminal::{TerminalModes, terminal_size};
use minder_template::Job;

use super::job_values::job_values;
use super::running_job::RunningJob;
use super::search_path;

use crate::config::InputDelivery;
use crate::config::JobStdin;
use crate::config::OutputView;
use crate::config::PipeConfig;
use crate::config::Timeout;
use crate::context::RunContext;
use crate::output::decorate::LineStyle;
use crate::queue::Task;
use crate::results::JobResults;
use crate::results::Refusal;
use crate::results::TemplateFiles;
use crate::results::cannot_write;
use crate::spawn_command::spawn_command;
use crate::splitter::StdinFeeder;
use crate::text::os_error_text;

/// The shell script for `--fifo`. It copies its standard input into the named pipe `$0` while the command
/// reads that pipe. Only a process that opens a named pipe for writing can wait for a
/// reader, so `cat` does.
///
/// `exec "$@"` keeps each argument as it is and never runs a builtin of the shell. Descriptor 3 is
/// the input for `cat` alone: the command keeps its own descriptor 3, if the shell of the user left
/// one open.
const FIFO: &str =
    r#"{ cat <&3 3<&- >"$0" & } 3<&0; (exec "$@") </dev/null; s=$?; kill $! 2>/dev/null; exit $s"#;
/// The time for which starts of jobs with a stream may fail because the system is short of
/// something, while the input waits for them.
const STREAMS_SHORTAGE_MAX: Duration = Duration::from_secs(1);
/// The size of a job's pseudo-terminal if this process has no terminal.
const TERMINAL: Size = Size::new(24, 80);

/// Opens the standard input of a job.
///
/// # Errors
/// Why it cannot be read. A named pipe has no beginning from which each job could read, and opening it waits
/// for a writer. The pipe of a process substitution, `/dev/fd/63`, exists only while it has a writer, and
/// no other path leads to it.
fn open_stdin(path: &Path) -> Result<File, String> {
    let metadata = path.metadata().map_err(|error| os_error_text(&error))?;
    if metadata.is_dir() {
        return Err("is a directory".to_owned());
    }
    if minder_os::files::is_fifo(&metadata) && path.canonicalize().is_ok() {
        return Err(
            "a named pipe can be read only once: use `--stdin inherit`, and `<` for the pipe".to_owned()
        );
    }
    File::open(path).map_err(|error| os_error_text(&error))
}

/// Prepares the jobs of one worker thread for their start.
pub(super) struct Preparer<'a> {
    context: &'a RunContext<'a>,
    /// With `--verbose`, the printed command lines of jobs that did not start, by the number of the job.
    printed: BTreeMap<u64, String>,
    /// Since when no job of a stream could be started, because the system was short of something.
    short_since: Option<Instant>,
}

impl<'a> Preparer<'a> {
    pub(super) fn new(context: &'a RunContext<'a>) -> Self {
        Self { context, printed: BTreeMap::new(), short_since: None }
    }

    /// Turns a job into a command, and prints it with `--verbose`. `running` is the job, of which nothing but
    /// the number and the permit is set.
    ///
    /// # Errors
    /// The job cannot be started.
    pub(super) fn prepare(
        &mut self,
        attempt: Attempt,
        task: &Task,
        running: &mut RunningJob,
    ) -> Result<SpawnRequest, Refusal> {
        let config = self.context.config;
        let values = job_values(self.context, task, attempt);
        let mut invocation = config.template.invocation(&values).map_err(|error| match error.kind() {
            // The error is the same for every job: it is reported once, and it ends the run.
            minder_template::ErrorKind::Column => Refusal::Input(error.to_string()),
            _ => Refusal::Own(error.to_string()),
        })?;
        search_path::find_program(&config.control, &values, &mut invocation.argv);
        // `configure` may replace the command, so they are set afterwards.
        let variables = std::mem::take(&mut invocation.variables);
        let mut command = spawn_command(invocation);
        running.is_last_attempt = self.context.is_last_attempt(attempt);
        running.output.may_be_live = running.is_last_attempt
            && !config.may_requeue()
            && !config.color_failed
            && config.times.are_immediate();
        running.output.style = LineStyle::of(config, &values);
        if config.view == OutputView::Ordered {
            running.output.decorate_lines();
        }
        self.configure(&mut command, running, task, &values).inspect_err(|refusal| {
            if let (Refusal::Own(_), Some(splitter), Some(feeder)) =
                (refusal, self.context.queue.splitter(), &mut running.stdin)
            {
                feeder.end(splitter);
            }
        })?;
        for (name, value) in variables {
            command.env(name, value);
        }
        if config.verbose {
            let line = config.template.display(&values);
            if self.printed.remove(&task.number).as_ref() != Some(&line) {
                self.context.observer.command(&line);
            }
        }
        Ok(SpawnRequest::new(command).options(self.options(running)))
    }

    /// Notes that a prepared job did not start, and starts later. Ends the run if a job whose stream waits
    /// could not be started for a while: those that run get no more input before, and so do not end.
    pub(super) fn note_deferred(&mut self, attempt: Attempt, task: &Task) {
        let context = self.context;
        if context.config.verbose {
            let line = context.config.template.display(&job_values(context, task, attempt));
            self.printed.insert(task.number, line);
        }
        let flag = context.config.pipe.as_ref().and_then(PipeConfig::stream_flag);
        let Some((flag, splitter)) = flag.zip(context.queue.splitter()) else { return };
        let since = *self.short_since.get_or_insert_with(Instant::now);
        if since.elapsed() < STREAMS_SHORTAGE_MAX || !splitter.waits_for_starts() {
            return;
        }
        context.fail(format!(
            "cannot start all jobs of `{flag}`, which run at once: no process, descriptor or memory is free \
             (use a lower -j; `minder doctor` shows the limits)"
        ));
    }

    /// Notes that a job has started.
    pub(super) fn note_started(&mut self) {
        self.short_since = None;
    }

    /// Prepares everything that a job needs in addition to its command line.
    fn configure(
        &self,
        command: &mut Command,
        running: &mut RunningJob,
        task: &Task,
        values: &Job<'_>,
    ) -> Result<(), Refusal> {
        let config = self.context.config;
        command.stdin(self.stdin()?).die_with_parent(true);
        running.copies = TemplateFiles::create(&config.files, values)?;
        if let Some(block) = task.block().take() {
            self.attach_input(command, running, task, StdinFeeder::new(block))?;
        }
        self.apply_environment(command, running, task, values)?;
        if config.print {
            running.output.header = config.template.display(values).into_bytes();
            running.output.header.push(b'\n');
        }
        let run = self.context.recorder.run();
        running.output.copy = self.context.recorder.output_copy();
        running.output.results = JobResults::create(&config.files, values, run)?.map(Box::new);
        if config.pty {
            let size = terminal_size().map_or(TERMINAL, |size| Size::new(size.rows, size.columns));
            command.group(Group::Terminal(size));
        } else if config.spool {
            command.stdout(self.spool(running)?).stderr(self.spool(running)?);
            return Ok(redirect_to_results(command, running)?);
        } else if config.view == OutputView::Straight {
            self.inherit_stdio(command, running);
            return Ok(redirect_to_results(command, running)?);
        } else {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            redirect_to_results(command, running)?;
        }
        running.output.is_live = match config.view {
            _ if !config.may_be_live() => false,
            OutputView::Ordered => self.context.sequencer.start(running.number) && running.output.may_be_live,
            OutputView::Grouped if !running.output.may_be_live => false,
            OutputView::Grouped => {
                let alone = self.context.slots == 1 || self.context.queue.total() == Some(1);
                alone && self.context.sequencer.try_claim(running.number)
            }
            OutputView::Lines | OutputView::Straight => false,
        };
        Ok(())
    }

    /// Returns the time limit of a job, and how its output is read.
    fn options(&self, running: &mut RunningJob) -> SpawnOptions {
        let config = self.context.config;
        let mut options = SpawnOptions::new().rank(running.number);
        if let Some(Timeout::After(limit)) = config.control.timeout
            && let Some(at) = Instant::now().checked_add(limit)
        {
            running.timeout = Some(limit);
            options = options.deadline(at, config.kill());
        }
        if !config.pty && (config.spool || config.view == OutputView::Straight) {
            // It writes its output itself.
            options
        } else if running.output.is_live || config.view == OutputView::Lines {
            options.output_mode(OutputMode::Stream).overflow(OverflowPolicy::Block)
        } else {
            options.output_mode(OutputMode::AtExit).overflow(OverflowPolicy::Spill).spill_as_file(true)
        }
    }

    /// Returns the standard input of a job that reads no block of the input.
    fn stdin(&self) -> Result<Stdio, Refusal> {
        match &self.context.config.control.stdin {
            JobStdin::Null => Ok(Stdio::null()),
            JobStdin::Inherit => Ok(Stdio::inherit()),
            JobStdin::File(path) => open_stdin(path)
                .map(Stdio::from)
                .map_err(|why| Refusal::All(format!("cannot read `{}`: {why} (--stdin)", path.display()))),
        }
    }

    /// Connects the job to its block of input: as standard input, as a file that is complete before
    /// the job starts, or as a named pipe.
    fn attach_input(
        &self,
        command: &mut Command,
        running: &mut RunningJob,
        task: &Task,
        mut feeder: StdinFeeder,
    ) -> Result<(), String> {
        let (Some(splitter), Some(pipe)) = (self.context.queue.splitter(), &self.context.config.pipe) else {
            return Ok(());
        };
        let path = PathBuf::from(task.columns().first().cloned().unwrap_or_default());
        let failed =
            |error: std::io::Error| format!("cannot make `{}`: {}", path.display(), os_error_text(&error));
        match pipe.delivery {
            InputDelivery::Stdin => {
                command.stdin(Stdio::piped());
            }
            InputDelivery::File => {
                // An earlier attempt may have left the file.
                let _ = std::fs::remove_file(&path);
                let mut file = minder_os::files::create_private_file(&path).map_err(failed)?;
                running.files.push(path.clone());
                feeder.read_all(splitter, |bytes| file.write_all(bytes)).map_err(failed)?;
                if feeder.is_torn() {
                    return Err(splitter
                        .error()
                        .unwrap_or_else(|| format!("cannot fill `{}`", path.display())));
                }
            }
            InputDelivery::Fifo => {
                let _ = std::fs::remove_file(&path);
                minder_os::files::create_fifo(&path).map_err(|error| match error.kind() {
                    std::io::ErrorKind::Unsupported => {
                        "--fifo is not supported on this system (--cat gives each job a file)".to_owned()
                    }
                    _ => failed(error),
                })?;
                let mut args =
                    vec![FIFO.into(), path.clone().into_os_string(), command.get_program().to_owned()];
                args.extend(command.get_args().map(std::ffi::OsStr::to_owned));
                *command = Command::new("/bin/sh");
                command.arg("-c").args(args).stdin(Stdio::piped()).die_with_parent(true);
                running.files.push(path);
            }
        }
        running.stdin = Some(Box::new(feeder));
        Ok(())
    }

    /// Sets the working directory, environment variables, descriptors and niceness of a job.
    fn apply_environment(
        &self,
        command: &mut Command,
        running: &mut RunningJob,
        task: &Task,
        values: &Job<'_>,
    ) -> Result<(), Refusal> {
        let control = &self.context.config.control;
        let environment = self.context.environment;
        command.descriptors(&environment.descriptors).environment(&environment.variables);
        command.nice(control.nice);
        if let Some(bytes) = control.memory_max {
            self.limit_memory(command, running, bytes)?;
        }
        if let Some(seconds) = control.cpu_max {
            // SIGXCPU comes at the soft limit, SIGKILL at the hard one.
            command.limit(Resource::CpuTime, Some(seconds), Some(seconds + 1));
        }
        if let Some(slack) = control.timer_slack {
            command.timer_slack(slack);
        }
        if let Some(name) = &control.slot_var {
            // GNU parallel counts from 0 here.
            command.env(name, (values.slot - 1).to_string());
        }
        if self.context.config.parallel_env {
            command.env("PARALLEL_SEQ", task.number.to_string());
            command.env("PARALLEL_JOBSLOT", values.slot.to_string());
            command.env("PARALLEL_PID", self.context.config.pid.to_string());
            // GNU parallel's name for the local machine is `:`.
            let login = self.context.config.record.agent.as_ref().and_then(|agent| agent.login.as_deref());
            let login = login.unwrap_or(":");
            let host = login.rsplit_once('@').map_or(login, |(_, host)| host);
            command.env("PARALLEL_SSHLOGIN", login).env("PARALLEL_SSHHOST", host);
        } else {
            let [mut job, mut slot] = [itoa::Buffer::new(); 2];
            command.env("MINDER_JOB", job.format(task.number)).env("MINDER_SLOT", slot.format(values.slot));
        }
        if let Some(limit) = &control.limit_per {
            // A job whose key cannot be made is refused here: see `RunWorker::key`.
            limit.key.argv(values).map_err(|error| format!("--limit-per: {error}"))?;
        }
        for (name, text) in &control.env_of_job {
            let args = text.argv(values).map_err(|error| error.to_string())?;
            command.env(name, args.into_iter().next().unwrap_or_default());
        }
        if let Some(dir) = &control.directory {
            let args = dir.argv(values).map_err(|error| error.to_string())?;
            let mut path = PathBuf::from(args.into_iter().next().unwrap_or_default());
            if path.as_os_str() == "..." {
                let recorder = self.context.recorder;
                let token = &self.context.config.files.token;
                // Without a record other runs share the directory.
                let prefix = if recorder.is_kept() { String::new() } else { format!("minder-{token}-") };
                path = recorder.dir().join(format!("{prefix}work-{}", task.number));
                if self.context.config.files.cleanup {
                    running.copies.own(path.clone());
                }
                match minder_os::files::create_private_dir(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(
                            format!("cannot make `{}`: {}", path.display(), os_error_text(&error)).into()
                        );
                    }
                    _ => (),
                }
            } else if !path.as_os_str().is_empty() {
                std::fs::create_dir_all(&path).map_err(|error| {
                    Refusal::of(&format!("cannot make `{}`", path.display()), &error, dir.has_placeholders())
                })?;
            }
            command.current_dir(path);
        }
        Ok(())
    }

    /// Limits the memory of a job by its cgroup, or the address space of each of its processes.
    fn limit_memory(
        &self,
        command: &mut Command,
        running: &mut RunningJob,
        bytes: u64,
    ) -> Result<(), Refusal> {
        let Some(cgroups) = &self.context.cgroups else {
            command.limit(Resource::AddressSpace, Some(bytes), Some(bytes));
            return Ok(());
        };
        let cgroup = cgroups
            .create(running.number)
            .map_err(|error| Refusal::of("cannot limit the memory of jobs", &error, false))?;
        command.cgroup(cgroup.dir());
        running.cgroup = Some(Box::new(cgroup));
        Ok(())
    }

    /// Lets a job inherit standard output and standard error, and with `--tty` the terminal.
    fn inherit_stdio(&self, command: &mut Command, running: &mut RunningJob) {
        command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        if self.context.config.control.tty {
            self.context.status.note_terminal_job_start();
            // The job stays in this process group, which owns the terminal: in another one it would
            // be stopped when it reads. As in GNU parallel, its input is empty if there is no
            // terminal.
            command
                .group(Group::Inherit)
                .stdin(minder_os::terminal::open_terminal().map_or(Stdio::null(), Stdio::from));
            running.terminal_modes = TerminalModes::save().map(Box::new);
        }
        let header = std::mem::take(&mut running.output.header);
        self.context.sequencer.show(Stream::Stdout, &header, None);
    }

    /// Creates a file that a job writes to.
    fn spool(&self, running: &mut RunningJob) -> Result<Stdio, String> {
        let recorder = self.context.recorder;
        let job_file = recorder.create_job_file()?;
        let file = job_file.open().map_err(|error| recorder.cannot_make_file(&error))?;
        running.output.spool.push(job_file);
        Ok(Stdio::from(file))
    }
}

/// Lets a job write directly to its result files, for streams that are not shown.
fn redirect_to_results(command: &mut Command, running: &mut RunningJob) -> Result<(), String> {
    let Some(results) = &mut running.output.results else { return Ok(()) };
    if !results.shows(Stream::Stdout) {
        let header = std::mem::take(&mut running.output.header);
        results.begin(&header).map_err(|error| cannot_write(results.place(), &error))?;
    }
    for stream in [Stream::Stdout, Stream::Stderr] {
        let file = results.hand_over(stream).map_err(|error| cannot_write(results.place(), &error))?;
        match (stream, file) {
            (Stream::Stdout, Some(file)) => {
                command.stdout(file);
            }
            (Stream::Stderr, Some(file)) => {
                command.stderr(file);
            }
            (_, None) => (),
        }
    }
    Ok(())
}
