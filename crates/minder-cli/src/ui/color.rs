//! Colours of messages and of jobs' output, and when they are used.
//!
//! Colours only repeat what the text says: a red line also contains the word failed.

use std::ffi::OsString;
use std::io::{IsTerminal, stderr};

use anstyle::{AnsiColor, Style};
use memchr::memchr2;

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// On a terminal, unless the environment disables them.
    #[default]
    Auto,
    Always,
    Never,
}

/// Adds colours to texts, or returns them unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Palette(bool);

impl Palette {
    /// No colours.
    pub(crate) const PLAIN: Self = Self(false);

    /// Returns the palette for standard error.
    pub(crate) fn stderr(when: When) -> Self {
        Self(
            is_enabled(when, stderr().is_terminal(), &|name| std::env::var_os(name))
                && supports_escapes(&stderr()),
        )
    }

    /// Colours a failure.
    pub(crate) fn failed(self, text: &str) -> String {
        self.styled(text, AnsiColor::Red.on_default())
    }

    /// Colours a warning.
    pub(crate) fn notable(self, text: &str) -> String {
        self.styled(text, AnsiColor::Yellow.on_default())
    }

    /// Colours a success.
    pub(crate) fn done(self, text: &str) -> String {
        self.styled(text, AnsiColor::Green.on_default())
    }

    /// Emphasises the name of a job, a file or a command.
    pub(crate) fn name(self, text: &str) -> String {
        self.styled(text, Style::new().bold())
    }

    /// Dims a detail.
    pub(crate) fn faint(self, text: &str) -> String {
        self.styled(text, Style::new().dimmed())
    }

    fn styled(self, text: &str, style: Style) -> String {
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// Returns `true` if colours are used. The command line takes precedence, then `NO_COLOR`, then
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

/// Returns `true` if stderr is a terminal whose cursor can be moved, whether or not colours are used.
pub(crate) fn can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stderr().is_terminal() && !dumb && supports_escapes(&stderr())
}

/// Returns `true` if the stream accepts escape sequences. A Windows console must enable them first;
/// a file accepts everything.
fn supports_escapes(stream: &impl IsTerminal) -> bool {
    !stream.is_terminal() || anstyle_query::windows::enable_ansi_colors().unwrap_or(true)
}

/// Begins a line of a failed job.
const FAILED: &[u8] = b"\x1b[48;5;196;38;5;231m\x1b[K";
/// Ends a line of a job.
const END: &[u8] = b"\x1b[m";

/// Returns the escape sequences around each line of a job with `--color`. The colours repeat after
/// the last one.
pub(crate) fn job_style(number: u64) -> (Vec<u8>, &'static [u8]) {
    let index = number.saturating_sub(1) % PALETTE.len() as u64;
    let colour = PALETTE[usize::try_from(index).unwrap_or(0)];
    let text = if colour < 0 { "000" } else { "231" };
    (format!("\x1b[48;5;{:03};38;5;{text}m\x1b[K", colour.unsigned_abs()).into_bytes(), END)
}

/// Returns the escape sequences around each line of a failed job with `--color-failed`. GNU parallel
/// does not colour jobs that a signal ended.
pub(crate) fn failed_style() -> (Vec<u8>, &'static [u8]) {
    (FAILED.to_vec(), END)
}

/// Adds a style to each line of one stream, like GNU parallel. A carriage return separates lines as
/// well: the style and the tag are repeated after it. An unterminated last line is terminated.
#[derive(Debug, Default)]
pub(crate) struct LineColorizer {
    /// The next byte continues a line.
    in_line: bool,
}

impl LineColorizer {
    /// Appends `bytes` to `out`. `prefix` is the start of the style, followed by the tag.
    pub(crate) fn push(&mut self, (prefix, suffix): (&[u8], &[u8]), bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.in_line {
                out.extend_from_slice(prefix);
            }
            let end = memchr2(b'\n', b'\r', rest);
            out.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.in_line = true;
            let Some(end) = end else { break };
            out.extend_from_slice(suffix);
            out.push(rest[end]);
            self.in_line = rest[end] == b'\r';
            if self.in_line {
                out.extend_from_slice(prefix);
            }
            rest = &rest[end + 1..];
        }
    }

    /// Returns `true` if the last line is unterminated so far.
    pub(crate) fn is_within(&self) -> bool {
        self.in_line
    }

    /// Terminates the last line at the end of the stream.
    pub(crate) fn finish(&mut self, suffix: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.in_line) {
            out.extend_from_slice(suffix);
            out.push(b'\n');
        }
    }
}

/// The colours of jobs 1, 2, …, observed with GNU parallel 20221122: indices into the 256 colours for
/// the background. The text is black if the index is negative, and white otherwise.
#[rustfmt::skip]
const PALETTE: [i16; 307] = [
    134, 21, 243, -149, 102, -231, 203, -78, 73, -208, 167, -6, 44, 22, 244, -150, 103, -249, 204, -79,
    74, -209, 168, -7, 45, -186, 135, -151, 104, -250, 205, -80, 75, -210, 169, -9, 52, -187, 136, 23,
    245, -251, 206, -81, 76, -211, 170, -10, 53, -188, 137, 24, 246, -152, 105, -82, 77, -212, 171, -11,
    54, -189, 138, 25, 247, -153, 106, -252, 207, -213, 172, -13, 55, -190, 139, 26, 248, -154, 107,
    -253, 208, -83, 78, -14, 56, -191, 140, 27, 249, -155, 108, -254, 209, -84, 79, -214, 173, -192,
    141, 28, 250, -156, 109, 1, 210, -85, 80, -215, 174, -15, 57, 29, -157, 110, 2, 211, -86, 81, -216,
    175, -40, 58, -193, 142, -158, 111, 3, 212, -87, 88, -217, 176, -41, 59, -194, 143, 30, 4, 213,
    -113, 89, -218, 177, -42, 60, -195, 144, 31, -159, 112, -114, 90, -219, 178, -43, 61, -196, 145, 32,
    -171, 113, 5, 214, -220, 180, -44, 62, -197, 146, 33, -172, 114, 6, 232, -115, 91, -45, 63, -198,
    147, 34, -173, 124, 7, 233, -116, 92, -221, 182, -199, 148, 35, -174, 125, 8, 234, -117, 93, -222,
    183, -46, 64, 36, -175, 126, 9, 235, -118, 94, -223, 184, -47, 65, -200, 149, -176, 127, 12, 236,
    -119, 95, -224, 196, -48, 66, -201, 160, 37, 13, 237, -120, 96, -225, 197, -49, 67, -202, 161, 38,
    -177, 128, -121, 97, -226, 198, -50, 68, -203, 162, 39, -178, 129, 16, 238, -227, 199, -51, 69,
    -204, 163, 40, -179, 130, 17, 239, -122, 98, -75, 70, -205, 164, 41, -180, 131, 18, 240, -123, 99,
    -228, 200, -206, 165, 42, -181, 132, 19, 241, -147, 100, -229, 201, -76, 71, 43, -182, 133, 20, 242,
    -148, 101, -230, 202, -77, 72, -207, 166, -185,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn in_environment(when: When, terminal: bool, variables: &[(&str, &str)]) -> bool {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        is_enabled(when, terminal, &find)
    }

    #[test]
    fn colours_are_enabled_on_terminals_by_default() {
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

    #[test]
    fn job_style_follows_gnu_parallel() {
        let style = |number| String::from_utf8(job_style(number).0).expect("output is UTF-8");
        assert_eq!(style(1), "\x1b[48;5;134;38;5;231m\x1b[K");
        assert_eq!(style(2), "\x1b[48;5;021;38;5;231m\x1b[K");
        assert_eq!(style(4), "\x1b[48;5;149;38;5;000m\x1b[K");
        assert_eq!(style(307), "\x1b[48;5;185;38;5;000m\x1b[K");
        assert_eq!([style(308), style(700), style(0)], [style(1), style(86), style(1)]);
        let all: std::collections::BTreeSet<String> = (1..=307).map(style).collect();
        assert_eq!(all.len(), 307, "two of 307 adjacent jobs have the same colours");
        assert_eq!(style(u64::MAX), style((u64::MAX - 1) % 307 + 1));
    }

    /// Returns an output that arrives in these chunks, with styles.
    fn colorized(chunks: &[&str], tag: &str) -> String {
        let mut colorizer = LineColorizer::default();
        let mut out = Vec::new();
        let prefix = format!("<{tag}");
        for chunk in chunks {
            colorizer.push((prefix.as_bytes(), b">"), chunk.as_bytes(), &mut out);
        }
        colorizer.finish(b">", &mut out);
        String::from_utf8(out).expect("output is UTF-8")
    }

    #[test]
    fn colorizer_follows_gnu_parallel() {
        assert_eq!(colorized(&["a\n\nb1"], ""), "<a>\n<>\n<b1>\n");
        assert_eq!(colorized(&["0\nsecond\n"], "0\t"), "<0\t0>\n<0\tsecond>\n");
        assert_eq!(colorized(&["a\r\nb\rc\n"], "1\t"), "<1\ta>\r<1\t>\n<1\tb>\r<1\tc>\n");
        assert_eq!(colorized(&["a\r"], ""), "<a>\r<>\n");
        assert_eq!(colorized(&["\n"], ""), "<>\n");
        assert_eq!(colorized(&[""], ""), "");
        assert_eq!(colorized(&["a", "b\r", "\n", "c", "\nd"], ""), colorized(&["ab\r\nc\nd"], ""));
    }
}
