//! A tour in a real terminal: what a person sees and types, in tmux, with the screens kept as
//! files.
//!
//! Each scene waits for a text on the screen, with a deadline. Times and the like are taken out of
//! a screen before it is compared with the one in `snapshots/`; `INSTA_UPDATE=always` writes those
//! anew.

mod background;
mod locale_and_color;
mod output;
mod screens;
mod streams;
mod widths;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minder::{Command, Stdio};
use regex::Regex;

use super::{MINDER, PATIENCE, file, path, temp_dir};
use crate::support::{self, TEST_CHILD, nap};

/// Patterns of texts that are never the same twice, each with its substitute. Columns behind it
/// need not line up.
const PATTERNS: [(&str, &str); 9] = [
    (r"[⠀-⣿]", "⠿"),
    // The same in a locale without UTF-8.
    (r"^[|/\\-] ", "| "),
    (r"─+", "──"),
    (r"\b[0-9a-f]{8}\b", "RUN"),
    (r" · [0-9.]+× as fast as one at a time", ""),
    // An estimate is there when enough is known.
    (r" · about [^·]* left", ""),
    (r"\d[0-9.]* (ms|s|min|h)\b( \d+ (s|min)\b)?", "TIME"),
    // bash leaves spaces behind its word for a stopped job, as many as it likes.
    (r"(\[1\]\+) +Stopped +", "$1 Stopped "),
    ("\x1b", "␛"),
];

/// The line that follows the summary on a narrow terminal, unless the run was no faster.
const GAIN: &str = r"^minder:   [0-9.]+× as fast as one at a time$";

/// bash in tmux. It ends when this is dropped.
struct Terminal {
    dir: tempfile::TempDir,
}

impl Terminal {
    /// Returns a terminal of 80 columns with a prompt, or `None` without tmux.
    fn open() -> Option<Self> {
        Self::open_with(80, &[])
    }

    /// Returns one of this width, with these variables in the environment.
    fn open_with(columns: u16, variables: &[(&str, &str)]) -> Option<Self> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let there = |name: &str| std::env::split_paths(&paths).any(|dir| dir.join(name).is_file());
        if !there("tmux") || !there("bash") {
            crate::support::skip(format_args!(
                "a tour in a terminal needs tmux and bash; hint: apt-get install tmux bash"
            ));
            return None;
        }
        let terminal = Self { dir: temp_dir() };
        for name in ["bin", "work"] {
            std::fs::create_dir(terminal.at(name)).expect("create directory");
        }
        for (program, name) in [(MINDER, "minder"), (TEST_CHILD, "child")] {
            std::os::unix::fs::symlink(program, terminal.at("bin").join(name)).expect("create symbolic link");
        }
        let settings = "set -g status off\nset -g default-terminal screen-256color\n";
        for (name, text) in [("settings", settings), ("prompt", "PS1='$ '\n")] {
            std::fs::write(terminal.at(name), text).expect("write file");
        }
        let bash = format!("exec bash --rcfile {} -i", path(&terminal.at("prompt")));
        let work = terminal.at("work");
        let columns = columns.to_string();
        let size = ["-x", &columns, "-y", "24"];
        let mut new =
            terminal.command(&[&["new-session", "-d", "-c", path(&work)], &size[..], &[&bash]].concat());
        new.stderr(Stdio::null()).envs(variables.iter().copied());
        // Other tests may have all of the machine's terminals for a while.
        let deadline = Instant::now() + PATIENCE;
        while !new.spawn().and_then(|mut child| child.wait()).is_ok_and(|exit| exit.status.success()) {
            assert!(Instant::now() < deadline, "tmux does not start");
            nap(Duration::from_millis(200));
        }
        terminal.wait_until("a prompt", |screen| screen.trim_end() == "$");
        Some(terminal)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// In the directory in which the shell is.
    fn work(&self, name: &str) -> PathBuf {
        self.at("work").join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", path(&self.at("settings")), "-S", path(&self.at("socket"))]).args(words);
        command
            .stdin(Stdio::null())
            .env("PATH", format!("{}:{}", path(&self.at("bin")), std::env::var("PATH").unwrap_or_default()))
            .env("MINDER_STATE_DIR", self.at("state"))
            .env("HOME", self.at("work"))
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh");
        for name in [
            "TMUX",
            "TMUX_PANE",
            "NO_COLOR",
            "MINDER_BACKEND",
            "MINDER_RUN_NO_STATUS",
            "MAKEFLAGS",
            "PROMPT_COMMAND",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn tmux(&self, words: &[&str]) -> String {
        support::stdout_of(&self.command(words))
    }

    /// Types a line.
    fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.key("Enter");
    }

    /// Leaves nothing on the screen but a prompt.
    #[track_caller]
    fn clear(&self) {
        self.line("clear");
        self.wait_until("an empty screen", |screen| screen.trim_end() == "$");
    }

    fn key(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Returns the screen with wrapped lines joined, since the lengths of some words differ between
    /// runs.
    fn whole_lines(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    /// Waits until the screen is so, and returns it.
    #[track_caller]
    fn wait_until(&self, what: &str, enough: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if enough(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {what} came:\n{screen}");
            nap(Duration::from_millis(20));
        }
    }

    /// Waits until this is on the screen.
    #[track_caller]
    fn wait_for_text(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits for the prompt after a command of which this is seen.
    #[track_caller]
    fn wait_for_prompt(&self, text: &str) -> String {
        self.wait_until("prompt", |screen| screen.contains(text) && screen.trim_end().ends_with("\n$"))
    }

    #[track_caller]
    fn wait_until_true(&self, what: &str, holds: impl Fn() -> bool) {
        self.wait_until(what, |_| holds());
    }

    /// Ends the command line, and shows its status.
    fn status(&self) -> String {
        self.line("echo \"[$?]\"");
        let is_status = |line: &&str| line.starts_with('[') && line.ends_with(']');
        let screen = self.wait_until("a status", |screen| screen.lines().any(|line| is_status(&line)));
        screen.lines().rfind(is_status).unwrap_or_default().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut end = Command::new("tmux");
        end.args(["-S", path(&self.at("socket")), "kill-server"]).stdin(Stdio::null()).stderr(Stdio::null());
        let _ = end.spawn().and_then(|mut child| child.wait());
    }
}

/// Replaces the parts of a screen that differ between runs, and removes the empty lines at its end.
fn even(screen: &str) -> String {
    let patterns = PATTERNS.map(|(pattern, for_it)| (Regex::new(pattern).expect("compile pattern"), for_it));
    let gain = Regex::new(GAIN).expect("compile pattern");
    let lines =
        screen.trim_end().lines().map(str::trim_end).filter(|line| !gain.is_match(line)).map(|line| {
            let even = patterns
                .iter()
                .fold(line.to_owned(), |line, (pattern, it)| pattern.replace_all(&line, *it).into_owned());
            if even == line { even } else { even.split_whitespace().collect::<Vec<_>>().join(" ") }
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the state of a process from `/proc`: `T` is stopped.
fn state(pid: &str) -> String {
    let stat = file(Path::new(&format!("/proc/{}/stat", pid.trim())));
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    state.unwrap_or_default().to_owned()
}

#[test]
fn bar_follows_the_run_and_the_window() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -k -j2 --bar 'child await go {}' ::: one two three");
    let screen = terminal.wait_for_text("0/3 done · 2 running");
    insta::assert_snapshot!("bar", even(&screen));
    terminal.tmux(&["resize-window", "-x", "60", "-y", "24"]);
    let narrow =
        |line: &&str| line.contains("0/3 done") && line.contains("failed") && line.chars().count() < 60;
    let screen =
        terminal.wait_until("a bar for this width", |screen| screen.lines().any(|line| narrow(&line)));
    let bar = screen.lines().find(narrow).unwrap_or_default();
    insta::assert_snapshot!("bar-narrow", even(bar));
    std::fs::write(terminal.work("go"), "").expect("write file");
    // The terminal rewraps its lines without a notice: a part of the wider bar may be left
    // above.
    let screen = terminal.wait_for_prompt("3 jobs");
    assert!(!screen.lines().any(|line| narrow(&line)), "the bar is left on the screen:\n{screen}");
    let words: Vec<&str> = screen.lines().filter(|line| ["one", "two", "three"].contains(line)).collect();
    assert_eq!(words, ["one", "two", "three"], "{screen}");
}

#[test]
fn status_line_follows_the_run_and_the_window() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -k -j2 'child await go-{} {}; test {} != two' ::: one two three");
    let screen = terminal.wait_for_text("0/3 done · 2 running");
    insta::assert_snapshot!("status", even(&screen));
    std::fs::write(terminal.work("go-two"), "").expect("write file");
    terminal.wait_for_text("1/3 done · 2 running · 1 failed");
    terminal.tmux(&["resize-window", "-x", "30", "-y", "24"]);
    let narrow = |line: &str| line.contains("1/3 done · 1 failed") && line.chars().count() < 30;
    terminal.wait_until("a status line for this width", |screen| screen.lines().any(narrow));
    for name in ["go-one", "go-three"] {
        std::fs::write(terminal.work(name), "").expect("write file");
    }
    let screen = terminal.wait_for_prompt("3 jobs");
    assert!(!screen.lines().any(narrow), "the status line is left on the screen:\n{screen}");
    let words: Vec<&str> = screen.lines().filter(|line| ["one", "two", "three"].contains(line)).collect();
    assert_eq!(words, ["one", "two", "three"], "{screen}");
}

#[test]
fn status_line_stays_away_from_the_shell_and_from_readers() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -j1 'child await go {}' ::: one &");
    // Longer than it takes until a status line is shown: the time is the point.
    nap(Duration::from_secs(3));
    assert!(!terminal.screen().contains("running"), "{}", terminal.screen());
    terminal.line("fg");
    terminal.wait_for_text("0/1 done · 1 running");
    std::fs::write(terminal.work("go"), "").expect("write file");
    terminal.wait_for_prompt("1 job");
    // `cat` writes to the terminal when it likes.
    terminal.clear();
    terminal.line("minder run -j1 'child sleep-ms 2500; echo {}' ::: two | cat");
    let screen = terminal.wait_until("the end", |screen| {
        assert!(!screen.contains("running"), "{screen}");
        screen.contains("1 job")
    });
    assert!(screen.contains("\ntwo\n"), "{screen}");
}

#[test]
fn summary_follows_unfinished_lines() {
    let Some(terminal) = Terminal::open() else { return };
    for (flags, left) in [("-u -j1", "x1x2"), ("", "x1x2"), ("-o", "x1x2")] {
        terminal.clear();
        terminal.line(&format!("minder run -j1 {flags} 'printf x{{}}' ::: 1 2"));
        let screen = terminal.wait_for_prompt("2 jobs");
        let mut lines = screen.lines().skip(1);
        assert_eq!(lines.next(), Some(left), "{flags}: {screen}");
        assert!(lines.next().is_some_and(|line| line.starts_with("minder: 2 jobs")), "{flags}: {screen}");
        terminal.clear();
        terminal.line(&format!("minder run -j1 {flags} 'echo x{{}}' ::: 1 2"));
        let screen = terminal.wait_for_prompt("2 jobs");
        let lines: Vec<&str> = screen.lines().skip(1).take(3).collect();
        assert!(lines[..2] == ["x1", "x2"] && lines[2].starts_with("minder: 2 jobs"), "{flags}: {screen}");
    }
}

#[test]
fn terminal_has_its_modes_again_after_a_killed_job() {
    let Some(terminal) = Terminal::open() else { return };
    // A job that exits has set the modes on purpose.
    for (number, (job, left)) in [
        ("stty -echo; kill -9 $$; : {}", "echo"),
        ("stty -echo; : {}", "-echo"),
        ("stty -echo; exec child sleep-ms 600000 {}", "echo"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("minder run --quiet --timeout 1 -o '{job}' ::: 1");
        // In one subshell, since bash sets the modes for its prompt.
        let modes = "stty -a | grep -o -- '-*\\becho\\b'; stty echo";
        terminal.line(&format!("clear; ({run}; {modes}; echo over {number})"));
        let over = format!("\nover {number}\n");
        let screen = terminal.wait_for_prompt(&over);
        let before_over = screen.split(&over).next().and_then(|before| before.lines().last());
        assert_eq!(before_over, Some(left), "{job}: {screen}");
    }
}

#[test]
fn progress_shows_running_jobs() {
    let Some(terminal) = Terminal::open() else { return };
    // Jobs are shown by their age: of two that start at once either may be the older one.
    terminal.line("minder run -k -j2 --progress --delay .2 'child await {} {}' ::: one two three");
    let screen = terminal.wait_until("two jobs", |screen| {
        screen.contains("0/3 done · 2 running")
            && screen.contains("await one")
            && screen.contains("await two")
    });
    insta::assert_snapshot!("progress", even(&screen));
    std::fs::write(terminal.work("one"), "").expect("write file");
    let screen = terminal.wait_until("the next job", |screen| {
        screen.contains("1/3 done · 2 running") && screen.contains("await three")
    });
    insta::assert_snapshot!("progress-later", even(&screen));
    for name in ["two", "three"] {
        std::fs::write(terminal.work(name), "").expect("write file");
    }
    terminal.wait_for_prompt("3 jobs");
    insta::assert_snapshot!("progress-over", even(&terminal.whole_lines()));
}

#[test]
fn first_ctrl_c_cancels_and_second_kills() {
    let Some(terminal) = Terminal::open() else { return };
    let stubborn = terminal.at("bin").join("stubborn");
    std::fs::write(&stubborn, "#!/bin/sh\ntrap '' TERM\nexec child touch $1 600000\n").expect("write file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&stubborn, executable).expect("set permissions");
    terminal.line("minder run -j1 --grace 600 stubborn ::: began more");
    terminal.wait_until_true("a job", || terminal.work("began").exists());
    terminal.key("C-c");
    let screen = terminal.wait_for_text("Ctrl-C again kills them");
    insta::assert_snapshot!("asked", even(&screen));
    // minder counts two keys in quick succession as one request, so the test needs time between them.
    nap(Duration::from_millis(500));
    terminal.key("C-c");
    terminal.wait_for_prompt("to resume:");
    // A status line, which comes after two seconds, erases the echo of the key.
    let screen = even(&terminal.whole_lines()).replace("\n^Cminder: 0 of", "\nminder: 0 of");
    insta::assert_snapshot!("killed", screen);
    assert_eq!(terminal.status(), "[130]");
}

#[test]
fn suspended_run_continues() {
    let Some(terminal) = Terminal::open() else { return };
    let limit = Duration::from_secs(5);
    terminal.line("minder run -j2 --timeout 5 'echo $$ > pid-{}; exec child await go {}' ::: one two");
    let pids = ["pid-one", "pid-two"].map(|name| terminal.work(name));
    terminal.wait_until_true("two jobs", || pids.iter().all(|pid| file(pid).ends_with('\n')));
    let pids = pids.map(|pid| file(&pid));
    terminal.key("C-z");
    terminal.wait_for_prompt("Stopped");
    let stopped = Instant::now();
    insta::assert_snapshot!("suspended", even(&terminal.whole_lines()));
    terminal.wait_until_true("stopped jobs", || pids.iter().all(|pid| state(pid) == "T"));
    // Longer than a job may run: the time is the point.
    while stopped.elapsed() < limit + Duration::from_secs(1) {
        nap(Duration::from_millis(100));
        assert!(pids.iter().all(|pid| state(pid) == "T"), "{:?}", pids.each_ref().map(|pid| state(pid)));
    }
    std::fs::write(terminal.work("go"), "").expect("write file");
    terminal.line("fg");
    let screen = terminal.wait_for_prompt("2 jobs");
    assert!(screen.contains("2 jobs · 0 failed"), "{screen}");
    assert_eq!(terminal.status(), "[0]");
}

#[test]
fn pty_jobs_show_their_colors() {
    let Some(terminal) = Terminal::open() else { return };
    std::fs::create_dir(terminal.work("inner")).expect("create directory");
    terminal
        .line("LS_COLORS='di=32' minder run --quiet --pty -k 'ls --color=auto -d {}' ::: inner; echo over");
    terminal.wait_for_prompt("\nover\n");
    let screen = terminal.tmux(&["capture-pane", "-p", "-e", "-J"]);
    insta::assert_snapshot!("colors", even(&screen));
    assert!(screen.contains("\x1b[32minner"), "{screen:?}");
}
