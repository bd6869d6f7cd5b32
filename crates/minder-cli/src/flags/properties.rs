//! The properties of the flags of `minder run`: one row for each flag.

use clap::Arg;

/// The flags, in the order of their declarations.
pub(super) const FLAGS: &[Flag] = &[
    // `RunFlags` of `run.rs`
    any_file("jobs").daily().attempt().agent(),
    // `InputFlags` of `input.rs`
    user_file("arg-file", FILES).daily().both(),
    user_file("commands", PROGRAM).both(),
    user_file("null", INPUT).daily().both(),
    user_file("delimiter", INPUT).both(),
    user_file("words", INPUT).daily().both(),
    user_file("colsep", INPUT).daily().both(),
    user_file("csv", INPUT).daily().both(),
    user_file("header", INPUT).daily().both(),
    user_file("skip-comments", INPUT).both(),
    user_file("skip-first-line", INPUT).both(),
    user_file("link", INPUT).both(),
    user_file("trim", INPUT).both(),
    user_file("eof", INPUT).both(),
    user_file("no-run-if-empty", PROTECTION).both(),
    any_file("shuf").refused(),
    any_file("order").attempt().refused(),
    any_file("seed").both(),
    user_file("arg-sep", COMMAND).both(),
    user_file("arg-file-sep", COMMAND).both(),
    any_file("total-jobs").both(),
    // `ArityFlags` of `input.rs`
    user_file("max-args", INPUT).daily().both(),
    user_file("max-replace-args", INPUT).both(),
    user_file("lines", INPUT).both(),
    typed_only("context", NO_LONG_NAME).both(),
    typed_only("multiple", NO_LONG_NAME).both(),
    user_file("xargs", INPUT).both(),
    any_file("max-chars").both(),
    any_file("exit").both(),
    // `PlaceholderFlags` of `input.rs`
    user_file("replace", COMMAND).both(),
    user_file("extensionreplace", COMMAND).both(),
    user_file("basenamereplace", COMMAND).both(),
    user_file("dirnamereplace", COMMAND).both(),
    user_file("basenameextensionreplace", COMMAND).both(),
    user_file("seqreplace", COMMAND).both(),
    user_file("slotreplace", COMMAND).both(),
    user_file("plus", COMMAND).both(),
    user_file("rpl", COMMAND).both(),
    user_file("quote", PROGRAM).both(),
    user_file("only", PROTECTION).both(),
    user_file("no-dash-values", PROTECTION).both(),
    user_file("template", FILES).refused(),
    // `OutputFlags` of `output.rs`
    any_file("group").attempt().shown(),
    any_file("no-keep-order").attempt().shown(),
    any_file("keep-order").daily().attempt().shown(),
    any_file("line-buffer").daily().attempt().shown(),
    any_file("ungroup").attempt().refused(),
    any_file("success-output").daily().attempt().shown(),
    any_file("failure-output").attempt().shown(),
    any_file("cancelled-output").attempt().shown(),
    any_file("tag").daily().attempt().shown(),
    any_file("tagstring").attempt().shown(),
    any_file("names").attempt().shown(),
    user_file("results", FILES).daily().shown(),
    user_file("files", FILES).refused(),
    user_file("cleanup", FILES).agent(),
    any_file("pty").refused(),
    any_file("spool").agent(),
    any_file("buffer").attempt().shown(),
    user_file("tmpdir", FILES).attempt().refused(),
    // `DisplayFlags` of `display.rs`
    any_file("bar").daily().attempt().shown(),
    any_file("eta").attempt().shown(),
    any_file("progress").attempt().shown(),
    any_file("no-status").attempt().shown(),
    any_file("heartbeat").attempt().shown(),
    any_file("status-level").daily().attempt().shown(),
    any_file("notify").attempt().shown(),
    any_file("quiet").daily().attempt().shown(),
    any_file("verbose").daily().attempt().shown(),
    typed_only("print", NO_LONG_NAME).attempt().shown(),
    any_file("color").attempt().shown(),
    any_file("color-failed").attempt().shown(),
    typed_only("color-lines", PARALLEL).shown(),
    // `ControlFlags` of `control.rs`
    any_file("timeout").daily().attempt().agent(),
    any_file("retries").daily().attempt().agent(),
    any_file("retry-delay").attempt().agent(),
    any_file("halt").daily().attempt().shown(),
    any_file("termseq").attempt().agent(),
    any_file("delay").daily().attempt().agent(),
    any_file("rate").attempt().agent(),
    typed_only("limit-per", ONE_LINE).attempt().agent(),
    any_file("load").attempt().agent(),
    any_file("memory-max").attempt().agent(),
    any_file("cpu-max").attempt().agent(),
    any_file("memfree").attempt().agent(),
    any_file("memsuspend").attempt().agent(),
    any_file("noswap").attempt().agent(),
    user_file("limit", PROGRAM).attempt().agent(),
    any_file("no-jobserver").attempt().agent(),
    user_file("close-fds", PROTECTION).agent(),
    any_file("nice").attempt().agent(),
    any_file("timer-slack").agent(),
    user_file("wd", FILES).daily().agent(),
    user_file("env", ENVIRONMENT).daily().agent(),
    user_file("env-file", ENVIRONMENT).agent(),
    user_file("process-slot-var", ENVIRONMENT).agent(),
    user_file("stdin", FILES).refused(),
    any_file("tty").refused(),
    any_file("exit-status").shown(),
    user_file("interactive", PROTECTION).attempt().refused(),
    // `PipeFlags` of `pipe.rs`
    user_file("pipe", INPUT).refused(),
    user_file("pipe-part", INPUT).refused(),
    any_file("block").refused(),
    any_file("block-timeout").refused(),
    user_file("recstart", INPUT).refused(),
    user_file("recend", INPUT).refused(),
    user_file("regexp", INPUT).refused(),
    user_file("remove-rec-sep", INPUT).refused(),
    user_file("round-robin", INPUT).refused(),
    user_file("tee", INPUT).refused(),
    user_file("shard", INPUT).refused(),
    user_file("bin", INPUT).refused(),
    user_file("group-by", INPUT).refused(),
    typed_only("print-parts", PARALLEL).shown(),
    user_file("cat", INPUT).refused(),
    user_file("fifo", INPUT).refused(),
    // `RecordFlags` of `output.rs`
    user_file("no-record", PROTECTION).refused(),
    any_file("sync").attempt().shown(),
    any_file("keep-output").attempt().refused(),
    user_file("redact-args", PROTECTION).refused(),
    user_file("joblog", FILES).shown(),
    typed_only("joblog-append", PARALLEL).shown(),
    typed_only("resume", ONE_LINE).unrecorded().shown(),
    typed_only("resume-failed", ONE_LINE).unrecorded().shown(),
    typed_only("retry-failed", ONE_LINE).unrecorded().shown(),
    typed_only("skip-lost", ONE_LINE).unrecorded().shown(),
    typed_only("dry-run", ONE_LINE).daily().unrecorded().shown(),
    // `RunFlags` of `run.rs`
    user_file("shell", PROGRAM).agent(),
    user_file("pipefail", PROGRAM).agent(),
    typed_only("parallel-env", PARALLEL).agent(),
    // `MachineFlags` of `machines.rs`
    typed_only("on", MACHINES).attempt().shown(),
    typed_only("hosts", MACHINES).attempt().shown(),
    typed_only("ssh", MACHINES).attempt().shown(),
    typed_only("transfer", MACHINES).agent(),
    typed_only("transferfile", MACHINES).agent(),
    typed_only("return", MACHINES).agent(),
    typed_only("trc", MACHINES).agent(),
    typed_only("basefile", MACHINES).agent(),
    typed_only("lost-after", MACHINES).attempt().shown(),
    typed_only("detach", MACHINES).attempt().unrecorded().shown(),
    typed_only("on-interrupt", MACHINES).attempt().shown(),
    any_file("leak").attempt().agent(),
    any_file("grace").attempt().agent(),
    any_file("hold-results").attempt().agent(),
    any_file("backend").attempt().agent(),
    user_file("no-guard", PROTECTION).attempt().agent(),
    typed_only("profile", SETTINGS).shown(),
    typed_only("no-config", SETTINGS).unrecorded().shown(),
    typed_only("help", ONE_LINE).shown(),
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
    /// Where it is used when jobs run on other machines.
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/cluster.md has it, and a test compares them"))]
    pub(crate) place: Option<FlagPlace>,
}

/// Where a flag is used when jobs run on other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagPlace {
    /// On each machine: it decides how a job runs.
    Agent,
    /// Here: it decides what is shown and recorded, and where jobs run.
    Coordinator,
    /// In both places: it decides what the jobs are.
    Both,
    /// It cannot be used with `--on`.
    Refused,
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
    Flag {
        name,
        source: FlagSource::AnyFile,
        is_daily: false,
        is_of_attempt: false,
        is_recorded: true,
        place: None,
    }
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

    const fn agent(self) -> Self {
        Self { place: Some(FlagPlace::Agent), ..self }
    }

    const fn shown(self) -> Self {
        Self { place: Some(FlagPlace::Coordinator), ..self }
    }

    const fn both(self) -> Self {
        Self { place: Some(FlagPlace::Both), ..self }
    }

    const fn refused(self) -> Self {
        Self { place: Some(FlagPlace::Refused), ..self }
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
    #[test]
    fn guide_says_where_each_flag_is_used() {
        let guide = include_str!("../../../../docs/cluster.md");
        let listed = |heading: &str| -> Vec<&str> {
            let row = guide.lines().find(|line| line.starts_with(heading)).expect(heading);
            let flags = row.split('`').skip(1).step_by(2);
            flags.map(|flag| flag.trim_start_matches('-')).collect()
        };
        let rows = [
            (FlagPlace::Agent, "| on each machine |"),
            (FlagPlace::Coordinator, "| here |"),
            (FlagPlace::Both, "| in both places |"),
            (FlagPlace::Refused, "| nowhere |"),
        ];
        for flag in FLAGS {
            let place = flag.place.unwrap_or_else(|| panic!("`{}`: where is it used with --on?", flag.name));
            for (row, heading) in rows {
                assert_eq!(listed(heading).contains(&flag.name), row == place, "{heading} `{}`", flag.name);
            }
        }
    }
}
