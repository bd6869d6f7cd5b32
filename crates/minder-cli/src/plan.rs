//! The plan of a run: flags joined with what this machine is, and with what an earlier attempt left. Nothing is left to
//! guess after this.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::flags::{Flags, Leak, OutputFlags, RunFlags, Verb};
use crate::journal::folder;
use crate::journal::manifest::{Manifest, Source};
use crate::journal::row::Text;
use crate::template::Template;

/// The word between command and arguments.
const SEPARATOR: &str = ":::";

/// Words that other runners know between command and arguments. Taken for an argument they would do harm.
const OTHERS: [&str; 3] = ["::::", ":::+", "::::+"];

/// In the manifest of a run that went on by a joblog: what had ended before is known to the joblog only.
pub(crate) const BY_JOBLOG: &str = "by_joblog";

/// Flags that are about one attempt only.
const OF_ONE_ATTEMPT: [&str; 4] = ["--resume", "--resume-failed", "--retry-failed", "--dry-run"];

/// Everything that `minder run` has to know.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) template: Template,
    pub(crate) input: Origin,
    /// How many jobs at once; `None` for as many as there are descriptors for.
    pub(crate) degree: Option<usize>,
    pub(crate) leak_after: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) backend: Option<&'static str>,
    pub(crate) guardians: bool,
    pub(crate) bar: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) dry_run: bool,
    pub(crate) view: View,
    /// What each line begins with.
    pub(crate) tag: Option<Template>,
    pub(crate) results: Option<PathBuf>,
    pub(crate) pty: bool,
    pub(crate) spool: bool,
    /// The most bytes of output in memory.
    pub(crate) buffer: usize,
    pub(crate) tmpdir: Option<PathBuf>,
    pub(crate) record: RecordPlan,
}

/// Where the arguments come from.
#[derive(Debug)]
pub(crate) enum Origin {
    Words(Vec<OsString>),
    /// The lines of standard input.
    Stdin,
    /// The lines of a file.
    File(PathBuf),
}

/// How output is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
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
pub(crate) enum Mode {
    /// What had not ended.
    Rest,
    /// What had not ended, and what had failed.
    RestAndFailed,
    /// What had failed.
    Failed,
}

/// What is recorded, and what an earlier record is for.
#[derive(Debug)]
pub(crate) struct RecordPlan {
    /// Whether there is to be one.
    pub(crate) keep: bool,
    pub(crate) sync: bool,
    pub(crate) redact: bool,
    pub(crate) joblog: Option<PathBuf>,
    /// What to run, if not all.
    pub(crate) mode: Option<Mode>,
    /// The folder of the run that is taken up again.
    pub(crate) run: Option<PathBuf>,
    /// Whether the joblog says what is done.
    pub(crate) by_joblog: bool,
    /// For the manifest of a new run: where it was started, its command and its flags as they were typed.
    pub(crate) cwd: PathBuf,
    pub(crate) words: Vec<OsString>,
    pub(crate) typed: Vec<OsString>,
}

impl Plan {
    /// Makes the plan. `args` are the arguments of minder itself, of which the flags were read.
    pub(crate) fn new(flags: RunFlags, args: &[OsString]) -> Result<Self> {
        let typed = typed_flags(args, flags.words.len());
        match mode(&flags) {
            Some(mode) if flags.record.joblog.is_none() => Self::take_up(&flags, &typed, mode),
            None => Self::build(flags, typed, None),
            mode => {
                let mut plan = Self::build(flags, typed, mode)?;
                plan.record.run = plan.record.keep.then(|| plan.run_of_joblog()).flatten();
                Ok(plan)
            }
        }
    }

    /// The newest run that wrote this joblog with this command: what it did not show is still to be shown.
    fn run_of_joblog(&self) -> Option<PathBuf> {
        let joblog = self.record.joblog.as_ref().filter(|path| path.is_file())?;
        let joblog = Text::from(joblog.as_os_str());
        let joblog = serde_json::to_value(joblog).ok()?;
        let words: Vec<Text> = self.record.words.iter().map(|word| Text::from(word.as_os_str())).collect();
        let its =
            |manifest: &Manifest| manifest.flags.get("joblog") == Some(&joblog) && manifest.words == words;
        let mut runs = folder::list(&folder::state_root().ok()?).ok()?.into_iter();
        runs.find(|run| run.manifest.as_ref().is_ok_and(its)).map(|run| run.folder)
    }

    /// Plans a run that is known by its id alone: its flags come from its record, and those that were typed now after them.
    fn take_up(flags: &RunFlags, typed: &[OsString], mode: Mode) -> Result<Self> {
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
        let root = folder::state_root()?;
        let run = match id {
            "last" => folder::list(&root)?.into_iter().next().context("there is no run yet")?.folder,
            id => folder::find(&root, id)?,
        };
        let manifest = Manifest::read(&run)?;
        if manifest.flags.contains_key(BY_JOBLOG) {
            bail!(
                "run {id} went on by a joblog: take it up by that, with --joblog FILE, its command and arguments"
            );
        }
        let saved: Vec<Text> = match manifest.flags.get("typed") {
            Some(value) => {
                serde_json::from_value(value.clone()).context("the manifest's flags are damaged")?
            }
            None => Vec::new(),
        };
        let words: Vec<OsString> = manifest.words.iter().map(Text::to_os).collect();
        let mut line: Vec<OsString> = vec!["minder".into(), "run".into()];
        line.extend(saved.iter().map(Text::to_os));
        line.extend(typed.iter().cloned());
        line.push("--".into());
        line.extend(words.iter().cloned());
        let all = Flags::try_parse_from(&line).map_err(|error| {
            anyhow::anyhow!("the flags of run {id} do not go with these: {}", first_line(&error))
        })?;
        let Verb::Run(all) = all.verb else { bail!("the manifest of run {id} is damaged") };
        let cwd = PathBuf::from(manifest.cwd.to_os());
        std::env::set_current_dir(&cwd)
            .with_context(|| format!("cannot enter the folder of run {id}, `{}`", cwd.display()))?;
        let input = match &manifest.input {
            Source::Arguments { .. } => Origin::Words(manifest.arguments(&run)?),
            Source::File(marks) => {
                marks.check()?;
                Origin::File(PathBuf::from(marks.path.to_os()))
            }
            Source::Lost { why } if std::io::stdin().is_terminal() => {
                bail!("{why}: give it again, … | minder run --resume {id}")
            }
            Source::Lost { .. } => Origin::Stdin,
        };
        let mut plan = Self::build(*all, saved.iter().map(Text::to_os).collect(), Some(mode))?;
        plan.input = input;
        (plan.record.run, plan.record.by_joblog) = (Some(run), false);
        plan.dry_run = flags.record.dry_run;
        Ok(plan)
    }

    fn build(flags: RunFlags, typed: Vec<OsString>, mode: Option<Mode>) -> Result<Self> {
        let RunFlags { jobs, bar, quiet, output, record, shell, leak, grace, backend, no_guard, mut words } =
            flags;
        let arguments = words.iter().position(|word| word == SEPARATOR).map(|place| {
            let arguments = words.split_off(place + 1);
            words.pop();
            arguments
        });
        check_words(&words, arguments.as_deref().unwrap_or_default())?;
        let tag = output.tagstring.clone().or_else(|| output.tag.then(|| "{}".into()));
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(Self {
            template: Template::parse(&words, shell.as_deref())?,
            input: arguments.map_or(Origin::Stdin, Origin::Words),
            degree: match jobs {
                Some(0) => None,
                Some(jobs) => Some(jobs),
                None => Some(processors()),
            },
            leak_after: (leak == Leak::Close).then_some(Duration::from_millis(100)),
            grace: Duration::from_secs(grace),
            backend: backend.map(known_backend).transpose()?,
            guardians: !no_guard,
            bar,
            quiet,
            verbose: record.verbose,
            dry_run: record.dry_run,
            view: view(&output),
            tag: tag.as_ref().map(Template::text),
            results: output.results.map(std::path::absolute).transpose()?,
            pty: output.pty,
            spool: output.spool,
            buffer: output.buffer,
            tmpdir: output.tmpdir.map(std::path::absolute).transpose()?,
            record: RecordPlan {
                keep: !record.no_record,
                sync: record.sync,
                redact: record.redact_args,
                joblog: record.joblog.map(std::path::absolute).transpose()?,
                mode,
                run: None,
                by_joblog: mode.is_some(),
                cwd: std::env::current_dir().context("this folder is gone")?,
                words,
                typed,
            },
        })
    }
}

fn view(output: &OutputFlags) -> View {
    match output {
        OutputFlags { keep_order: true, .. } => View::Ordered,
        OutputFlags { line_buffer: true, .. } => View::Lines,
        OutputFlags { ungroup: true, .. } => View::Straight,
        _ => View::Grouped,
    }
}

fn mode(flags: &RunFlags) -> Option<Mode> {
    let record = &flags.record;
    match (record.resume, record.resume_failed, record.retry_failed) {
        (true, ..) => Some(Mode::Rest),
        (_, true, _) => Some(Mode::RestAndFailed),
        (.., true) => Some(Mode::Failed),
        _ => None,
    }
}

/// The flags among the arguments: what stands between `run` and the command, without those about one attempt.
fn typed_flags(args: &[OsString], words: usize) -> Vec<OsString> {
    let end = args.len().saturating_sub(words);
    let flags = args.get(2..end).unwrap_or_default();
    let flags = flags.strip_suffix(&[OsString::from("--")]).unwrap_or(flags);
    let lasting = |flag: &&OsString| !OF_ONE_ATTEMPT.iter().any(|other| *flag == OsStr::new(other));
    flags.iter().filter(lasting).cloned().collect()
}

fn check_words(words: &[OsString], arguments: &[OsString]) -> Result<()> {
    if arguments.iter().any(|word| word == SEPARATOR) {
        bail!("`:::` stands twice: arguments come from one list so far");
    }
    let mut all = words.iter().chain(arguments).map(OsString::as_os_str);
    if let Some(other) = all.find(|word| OTHERS.iter().any(|other| word == other)) {
        bail!(
            "`{}` is not known yet: give arguments behind one `:::`, or lines on standard input",
            other.display()
        );
    }
    if words.is_empty() {
        bail!("there is no command before `:::`");
    }
    Ok(())
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
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
