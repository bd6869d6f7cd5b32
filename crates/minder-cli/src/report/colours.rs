//! Whether what people read may have colours, which ones, and the colours that tell jobs apart.
//!
//! Colour is never the only bearer of a fact: what is red is called failed as well.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr};

use anstyle::{AnsiColor, Style};

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    Always,
    Never,
}

/// Paints words, or leaves them as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette(bool);

impl Palette {
    /// No colours.
    pub(crate) const PLAIN: Self = Self(false);

    /// As standard error takes it.
    pub(crate) fn stderr(when: When) -> Self {
        Self(wanted(when, stderr().is_terminal(), &|name| std::env::var_os(name)) && obeyed(&stderr()))
    }

    /// What went wrong.
    pub(crate) fn failed(self, text: &str) -> String {
        self.styled(text, AnsiColor::Red.on_default())
    }

    /// What somebody should know, though nothing went wrong.
    pub(crate) fn notable(self, text: &str) -> String {
        self.styled(text, AnsiColor::Yellow.on_default())
    }

    /// What is done.
    pub(crate) fn done(self, text: &str) -> String {
        self.styled(text, AnsiColor::Green.on_default())
    }

    /// The name of a job, a file, a command.
    pub(crate) fn name(self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    /// What matters least.
    pub(crate) fn faint(self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Whether the environment and the person want colours: what was said on the command line first,
/// then `NO_COLOR`, then `CLICOLOR_FORCE` and `FORCE_COLOR`, then what the terminal can do.
fn wanted(when: When, terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let says = |name, no: &[&str]| variable(name).is_some_and(|value| !no.iter().any(|no| value == *no));
    match when {
        When::Always => true,
        When::Never => false,
        // An empty variable says nothing, as https://no-color.org has it.
        When::Auto if says("NO_COLOR", &[""]) => false,
        When::Auto if says("CLICOLOR_FORCE", &["", "0"]) || says("FORCE_COLOR", &["", "0", "false"]) => true,
        When::Auto if variable("CLICOLOR").is_some_and(|value| value == "0") => false,
        When::Auto => terminal && variable("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// Whether the terminal can be drawn on: a cursor that moves, whatever is thought of colours.
pub(crate) fn can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !dumb && obeyed(&stderr())
}

/// Whether escape sequences are obeyed. A Windows console has to be asked to; a file takes all.
fn obeyed(stream: &impl IsTerminal) -> bool {
    !stream.is_terminal() || anstyle_query::windows::enable_ansi_colors().unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_environment(when: When, terminal: bool, variables: &[(&str, &str)]) -> bool {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        wanted(when, terminal, &find)
    }

    #[test]
    fn colours_are_for_terminals_unless_somebody_says_otherwise() {
        let auto = |terminal, variables: &[(&str, &str)]| in_environment(When::Auto, terminal, variables);
        assert!(auto(true, &[]) && !auto(false, &[]));
        assert!(auto(true, &[("TERM", "xterm")]) && !auto(true, &[("TERM", "dumb")]));
        assert!(!auto(true, &[("NO_COLOR", "1")]) && auto(true, &[("NO_COLOR", "")]));
        for name in ["CLICOLOR_FORCE", "FORCE_COLOR"] {
            assert!(auto(false, &[(name, "1")]) && auto(true, &[(name, "1"), ("TERM", "dumb")]));
            assert!(!auto(false, &[(name, "0")]) && !auto(false, &[(name, "")]));
            assert!(!auto(true, &[(name, "1"), ("NO_COLOR", "1")]));
        }
        assert!(!auto(true, &[("CLICOLOR", "0")]) && !auto(false, &[("CLICOLOR", "1")]));
        assert!(in_environment(When::Always, false, &[("NO_COLOR", "1")]));
        assert!(!in_environment(When::Never, true, &[("CLICOLOR_FORCE", "1")]));
    }

    #[test]
    fn paint_is_taken_off_again() {
        assert_eq!(Palette(true).failed("1 failed"), "\x1b[31m1 failed\x1b[0m");
        assert_eq!(Palette::PLAIN.failed("1 failed"), "1 failed");
        assert_eq!(Palette(true).name(""), "");
    }
}
