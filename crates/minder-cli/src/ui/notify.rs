//! `--notify`: tells the user that a long run has ended, on the desktop or through the terminal.
//!
//! The texts are arguments of a program or the content of a control string. No part of them is run as
//! code, and none contains a control character.

use std::ffi::OsString;
use std::time::Duration;

use minder::{Command, Stdio};

use minder_ui::color::can_draw;
use minder_ui::write_stderr;

/// The longest time for which the program that shows the notification may run.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(2);
/// A script for osascript(1), which takes the texts as arguments.
const APPLE_SCRIPT: [&str; 6] =
    ["-e", "on run {title, body}", "-e", "display notification body with title title", "-e", "end run"];

/// Shows a notification. Errors are ignored.
pub(crate) fn notify(title: &str, body: &str) {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_shown = desktop_command(std::env::consts::OS, &variable, title, body).is_some_and(|command| {
        command.output_timeout(PROGRAM_TIMEOUT).is_ok_and(|output| output.status.success())
    });
    if !is_shown && can_draw() {
        write_stderr(terminal_text(std::env::consts::OS, &variable, title, body).as_bytes());
    }
}

/// Returns the command that shows a notification on the desktop, if there is a desktop.
fn desktop_command(
    system: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
    title: &str,
    body: &str,
) -> Option<Command> {
    let has_display = variable("DISPLAY").is_some() || variable("WAYLAND_DISPLAY").is_some();
    let mut command = match system {
        "macos" => {
            let mut command = Command::new("osascript");
            command.args(APPLE_SCRIPT).args([title, body]);
            command
        }
        "windows" => return None,
        _ if has_display => {
            let mut command = Command::new("notify-send");
            // The body may contain markup.
            let body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            command.args(["--app-name=minder", "--", title, &body]);
            command
        }
        _ => return None,
    };
    command.stdin(Stdio::null());
    Some(command)
}

/// Returns what makes the terminal notify the user: a control string (OSC) that it is likely to know, or
/// the bell. Multiplexers do not pass control strings on.
fn terminal_text(
    system: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
    title: &str,
    body: &str,
) -> String {
    let term = variable("TERM").unwrap_or_default().to_string_lossy().into_owned();
    let is_multiplexer = variable("TMUX").is_some() || term.starts_with("screen") || term.starts_with("tmux");
    if is_multiplexer || term == "linux" || system == "windows" {
        return "\x07".to_owned();
    }
    // A semicolon separates the parameters.
    let [title, body] = [title, body].map(|text| text.replace(';', ","));
    if term.contains("rxvt") {
        format!("\x1b]777;notify;{title};{body}\x07")
    } else {
        format!("\x1b]9;{title}: {body}\x07")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        |name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
    }

    #[test]
    fn texts_are_arguments() {
        let words = |system, variables| {
            let command = desktop_command(system, &with(variables), "-t $(x)", "a <b> & c")?;
            let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
            Some((command.get_program().to_owned(), words.collect::<Vec<_>>()))
        };
        let (program, args) = words("linux", &[("DISPLAY", ":0")]).expect("find a desktop");
        assert_eq!(program, "notify-send");
        assert_eq!(args, ["--app-name=minder", "--", "-t $(x)", "a &lt;b&gt; &amp; c"]);
        assert_eq!(words("freebsd", &[("WAYLAND_DISPLAY", "wayland-0")]).map(|(_, args)| args), Some(args));
        let (program, args) = words("macos", &[]).expect("find a desktop");
        assert_eq!(
            (program.to_str(), &args[6..]),
            (Some("osascript"), &["-t $(x)".into(), "a <b> & c".into()][..])
        );
        assert!(words("linux", &[]).is_none() && words("windows", &[("DISPLAY", ":0")]).is_none());
    }

    #[test]
    fn terminal_gets_what_it_knows() {
        let text = |system, variables| terminal_text(system, &with(variables), "t;u", "b");
        assert_eq!(text("linux", &[("TERM", "xterm-256color")]), "\x1b]9;t,u: b\x07");
        assert_eq!(text("linux", &[("TERM", "rxvt-unicode")]), "\x1b]777;notify;t,u;b\x07");
        for variables in [
            &[("TERM", "screen-256color")][..],
            &[("TERM", "tmux")],
            &[("TERM", "xterm"), ("TMUX", "/tmp/tmux-0/default,1,0")],
            &[("TERM", "linux")],
        ] {
            assert_eq!(text("linux", variables), "\x07", "{variables:?}");
        }
        assert_eq!(text("windows", &[]), "\x07");
    }
}
