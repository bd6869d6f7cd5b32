//! The plan of a run: flags joined with what this machine is, and with what an earlier attempt
//! left. Nothing is left to guess after this.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use minder::{Command, Descriptors, Termination};

mod beside;
mod control;
mod input;
mod pipe;
mod together;

pub(crate) use self::beside::{OutputFiles, Results, TableForm, place};
pub(crate) use self::control::{Control, Timeout};
pub(crate) use self::input::{CompatMode, OrderConfig};
pub(crate) use self::pipe::{InputDelivery, PipeConfig};
use crate::flags::{Colour, Flags, Leak, OutputFlags, RecordFlags, RunFlags, Verb, clap_error_line};
use crate::input::{ArgumentReader, LineLimit};
use crate::report::ProgressOptions;
use crate::slots::JobsSetting;
use crate::spawn_command::spawn_command;
use crate::ui::color::When;
use minder_record::event::OsBytes;
use minder_record::manifest::{InputSource, Manifest};
use minder_record::store;
use minder_template::{Job, Options, Template};

/// In the manifest of a run that went on by a joblog: what had ended before is known to the joblog
/// only.
pub(crate) const BY_JOBLOG: &str = "by_joblog";

/// Flags that are about one attempt only.
const OF_ONE_ATTEMPT: [&str; 5] =
    ["--resume", "--resume-failed", "--retry-failed", "--skip-lost", "--dry-run"];

/// Everything that `minder run` has to know.
#[derive(Debug)]
pub(crate) struct RunConfig {
    pub(crate) template: Template,
    /// How many jobs at once.
    pub(crate) slots: JobsSetting,
    pub(crate) order: OrderConfig,
    /// How many jobs there will be, as the user says.
    pub(crate) total: Option<u64>,
    /// How the input is given out, if jobs read parts of it.
    pub(crate) pipe: Option<PipeConfig>,
    pub(crate) control: Control,
    /// Whether jobs have several records each.
    pub(crate) batches_arguments: bool,
    /// Variables that jobs get otherwise than we got them.
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// What jobs get beside their streams; added when they start.
    pub(crate) descriptors: Descriptors,
    /// Whether jobs get GNU parallel's variables.
    pub(crate) parallel_env: bool,
    /// The process that takes signals: this one, which becomes the outer guardian of those that run
    /// the jobs.
    pub(crate) pid: u32,
    /// The shell of lines that the user gives, if it is not the system's.
    pub(crate) shell: Option<OsString>,
    pub(crate) leak_after: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) backend: Option<&'static str>,
    pub(crate) guardians: bool,
    /// What a person sees while it runs.
    pub(crate) progress: ProgressOptions,
    pub(crate) colours: When,
    /// Whether each job's output has a colour of its own.
    pub(crate) colour_jobs: bool,
    /// Whether only whole lines have one.
    pub(crate) colour_lines: bool,
    /// Whether output of jobs that failed is coloured. Lines that are shown as they come are not:
    /// nobody knows yet.
    pub(crate) colour_failed: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    /// Whether each command is printed before its output.
    pub(crate) print: bool,
    pub(crate) dry_run: bool,
    pub(crate) view: OutputView,
    /// What each line begins with.
    pub(crate) tag: Option<Template>,
    /// Files beside the screen.
    pub(crate) files: OutputFiles,
    pub(crate) pty: bool,
    pub(crate) spool: bool,
    /// The most bytes of output in memory.
    pub(crate) buffer: usize,
    pub(crate) tmpdir: Option<PathBuf>,
    pub(crate) record: RecordConfig,
}

/// How output is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputView {
    /// Each job when it ends.
    Grouped,
    /// Each job in the order of the input.
    Ordered,
    /// Whole lines as they come.
    Lines,
    /// Jobs write for themselves.
    Straight,
}

/// What to run of a run that was begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResumeMode {
    /// What had not ended.
    Rest,
    /// What had not ended, and what had failed.
    RestAndFailed,
    /// What had failed.
    Failed,
}

/// What is recorded, and what an earlier record is for.
#[derive(Debug)]
pub(crate) struct RecordConfig {
    /// Whether there is to be one.
    pub(crate) keep: bool,
    pub(crate) sync: bool,
    pub(crate) redact: bool,
    pub(crate) joblog: Option<PathBuf>,
    /// Whether a joblog that is there is gone on with in any case.
    pub(crate) joblog_append: bool,
    /// What to run, if not all.
    pub(crate) mode: Option<ResumeMode>,
    /// Whether jobs whose kept output is lost count as shown.
    pub(crate) skip_lost: bool,
    /// The folder of the run that is taken up again.
    pub(crate) run: Option<PathBuf>,
    /// Whether the joblog says what is done.
    pub(crate) by_joblog: bool,
    /// For the manifest of a new run: where it was started, its command and its flags as they were
    /// typed.
    pub(crate) cwd: PathBuf,
    pub(crate) words: Vec<OsString>,
    /// What stands behind the command: separators and arguments.
    pub(crate) trailing: Vec<OsString>,
    /// Files of arguments, and whether standard input is read.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) stdin: bool,
    pub(crate) typed: Vec<OsString>,
}

impl RecordConfig {
    fn new(flags: RecordFlags, mode: Option<ResumeMode>) -> Result<Self> {
        if flags.joblog.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            bail!("--joblog `-`: a joblog is a file, not standard output (./- is a file of that name)");
        }
        Ok(Self {
            keep: !flags.no_record,
            sync: flags.sync,
            redact: flags.redact_args,
            joblog: flags.joblog.map(std::path::absolute).transpose()?,
            joblog_append: flags.joblog_append,
            mode,
            skip_lost: flags.skip_lost,
            run: None,
            by_joblog: mode.is_some(),
            cwd: std::env::current_dir().context("this folder is gone")?,
            words: Vec::new(),
            trailing: Vec::new(),
            files: Vec::new(),
            stdin: false,
            typed: Vec::new(),
        })
    }
}

impl RunConfig {
    /// Makes the plan, and opens the input, whose first lines may name its columns. `args` are the
    /// arguments of minder itself, of which the flags were read.
    pub(crate) fn new(
        flags: RunFlags,
        args: &[OsString],
        manner: CompatMode,
    ) -> Result<(Self, ArgumentReader)> {
        let typed = typed_flags(args, flags.words.len());
        match mode(&flags) {
            Some(mode) if flags.record.joblog.is_none() => Self::take_up(&flags, &typed, mode, manner),
            None => Self::build(flags, typed, None, manner, None),
            mode => {
                let (mut plan, input) = Self::build(flags, typed, mode, manner, None)?;
                plan.record.run = plan.record.keep.then(|| plan.run_of_joblog()).flatten();
                Ok((plan, input))
            }
        }
    }

    /// The newest run that wrote this joblog with this command: what it did not show is still to be
    /// shown.
    fn run_of_joblog(&self) -> Option<PathBuf> {
        let joblog = self.record.joblog.as_ref().filter(|path| path.is_file())?;
        let joblog = OsBytes::from(joblog.as_os_str());
        let joblog = serde_json::to_value(joblog).ok()?;
        let words: Vec<OsBytes> =
            self.record.words.iter().map(|word| OsBytes::from(word.as_os_str())).collect();
        let its =
            |manifest: &Manifest| manifest.flags.get("joblog") == Some(&joblog) && manifest.words == words;
        let mut runs = store::list(&store::state_root().ok()?).ok()?.into_iter();
        runs.find(|run| run.manifest.as_ref().is_ok_and(its)).map(|run| run.folder)
    }

    /// Plans a run that is known by its id alone: its flags come from its record, and those that
    /// were typed now after them.
    fn take_up(
        flags: &RunFlags,
        typed: &[OsString],
        mode: ResumeMode,
        manner: CompatMode,
    ) -> Result<(Self, ArgumentReader)> {
        let Some(id) = flags.words.first().filter(|_| flags.words.len() == 1).and_then(|word| word.to_str())
        else {
            bail!(
                "a run is taken up by its id alone: minder run [FLAGS] --resume RUN (`minder log` lists them); \
                 with --joblog FILE, by its command and arguments"
            );
        };
        if flags.record.no_record {
            bail!("a run is taken up from its record, which goes on: --no-record does not go with it");
        }
        let root = store::state_root()?;
        let run = match id {
            "last" => store::list(&root)?.into_iter().next().with_context(|| store::none(&root))?.folder,
            id => store::find(&root, id)?,
        };
        let manifest = Manifest::read(&run)?;
        if manifest.flags.contains_key(BY_JOBLOG) {
            bail!(
                "run {id} went on by a joblog: take it up by that, with --joblog FILE, its command and arguments"
            );
        }
        let saved: Vec<OsBytes> = match manifest.flags.get("typed") {
            Some(value) => serde_json::from_value(value.clone())
                .with_context(|| format!("the manifest of run {id} is damaged"))?,
            None => Vec::new(),
        };
        let words: Vec<OsString> = manifest.words.iter().map(OsBytes::to_os).collect();
        let mut line: Vec<OsString> = vec!["minder".into(), "run".into()];
        line.extend(saved.iter().map(OsBytes::to_os));
        line.extend(typed.iter().cloned());
        line.push("--".into());
        line.extend(words.iter().cloned());
        if let InputSource::Arguments { .. } = &manifest.input {
            line.extend(manifest.arguments(&run)?);
        }
        let all = Flags::try_parse_from(&line).map_err(|error| {
            anyhow::anyhow!("the flags of run {id} do not go with these: {}", clap_error_line(&error))
        })?;
        let Verb::Run(all) = all.verb else { bail!("the manifest of run {id} is damaged") };
        // It goes on in the manner in which it was begun.
        let manner = if all.parallel_env { CompatMode::Parallel } else { manner };
        let cwd = PathBuf::from(manifest.cwd.to_os());
        std::env::set_current_dir(&cwd)
            .with_context(|| format!("cannot enter the folder of run {id}, `{}`", cwd.display()))?;
        let stdin = stdin_of(&manifest, id)?;
        let saved = saved.iter().map(OsBytes::to_os).collect();
        let (mut plan, input) = Self::build(*all, saved, Some(mode), manner, stdin)?;
        (plan.record.run, plan.record.by_joblog) = (Some(run), false);
        plan.record.skip_lost = flags.record.skip_lost;
        plan.dry_run = flags.record.dry_run;
        Ok((plan, input))
    }

    /// `stdin`: the file that is read in place of standard input.
    fn build(
        flags: RunFlags,
        typed: Vec<OsString>,
        mode: Option<ResumeMode>,
        manner: CompatMode,
        stdin: Option<PathBuf>,
    ) -> Result<(Self, ArgumentReader)> {
        together::check(&flags)?;
        // One job has the terminal at a time.
        let usual = OsStr::new(if flags.control.tty { "1" } else { "100%" });
        let slots = JobsSetting::parse(flags.jobs.as_deref().unwrap_or(usual))?;
        let read = input::ParsedCommandLine::new(&flags, manner, stdin)?;
        let has_values = !read.plan.sources.is_empty();
        let runs_values = flags.script || read.words.is_empty();
        let pipe = PipeConfig::new(&flags, read.parts, has_values, runs_values, mode.is_some())?;
        let order = OrderConfig::new(&flags.input, new_seed);
        let typed = with_seed(typed, order, flags.input.seed);
        let mut opened = ArgumentReader::open(read.plan, slots.now()?.unwrap_or(usize::MAX))?;
        let options = input::options(&flags, manner, &opened.names, &read.words)?;
        let lines =
            flags.script || (manner == CompatMode::Parallel && read.words.is_empty() && pipe.is_none());
        let template = match lines {
            true => Template::script(options.shell.as_deref()),
            false => Template::parse(&read.words, &options)?,
        };
        let control = Control::new(&flags, &options)?;
        let beside = OutputFiles::new(&flags, &options, manner, read.width, &opened.names)?;
        let lengths = template.lengths();
        let cost = Box::new(move |argument: &OsStr| lengths.cost(argument));
        let line = || line(&template, control.folder.as_ref());
        opened.costs(lengths.once, cost, template.bytes_max(), || template.arguments_max(), line);
        let gathers = opened.gathers();
        let flags_tty = flags.control.tty;
        let RunFlags { display, output, record, leak, grace, backend, no_guard, input, .. } = flags;
        let plan = Self {
            template,
            slots,
            order,
            total: input.total_jobs,
            batches_arguments: gathers,
            pipe,
            control,
            environment: Vec::new(),
            descriptors: Descriptors::default(),
            parallel_env: flags.parallel_env,
            pid: std::process::id(),
            shell: options.shell.clone(),
            leak_after: (leak == Leak::Close).then_some(Duration::from_millis(100)),
            grace: Duration::from_secs(grace),
            // An empty variable is one that is not set.
            backend: backend.filter(|name| !name.is_empty()).map(known_backend).transpose()?,
            guardians: !no_guard,
            progress: ProgressOptions { bar: display.bar, eta: display.eta, jobs: display.progress },
            colours: colours(display.color),
            colour_jobs: display.color == Some(Colour::Jobs) && !beside.is_shown(),
            colour_lines: output.line_buffer || display.color_lines,
            colour_failed: display.color_failed && !output.line_buffer && !beside.is_shown(),
            quiet: display.quiet,
            verbose: display.verbose,
            print: display.print,
            dry_run: record.dry_run,
            view: if flags_tty { OutputView::Straight } else { view(&output, &beside) },
            tag: tag(&output, &beside, &options),
            files: beside,
            pty: output.pty,
            spool: output.spool,
            buffer: output.buffer,
            tmpdir: output.tmpdir.map(std::path::absolute).transpose()?,
            record: RecordConfig {
                words: read.words,
                trailing: read.behind,
                files: read.files,
                stdin: read.stdin,
                typed,
                ..RecordConfig::new(record, mode)?
            },
        };
        Ok((plan, opened))
    }
}

/// What the system takes of this command's line, if programs get one.
fn line(template: &Template, folder: Option<&Template>) -> Option<LineLimit> {
    // Where each job has its own, the line has the bounds of a program.
    let mut command =
        Command::new(template.program().unwrap_or_else(|| minder_os::system_paths::system_shell().into()));
    let folder = folder.filter(|folder| !folder.has_placeholders());
    if let Some(Ok(words)) = folder.map(|folder| folder.argv(&Job::default()))
        && let Some(folder) = words.first().filter(|folder| !folder.is_empty())
    {
        command.current_dir(folder);
    }
    let line = minder::os::CommandLineLimit::of(&command)?;
    let template = template.clone();
    let units_max = line.max_units();
    let takes = move |columns: &[OsString]| {
        let number = u64::from(LONG_NUMBER);
        let (slot, total, slots) = (LONG_NUMBER, Some(number), Some(LONG_NUMBER));
        let job = Job { columns, number, slot, total, slots };
        // What is wrong with it otherwise is told when the job is to start.
        template.invocation(&job).map_or(true, |invocation| line.fits(&spawn_command(&invocation)))
    };
    Some(LineLimit { units_max, takes: Box::new(takes) })
}

/// A number of a job that is as long as any.
const LONG_NUMBER: u32 = 999_999_999;

/// What is read in place of standard input when a run is taken up by its id: `None` if it is given
/// again.
fn stdin_of(manifest: &Manifest, id: &str) -> Result<Option<PathBuf>> {
    let stdin = match &manifest.input {
        InputSource::Arguments { files, stdin, .. } => {
            files.iter().try_for_each(|marks| marks.check())?;
            match stdin {
                Some(stdin) => stdin,
                None => return Ok(None),
            }
        }
        stdin => stdin,
    };
    match stdin {
        InputSource::File(marks) => {
            marks.check()?;
            Ok(Some(PathBuf::from(marks.path.to_os())))
        }
        InputSource::Lost { why } if std::io::stdin().is_terminal() => {
            bail!("{why}: give it again, … | minder run --resume {id}")
        }
        _ => Ok(None),
    }
}

impl RunConfig {
    /// Whether a job that runs may be ended to run again later.
    pub(crate) fn may_put_back(&self) -> bool {
        self.control.conditions.memfree.is_some() || self.control.conditions.limit.is_some()
    }

    /// Whether a program that is not found, or a folder that cannot be entered, is the same for
    /// every job.
    pub(crate) fn is_same_for_all(&self, is_folder: bool) -> bool {
        let folder_varies = self.control.folder.as_ref().is_some_and(Template::has_placeholders);
        if is_folder {
            return !folder_varies;
        }
        // `./a` in another folder is another program.
        let is_relative = |program: OsString| {
            let path = Path::new(&program);
            path.is_relative() && path.components().count() > 1
        };
        self.template.has_fixed_program()
            && !(folder_varies && self.template.program().is_some_and(is_relative))
    }

    /// Whether a job may be seen as it writes.
    pub(crate) fn may_be_live(&self) -> bool {
        !self.spool && self.files.table().is_none()
    }

    /// How a job is ended.
    pub(crate) fn kill(&self) -> Termination {
        self.control.kill.unwrap_or(Termination::graceful(self.grace))
    }
}

fn colours(flag: Option<Colour>) -> When {
    match flag {
        Some(Colour::Always) => When::Always,
        Some(Colour::Never) => When::Never,
        _ => When::Auto,
    }
}

fn view(output: &OutputFlags, beside: &OutputFiles) -> OutputView {
    match output {
        OutputFlags { keep_order: true, .. } => OutputView::Ordered,
        // A row of a table is whole.
        OutputFlags { line_buffer: true, .. } if beside.table().is_none() => OutputView::Lines,
        OutputFlags { ungroup: true, .. } => OutputView::Straight,
        _ => OutputView::Grouped,
    }
}

/// What each line begins with. Lines of a table are no lines of a job.
fn tag(output: &OutputFlags, beside: &OutputFiles, options: &Options) -> Option<Template> {
    // An empty text is none, without the tab.
    let text = output.tagstring.clone().filter(|text| !text.is_empty());
    let text = text.or_else(|| output.tag.then(|| "{}".into()));
    text.filter(|_| beside.table().is_none()).map(|text| Template::text(&text, options))
}

fn mode(flags: &RunFlags) -> Option<ResumeMode> {
    let record = &flags.record;
    match (record.resume, record.resume_failed, record.retry_failed) {
        (true, ..) => Some(ResumeMode::Rest),
        (_, true, _) => Some(ResumeMode::RestAndFailed),
        (.., true) => Some(ResumeMode::Failed),
        _ => None,
    }
}

/// The flags among the arguments: what stands between `run` and the command, without those about
/// one attempt.
fn typed_flags(args: &[OsString], words: usize) -> Vec<OsString> {
    let end = args.len().saturating_sub(words);
    let flags = args.get(2..end).unwrap_or_default();
    let flags = flags.strip_suffix(&[OsString::from("--")]).unwrap_or(flags);
    let lasting = |flag: &&OsString| !OF_ONE_ATTEMPT.iter().any(|other| *flag == OsStr::new(other));
    flags.iter().filter(lasting).cloned().collect()
}

/// The flags of the record, with what a random order is drawn from: a run that is taken up again
/// has the same.
fn with_seed(mut typed: Vec<OsString>, order: OrderConfig, given: Option<u64>) -> Vec<OsString> {
    if let (OrderConfig::Random(seed), None) = (order, given) {
        typed.push(format!("--seed={seed}").into());
    }
    typed
}

/// Something that no other run has, from which a random order is drawn.
fn new_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id()) << 32
}

fn known_backend(name: String) -> Result<&'static str> {
    match minder::backends().find(|known| *known == name) {
        Some(known) => Ok(known),
        None => {
            let all: Vec<_> = minder::backends().collect();
            bail!("there is no wait mechanism `{name}` on this system: it has {}", all.join(", "))
        }
    }
}
