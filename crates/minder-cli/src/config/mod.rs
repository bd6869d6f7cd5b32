//! Converts flags into the configuration of a run: text in, data out.
//!
//! This module opens no file, changes no directory, and looks up no run. `commands::run` does that,
//! and passes the results to [`build`].

use std::ffi::OsString;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder::Backend;
use minder_runner::config::{
    Coordination, ExitStatusRule, OrderConfig, OutputFiles, OutputTime, OutputTimes, OutputView, PipeConfig,
    RecordConfig, ResumeMode, RunConfig,
};
use minder_runner::jobs_setting::JobsSetting;
use minder_template::{Options, Template};

mod job_reports;
mod conflicts;
mod env_file;
mod control;
mod input;
mod commands;
mod text_placeholders;
mod mistakes;
mod splitter;
mod seed;
mod output_files;
mod agents;

pub(crate) use self::conflicts::{check as check_conflicts, exclusion, missing};
pub(crate) use self::control::check_single_limit;
pub(crate) use self::input::{CompatMode, ParsedCommandLine};
pub(crate) use self::job_reports::JobReports;
pub(crate) use self::mistakes::flags_behind_program;
pub(crate) use self::output_files::template_flag;
use self::seed::new_seed;
pub(crate) use self::splitter::check_same_blocks;
use self::text_placeholders::{Hint, check_column_names, foreign_variable, text_placeholder};
use crate::flags::{
    Color, DisplayFlags, ExitStatusFlag, Leak, OutputFlags, OutputTimeFlag, RecordFlags, RunFlags,
    StatusLevel,
};
use crate::ui::{Heartbeat, ProgressOptions};
pub(crate) use agents::ssh_command;
pub(crate) use env_file::read as read_env_file;
use minder_ui::color::When;

/// The settings of what people see during a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Display {
    pub(crate) progress: ProgressOptions,
    pub(crate) color: When,
    /// `true` if `--quiet` suppresses notices that report no failure.
    pub(crate) quiet: bool,
    /// The ends of jobs that have a line.
    pub(crate) status_level: StatusLevel,
    /// The shortest run whose end is notified, if any is.
    pub(crate) notify: Option<Duration>,
    /// `true` if GNU parallel's command line is used, which has no summary without a terminal.
    pub(crate) parallel: bool,
    /// `true` if jobs write to the terminal themselves.
    pub(crate) straight: bool,
    /// The ends of jobs that GNU parallel reports, if its command line asks for any.
    pub(crate) reports: Option<JobReports>,
}

/// The parsed command line, before the input is opened.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) command_line: ParsedCommandLine,
    pub(crate) slots: JobsSetting,
    pub(crate) order: OrderConfig,
    /// `true` if each argument is a command.
    runs_arguments: bool,
    pipe: Option<PipeConfig>,
    agents: agents::Agents,
    typed: Vec<OsString>,
    mode: Option<ResumeMode>,
    compat: CompatMode,
}

impl Parsed {
    /// Parses the flags. `typed` is their original text, for the record. `stdin` is the file that
    /// is read in place of standard input.
    ///
    /// # Errors
    /// A flag has an invalid value, or two flags exclude each other.
    pub(crate) fn new(
        flags: &RunFlags,
        typed: Vec<OsString>,
        mode: Option<ResumeMode>,
        compat: CompatMode,
        stdin: Option<PathBuf>,
    ) -> Result<Self> {
        conflicts::check(flags)?;
        if mode.is_none() {
            conflicts::check_display(flags)?;
        }
        // Only one job at a time can use the terminal.
        let default = if flags.control.tty { "1" } else { "100%" };
        let slots = JobsSetting::parse(flags.jobs.as_deref().unwrap_or(default.as_ref()))?;
        let mut command_line = ParsedCommandLine::new(flags, compat, stdin)?;
        if mode.is_none() && compat == CompatMode::Own {
            mistakes::check_flag_before_number(&typed, &command_line.words)?;
            mistakes::check_shard(flags)?;
            mistakes::check_flags_behind_line(&typed, &command_line.words, &command_line.behind)?;
        }
        if command_line.stdin && flags.control.stdin.as_deref() == Some("inherit".as_ref()) {
            bail!(
                "`--stdin inherit` is for jobs whose arguments come from `:::` or -a FILE: here, \
                 standard input is read for arguments"
            );
        }
        let sources = &command_line.plan.sources;
        let has_values = !sources.is_empty();
        let runs_arguments = commands::are_arguments(flags, compat, &command_line.words, sources)?;
        let inputs = std::mem::take(&mut command_line.blocks);
        let pipe = splitter::pipe_config(flags, inputs, has_values, runs_arguments, mode.is_some())?;
        let agents = agents::Agents::new(flags)?;
        let order = input::order(&flags.input, new_seed);
        let typed = with_seed(typed, order, flags.input.seed);
        Ok(Self { command_line, slots, order, runs_arguments, pipe, agents, typed, mode, compat })
    }

    /// Returns how the command is parsed. `names` are the names of the input's columns.
    ///
    /// # Errors
    /// A placeholder or a rule for values is invalid.
    pub(crate) fn options(&self, flags: &RunFlags, names: &[OsString]) -> Result<Options> {
        let ParsedCommandLine { words, width, .. } = &self.command_line;
        input::options(flags, self.compat, names, words, *width)
    }

    /// Returns a hint about text in the command that looks like a placeholder or a variable of GNU
    /// parallel, or about a flag without effect, if there is some.
    pub(crate) fn hint(&self, flags: &RunFlags, options: &Options, names: &[OsString]) -> Option<Hint> {
        if !self.wants_hints(flags) {
            return None;
        }
        let words = self.command_line.words.as_slice();
        text_placeholder(words, flags, options, names)
            .or_else(|| foreign_variable(words))
            .or_else(|| mistakes::exit_without_effect(flags))
            .or_else(|| mistakes::delimiter_like_regexp(flags))
            .or_else(|| mistakes::colsep_of_any_text(flags))
            .or_else(|| mistakes::help_as_command(words, self.command_line.stdin))
    }

    /// Returns whether there are hints for the user: in the first attempt of `minder run`. Other command
    /// lines have other placeholders.
    pub(crate) fn wants_hints(&self, flags: &RunFlags) -> bool {
        self.compat == CompatMode::Own && self.mode.is_none() && !flags.display.quiet && !flags.parallel_env
    }
}

/// Builds the configuration. `names` are the names of the input's columns, `copies` the files of
/// `--template`, and `cwd` is the working directory.
///
/// # Errors
/// The command is not a valid template, or a flag has an invalid value.
pub(crate) fn build(
    flags: RunFlags,
    parsed: Parsed,
    options: &Options,
    names: &[OsString],
    copies: Vec<minder_runner::config::TemplateCopy>,
    cwd: PathBuf,
) -> Result<(RunConfig, Display)> {
    let Parsed { command_line, slots, order, runs_arguments, pipe, agents, typed, mode, compat } = parsed;
    if compat == CompatMode::Own && mode.is_none() {
        let texts = command_line.words.iter().chain(&flags.output.tagstring).chain(&flags.output.results);
        let texts = texts.chain(&flags.control.wd).chain(&flags.control.env).chain(&flags.control.limit_per);
        check_column_names(texts, &flags, options, names)?;
    }
    let template = template(runs_arguments, &command_line.words, options)?;
    let tagstring = flags.output.tagstring.as_ref().map(|text| Template::text(text, options));
    let control = control::control(&flags, options)?;
    if let Some(columns) = input::max_columns(&flags, compat, command_line.width) {
        let key = control.limit_per.as_ref().map(|limit| &limit.key);
        check_columns([Some(&template), tagstring.as_ref(), key], columns)?;
    }
    let files = output_files::output_files(&flags, options, compat, command_line.width, names, copies)?;
    if files.table().is_some()
        && let Some(flag) = conflicts::output_time_flag(&flags.output)
    {
        bail!("`{flag}` cannot be used with a table of `--results`, which has the output of all jobs");
    }
    let tty = flags.control.tty;
    let tag = tag(&flags, &files, options);
    let RunFlags {
        display: display_flags,
        output,
        record,
        leak,
        grace,
        hold_results: hold,
        backend,
        no_guard,
        input,
        ..
    } = flags;
    let view = if tty { OutputView::Straight } else { view(&output, &files) };
    let reports = JobReports::new(flags.parallel_env, &flags.control);
    let display = Display { reports, ..display(&display_flags, compat, (tty, view), flags.parallel_env) };
    let config = RunConfig {
        template,
        slots,
        order,
        total: input.total_jobs,
        batches_arguments: false,
        pipe,
        control,
        exit_status: exit_status_rule(flags.control.exit_status),
        parallel_env: flags.parallel_env,
        pid: std::process::id(),
        shell: options.shell.clone(),
        leak_timeout: (leak == Leak::Close).then_some(Duration::from_millis(100)),
        grace: Duration::from_secs(grace),
        hold_results: hold_results(hold),
        // An empty MINDER_BACKEND counts as not set.
        backend: backend.filter(|name| !name.is_empty()).map(known_backend).transpose()?,
        guardians: !no_guard,
        color_jobs: display_flags.color == Some(Color::Jobs) && !files.replaces_output(),
        color_lines: output.line_buffer || display_flags.color_lines,
        color_failed: display_flags.color_failed && !output.line_buffer && !files.replaces_output(),
        verbose: display_flags.verbose,
        print: display_flags.print,
        times: output_times(&output),
        view,
        tag,
        names: job_names(output.names.as_deref(), &files)?,
        files,
        pty: output.pty,
        spool: output.spool,
        buffer: output.buffer,
        tmpdir: output.tmpdir.map(std::path::absolute).transpose()?,
        record: agents.of_record(record_config(record, mode, cwd, command_line, typed)?),
    };
    Ok((config, display))
}

/// Returns the command of a recorded run, to show its jobs. The names of its columns are not known.
///
/// # Errors
/// This version does not accept the command line.
pub(crate) fn recorded_template(flags: &RunFlags) -> Result<Template> {
    let compat = if flags.parallel_env { CompatMode::Parallel } else { CompatMode::Own };
    let ParsedCommandLine { words, width, plan, .. } = ParsedCommandLine::new(flags, compat, None)?;
    let runs_arguments = commands::are_arguments(flags, compat, &words, &plan.sources)?;
    let options = input::options(flags, compat, &[], &words, width)?;
    template(runs_arguments, &words, &options)
}

fn template(runs_arguments: bool, words: &[OsString], options: &Options) -> Result<Template> {
    if runs_arguments {
        return Ok(Template::script(options)?);
    }
    Ok(Template::parse(words, options)?)
}

fn record_config(
    flags: RecordFlags,
    mode: Option<ResumeMode>,
    cwd: PathBuf,
    command_line: ParsedCommandLine,
    typed: Vec<OsString>,
) -> Result<RecordConfig> {
    if flags.joblog.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        bail!("--joblog `-`: a joblog is a file, not standard output (./- is a file of that name)");
    }
    Ok(RecordConfig {
        keep: !flags.no_record,
        sync: flags.sync,
        keep_output: flags.keep_output,
        redact: flags.redact_args,
        joblog: flags.joblog.as_deref().map(absolute_joblog).transpose()?,
        joblog_append: flags.joblog_append,
        mode,
        skip_lost: flags.skip_lost,
        run: None,
        agents: None,
        coordination: Coordination::default(),
        agent: None,
        announces: false,
        by_joblog: mode.is_some(),
        first_slots: None,
        cwd,
        command: command_line.words,
        trailing: command_line.behind,
        files: command_line.files,
        stdin: None,
        typed,
    })
}

fn absolute_joblog(path: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot write the joblog `{}`", path.display());
    std::path::absolute(path).with_context(cannot)
}

/// Returns what people see during a run.
fn display(
    flags: &DisplayFlags,
    compat: CompatMode,
    (tty, view): (bool, OutputView),
    parallel: bool,
) -> Display {
    // The command lines of other programs show what those programs show: cron mails any other line.
    let has_own_display = compat == CompatMode::Own;
    let progress = ProgressOptions {
        status: has_own_display && !flags.no_status,
        bar: flags.bar,
        eta: flags.eta,
        jobs: flags.progress,
        heartbeat: match flags.heartbeat {
            None if has_own_display => Heartbeat::IfCi,
            None | Some(Duration::ZERO) => Heartbeat::Never,
            Some(time) => Heartbeat::After(time),
        },
    };
    Display {
        // With --tty the job draws on the terminal.
        progress: if tty || flags.quiet { ProgressOptions::default() } else { progress },
        color: colors(flags.color),
        quiet: flags.quiet,
        notify: flags.notify,
        status_level: flags.status_level.unwrap_or_else(|| default_level(flags.quiet || parallel || tty)),
        parallel,
        straight: view == OutputView::Straight,
        reports: None,
    }
}

/// Returns which ends of jobs have a line if no flag says that: on a terminal, those of failed jobs.
fn default_level(is_silent: bool) -> StatusLevel {
    let is_watched = !is_silent && std::io::IsTerminal::is_terminal(&std::io::stderr());
    if is_watched { StatusLevel::Fail } else { StatusLevel::None }
}

/// # Errors
/// A placeholder refers to a later column.
fn check_columns(templates: [Option<&Template>; 3], columns: usize) -> Result<()> {
    match templates.into_iter().flatten().try_for_each(|template| template.check_columns(columns)) {
        Err(error) if columns == 1 => bail!("{error} (`--colsep REGEXP` divides it into columns)"),
        checked => Ok(checked?),
    }
}

fn exit_status_rule(flag: ExitStatusFlag) -> ExitStatusRule {
    match flag {
        ExitStatusFlag::Parallel => ExitStatusRule::Parallel,
        ExitStatusFlag::Xargs => ExitStatusRule::Xargs,
    }
}

fn output_times(output: &OutputFlags) -> OutputTimes {
    let failure = output_time(output.failure_output);
    let cancelled = match (output.cancelled_output, failure) {
        (Some(flag), _) => output_time(Some(flag)),
        // At the end stands what went wrong, and they did not fail.
        (None, OutputTime::ImmediateFinal) => OutputTime::Immediate,
        (None, OutputTime::Final) => OutputTime::Never,
        (None, failure) => failure,
    };
    OutputTimes { success: output_time(output.success_output), failure, cancelled }
}

/// The variables of programs that end a run by a signal to each of its processes, in any order: Slurm,
/// PBS, LSF.
const BATCH_SYSTEMS: [&str; 3] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"];

/// The variable of the units of systemd, which ends them in the same way. The shells of a desktop inherit
/// it too; there, Ctrl-C reaches minder alone.
const SYSTEMD: &str = "INVOCATION_ID";

/// The time for which a result is held back there.
const HOLD_RESULTS: Duration = Duration::from_millis(300);

/// Returns how long results are held back, in case the run is about to end.
fn hold_results(flag: Option<Duration>) -> Option<Duration> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let signals_all = || BATCH_SYSTEMS.into_iter().any(is_set) || is_set(SYSTEMD) && !stderr().is_terminal();
    match flag {
        Some(time) => Some(time).filter(|time| !time.is_zero()),
        None => signals_all().then_some(HOLD_RESULTS),
    }
}

fn output_time(flag: Option<OutputTimeFlag>) -> OutputTime {
    match flag {
        None | Some(OutputTimeFlag::Immediate) => OutputTime::Immediate,
        Some(OutputTimeFlag::ImmediateFinal) => OutputTime::ImmediateFinal,
        Some(OutputTimeFlag::Final) => OutputTime::Final,
        Some(OutputTimeFlag::Never) => OutputTime::Never,
    }
}

fn colors(flag: Option<Color>) -> When {
    match flag {
        Some(Color::Always) => When::Always,
        Some(Color::Never) => When::Never,
        _ => When::Auto,
    }
}

fn view(output: &OutputFlags, files: &OutputFiles) -> OutputView {
    match output {
        OutputFlags { keep_order: true, .. } => OutputView::Ordered,
        // A row of a table is written as a whole.
        OutputFlags { line_buffer: true, .. } if files.table().is_none() => OutputView::Lines,
        OutputFlags { ungroup: true, .. } => OutputView::Straight,
        _ => OutputView::Grouped,
    }
}

/// Returns the text that each line of output begins with. Rows of a table have none.
fn tag(flags: &RunFlags, files: &OutputFiles, options: &Options) -> Option<Template> {
    if files.table().is_some() {
        return None;
    }
    // An empty --tagstring means no tag, and no tab after it.
    let text = flags.output.tagstring.clone().filter(|text| !text.is_empty());
    // --replace renames the placeholder of the values.
    let values = || flags.placeholders.replace.clone().unwrap_or_else(|| "{}".into());
    let text = text.or_else(|| flags.output.tag.then(values))?;
    Some(Template::text(&text, options))
}

/// Returns the names of the jobs. Rows of a table have none.
///
/// # Errors
/// A name is empty, or would move the cursor of the terminal.
fn job_names(names: Option<&str>, files: &OutputFiles) -> Result<Vec<String>> {
    let names: Vec<String> =
        names.map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default();
    for name in &names {
        if name.is_empty() {
            bail!("--names: a name is empty");
        }
        let shown = minder_os::escape(name.as_bytes());
        if shown != *name {
            bail!("--names: `{shown}` has a control character");
        }
    }
    Ok(if files.table().is_some() { Vec::new() } else { names })
}

/// Returns which jobs of an earlier attempt run again; `None` for a new run.
pub(crate) fn mode(flags: &RunFlags) -> Option<ResumeMode> {
    let record = &flags.record;
    match (&record.resume, &record.resume_failed, &record.retry_failed) {
        (Some(_), ..) => Some(ResumeMode::Rest),
        (_, Some(_), _) => Some(ResumeMode::RestAndFailed),
        (.., Some(_)) => Some(ResumeMode::Failed),
        _ => None,
    }
}

/// Adds the seed of a random order to the flags of the record: a resumed run has the same order.
fn with_seed(mut typed: Vec<OsString>, order: OrderConfig, given: Option<u64>) -> Vec<OsString> {
    if let (OrderConfig::Random(seed), None) = (order, given) {
        typed.push(format!("--seed={seed}").into());
    }
    typed
}

/// Checks values that do not depend on other flags or on the command.
///
/// # Errors
/// A flag has an invalid value.
pub(crate) fn check_values(flags: &RunFlags) -> Result<()> {
    if let Some(jobs) = &flags.jobs {
        JobsSetting::parse(jobs)?;
    }
    conflicts::check_nice(flags)?;
    let options = input::options(flags, CompatMode::Own, &[], &[], None)?;
    control::control(flags, &options)?;
    flags.backend.clone().filter(|name| !name.is_empty()).map(known_backend).transpose()?;
    Ok(())
}

fn known_backend(name: String) -> Result<Backend> {
    match Backend::available().find(|known| known.name() == name) {
        Some(known) => Ok(known),
        None => {
            let all: Vec<_> = Backend::available().map(Backend::name).collect();
            bail!("there is no wait mechanism `{name}` on this system: it has {}", all.join(", "))
        }
    }
}
