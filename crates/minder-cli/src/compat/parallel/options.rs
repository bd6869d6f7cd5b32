//! The options of GNU parallel, from its manual, and how minder handles each.

/// One option.
#[derive(Debug)]
pub(super) struct OptionSpec {
    /// Its names. Messages use the first. A name of one letter is a short option.
    pub(super) names: &'static [&'static str],
    pub(super) value: ValueKind,
    pub(super) mapping: Mapping,
}

/// The value of an option: none, required, or optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    None,
    Required,
    /// The value may be omitted. The default, if any, replaces it.
    Optional(Option<&'static str>),
    /// Like `Optional`, but the next argument is the value only if it begins with a digit.
    OptionalNumber(Option<&'static str>),
}

/// The treatment of an option by minder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// It becomes this flag of `minder run`.
    Pass(&'static str),
    /// It is interpreted together with other options, or by the compatibility mode itself.
    Interpret(OptionKey),
    /// It is accepted and has no effect.
    Ignore,
    /// It is refused, for this reason.
    Unsupported(&'static str),
}

/// The options that are interpreted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::compat) enum OptionKey {
    // The output.
    KeepOrder,
    NoKeepOrder,
    LineBuffer,
    Ungroup,
    Group,
    Tag,
    TagString,
    ColorTag,
    ColorTagString,
    Color,
    ColorFailed,
    Results,
    Print,
    Silent,
    Tty,
    OpenTty,
    // The jobs.
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
    Rpl,
    // Other machines.
    Ssh,
    SshLogin,
    SshLoginFile,
    SshDelay,
    HostGroups,
    NonAll,
    OnAll,
    OnlyOn,
    Transfer,
    TransferFile,
    Return,
    TransferReturnCleanup,
    BaseFile,
    // Where options come from.
    Plain,
    Profile,
    // A semaphore.
    Semaphore,
    Background,
    Foreground,
    Wait,
    SemaphoreName,
    SemaphoreTimeout,
    SemaphoreStarted,
    // Requests to print something.
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
    EnvSetup,
    EnvNames,
    Citation,
    RecordEnv,
}

use Mapping::{Ignore, Interpret, Pass, Unsupported};
use ValueKind::{Optional, OptionalNumber};

const fn flag(names: &'static [&'static str], mapping: Mapping) -> OptionSpec {
    OptionSpec { names, value: ValueKind::None, mapping }
}

const fn value(names: &'static [&'static str], mapping: Mapping) -> OptionSpec {
    OptionSpec { names, value: ValueKind::Required, mapping }
}

const PERL: Mapping = Unsupported("its value is Perl, which minder does not run");
const SQL: Mapping =
    Unsupported("minder keeps no jobs in a database (`minder log --sql` queries the record)");
const TMUX: Mapping = Unsupported(
    "minder opens no windows (--pty gives each job a terminal, --progress shows the running jobs)",
);
const ENV_PARALLEL: Mapping =
    Unsupported("it is an option of env_parallel (eval \"$(minder parallel --env-setup)\")");
const SCRIPT: Mapping =
    Unsupported("it belongs in the first line of a script, in one argument with all other options");

/// Every option that a user may type.
pub(super) const OPTIONS: &[OptionSpec] = &[
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
    OptionSpec { names: &["eof", "e"], value: Optional(None), mapping: Pass("--eof") },
    flag(&["no-run-if-empty", "r"], Pass("--no-run-if-empty")),
    flag(&["shuf"], Pass("--shuf")),
    value(&["arg-sep"], Interpret(OptionKey::ArgSep)),
    value(&["arg-file-sep"], Interpret(OptionKey::ArgFileSep)),
    value(&["total-jobs", "total"], Pass("--total-jobs")),
    // Arguments of a job.
    value(&["max-args", "n"], Pass("--max-args")),
    value(&["max-replace-args", "N"], Pass("--max-replace-args")),
    value(&["L"], Pass("--lines")),
    OptionSpec { names: &["max-lines", "l"], value: OptionalNumber(Some("1")), mapping: Pass("--lines") },
    flag(&["X"], Pass("-X")),
    flag(&["m"], Pass("-m")),
    flag(&["xargs"], Pass("--xargs")),
    value(&["max-chars", "s"], Pass("--max-chars")),
    flag(&["exit", "x"], Pass("--exit")),
    // Placeholders.
    value(&["I"], Pass("--replace")),
    OptionSpec { names: &["replace", "i"], value: Optional(Some("{}")), mapping: Pass("--replace") },
    value(&["extensionreplace", "er"], Pass("--extensionreplace")),
    value(&["basenamereplace", "bnr"], Pass("--basenamereplace")),
    value(&["dirnamereplace", "dnr"], Pass("--dirnamereplace")),
    value(&["basenameextensionreplace", "bner"], Pass("--basenameextensionreplace")),
    value(&["seqreplace"], Pass("--seqreplace")),
    value(&["slotreplace"], Pass("--slotreplace")),
    flag(&["plus"], Pass("--plus")),
    value(&["rpl"], Interpret(OptionKey::Rpl)),
    value(&["template", "tmpl"], Pass("--template")),
    flag(&["quote", "q"], Interpret(OptionKey::Quote)),
    value(&["parens"], PERL),
    value(&["filter"], PERL),
    // Control.
    value(&["jobs", "j", "max-procs", "P"], Interpret(OptionKey::Jobs)),
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
    flag(&["tty"], Interpret(OptionKey::Tty)),
    flag(&["open-tty", "o"], Interpret(OptionKey::OpenTty)),
    flag(&["interactive", "p"], Pass("--interactive")),
    // Processors are counted as the operating system counts them, with hyperthreads.
    flag(&["use-cpus-instead-of-cores"], Ignore),
    flag(&["use-cores-instead-of-threads"], Ignore),
    flag(&["use-sockets-instead-of-threads"], Ignore),
    // Blocks of the input.
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
    flag(&["cat"], Interpret(OptionKey::Cat)),
    flag(&["fifo"], Interpret(OptionKey::Fifo)),
    // Output.
    flag(&["keep-order", "k"], Interpret(OptionKey::KeepOrder)),
    flag(&["no-keep-order"], Interpret(OptionKey::NoKeepOrder)),
    flag(&["line-buffer", "linebuffered", "lb"], Interpret(OptionKey::LineBuffer)),
    flag(&["ungroup", "u"], Interpret(OptionKey::Ungroup)),
    flag(&["group"], Interpret(OptionKey::Group)),
    flag(&["tag"], Interpret(OptionKey::Tag)),
    value(&["tagstring"], Interpret(OptionKey::TagString)),
    flag(&["ctag"], Interpret(OptionKey::ColorTag)),
    value(&["ctagstring"], Interpret(OptionKey::ColorTagString)),
    flag(&["color", "colour"], Interpret(OptionKey::Color)),
    flag(
        &["color-failed", "colour-failed", "color-fail", "colour-fail", "cf"],
        Interpret(OptionKey::ColorFailed),
    ),
    value(&["results", "result", "res"], Interpret(OptionKey::Results)),
    flag(&["output-as-files", "files"], Pass("--files")),
    value(&["tmpdir", "tempdir"], Pass("--tmpdir")),
    flag(&["dry-run"], Pass("--dry-run")),
    flag(&["bar"], Pass("--bar")),
    flag(&["eta"], Pass("--eta")),
    flag(&["progress"], Pass("--progress")),
    flag(&["verbose", "t"], Pass("--verbose")),
    flag(&["v"], Interpret(OptionKey::Print)),
    flag(&["silent"], Interpret(OptionKey::Silent)),
    // Lines stay on the screen; the job's next line does not overwrite them.
    flag(&["latest-line", "ll"], Interpret(OptionKey::LineBuffer)),
    // Waiting output is kept in memory first, then in files that are read once: minder does not
    // compress them.
    flag(&["compress"], Ignore),
    value(&["compress-program", "use-compress-program"], Ignore),
    value(&["decompress-program", "use-decompress-program"], Ignore),
    // The record.
    value(&["joblog", "jl"], Interpret(OptionKey::Joblog)),
    flag(&["resume"], Interpret(OptionKey::Resume)),
    flag(&["resume-failed"], Interpret(OptionKey::ResumeFailed)),
    flag(&["retry-failed"], Interpret(OptionKey::RetryFailed)),
    // Where options come from.
    flag(&["plain", "no-profile"], Interpret(OptionKey::Plain)),
    value(&["profile", "J"], Interpret(OptionKey::Profile)),
    // A semaphore.
    flag(&["semaphore"], Interpret(OptionKey::Semaphore)),
    flag(&["bg"], Interpret(OptionKey::Background)),
    flag(&["fg"], Interpret(OptionKey::Foreground)),
    flag(&["wait"], Interpret(OptionKey::Wait)),
    value(&["semaphore-name", "id"], Interpret(OptionKey::SemaphoreName)),
    value(&["semaphore-timeout", "st"], Interpret(OptionKey::SemaphoreTimeout)),
    // Requests to print something.
    flag(&["help", "h"], Interpret(OptionKey::Help)),
    flag(&["version", "V"], Interpret(OptionKey::Version)),
    value(&["minversion"], Interpret(OptionKey::MinVersion)),
    // According to the manual, both print the number of cores.
    flag(&["number-of-cores", "number-of-cpus"], Interpret(OptionKey::Cores)),
    flag(&["number-of-sockets"], Interpret(OptionKey::Sockets)),
    flag(&["number-of-threads"], Interpret(OptionKey::Threads)),
    flag(&["max-line-length-allowed"], Interpret(OptionKey::LineLength)),
    flag(&["show-limits"], Interpret(OptionKey::ShowLimits)),
    flag(&["shell-quote"], Interpret(OptionKey::ShellQuote)),
    value(&["shell-completion"], Interpret(OptionKey::Completion)),
    OptionSpec { names: &["env-setup"], value: Optional(None), mapping: Interpret(OptionKey::EnvSetup) },
    flag(&["citation", "bibtex"], Interpret(OptionKey::Citation)),
    flag(&["record-env"], Interpret(OptionKey::RecordEnv)),
    // minder prints no citation notice, and always follows GNU parallel.
    flag(&["will-cite"], Ignore),
    flag(&["no-notice", "nn"], Ignore),
    flag(&["gnu"], Ignore),
    // Debug output for the developers of GNU parallel.
    value(&["debug", "D"], Ignore),
    flag(&["cleanup"], Pass("--cleanup")),
    // Other machines.
    value(&["sshlogin", "S"], Interpret(OptionKey::SshLogin)),
    value(&["sshloginfile", "slf"], Interpret(OptionKey::SshLoginFile)),
    value(&["ssh"], Interpret(OptionKey::Ssh)),
    value(&["ssh-delay"], Interpret(OptionKey::SshDelay)),
    flag(&["controlmaster", "M"], Ignore),
    flag(&["hostgroups", "hgrp"], Interpret(OptionKey::HostGroups)),
    flag(&["filter-hosts"], Ignore),
    flag(&["nonall"], Interpret(OptionKey::NonAll)),
    flag(&["onall"], Interpret(OptionKey::OnAll)),
    flag(&["transfer"], Interpret(OptionKey::Transfer)),
    value(&["transferfile", "tf"], Interpret(OptionKey::TransferFile)),
    value(&["return"], Interpret(OptionKey::Return)),
    value(&["trc"], Interpret(OptionKey::TransferReturnCleanup)),
    value(&["basefile", "bf"], Interpret(OptionKey::BaseFile)),
    value(&["rsync-opts"], Ignore),
    // Databases.
    value(&["sql"], SQL),
    value(&["sql-master"], SQL),
    value(&["sql-worker"], SQL),
    value(&["sql-and-worker"], SQL),
    // Shell functions and scripts of GNU parallel.
    flag(&["embed"], Unsupported("minder is one executable file, which a script can ship with")),
    flag(&["session"], ENV_PARALLEL),
    flag(&["end-session"], ENV_PARALLEL),
    value(
        &["_parset"],
        Unsupported("it is internal to the `parset` of GNU parallel; minder's is in --env-setup"),
    ),
    flag(&["tmux"], TMUX),
    flag(&["tmuxpane"], TMUX),
    flag(&["shebang", "hashbang"], SCRIPT),
    flag(&["shebang-wrap"], SCRIPT),
];

/// Internal options, of `sem` for the process that it starts in the background, of env_parallel, and of
/// `--onall` for the processes of its machines.
pub(super) const INTERNAL_OPTIONS: &[OptionSpec] = &[
    value(&["semaphore-started"], Interpret(OptionKey::SemaphoreStarted)),
    value(&["shell"], Interpret(OptionKey::Shell)),
    flag(&["env-names"], Interpret(OptionKey::EnvNames)),
    value(&["only-on"], Interpret(OptionKey::OnlyOn)),
];
