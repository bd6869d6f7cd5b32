//! Opens the input of a run, the files that its flags name, and the record of a run that is
//! resumed.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use minder::Command;
use minder_cluster::protocol::{self, Start};
use minder_cluster::spool::SpoolReader;
use minder_record::event::OsBytes;
use minder_record::lookup;
use minder_record::manifest::{FileFingerprint, InputSource, Manifest};
use minder_record::run_state::{ComparedArgs, RunState};
use minder_record::store;
use minder_runner::config::{
    AgentConfig, BY_JOBLOG, Control, PipeInput, ResumeMode, RunConfig, SLOTS, TemplateCopy, absolute_path,
};
use minder_runner::input::{ArgumentReader, InputPlan, LineLimit};
use minder_runner::served;
use minder_runner::{Notice, spawn_command, stdin_source};
use minder_template::{Job, Options, Template, shell_word};

use super::hints;
use super::request::ResumeRequest;
use crate::commands::log::run_id;
use crate::config::{self, CompatMode, Display, Parsed};
use crate::flags::{AgentFlags, AttachFlags, Flags, MachineFlags, RunFlags, UNRECORDED, clap_error_line};
use crate::recorded;
use crate::settings::status_words;
use crate::ui::message;

/// The maximum size of a file of `--template`, which is held in memory.
const TEMPLATE_MAX: u64 = 64 << 20;

/// A run that is ready to start.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) config: RunConfig,
    pub(crate) arguments: ArgumentReader,
    pub(crate) display: Display,
    pub(crate) dry_run: bool,
    /// What a dry run says of the jobs beside their commands: where they run, and with which variables.
    pub(crate) surroundings: Option<String>,
}

impl Plan {
    /// Creates the plan and opens the input, whose first line may name its columns. `args` is the
    /// complete command line of minder.
    pub(crate) fn new(flags: RunFlags, args: &[OsString], compat: CompatMode) -> Result<Self> {
        let typed = typed_flags(args, flags.words.len());
        config::check_single_limit(&flags)?;
        match config::mode(&flags) {
            Some(mode) if flags.record.joblog.is_none() => {
                Self::resume(&ResumeRequest::of_run(&flags, typed, mode)?, compat)
            }
            Some(_) if flags.words.is_empty() => bail!("no command given: with --joblog FILE, repeat it"),
            None => Self::open(flags, typed, None, compat, None),
            mode => {
                refuse_run_as_command(&flags, compat)?;
                let mut plan = Self::open(flags, typed, mode, compat, None)?;
                // Agents read the command and the arguments in the record, and those may differ now.
                if plan.config.record.keep
                    && plan.config.record.agents.is_none()
                    && let Some((run, manifest)) = run_of_joblog(&plan.config)
                {
                    check_ranges(&plan.config, &manifest)?;
                    plan.config.record.first_slots = first_slots(&manifest);
                    plan.config.record.run = Some(run);
                }
                Ok(plan)
            }
        }
    }

    /// Plans the resumption of a run by its id. The flags of its record come first; the flags that
    /// were typed now follow and override them.
    pub(super) fn resume(request: &ResumeRequest, compat: CompatMode) -> Result<Self> {
        let ResumeRequest { typed, mode, .. } = request;
        let run = request.find_run()?;
        let id = run_id(&run);
        let manifest = Manifest::read(&run)?;
        if manifest.flags.contains_key(BY_JOBLOG) {
            bail!("run {id} continues a joblog: resume it by --joblog FILE, with its command and arguments");
        }
        let saved = recorded::typed_flags(&manifest)
            .with_context(|| format!("the manifest of run {id} is damaged"))?;
        let arguments = match &manifest.input {
            InputSource::Arguments { .. } => manifest.arguments(&run)?,
            _ => Vec::new(),
        };
        let parse = |flags: &[&[OsString]]| {
            recorded::parse(&manifest, flags, &arguments).map_err(|error| {
                let why = clap_error_line(&error, &Flags::interface(), &[]);
                anyhow::anyhow!("cannot combine these flags with those of run {id}: {why}")
            })
        };
        // A run that began without agents may have been resumed on some.
        let place: &[OsString] = &["--on=local:1".into()];
        let is_on = |saved: &[OsString]| parse(&[saved]).is_ok_and(|flags| flags.machines.are_given());
        let place = if request.attaches && !is_on(&saved) { place } else { &[] };
        let all = parse(&[&saved, place, &status_words()?, typed])?;
        let now = if typed.is_empty() { None } else { parse(&[typed]).ok() };
        now.as_deref().map_or(Ok(()), config::check_single_limit)?;
        let is_quiet = now.is_some_and(|flags| flags.display.quiet);
        if !typed.is_empty() && all.pipe.is_wanted() {
            config::check_same_blocks(&*parse(&[&saved])?, &all)?;
        }
        // The run keeps its compatibility mode.
        let compat = if all.parallel_env { CompatMode::Parallel } else { compat };
        let cwd = PathBuf::from(manifest.cwd.to_os());
        std::env::set_current_dir(&cwd)
            .with_context(|| format!("cannot change to the directory of run {id}, `{}`", cwd.display()))?;
        let mut plan = match spooled_names(&all, &manifest, &run, request.attaches)? {
            Some(names) => {
                let parsed = Parsed::new(&all, saved, Some(*mode), compat, None)?;
                Self::open_parsed(*all, parsed, Some(names))?
            }
            None => {
                let stdin = stdin_of(&manifest, &run, *mode)?;
                Self::open(*all, saved, Some(*mode), compat, stdin)?
            }
        };
        plan.config.record.coordination.attaches = request.attaches;
        plan.config.record.first_slots = first_slots(&manifest);
        // Old versions cut a named file into ranges with --pipe, too. They recorded no slots.
        if let Some(pipe) = &mut plan.config.pipe
            && plan.config.record.first_slots.is_none()
        {
            pipe.ranges |= plan.config.record.stdin.is_none() && pipe.stream_flag().is_none();
        }
        plan.config.record.run = Some(run);
        plan.config.record.by_joblog = false;
        plan.config.record.skip_lost = request.skip_lost;
        // The run is named even if its first attempt was quiet: the name answers this command.
        plan.config.record.announces = request.announces && !is_quiet;
        plan.dry_run = request.dry_run;
        Ok(plan)
    }

    /// Plans to take the results of agents that an earlier process has started.
    pub(super) fn attach(flags: &AttachFlags) -> Result<Self> {
        Self::resume(&ResumeRequest::of_attach(flags)?, CompatMode::Own)
    }

    /// Plans the work of an agent: the jobs that it claims, with the flags of the record. Nothing is shown.
    pub(super) fn agent(flags: &AgentFlags) -> Result<Self> {
        let (run, manifest, names) = shared_run(flags)?;
        let arguments = match &manifest.input {
            InputSource::Arguments { .. } => manifest.arguments(&run)?,
            _ => Vec::new(),
        };
        let cwd = PathBuf::from(manifest.cwd.to_os());
        std::env::set_current_dir(&cwd)
            .with_context(|| format!("cannot change to the directory of the run, `{}`", cwd.display()))?;
        let agent = AgentConfig {
            run,
            attempt: flags.attempt,
            lost_after: Duration::from_secs(flags.lost_after),
            login: None,
            removed: Vec::new(),
        };
        Self::of_agent(&manifest, &arguments, names, flags.jobs.as_deref(), agent)
    }

    /// Plans the work of an agent that gets its jobs from a link.
    pub(super) fn served(start: &Start, mark: &str) -> Result<Self> {
        let run = served::create_dir(&start.run, mark)?;
        Self::served_in(start, run.clone()).inspect_err(|_| served::remove_dir(&run))
    }

    fn served_in(start: &Start, run: PathBuf) -> Result<Self> {
        let manifest: Manifest =
            serde_json::from_value(start.manifest.clone()).context("the manifest is damaged")?;
        served::enter_dir(&start.dir, &run)?;
        let names = start.names.iter().map(OsBytes::to_os).collect();
        let lost_after = protocol::LINK_SILENCE_MAX;
        let removed = start.removed.iter().map(|path| path.to_os().into()).collect();
        let agent = AgentConfig {
            run,
            attempt: start.attempt,
            lost_after,
            login: Some(start.login.clone()),
            removed,
        };
        let jobs = start.jobs.as_ref().map(OsString::from);
        let mut plan = Self::of_agent(&manifest, &[], names, jobs.as_deref(), agent)?;
        let env = start.env.iter().map(|(name, value)| (name.to_os(), value.to_os()));
        plan.config.control.env.splice(0..0, env);
        // The link waits for the disk, if that is wanted.
        plan.config.record.sync = false;
        Ok(plan)
    }

    fn of_agent(
        manifest: &Manifest,
        arguments: &[OsString],
        names: Vec<OsString>,
        jobs: Option<&OsStr>,
        agent: AgentConfig,
    ) -> Result<Self> {
        let saved = recorded::typed_flags(manifest).context("the manifest is damaged")?;
        let mut own: Vec<OsString> = Vec::new();
        if let Some(jobs) = jobs {
            own.extend(["--jobs".into(), jobs.to_owned()]);
        }
        let mut all = recorded::parse(manifest, &[&saved, &own], arguments)
            .map_err(|error| anyhow::anyhow!(clap_error_line(&error, &Flags::interface(), &[])))?;
        // The coordinator shows everything.
        all.display.quiet = true;
        all.display.verbose = false;
        // Those are of the coordinator, and so is the file that --hosts names.
        all.machines = MachineFlags::default();
        if agent.login.is_some() {
            // The agent is in that directory, and the link has read these files.
            all.control.wd = None;
            all.control.env_file.clear();
        }
        let compat = if all.parallel_env { CompatMode::Parallel } else { CompatMode::Own };
        // As in a resumed run: the flags were checked when it began.
        let parsed = Parsed::new(&all, saved, Some(ResumeMode::Rest), compat, None)?;
        let mut plan = Self::open_parsed(*all, parsed, Some(names))?;
        let config = &mut plan.config;
        config.record.agent = Some(agent);
        config.record.agents = None;
        config.record.mode = None;
        config.record.by_joblog = false;
        config.only_save();
        Ok(plan)
    }

    /// Opens the input and builds the configuration. `stdin` is the file that is read in place of
    /// standard input.
    fn open(
        flags: RunFlags,
        typed: Vec<OsString>,
        mode: Option<ResumeMode>,
        compat: CompatMode,
        stdin: Option<PathBuf>,
    ) -> Result<Self> {
        let parsed = Parsed::new(&flags, typed, mode, compat, stdin)?;
        Self::open_parsed(flags, parsed, None)
    }

    /// Does the same with flags that are parsed. The arguments of an agent come from the spool; `spooled` are
    /// the names of their columns.
    fn open_parsed(flags: RunFlags, mut parsed: Parsed, spooled: Option<Vec<OsString>>) -> Result<Self> {
        let mut input = std::mem::take(&mut parsed.command_line.plan);
        if spooled.is_some() {
            // Nothing is read, and the number of jobs is not known.
            input = InputPlan { skip_blank: true, ..InputPlan::default() };
            parsed.command_line.stdin = false;
        }
        // Read before the input is: its first line may name its columns.
        let stdin = parsed.command_line.stdin.then(stdin_source);
        let reads_terminal = input.reads_terminal();
        if reads_terminal {
            message(&Notice::ReadingTerminal.to_string());
        }
        let mut arguments = ArgumentReader::open(input, parsed.slots.now()?.unwrap_or(usize::MAX))?;
        if let Some(names) = spooled {
            arguments.names = names;
        }
        let options = parsed.options(&flags, &arguments.names)?;
        let copies = flags
            .placeholders
            .template
            .iter()
            .map(|flag| read_template(flag, &options))
            .collect::<Result<_>>()?;
        let dry_run = flags.record.dry_run;
        let surroundings = surroundings(&flags);
        let cwd = working_dir(flags.control.wd.is_some())?;
        let hint = parsed.hint(&flags, &options, &arguments.names);
        let wants_hints = parsed.wants_hints(&flags);
        let reads_null = parsed.command_line.stdin && hints::stdin_is_null();
        let function =
            if wants_hints { hints::exported_function(&parsed.command_line.words, &options) } else { None };
        let built = config::build(flags, parsed, &options, &arguments.names, copies, cwd);
        let (mut config, mut display) = match (built, &hint) {
            (Err(error), Some(hint)) => bail!("{error:#} (`{}`: {})", hint.text, hint.advice),
            (built, _) => built?,
        };
        for line in hint.map(|hint| hint.line()).into_iter().chain(function) {
            message(&line);
        }
        if wants_hints && reads_null {
            message(hints::NO_INPUT);
        }
        // A status line would be drawn over what is typed.
        display.progress.status &= !reads_terminal;
        limit_arguments(&mut arguments, &config);
        config.batches_arguments = arguments.gathers();
        config.record.stdin = stdin;
        Ok(Self { config, arguments, display, dry_run, surroundings })
    }
}

/// Returns what an agent has to know of the run that it works on: its directory, its manifest, and the names
/// of its columns.
pub(super) fn shared_run(flags: &AgentFlags) -> Result<(PathBuf, Manifest, Vec<OsString>)> {
    let run = std::path::absolute(flags.run.as_deref().context("no directory")?)?;
    let manifest = Manifest::read(&run)?;
    let names = SpoolReader::open(&run)?.names()?.iter().map(OsBytes::to_os).collect();
    Ok((run, manifest, names))
}

/// Returns the flags that change the directory and the environment of jobs, for a dry run. Its commands do
/// not show them. The contents of files stay secret.
fn surroundings(flags: &RunFlags) -> Option<String> {
    let control = &flags.control;
    if flags.parallel_env || flags.display.quiet {
        return None;
    }
    let variables = control.env.iter().filter(|variable| variable.as_encoded_bytes().contains(&b'='));
    let wd = control.wd.iter().map(|dir| ("--wd", dir.as_os_str()));
    let files = control.env_file.iter().map(|file| ("--env-file", file.as_os_str()));
    let machines = &flags.machines;
    let hosts = machines.on.iter().map(|place| ("--on", OsStr::new(place)));
    let hosts = hosts.chain(machines.hosts.iter().map(|file| ("--hosts", file.as_os_str())));
    let all = hosts.chain(wd).chain(files).chain(variables.map(|variable| ("--env", variable.as_os_str())));
    let words: Vec<String> = all.map(|(flag, value)| format!("{flag} {}", shell_word(value))).collect();
    (!words.is_empty()).then(|| format!("the jobs run with {}", words.join(" ")))
}

/// Returns the working directory, which the record names. A deleted one will do if no job runs in it.
fn working_dir(jobs_have_another: bool) -> Result<PathBuf> {
    let error = match std::env::current_dir() {
        Ok(dir) => return Ok(dir),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context("cannot find the working directory");
        }
        Err(error) => error,
    };
    // Linux appends a word to the name.
    let link = std::fs::read_link("/proc/self/cwd").ok();
    let name = link.and_then(|link| link.to_str()?.strip_suffix(" (deleted)").map(PathBuf::from));
    let name = name.or_else(|| std::env::var_os("PWD").map(PathBuf::from));
    match name {
        Some(name) if jobs_have_another => Ok(name),
        Some(name) => bail!(
            "cannot run jobs in the working directory `{}`: it was deleted (change to another directory, or \
             use --wd DIR)",
            name.display()
        ),
        None => Err(error).context("cannot find the working directory"),
    }
}

/// Sets the limits of a command line for inputs that put as many arguments into one as fit.
fn limit_arguments(arguments: &mut ArgumentReader, config: &RunConfig) {
    let template = &config.template;
    let lengths = template.lengths();
    let cost = Box::new(move |argument: &OsStr| lengths.cost(argument));
    let line = |bytes_max: usize| line_limit(template, &config.control, bytes_max);
    arguments.set_costs(lengths.once, cost, template.bytes_max(), || template.arguments_max(), line);
}

/// The most of the operating system's limit that one byte of a command may take. On Unix it may be
/// a word with a pointer, and a shell line refers to each word once more; on Windows each may need
/// quotes.
const UNITS_PER_BYTE: usize = 12;

/// Returns the limit of the operating system for the command line of this template; `None` if commands of
/// at most `bytes_max` bytes do not come near it.
fn line_limit(template: &Template, control: &Control, bytes_max: usize) -> Option<LineLimit> {
    // If the program depends on the job, the limit is that of an executable such as the shell.
    let mut command =
        Command::new(template.program().unwrap_or_else(|| minder_os::system_paths::system_shell().into()));
    for (name, value) in &control.env {
        command.env(name, value);
    }
    let directory = control.directory.as_ref().filter(|directory| !directory.has_placeholders());
    if let Some(Ok(argv)) = directory.map(|directory| directory.argv(&Job::default()))
        && let Some(directory) = argv.first().filter(|directory| !directory.is_empty())
    {
        command.current_dir(directory);
    }
    let limit = minder::os::CommandLineLimit::of(&command);
    let units_max = limit.max_units();
    if units_max >= bytes_max.saturating_mul(UNITS_PER_BYTE) {
        return None;
    }
    let template = template.clone();
    let variables = control.env_of_job.clone();
    let takes = move |columns: &[OsString]| {
        let job = Job {
            columns,
            number: u64::from(LONG_NUMBER),
            slot: LONG_NUMBER,
            total: Some(u64::from(LONG_NUMBER)),
            slots: Some(LONG_NUMBER),
        };
        // Other errors of the job are reported when it starts.
        template.invocation(&job).map_or(true, |invocation| {
            let mut command = spawn_command(invocation);
            for (name, text) in &variables {
                let value = text.argv(&job).ok().and_then(|argv| argv.into_iter().next());
                command.env(name, value.unwrap_or_default());
            }
            limit.fits(&command)
        })
    };
    Some(LineLimit { units_max, takes: Box::new(takes) })
}

/// A job number with as many digits as any real one.
const LONG_NUMBER: u32 = 999_999_999;

/// Returns the names of the columns of a run whose jobs run on agents, if its arguments came from standard
/// input: they are in its spool then.
fn spooled_names(
    flags: &RunFlags,
    manifest: &Manifest,
    run: &Path,
    attaches: bool,
) -> Result<Option<Vec<OsString>>> {
    let is_read = !matches!(manifest.input, InputSource::Arguments { stdin: None, .. });
    if !attaches && (!flags.machines.are_given() || !is_read) {
        return Ok(None);
    }
    match SpoolReader::open(run).and_then(|spool| spool.names()) {
        Ok(names) => Ok(Some(names.iter().map(OsBytes::to_os).collect())),
        // It began without agents.
        Err(_) if !attaches => Ok(None),
        Err(error) => Err(error).with_context(|| format!("no agent has worked on run {}", run_id(run))),
    }
}

/// Returns the file that is read in place of standard input when a run is resumed by its id; `None`
/// if the user gives the input again. The input of a complete run is not needed.
fn stdin_of(manifest: &Manifest, run: &Path, mode: ResumeMode) -> Result<Option<PathBuf>> {
    let stdin = match &manifest.input {
        InputSource::Arguments { files, stdin, .. } => {
            files.iter().try_for_each(|fingerprint| fingerprint.check())?;
            match stdin {
                Some(stdin) => stdin,
                None => return Ok(None),
            }
        }
        stdin => stdin,
    };
    match stdin {
        InputSource::File(fingerprint) => {
            fingerprint.check()?;
            Ok(Some(PathBuf::from(fingerprint.path.to_os())))
        }
        InputSource::Lost { why } if std::io::stdin().is_terminal() => {
            let (state, _) = RunState::of_run(run, ComparedArgs::None)?;
            if state.is_complete() && (mode == ResumeMode::Rest || state.failed.is_empty()) {
                return Ok(Some(PathBuf::from(minder_os::system_paths::NULL_DEVICE)));
            }
            let verb = match mode {
                ResumeMode::Rest => "resume",
                ResumeMode::RestAndFailed => "resume --failed",
                ResumeMode::Failed => "retry",
            };
            bail!("{why}: give the input again, … | minder {verb} {}", run_id(run))
        }
        _ => Ok(None),
    }
}

/// Returns the arguments between `run` and the command, without the flags that are not recorded.
/// `after_flags` is the number of arguments from the command on.
fn typed_flags(args: &[OsString], after_flags: usize) -> Vec<OsString> {
    let end = args.len().saturating_sub(after_flags);
    let flags = args.get(2..end).unwrap_or_default();
    let flags = flags.strip_suffix(&[OsString::from("--")]).unwrap_or(flags);
    let is_recorded = |word: &&OsString| {
        let Some(flag) = word.as_encoded_bytes().strip_prefix(b"--") else { return true };
        let name = flag.split(|byte| *byte == b'=').next();
        !UNRECORDED.iter().any(|other| name == Some(other.as_bytes()))
    };
    flags.iter().filter(is_recorded).cloned().collect()
}

/// Refuses a command that is the id of a run, which continues that run only without a joblog.
fn refuse_run_as_command(flags: &RunFlags, compat: CompatMode) -> Result<()> {
    let [word] = flags.words.as_slice() else { return Ok(()) };
    let is_run =
        |id: &str| store::is_id(id) && store::state_root().and_then(|root| lookup::find(&root, id)).is_ok();
    if compat == CompatMode::Own && word.to_str().is_some_and(|id| id == "last" || is_run(id)) {
        bail!(
            "`{}` is a run, not a command: leave out --joblog to resume that run, or repeat the command and \
             arguments of the joblog",
            word.display()
        );
    }
    Ok(())
}

/// Returns the newest run that wrote this joblog with this command. Its record may contain output
/// that was not shown yet.
fn run_of_joblog(config: &RunConfig) -> Option<(PathBuf, Manifest)> {
    let joblog = config.record.joblog.as_ref().filter(|path| path.is_file())?;
    let joblog = OsBytes::from(joblog.as_os_str());
    let joblog = serde_json::to_value(joblog).ok()?;
    let command: Vec<OsBytes> =
        config.record.command.iter().map(|argument| OsBytes::from(argument.as_os_str())).collect();
    let is_same =
        |manifest: &Manifest| manifest.flags.get("joblog") == Some(&joblog) && manifest.words == command;
    let runs = store::list(&store::state_root().ok()?).ok()?.into_iter();
    let mut manifests = runs.filter_map(|run| Some((run.dir, run.manifest.ok()?)));
    manifests.find(|(_, manifest)| is_same(manifest))
}

/// Checks that the files of --pipe-part are those of the recorded run. Blocks that are read have checksums.
fn check_ranges(config: &RunConfig, manifest: &Manifest) -> Result<()> {
    let Some(pipe) = config.pipe.as_ref().filter(|pipe| pipe.ranges) else { return Ok(()) };
    let InputSource::Arguments { files, .. } = &manifest.input else { return Ok(()) };
    let is_cut = |path: &OsBytes| {
        pipe.inputs.iter().any(|input| match input {
            PipeInput::File(file) => {
                std::path::absolute(file).is_ok_and(|file| *path == file.as_os_str().into())
            }
            PipeInput::Stdin => false,
        })
    };
    let mut cut = files.iter().filter(|fingerprint| is_cut(&fingerprint.path));
    Ok(cut.try_for_each(FileFingerprint::check)?)
}

/// Returns the number of slots of the first attempt, if the manifest has it.
fn first_slots(manifest: &Manifest) -> Option<u64> {
    manifest.flags.get(SLOTS)?.as_u64()
}

/// Reads the file of a `--template FILE=NAME`.
fn read_template(flag: &OsStr, options: &Options) -> Result<TemplateCopy> {
    let (file, name) = config::template_flag(flag)?;
    let cannot = || format!("cannot read the template `{}`", file.display());
    let opened = std::fs::File::open(&file).with_context(cannot)?;
    let permissions = opened.metadata().with_context(cannot)?.permissions();
    let mut content = Vec::new();
    opened.take(TEMPLATE_MAX + 1).read_to_end(&mut content).with_context(cannot)?;
    if content.len() as u64 > TEMPLATE_MAX {
        bail!("the template `{}` is larger than {} MiB", file.display(), TEMPLATE_MAX >> 20);
    }
    let options = Options { append: false, ..options.clone() };
    Ok(TemplateCopy {
        content: Template::text(&minder_os::encoding::os_string_from_encoded(content), &options),
        name: Template::text(&name, &options),
        permissions,
        originals: [absolute_path(&file).with_context(cannot)?, file.canonicalize().with_context(cannot)?],
    })
}
