//! The options of a template.

use std::ffi::OsString;

use crate::placeholder::set::PlaceholderSet;
use crate::value_rules::ValueRules;

/// The options of [`Template::parse`](crate::Template::parse).
#[derive(Debug, Clone)]
pub struct Options {
    /// The placeholders that the template may contain.
    pub placeholders: PlaceholderSet,
    /// The shell of shell lines. The default is the shell of the operating system, `/bin/sh` or
    /// `cmd.exe`.
    pub shell: Option<OsString>,
    /// A pipeline in a line fails if any of its commands does, not only the last (`set -o pipefail`). The
    /// shell must have that option.
    pub pipefail: bool,
    /// The arguments that form a shell line.
    pub form: Form,
    /// The part of the template that is repeated for each argument of a job.
    pub repeat: Repeat,
    /// The arguments are never a shell line, whatever characters they contain.
    pub quote: bool,
    /// A column that the job does not have is empty. Otherwise it is an error.
    pub missing_is_empty: bool,
    /// In a shell line, a word disappears if it consists only of placeholders for such columns. It needs
    /// [`missing_is_empty`](Self::missing_is_empty).
    pub missing_is_omitted: bool,
    /// A template without placeholders gets the value as its last argument.
    pub append: bool,
    /// Values may stand in the program texts of some languages, such as awk and sed, if they are plain
    /// there: each job checks its values. Otherwise such a template is refused.
    pub plain_values_in_program_texts: bool,
    /// The rules that values must satisfy.
    pub value_rules: ValueRules,
}

/// The arguments that form a shell line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// A single argument with spaces or shell characters. Other arguments run without a shell.
    #[default]
    Auto,
    /// All arguments, joined by spaces.
    Line,
}

/// The part of the template that is repeated for each argument of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// The value: `a{}b` becomes `ax yb`.
    #[default]
    Joined,
    /// The word around the placeholder, with its quotes: `a{}b` becomes `axb ayb`.
    Context,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            placeholders: PlaceholderSet::default(),
            shell: None,
            pipefail: false,
            form: Form::Auto,
            repeat: Repeat::Joined,
            quote: false,
            missing_is_empty: false,
            missing_is_omitted: false,
            append: true,
            plain_values_in_program_texts: false,
            value_rules: ValueRules::default(),
        }
    }
}
