//! The properties of the flags of `minder run`: one row for each flag.

use clap::Arg;

/// The flags, in the order of their declarations.
pub(super) const FLAGS: &[Flag] = &[
    // `RunFlags` of `run.rs`
    any_file("jobs").daily().attempt(),
    // `InputFlags` of `input.rs`
    user_file("arg-file", FILES).daily(),
    user_file("commands", PROGRAM),
    user_file("null", INPUT).daily(),
    user_file("delimiter", INPUT),
    user_file("words", INPUT).daily(),
    user_file("colsep", INPUT).daily(),
    user_file("csv", INPUT).daily(),
    user_file("header", INPUT).daily(),
    user_file("skip-comments", INPUT),
    user_file("skip-first-line", INPUT),
    user_file("link", INPUT),
    user_file("trim", INPUT),
    user_file("eof", INPUT),
    user_file("no-run-if-empty", PROTECTION),
    any_file("shuf"),
    any_file("order").attempt(),
    any_file("seed"),
    user_file("arg-sep", COMMAND),
    user_file("arg-file-sep", COMMAND),
    any_file("total-jobs"),
    // `ArityFlags` of `input.rs`
    user_file("max-args", INPUT).daily(),
    user_file("max-replace-args", INPUT),
    user_file("lines", INPUT),
    typed_only("context", NO_LONG_NAME),
    typed_only("multiple", NO_LONG_NAME),
    user_file("xargs", INPUT),
    any_file("max-chars"),
    any_file("exit"),
    // `PlaceholderFlags` of `input.rs`
    user_file("replace", COMMAND),
    user_file("extensionreplace", COMMAND),
    user_file("basenamereplace", COMMAND),
    user_file("dirnamereplace", COMMAND),
    user_file("basenameextensionreplace", COMMAND),
    user_file("seqreplace", COMMAND),
    user_file("slotreplace", COMMAND),
    user_file("plus", COMMAND),
    user_file("rpl", COMMAND),
    user_file("quote", PROGRAM),
    user_file("only", PROTECTION),
    user_file("no-dash-values", PROTECTION),
    user_file("template", FILES),
    // `OutputFlags` of `output.rs`
    any_file("group").attempt(),
    any_file("no-keep-order").attempt(),
    any_file("keep-order").daily().attempt(),
    any_file("line-buffer").daily().attempt(),
    any_file("ungroup").attempt(),
    any_file("success-output").daily().attempt(),
    any_file("failure-output").attempt(),
    any_file("cancelled-output").attempt(),
    any_file("tag").daily().attempt(),
    any_file("tagstring").attempt(),
    any_file("names").attempt(),
    user_file("results", FILES).daily(),
    user_file("files", FILES),
    user_file("cleanup", FILES),
    any_file("pty"),
    any_file("spool"),
    any_file("buffer").attempt(),
    user_file("tmpdir", FILES).attempt(),
    // `DisplayFlags` of `display.rs`
    any_file("bar").daily().attempt(),
    any_file("eta").attempt(),
    any_file("progress").attempt(),
    any_file("no-status").attempt(),
    any_file("heartbeat").attempt(),
    any_file("status-level").daily().attempt(),
    any_file("notify").attempt(),
    any_file("quiet").daily().attempt(),
    any_file("verbose").daily().attempt(),
    typed_only("print", NO_LONG_NAME).attempt(),
    any_file("color").attempt(),
    any_file("color-failed").attempt(),
    typed_only("color-lines", PARALLEL),
    // `ControlFlags` of `control.rs`
    any_file("timeout").daily().attempt(),
    any_file("retries").daily().attempt(),
    any_file("retry-delay").attempt(),
    any_file("halt").daily().attempt(),
    any_file("termseq").attempt(),
    any_file("delay").daily().attempt(),
    any_file("rate").attempt(),
    typed_only("limit-per", ONE_LINE).attempt(),
    any_file("load").attempt(),
    any_file("memory-max").attempt(),
    any_file("cpu-max").attempt(),
    any_file("memfree").attempt(),
    any_file("memsuspend").attempt(),
    any_file("noswap").attempt(),
    user_file("limit", PROGRAM).attempt(),
    any_file("no-jobserver").attempt(),
    user_file("close-fds", PROTECTION),
    any_file("nice").attempt(),
    any_file("timer-slack"),
    user_file("wd", FILES).daily(),
    user_file("env", ENVIRONMENT).daily(),
    user_file("env-file", ENVIRONMENT),
    user_file("process-slot-var", ENVIRONMENT),
    user_file("stdin", FILES),
    any_file("tty"),
    any_file("exit-status"),
    user_file("interactive", PROTECTION).attempt(),
    // `PipeFlags` of `pipe.rs`
    user_file("pipe", INPUT),
    user_file("pipe-part", INPUT),
    any_file("block"),
    any_file("block-timeout"),
    user_file("recstart", INPUT),
    user_file("recend", INPUT),
    user_file("regexp", INPUT),
    user_file("remove-rec-sep", INPUT),
    user_file("round-robin", INPUT),
    user_file("tee", INPUT),
    user_file("shard", INPUT),
    user_file("bin", INPUT),
    user_file("group-by", INPUT),
    typed_only("print-parts", PARALLEL),
    user_file("cat", INPUT),
    user_file("fifo", INPUT),
    // `RecordFlags` of `output.rs`
    user_file("no-record", PROTECTION),
    any_file("sync").attempt(),
    any_file("keep-output").attempt(),
    user_file("redact-args", PROTECTION),
    user_file("joblog", FILES),
    typed_only("joblog-append", PARALLEL),
    typed_only("resume", ONE_LINE).unrecorded(),
    typed_only("resume-failed", ONE_LINE).unrecorded(),
    typed_only("retry-failed", ONE_LINE).unrecorded(),
    typed_only("skip-lost", ONE_LINE).unrecorded(),
    typed_only("dry-run", ONE_LINE).daily().unrecorded(),
    // `RunFlags` of `run.rs`
    user_file("shell", PROGRAM),
    user_file("pipefail", PROGRAM),
    typed_only("parallel-env", PARALLEL),
    typed_only("on", MACHINES).attempt(),
    typed_only("lost-after", MACHINES).attempt(),
    typed_only("detach", MACHINES).attempt().unrecorded(),
    typed_only("on-interrupt", MACHINES).attempt(),
    any_file("leak").attempt(),
    any_file("grace").attempt(),
    any_file("hold-results").attempt(),
    any_file("backend").attempt(),
    user_file("no-guard", PROTECTION).attempt(),
    typed_only("profile", SETTINGS),
    typed_only("no-config", SETTINGS).unrecorded(),
    typed_only("help", ONE_LINE),
];

// Why a project's file may not set a flag. Such a file comes with a repository that another person may
// have written. It must not choose what runs, what the jobs get, or where something is written.
const PROGRAM: &str = "it selects the program that runs";
const ENVIRONMENT: &str = "it changes the environment of the jobs";
const COMMAND: &str = "it changes what the words of the command stand for";
const INPUT: &str = "it changes the arguments or the input of the jobs";
const FILES: &str = "it selects files or directories that are read or written";
const PROTECTION: &str = "it could weaken a protection";

// Why no file and no variable may set a flag.
const ONE_LINE: &str = "it belongs to one command line";
const SETTINGS: &str = "it decides which settings are read";
const MACHINES: &str = "it starts processes on other machines";
const PARALLEL: &str = "it is for the command line of GNU parallel";
const NO_LONG_NAME: &str = "it has no long name";

/// The names of the flags that are not recorded. Each start looks for these only.
pub(crate) const UNRECORDED: [&str; 7] = {
    let mut names = [""; 7];
    let mut found = 0;
    let mut row = 0;
    while row < FLAGS.len() {
        if !FLAGS[row].is_recorded {
            names[found] = FLAGS[row].name;
            found += 1;
        }
        row += 1;
    }
    assert!(found == names.len(), "UNRECORDED has another length");
    names
};

/// A flag of `minder run`.
#[derive(Debug)]
pub(crate) struct Flag {
    /// The long name; the name of the field if there is none.
    pub(crate) name: &'static str,
    pub(crate) source: FlagSource,
    /// `true` if `minder run -h` shows the flag. `--help` shows all.
    pub(crate) is_daily: bool,
    /// `true` if the flag decides how an attempt runs the jobs and shows their output, so that
    /// `minder resume` and `minder retry` have it, too. All others decide what the jobs are, what
    /// they see, or where their results are stored.
    pub(crate) is_of_attempt: bool,
    /// `true` if the record repeats the flag. The others apply to one attempt only.
    pub(crate) is_recorded: bool,
}

/// The sources that may set a flag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlagSource {
    /// Each file and variable may, a project's file for some flags only to some values.
    AnyFile,
    /// The user's file and variables may. A project's file may not, for this reason.
    UserFile(&'static str),
    /// It can only be typed, for this reason.
    CommandLine(&'static str),
}

const fn any_file(name: &'static str) -> Flag {
    Flag { name, source: FlagSource::AnyFile, is_daily: false, is_of_attempt: false, is_recorded: true }
}

const fn user_file(name: &'static str, why: &'static str) -> Flag {
    Flag { source: FlagSource::UserFile(why), ..any_file(name) }
}

const fn typed_only(name: &'static str, why: &'static str) -> Flag {
    Flag { source: FlagSource::CommandLine(why), ..any_file(name) }
}

impl Flag {
    const fn daily(self) -> Self {
        Self { is_daily: true, ..self }
    }

    const fn attempt(self) -> Self {
        Self { is_of_attempt: true, ..self }
    }

    const fn unrecorded(self) -> Self {
        Self { is_recorded: false, ..self }
    }

    /// Returns the flag with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FLAGS.iter().find(|flag| flag.name == name)
    }

    /// Returns the flag that clap knows as `arg`; `None` for arguments that are not flags of `minder run`.
    pub(super) fn of(arg: &Arg) -> Option<&'static Self> {
        if arg.is_positional() { None } else { Self::named(name(arg)) }
    }
}

fn name(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    #[test]
    fn each_flag_has_one_row_in_the_order_of_the_declarations() {
        let minder = Flags::interface();
        let run = minder.find_subcommand("run").expect("find run");
        let declared: Vec<&str> = run.get_arguments().filter(|arg| !arg.is_positional()).map(name).collect();
        let rows: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
        for name in &declared {
            let count = rows.iter().filter(|row| *row == name).count();
            assert_eq!(count, 1, "rows for `{name}`: may a project's file set it, may `minder resume`?");
        }
        assert_eq!(rows.iter().find(|name| !declared.contains(name)), None, "no such flag");
        let misplaced = rows.iter().zip(&declared).find(|(row, name)| row != name);
        assert_eq!(misplaced, None, "another flag is declared here");
    }
}
