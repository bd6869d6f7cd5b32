//! The options of GNU parallel, by its manual, and what becomes of each.

/// One option.
#[derive(Debug)]
pub(super) struct OptionSpec {
    /// Its names, the first for messages. Those of one letter are short ones.
    pub(super) names: &'static [&'static str],
    pub(super) takes: ValueKind,
    pub(super) does: Mapping,
}

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Nothing,
    Value,
    /// Its value may be left out: this is meant then.
    Maybe(Option<&'static str>),
    /// The same, and a word behind it is its value only if it is a number.
    MaybeNumber(Option<&'static str>),
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// It is this flag of `minder run`.
    Pass(&'static str),
    /// It goes with others, or is done here.
    Here(OptionKey),
    /// It is accepted, and there is nothing to do.
    Nothing,
    /// There is no such thing here, for this reason.
    Refuse(&'static str),
}

/// What is looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OptionKey {
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

use Mapping::{Here, Nothing, Pass, Refuse};
use ValueKind::{Maybe, MaybeNumber, Value};

const fn flag(names: &'static [&'static str], does: Mapping) -> OptionSpec {
    OptionSpec { names, takes: ValueKind::Nothing, does }
}

const fn value(names: &'static [&'static str], does: Mapping) -> OptionSpec {
    OptionSpec { names, takes: Value, does }
}

const REMOTE: Mapping = Refuse("jobs run on this machine only");
const PERL: Mapping = Refuse("it is Perl, which is not run here");
const SQL: Mapping = Refuse("no database keeps jobs here: `minder log --sql` asks the record");
const TMUX: Mapping =
    Refuse("jobs have no windows here: --pty gives each a terminal, --progress shows what runs");
const SCRIPT: Mapping =
    Refuse("it is for the first line of a script, with all options in one word behind it");

/// All options.
pub(super) const KNOWN: &[OptionSpec] = &[
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
    OptionSpec { names: &["eof", "e"], takes: Maybe(None), does: Pass("--eof") },
    flag(&["no-run-if-empty", "r"], Pass("--no-run-if-empty")),
    flag(&["shuf"], Pass("--shuf")),
    value(&["arg-sep"], Here(OptionKey::ArgSep)),
    value(&["arg-file-sep"], Here(OptionKey::ArgFileSep)),
    value(&["total-jobs", "total"], Pass("--total-jobs")),
    // Arguments of a job.
    value(&["max-args", "n"], Pass("--max-args")),
    value(&["max-replace-args", "N"], Pass("--max-replace-args")),
    value(&["L"], Pass("--lines")),
    OptionSpec { names: &["max-lines", "l"], takes: MaybeNumber(Some("1")), does: Pass("--lines") },
    flag(&["X"], Pass("-X")),
    flag(&["m"], Pass("-m")),
    flag(&["xargs"], Pass("--xargs")),
    value(&["max-chars", "s"], Pass("--max-chars")),
    flag(&["exit", "x"], Pass("--exit")),
    // Placeholders.
    value(&["I"], Pass("--replace")),
    OptionSpec { names: &["replace", "i"], takes: Maybe(Some("{}")), does: Pass("--replace") },
    value(&["extensionreplace", "er"], Pass("--extensionreplace")),
    value(&["basenamereplace", "bnr"], Pass("--basenamereplace")),
    value(&["dirnamereplace", "dnr"], Pass("--dirnamereplace")),
    value(&["basenameextensionreplace", "bner"], Pass("--basenameextensionreplace")),
    value(&["seqreplace"], Pass("--seqreplace")),
    value(&["slotreplace"], Pass("--slotreplace")),
    flag(&["plus"], Pass("--plus")),
    value(&["rpl"], Here(OptionKey::Placeholder)),
    value(&["template", "tmpl"], Pass("--template")),
    flag(&["quote", "q"], Here(OptionKey::Quote)),
    value(&["parens"], PERL),
    value(&["filter"], PERL),
    // Control.
    value(&["jobs", "j", "max-procs", "P"], Here(OptionKey::Jobs)),
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
    flag(&["tty"], Here(OptionKey::Tty)),
    // Jobs get the terminal itself: there is nothing further to open for them.
    flag(&["open-tty", "o"], Here(OptionKey::Tty)),
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
    flag(&["cat"], Here(OptionKey::Cat)),
    flag(&["fifo"], Here(OptionKey::Fifo)),
    // Output.
    flag(&["keep-order", "k"], Here(OptionKey::KeepOrder)),
    flag(&["no-keep-order"], Here(OptionKey::NoKeepOrder)),
    flag(&["line-buffer", "linebuffered", "lb"], Here(OptionKey::LineBuffer)),
    flag(&["ungroup", "u"], Here(OptionKey::Ungroup)),
    flag(&["group"], Here(OptionKey::Group)),
    flag(&["tag"], Here(OptionKey::Tag)),
    value(&["tagstring"], Here(OptionKey::TagString)),
    flag(&["ctag"], Here(OptionKey::ColourTag)),
    value(&["ctagstring"], Here(OptionKey::ColourTagString)),
    flag(&["color", "colour"], Here(OptionKey::Colour)),
    flag(
        &["color-failed", "colour-failed", "color-fail", "colour-fail", "cf"],
        Here(OptionKey::ColourFailed),
    ),
    value(&["results", "result", "res"], Here(OptionKey::Results)),
    flag(&["output-as-files", "files"], Pass("--files")),
    value(&["tmpdir", "tempdir"], Pass("--tmpdir")),
    flag(&["dry-run"], Pass("--dry-run")),
    flag(&["bar"], Pass("--bar")),
    flag(&["eta"], Pass("--eta")),
    flag(&["progress"], Pass("--progress")),
    flag(&["verbose", "t"], Pass("--verbose")),
    flag(&["v"], Here(OptionKey::Print)),
    flag(&["silent"], Here(OptionKey::Silent)),
    // Lines stay on the screen, and are not written over by the job's next one.
    flag(&["latest-line", "ll"], Here(OptionKey::LineBuffer)),
    // What waits is in memory first, and then in files that are read once.
    flag(&["compress"], Nothing),
    value(&["compress-program", "use-compress-program"], Nothing),
    value(&["decompress-program", "use-decompress-program"], Nothing),
    // The record.
    value(&["joblog", "jl"], Here(OptionKey::Joblog)),
    flag(&["resume"], Here(OptionKey::Resume)),
    flag(&["resume-failed"], Here(OptionKey::ResumeFailed)),
    flag(&["retry-failed"], Here(OptionKey::RetryFailed)),
    // Where options come from.
    flag(&["plain", "no-profile"], Here(OptionKey::Plain)),
    value(&["profile", "J"], Here(OptionKey::Profile)),
    // A semaphore.
    flag(&["semaphore"], Here(OptionKey::Semaphore)),
    flag(&["bg"], Here(OptionKey::Background)),
    flag(&["fg"], Here(OptionKey::Foreground)),
    flag(&["wait"], Here(OptionKey::Wait)),
    value(&["semaphore-name", "id"], Here(OptionKey::Name)),
    value(&["semaphore-timeout", "st"], Here(OptionKey::Patience)),
    // What is only said.
    flag(&["help", "h"], Here(OptionKey::Help)),
    flag(&["version", "V"], Here(OptionKey::Version)),
    value(&["minversion"], Here(OptionKey::MinVersion)),
    // Its manual gives the number of cores for both.
    flag(&["number-of-cores", "number-of-cpus"], Here(OptionKey::Cores)),
    flag(&["number-of-sockets"], Here(OptionKey::Sockets)),
    flag(&["number-of-threads"], Here(OptionKey::Threads)),
    flag(&["max-line-length-allowed"], Here(OptionKey::LineLength)),
    flag(&["show-limits"], Here(OptionKey::ShowLimits)),
    flag(&["shell-quote"], Here(OptionKey::ShellQuote)),
    value(&["shell-completion"], Here(OptionKey::Completion)),
    flag(&["citation", "bibtex"], Here(OptionKey::Citation)),
    flag(&["record-env"], Here(OptionKey::RecordEnv)),
    // There is no notice that could be left out, and no other manner than GNU's.
    flag(&["will-cite"], Nothing),
    flag(&["no-notice", "nn"], Nothing),
    flag(&["gnu"], Nothing),
    // What GNU parallel tells its own programmers.
    value(&["debug", "D"], Nothing),
    // It removes what was sent to other machines: nothing was.
    flag(&["cleanup"], Pass("--cleanup")),
    // Other machines.
    value(&["sshlogin", "S"], Here(OptionKey::Login)),
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
pub(super) const HIDDEN: &[OptionSpec] =
    &[value(&["semaphore-started"], Here(OptionKey::Started)), value(&["shell"], Here(OptionKey::Shell))];
