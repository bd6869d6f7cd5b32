//! The options of GNU parallel, by its manual, and what becomes of each.

/// One option.
#[derive(Debug)]
pub(super) struct Known {
    /// Its names, the first for messages. Those of one letter are short ones.
    pub(super) names: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) does: Does,
}

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// Its value may be left out: this is meant then.
    Maybe(Option<&'static str>),
    /// The same, and a word behind it is its value only if it is a number.
    MaybeNumber(Option<&'static str>),
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It is this flag of `minder run`.
    Pass(&'static str),
    /// It goes with others, or is done here.
    Here(Wish),
    /// It is accepted, and there is nothing to do.
    Nothing,
    /// There is no such thing here, for this reason.
    Refuse(&'static str),
}

/// What is looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    // How output is seen.
    KeepOrder,
    NoKeepOrder,
    LineBuffer,
    Ungroup,
    Group,
    Tag,
    TagString,
    ColourTag,
    ColourTagString,
    Colour,
    ColourFailed,
    Results,
    Print,
    Silent,
    Tty,
    // What is run, and how.
    Jobs,
    Resume,
    ResumeFailed,
    RetryFailed,
    Joblog,
    Quote,
    ArgSep,
    ArgFileSep,
    Cat,
    Fifo,
    Shell,
    Placeholder,
    Login,
    // Where options come from.
    Plain,
    Profile,
    // A semaphore.
    Semaphore,
    Background,
    Foreground,
    Wait,
    Name,
    Patience,
    Started,
    // What is only said.
    Help,
    Version,
    MinVersion,
    Cores,
    Sockets,
    Threads,
    LineLength,
    ShowLimits,
    ShellQuote,
    Completion,
    Citation,
    RecordEnv,
}

use Does::{Here, Nothing, Pass, Refuse};
use Takes::{Maybe, MaybeNumber, Value};

const fn flag(names: &'static [&'static str], does: Does) -> Known {
    Known { names, takes: Takes::Nothing, does }
}

const fn value(names: &'static [&'static str], does: Does) -> Known {
    Known { names, takes: Value, does }
}

const REMOTE: Does = Refuse("jobs run on this machine only");
const PERL: Does = Refuse("it is Perl, which is not run here");
const SQL: Does = Refuse("no database keeps jobs here: `minder log --sql` asks the record");
const TMUX: Does =
    Refuse("jobs have no windows here: --pty gives each a terminal, --progress shows what runs");
const SCRIPT: Does = Refuse("it is for the first line of a script, with all options in one word behind it");

/// All options.
pub(super) const KNOWN: &[Known] = &[
    // Input.
    value(&["arg-file", "a"], Pass("--arg-file")),
    flag(&["null", "0"], Pass("--null")),
    value(&["delimiter", "d"], Pass("--delimiter")),
    value(&["colsep", "C"], Pass("--colsep")),
    flag(&["csv"], Pass("--csv")),
    value(&["header"], Pass("--header")),
    flag(&["skip-first-line"], Pass("--skip-first-line")),
    flag(&["link", "xapply"], Pass("--link")),
    value(&["trim"], Pass("--trim")),
    value(&["E"], Pass("--eof")),
    Known { names: &["eof", "e"], takes: Maybe(None), does: Pass("--eof") },
    flag(&["no-run-if-empty", "r"], Pass("--no-run-if-empty")),
    flag(&["shuf"], Pass("--shuf")),
    value(&["arg-sep"], Here(Wish::ArgSep)),
    value(&["arg-file-sep"], Here(Wish::ArgFileSep)),
    value(&["total-jobs", "total"], Pass("--total-jobs")),
    // Arguments of a job.
    value(&["max-args", "n"], Pass("--max-args")),
    value(&["max-replace-args", "N"], Pass("--max-replace-args")),
    value(&["L"], Pass("--lines")),
    Known { names: &["max-lines", "l"], takes: MaybeNumber(Some("1")), does: Pass("--lines") },
    flag(&["X"], Pass("-X")),
    flag(&["m"], Pass("-m")),
    flag(&["xargs"], Pass("--xargs")),
    value(&["max-chars", "s"], Pass("--max-chars")),
    flag(&["exit", "x"], Pass("--exit")),
    // Placeholders.
    value(&["I"], Pass("--replace")),
    Known { names: &["replace", "i"], takes: Maybe(Some("{}")), does: Pass("--replace") },
    value(&["extensionreplace", "er"], Pass("--extensionreplace")),
    value(&["basenamereplace", "bnr"], Pass("--basenamereplace")),
    value(&["dirnamereplace", "dnr"], Pass("--dirnamereplace")),
    value(&["basenameextensionreplace", "bner"], Pass("--basenameextensionreplace")),
    value(&["seqreplace"], Pass("--seqreplace")),
    value(&["slotreplace"], Pass("--slotreplace")),
    flag(&["plus"], Pass("--plus")),
    value(&["rpl"], Here(Wish::Placeholder)),
    value(&["template", "tmpl"], Pass("--template")),
    flag(&["quote", "q"], Here(Wish::Quote)),
    value(&["parens"], PERL),
    value(&["filter"], PERL),
    // Control.
    value(&["jobs", "j", "max-procs", "P"], Here(Wish::Jobs)),
    value(&["timeout"], Pass("--timeout")),
    value(&["retries"], Pass("--retries")),
    value(&["halt-on-error", "halt"], Pass("--halt")),
    value(&["term-seq"], Pass("--termseq")),
    value(&["delay"], Pass("--delay")),
    value(&["load"], Pass("--load")),
    value(&["memfree"], Pass("--memfree")),
    value(&["memsuspend"], Pass("--memsuspend")),
    flag(&["noswap"], Pass("--noswap")),
    value(&["limit"], Pass("--limit")),
    value(&["nice"], Pass("--nice")),
    value(&["workdir", "wd"], Pass("--wd")),
    value(&["env"], Pass("--env")),
    value(&["process-slot-var"], Pass("--process-slot-var")),
    flag(&["tty"], Here(Wish::Tty)),
    // Jobs get the terminal itself: there is nothing further to open for them.
    flag(&["open-tty", "o"], Here(Wish::Tty)),
    flag(&["interactive", "p"], Pass("--interactive")),
    // Processors are counted as the system counts them, hyperthreads included.
    flag(&["use-cpus-instead-of-cores"], Nothing),
    flag(&["use-cores-instead-of-threads"], Nothing),
    flag(&["use-sockets-instead-of-threads"], Nothing),
    // Parts of the input.
    flag(&["pipe", "spreadstdin"], Pass("--pipe")),
    flag(&["pipe-part"], Pass("--pipe-part")),
    value(&["block", "block-size"], Pass("--block")),
    value(&["block-timeout", "bt"], Pass("--block-timeout")),
    value(&["recstart"], Pass("--recstart")),
    value(&["recend"], Pass("--recend")),
    flag(&["regexp"], Pass("--regexp")),
    flag(&["remove-rec-sep", "rrs"], Pass("--remove-rec-sep")),
    flag(&["round-robin", "round"], Pass("--round-robin")),
    flag(&["tee"], Pass("--tee")),
    value(&["shard"], Pass("--shard")),
    value(&["bin"], Pass("--bin")),
    value(&["group-by"], Pass("--group-by")),
    flag(&["cat"], Here(Wish::Cat)),
    flag(&["fifo"], Here(Wish::Fifo)),
    // Output.
    flag(&["keep-order", "k"], Here(Wish::KeepOrder)),
    flag(&["no-keep-order"], Here(Wish::NoKeepOrder)),
    flag(&["line-buffer", "linebuffered", "lb"], Here(Wish::LineBuffer)),
    flag(&["ungroup", "u"], Here(Wish::Ungroup)),
    flag(&["group"], Here(Wish::Group)),
    flag(&["tag"], Here(Wish::Tag)),
    value(&["tagstring"], Here(Wish::TagString)),
    flag(&["ctag"], Here(Wish::ColourTag)),
    value(&["ctagstring"], Here(Wish::ColourTagString)),
    flag(&["color", "colour"], Here(Wish::Colour)),
    flag(&["color-failed", "colour-failed", "color-fail", "colour-fail", "cf"], Here(Wish::ColourFailed)),
    value(&["results", "result", "res"], Here(Wish::Results)),
    flag(&["output-as-files", "files"], Pass("--files")),
    value(&["tmpdir", "tempdir"], Pass("--tmpdir")),
    flag(&["dry-run"], Pass("--dry-run")),
    flag(&["bar"], Pass("--bar")),
    flag(&["eta"], Pass("--eta")),
    flag(&["progress"], Pass("--progress")),
    flag(&["verbose", "t"], Pass("--verbose")),
    flag(&["v"], Here(Wish::Print)),
    flag(&["silent"], Here(Wish::Silent)),
    // Lines stay on the screen, and are not written over by the job's next one.
    flag(&["latest-line", "ll"], Here(Wish::LineBuffer)),
    // What waits is in memory first, and then in files that are read once.
    flag(&["compress"], Nothing),
    value(&["compress-program", "use-compress-program"], Nothing),
    value(&["decompress-program", "use-decompress-program"], Nothing),
    // The record.
    value(&["joblog", "jl"], Here(Wish::Joblog)),
    flag(&["resume"], Here(Wish::Resume)),
    flag(&["resume-failed"], Here(Wish::ResumeFailed)),
    flag(&["retry-failed"], Here(Wish::RetryFailed)),
    // Where options come from.
    flag(&["plain", "no-profile"], Here(Wish::Plain)),
    value(&["profile", "J"], Here(Wish::Profile)),
    // A semaphore.
    flag(&["semaphore"], Here(Wish::Semaphore)),
    flag(&["bg"], Here(Wish::Background)),
    flag(&["fg"], Here(Wish::Foreground)),
    flag(&["wait"], Here(Wish::Wait)),
    value(&["semaphore-name", "id"], Here(Wish::Name)),
    value(&["semaphore-timeout", "st"], Here(Wish::Patience)),
    // What is only said.
    flag(&["help", "h"], Here(Wish::Help)),
    flag(&["version", "V"], Here(Wish::Version)),
    value(&["minversion"], Here(Wish::MinVersion)),
    // Its manual gives the number of cores for both.
    flag(&["number-of-cores", "number-of-cpus"], Here(Wish::Cores)),
    flag(&["number-of-sockets"], Here(Wish::Sockets)),
    flag(&["number-of-threads"], Here(Wish::Threads)),
    flag(&["max-line-length-allowed"], Here(Wish::LineLength)),
    flag(&["show-limits"], Here(Wish::ShowLimits)),
    flag(&["shell-quote"], Here(Wish::ShellQuote)),
    value(&["shell-completion"], Here(Wish::Completion)),
    flag(&["citation", "bibtex"], Here(Wish::Citation)),
    flag(&["record-env"], Here(Wish::RecordEnv)),
    // There is no notice that could be left out, and no other manner than GNU's.
    flag(&["will-cite"], Nothing),
    flag(&["no-notice", "nn"], Nothing),
    flag(&["gnu"], Nothing),
    // What GNU parallel tells its own programmers.
    value(&["debug", "D"], Nothing),
    // It removes what was sent to other machines: nothing was.
    flag(&["cleanup"], Pass("--cleanup")),
    // Other machines.
    value(&["sshlogin", "S"], Here(Wish::Login)),
    value(&["sshloginfile", "slf"], REMOTE),
    value(&["ssh"], REMOTE),
    value(&["ssh-delay"], REMOTE),
    flag(&["controlmaster", "M"], REMOTE),
    flag(&["hostgroups", "hgrp"], REMOTE),
    flag(&["filter-hosts"], REMOTE),
    flag(&["nonall"], REMOTE),
    flag(&["onall"], REMOTE),
    flag(&["transfer"], REMOTE),
    value(&["transferfile", "tf"], REMOTE),
    value(&["return"], REMOTE),
    value(&["trc"], REMOTE),
    value(&["basefile", "bf"], REMOTE),
    value(&["rsync-opts"], REMOTE),
    // Databases.
    value(&["sql"], SQL),
    value(&["sql-master"], SQL),
    value(&["sql-worker"], SQL),
    value(&["sql-and-worker"], SQL),
    // Parts of the shell's own that GNU parallel comes with.
    flag(&["embed"], Refuse("minder is a program of its own, beside a script and not within it")),
    flag(&["session"], Refuse("jobs inherit the environment as it is")),
    value(&["_parset"], Refuse("it belongs to a function of GNU parallel's for the shell")),
    flag(&["tmux"], TMUX),
    flag(&["tmuxpane"], TMUX),
    flag(&["shebang", "hashbang"], SCRIPT),
    flag(&["shebang-wrap"], SCRIPT),
];

/// Options that a semaphore's holder is given, and nobody types.
pub(super) const HIDDEN: &[Known] =
    &[value(&["semaphore-started"], Here(Wish::Started)), value(&["shell"], Here(Wish::Shell))];
