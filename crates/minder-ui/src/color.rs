//! Colors of messages, and when they are used.
//!
//! Colors only repeat what the text says: a red line also contains the word failed.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};

use anstyle::{AnsiColor, Style};

/// The condition under which colors are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// On a terminal, unless the environment disables them.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Adds colors to texts, or returns them unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette(bool);

impl Palette {
    /// No colors.
    pub const PLAIN: Self = Self(false);

    /// All colors.
    pub const COLORED: Self = Self(true);

    /// Returns the palette for standard error.
    pub fn stderr(when: When) -> Self {
        Self(
            is_enabled(when, stderr().is_terminal(), &|name| std::env::var_os(name))
                && supports_escapes(&stderr()),
        )
    }

    /// Returns the palette for tables on standard output, which have no flag for colors.
    pub fn stdout() -> Self {
        Self(
            is_enabled(When::Auto, stdout().is_terminal(), &|name| std::env::var_os(name))
                && supports_escapes(&stdout()),
        )
    }

    /// Colors a failure.
    pub fn failed(self, text: &str) -> String {
        self.styled(text, AnsiColor::Red.on_default())
    }

    /// Colors a warning.
    pub fn notable(self, text: &str) -> String {
        self.styled(text, AnsiColor::Yellow.on_default())
    }

    /// Colors a success.
    pub fn done(self, text: &str) -> String {
        self.styled(text, AnsiColor::Green.on_default())
    }

    /// Emphasises the name of a job, a file or a command.
    pub fn name(self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    /// Dims a detail.
    pub fn faint(self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Returns `true` if a text without a flag for colors has them.
pub fn supports_colors(is_terminal: bool) -> bool {
    is_enabled(When::Auto, is_terminal, &|name| std::env::var_os(name)) && supports_escapes(&stderr())
}

/// Returns `true` if colors are used. The command line takes precedence, then `NO_COLOR`, then
/// `CLICOLOR_FORCE` and `FORCE_COLOR`, then the properties of the terminal.
fn is_enabled(when: When, terminal: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let is_set =
        |name, off: &[&str]| variable(name).is_some_and(|value| !off.iter().any(|off| value == *off));
    match when {
        When::Always => true,
        When::Never => false,
        // An empty variable counts as unset (https://no-color.org).
        When::Auto if is_set("NO_COLOR", &[""]) => false,
        When::Auto if is_set("CLICOLOR_FORCE", &["", "0"]) || is_set("FORCE_COLOR", &["", "0", "false"]) => {
            true
        }
        When::Auto if variable("CLICOLOR").is_some_and(|value| value == "0") => false,
        When::Auto => terminal && variable("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// Returns `true` if stderr is a terminal whose cursor can be moved, whether or not colors are used.
pub fn can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !dumb && supports_escapes(&stderr())
}

/// Returns `true` if the stream accepts escape sequences. A Windows console must enable them first;
/// a file accepts everything.
fn supports_escapes(stream: &impl IsTerminal) -> bool {
    !stream.is_terminal() || anstyle_query::windows::enable_ansi_colors().unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_environment(when: When, terminal: bool, variables: &[(&str, &str)]) -> bool {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        is_enabled(when, terminal, &find)
    }

    #[test]
    fn colors_are_enabled_on_terminals_by_default() {
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
    fn palette_resets_the_style() {
        assert_eq!(Palette(true).failed("1 failed"), "\x1b[31m1 failed\x1b[0m");
        assert_eq!(Palette::PLAIN.failed("1 failed"), "1 failed");
        assert_eq!(Palette(true).name(""), "");
    }
}
