//! How a template is read.

use std::ffi::OsString;

use crate::placeholder::set::PlaceholderSet;
use crate::value_rules::ValueRules;

/// How a template is read.
#[derive(Debug, Clone)]
pub struct Options {
    /// The placeholders.
    pub placeholders: PlaceholderSet,
    /// The shell of shell lines; [the system's](minder_os::system_paths::system_shell) if there is
    /// none.
    pub shell: Option<OsString>,
    /// What is a shell line.
    pub form: Form,
    /// What is repeated when a job has several arguments.
    pub repeat: Repeat,
    /// The words are run as they stand, whatever characters they hold.
    pub quote: bool,
    /// A column that the input has not is empty; otherwise it is an error.
    pub missing_is_empty: bool,
    /// A template without any placeholder gets the value as a last word.
    pub append: bool,
    /// What values must be.
    pub demand: ValueRules,
}

/// What is a shell line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// One word with blanks or shell characters; other words are run directly.
    #[default]
    Auto,
    /// All words, joined by one blank.
    Line,
}

/// What is repeated when a job has several arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// The value: `a{}b` is `ax yb`.
    #[default]
    Joined,
    /// The word that holds it, with its quotes: `a{}b` is `axb ayb`.
    Context,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            placeholders: PlaceholderSet::default(),
            shell: None,
            form: Form::Auto,
            repeat: Repeat::Joined,
            quote: false,
            missing_is_empty: false,
            append: true,
            demand: ValueRules::default(),
        }
    }
}
