//! The options of xargs, from the manual of findutils 4.9.0.

/// One option.
#[derive(Debug)]
pub(super) struct OptionSpec {
    /// Its letter, if it has one.
    pub(super) letter: Option<u8>,
    /// Its long name; empty if it has none.
    pub(super) long: &'static str,
    pub(super) value: ValueKind,
    pub(super) key: OptionKey,
}

/// The value of an option: none, required, or optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    None,
    Required,
    /// It may follow in the same argument: `-iX`, `--replace=X`.
    Optional,
}

/// The meaning of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionKey {
    Null,
    ArgFile,
    Delimiter,
    Eof,
    Replace,
    /// `-L`, which requires its value.
    Lines,
    /// `-l`.
    MaxLines,
    MaxArgs,
    OpenTty,
    Interactive,
    NoRunIfEmpty,
    MaxChars,
    Verbose,
    ShowLimits,
    Exit,
    MaxProcs,
    ProcessSlotVar,
    Version,
    Help,
}

const fn option(letter: u8, long: &'static str, value: ValueKind, key: OptionKey) -> OptionSpec {
    OptionSpec { letter: Some(letter), long, value, key }
}

const fn long(long: &'static str, value: ValueKind, key: OptionKey) -> OptionSpec {
    OptionSpec { letter: None, long, value, key }
}

/// Every option, in the order in which an ambiguous name lists them.
pub(super) const OPTIONS: &[OptionSpec] = &[
    option(b'0', "null", ValueKind::None, OptionKey::Null),
    option(b'a', "arg-file", ValueKind::Required, OptionKey::ArgFile),
    option(b'd', "delimiter", ValueKind::Required, OptionKey::Delimiter),
    option(b'e', "eof", ValueKind::Optional, OptionKey::Eof),
    option(b'E', "", ValueKind::Required, OptionKey::Eof),
    option(b'i', "replace", ValueKind::Optional, OptionKey::Replace),
    option(b'I', "", ValueKind::Required, OptionKey::Replace),
    option(b'l', "max-lines", ValueKind::Optional, OptionKey::MaxLines),
    option(b'L', "", ValueKind::Required, OptionKey::Lines),
    option(b'n', "max-args", ValueKind::Required, OptionKey::MaxArgs),
    option(b'o', "open-tty", ValueKind::None, OptionKey::OpenTty),
    option(b'p', "interactive", ValueKind::None, OptionKey::Interactive),
    option(b'r', "no-run-if-empty", ValueKind::None, OptionKey::NoRunIfEmpty),
    option(b's', "max-chars", ValueKind::Required, OptionKey::MaxChars),
    option(b't', "verbose", ValueKind::None, OptionKey::Verbose),
    long("show-limits", ValueKind::None, OptionKey::ShowLimits),
    option(b'x', "exit", ValueKind::None, OptionKey::Exit),
    option(b'P', "max-procs", ValueKind::Required, OptionKey::MaxProcs),
    long("process-slot-var", ValueKind::Required, OptionKey::ProcessSlotVar),
    long("version", ValueKind::None, OptionKey::Version),
    long("help", ValueKind::None, OptionKey::Help),
];
