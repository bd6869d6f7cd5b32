//! Flags of `minder resume` and `minder retry`: those of `minder run` that may differ between two
//! attempts.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::clap_error::{clap_error_line, invalid_argument};
use super::properties::Flag;
use super::run::RunFlags;
use super::typed_name::flag_named;

// See `crate::commands::run`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder resume [FLAGS] [RUN]",
    after_help = "Try: minder resume, minder resume last -j8, minder resume --failed\n\
                  All flags: minder resume --help",
    after_long_help = RESUME_DETAILS
)]
pub(crate) struct ResumeFlags {
    /// Also run failed jobs again.
    #[arg(long)]
    pub(crate) failed: bool,

    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
}

// See `crate::commands::run`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder retry [FLAGS] [RUN]",
    after_help = "Try: minder retry, minder retry 61c0 -j1, minder retry --retries 3\n\
                  All flags: minder retry --help",
    after_long_help = RETRY_DETAILS
)]
pub(crate) struct RetryFlags {
    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
}

// A run, and flags for one more attempt at it.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct AttemptFlags {
    /// The run: its id, the first digits of the id, or `last`. Without it, the last run of this
    /// directory.
    pub(crate) run: Option<OsString>,

    /// Print the commands instead of running them.
    #[arg(long, help_heading = "Running jobs")]
    pub(crate) dry_run: bool,

    /// Treat jobs whose stored output is lost as done.
    ///
    /// Output that was not shown yet may be lost, for example after a power failure. By default, its
    /// jobs run again.
    #[arg(long, help_heading = "Record and resuming")]
    pub(crate) skip_lost: bool,

    #[command(flatten)]
    pub(crate) typed: TypedFlags,
}

/// The flags of an attempt that were typed, in the form `--jobs=8`.
#[derive(Debug)]
pub(crate) struct TypedFlags(pub(crate) Vec<OsString>);

/// Returns the flags of `minder run`.
fn run_flags() -> Command {
    RunFlags::augment_args(Command::new("run"))
}

fn is_attempt_flag(flag: &&Arg) -> bool {
    Flag::of(flag).is_some_and(|flag| flag.is_of_attempt)
}

impl Args for TypedFlags {
    fn augment_args(command: Command) -> Command {
        let run = run_flags();
        // Flags that exclude or need each other are found when they are combined with those of the record.
        let flags = run.get_arguments().filter(is_attempt_flag);
        let reset = Resettable::<clap::Id>::Reset;
        let flags = flags.map(|flag| flag.clone().conflicts_with(reset.clone()).requires(reset.clone()));
        command.args(flags).args_override_self(true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TypedFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut typed = Vec::new();
        for flag in run_flags().get_arguments().filter(is_attempt_flag) {
            let id = flag.get_id().as_str();
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let short = || flag.get_short().map(|short| format!("-{short}"));
            let name = flag.get_long().map(|long| format!("--{long}")).or_else(short).unwrap_or_default();
            if !flag.get_action().takes_values() {
                typed.push(name.into());
                continue;
            }
            if flag.get_num_args().is_some_and(|count| count.min_values() > 1) {
                for values in matches.get_raw_occurrences(id).into_iter().flatten() {
                    typed.push(name.clone().into());
                    typed.extend(values.map(OsString::from));
                }
                continue;
            }
            for value in matches.get_raw(id).into_iter().flatten() {
                let mut text = OsString::from(format!("{name}="));
                text.push(value);
                typed.push(text);
            }
        }
        Ok(Self(typed))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the message for a command line of `minder resume` or `minder retry` that clap refuses.
pub(crate) fn resume_error_line(error: &clap::Error, minder: &Command, args: &[OsString]) -> String {
    let word = invalid_argument(error);
    if error.kind() != ErrorKind::UnknownArgument {
        return clap_error_line(error, minder, args);
    }
    if !word.starts_with('-') {
        let verb = args.first().map(|verb| verb.display().to_string()).unwrap_or_default();
        return format!(
            "`{word}` is one argument too many: a run is resumed with its own command and input (`minder \
             {verb}` alone takes the last run)"
        );
    }
    if flag_named(&run_flags(), &word).is_some() {
        return format!("`{word}` cannot be changed when a run is resumed: it comes from the record");
    }
    clap_error_line(error, minder, args)
}

const RESUME_DETAILS: &str = "\
Examples:
  minder resume                     the last run of this directory
  minder resume 61c0 -j8 --bar      another one, with other flags
  minder resume --failed            the failed jobs, too
  minder resume --dry-run           print what would run
  seq 1000 | minder resume          its input again, if that was a pipe

A run can be resumed whatever ended it: Ctrl-C, kill -9, a full disk, a power
failure. Its command, arguments, directory and flags come from its record. The
flags above override the recorded ones for this attempt. All other flags of
`minder run` decide what the jobs are and where their results are stored, and
cannot be changed.

Jobs that have finished do not run again, even if they failed: see --failed, and
`minder retry`. Jobs that were running are run again. Output that was not shown
yet is shown. A run of which nothing is left is not changed, and the exit status
is 0. A run that another minder works on is refused.

Not in the record, and so not resumable this way: runs with --no-record, and
runs that continue a joblog (`minder run --resume --joblog FILE COMMAND…`).
Arguments that came through a pipe are not in the record either: give the same
input again.

The exit status is that of `minder run`, for the jobs of this attempt.";

const RETRY_DETAILS: &str = "\
Examples:
  minder retry                      the last run of this directory
  minder retry 61c0 -j1             one job at a time
  minder retry --retries 3          up to three attempts of each
  minder retry --dry-run            print what would run

Exactly the jobs run whose last result in the record is a failure: an exit
status other than 0, a signal, a time-out, short memory, or a program that could
not be started. Jobs that never ran or were interrupted have no result, and do
not run: `minder resume` runs these, `minder resume --failed` both. A job that
succeeds now counts as succeeded, so that the next `minder retry` runs only what
still fails. If no job has failed, nothing runs, the record is not changed, and
the exit status is 0.

The command, arguments, directory and flags of the run come from its record. The
flags above override the recorded ones for this attempt. Arguments that came
through a pipe are not in the record: give the same input again.

The exit status is that of `minder run`, for the jobs of this attempt.";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Flags, Verb};

    fn resume(line: &str) -> Result<ResumeFlags, clap::Error> {
        let args = ["minder", "resume"].into_iter().chain(line.split_whitespace());
        match Flags::try_parse_from(args)?.verb {
            Verb::Resume(flags) => Ok(*flags),
            verb => panic!("{verb:?}"),
        }
    }

    #[test]
    fn typed_flags_do_not_depend_on_their_place() {
        for line in ["-j8 -kv --color 61c0", "61c0 -v --jobs 8 -k --color=jobs", "-P8 61c0 -v -k --color"] {
            let flags = resume(line).expect(line);
            assert_eq!(flags.attempt.run.as_deref(), Some("61c0".as_ref()), "{line}");
            assert_eq!(flags.attempt.typed.0, ["--jobs=8", "--keep-order", "-v", "--color=jobs"], "{line}");
        }
        let flags = resume("--limit-per {1} 1 --limit-per {2} 2").expect("parse flags");
        assert_eq!(flags.attempt.typed.0, ["--limit-per", "{1}", "1", "--limit-per", "{2}", "2"]);
        let flags = resume("--halt now,fail=1 -j-1 --failed").expect("parse flags");
        assert_eq!((flags.attempt.run, flags.failed), (None, true));
        assert_eq!(flags.attempt.typed.0, ["--jobs=-1", "--halt=now,fail=1"]);
    }

    #[test]
    fn flags_that_change_the_jobs_are_refused() {
        for (line, expected) in [
            ("--results x", "`--results` cannot be changed when a run is resumed: it comes from the record"),
            ("-a x", "`-a` cannot be changed when a run is resumed: it comes from the record"),
            ("--pipe", "`--pipe` cannot be changed when a run is resumed: it comes from the record"),
            (
                "last x",
                "`x` is one argument too many: a run is resumed with its own command and input (`minder \
                 resume` alone takes the last run)",
            ),
            ("--jbos 3", "unknown flag `--jbos`; did you mean `--jobs`?"),
            ("--jobs", "`--jobs` requires a value"),
        ] {
            let args: Vec<OsString> =
                "resume".split(' ').chain(line.split(' ')).map(OsString::from).collect();
            let error = resume(line).expect_err(line);
            assert_eq!(resume_error_line(&error, &Flags::interface(), &args), expected, "{line}");
        }
    }
}
