//! On a terminal: the bar, the summary, the key for the end, and jobs that want the terminal for
//! themselves.

use std::time::{Duration, Instant};

use minder::{Command, Group, Size, Stdio};
use regex::Regex;
use rustix::process::Signal;

use super::{Run, RunOutput, minder, path, run_to_end, temp_dir};
use crate::support::{CHILD, readable};

/// Returns `minder` with all its streams on a new terminal.
fn on_terminal(line: &str) -> Command {
    on_terminal_of(100, line)
}

/// Returns `minder` with all its streams on a new terminal of this width.
fn on_terminal_of(columns: u16, line: &str) -> Command {
    let mut command = minder(line);
    command
        .group(Group::Terminal(Size::new(24, columns)))
        .stdin(Stdio::inherit())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    command
}

fn shown(command: &Command) -> RunOutput {
    Run::start(command).wait()
}

#[test]
fn summary_is_shown_on_a_terminal_only() {
    let ended = shown(&on_terminal("run -j2 CHILD echo-args ::: a")).exit_code(0);
    assert!(ended.text().starts_with("\"a\"\r\nminder: 1 job · 0 failed · "), "{:?}", ended.text());
    let ended = shown(&on_terminal("run --quiet -j2 CHILD echo-args ::: a")).exit_code(0);
    assert_eq!(ended.text(), "\"a\"\r\n");
    assert_eq!(super::run_to_end("run -j2 CHILD echo-args ::: a").exit_code(0).stderr("").text(), "\"a\"\n");
}

#[test]
fn status_line_is_shown_after_two_seconds_and_erased() {
    for (locale, status) in
        [("C.UTF-8", "0/3 done · 2 running · 0 failed"), ("C", "0/3 done, 2 running, 0 failed")]
    {
        let dir = temp_dir();
        let wait = dir.path().join("wait");
        let mut command = on_terminal(&format!("run -j2 CHILD await {} {{}} ::: one two three", path(&wait)));
        let start = Instant::now();
        let mut live = Run::start(command.env("LC_ALL", locale));
        live.wait_until("a status line", |record| super::text(&record.outs[0]).contains(status));
        assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
        std::fs::write(&wait, "").expect("write file");
        let text = live.wait().exit_code(0).text();
        let screen = screen(&text);
        assert!(!screen.contains(" running"), "the status line is left on the screen:\n{screen}");
        assert!(screen.contains("\nminder: 3 jobs"), "{screen}");
        assert!(locale != "C" || text.is_ascii(), "{text}");
    }
}

#[test]
fn status_line_can_be_disabled() {
    let live: Vec<(&str, Run)> = ["--no-status", "--quiet", "-u", "-o -j1", "MINDER_RUN_NO_STATUS"]
        .into_iter()
        .map(|how| {
            let flags = if how.starts_with('-') { how } else { "" };
            let mut command = on_terminal(&format!("run -j2 {flags} CHILD sleep-ms ::: 2500 2500"));
            if flags.is_empty() {
                command.env(how, "1");
            }
            (how, Run::start(&command))
        })
        .collect();
    let enabled = Run::start(on_terminal("run -j1 CHILD sleep-ms ::: 2500").env("MINDER_RUN_NO_STATUS", "0"));
    for (how, live) in live {
        let text = live.wait().exit_code(0).text();
        assert!(!text.contains("running"), "{how}: {text:?}");
    }
    assert!(enabled.wait().exit_code(0).text().contains("0/1 done · 1 running"));
}

#[test]
fn job_lines_fit_the_terminal_and_begin_on_their_own() {
    let mut command = on_terminal_of(40, "run -k -j1 --status-level pass");
    let long = "x".repeat(60);
    let text =
        shown(command.args(["printf '\\033[31mbegun'; : {}", ":::", &long, "\x1b[2Jy"])).exit_code(0).text();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert!(lines[0] == "\x1b[31mbegun" && lines[2].ends_with("begun"), "{text:?}");
    let color = "\x1b[0m\x1b[32mok\x1b[0m ";
    for line in [lines[1], lines[3]] {
        let line = line.strip_prefix(color).expect("find a line without the color of the job");
        assert!(line.ends_with('…') && line.chars().count() + "ok ".len() < 40, "{text:?}");
    }
    assert!(!text.contains("\x1b[2J"), "{text:?}");
}

#[test]
fn end_of_a_long_run_is_notified() {
    let dir = temp_dir();
    let [seen, bin] = ["seen", "bin"].map(|name| dir.path().join(name));
    std::fs::create_dir(&bin).expect("create directory");
    let program = bin.join("notify-send");
    let script = format!("#!/bin/sh\nprintf '<%s>' \"$@\" >>{}\n", path(&seen));
    std::fs::write(&program, script).expect("write file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("set permissions");
    let paths = format!("{}:{}", path(&bin), std::env::var("PATH").unwrap_or_default());
    let notified = |flags: &str, display: bool, term: &str| {
        let mut command =
            on_terminal(&format!("run {flags} -j1 --quiet CHILD sleep-ms {{}} $(x);`y` ::: 300"));
        command.env("PATH", &paths).env("TERM", term);
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "TMUX"] {
            command.env_remove(name);
        }
        if display {
            command.env("DISPLAY", ":0");
        }
        shown(&command).exit_code(0).text()
    };
    // The name of a run has at most 120 characters.
    let name = format!("{} sleep-ms {{}} $(x);`y`", crate::support::TEST_CHILD);
    let end = name.char_indices().nth(120).map_or(name.len(), |(end, _)| end);
    let name = format!("minder: {}{}", &name[..end], if end < name.len() { "…" } else { "" });
    assert_eq!(notified("--notify", true, "xterm") + &notified("", true, "xterm"), "", "the run was short");
    assert!(!seen.exists());
    assert_eq!(notified("--notify=0.1", true, "xterm"), "");
    let text = super::file(&seen);
    let begin = format!("<--app-name=minder><--><{name}><1 job · 0 failed · ");
    assert!(cfg!(target_os = "macos") || text.starts_with(&begin), "{text}");
    let text = notified("--notify=0.1", false, "xterm");
    let begin = format!("\x1b]9;{}: 1 job · 0 failed · ", name.replace(';', ","));
    assert!(cfg!(target_os = "macos") || (text.starts_with(&begin) && text.ends_with('\x07')), "{text:?}");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").expect("write file");
    assert_eq!(notified("--notify=0.1", true, "screen"), "\x07");
}

#[test]
fn notification_contains_no_control_characters_of_names() {
    for (term, start) in [("xterm", "\x1b]9;minder: "), ("rxvt", "\x1b]777;notify;minder: ")] {
        let mut command = on_terminal("run --notify=0 --quiet -j1 CHILD exit 0");
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "TMUX"] {
            command.env_remove(name);
        }
        command.args(["a\x07\x1b]0;title\x07\x1b[2J\n\u{9b}31m\u{202e}", ":::", "1"]).env("TERM", term);
        let text = shown(&command).exit_code(0).text();
        let ours = text.strip_prefix(start).and_then(|text| text.strip_suffix('\x07'));
        let ours = ours.unwrap_or_else(|| panic!("{text:?}"));
        assert!(!ours.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
        assert!(ours.contains(r"a\x07\x1b]0,title\x07\x1b[2J\n"), "{text:?}");
    }
}

#[test]
fn bar_is_drawn_and_erased() {
    let dir = temp_dir();
    let wait = dir.path().join("wait");
    let line = format!("run -j2 --bar CHILD await {} {{}} ::: one two three", path(&wait));
    let mut live = Run::start(&on_terminal(&line));
    live.wait_until("a bar", |record| {
        super::text(&record.outs[0]).contains("0/3 done · 2 running · 0 failed")
    });
    std::fs::write(&wait, "").expect("write file");
    let ended = live.wait().exit_code(0);
    let screen = screen(&ended.text());
    assert!(!screen.contains(" running"), "the bar is left on the screen:\n{screen}");
    for word in ["one", "two", "three"] {
        assert_eq!(
            screen.lines().filter(|line| line.trim_end() == word).count(),
            1,
            "{screen}\n{:?}",
            ended.text()
        );
    }
    assert!(screen.contains("minder: 3 jobs · 0 failed"), "{screen}");
}

#[test]
fn bar_fits_a_narrow_terminal_and_tears_no_line() {
    let dir = temp_dir();
    let [wait, half] = ["wait", "half"].map(|name| dir.path().join(name));
    let line = format!("run -j2 --bar --lb CHILD await {} {{}} ::: one two three", path(&wait));
    let mut live = Run::start(&on_terminal_of(30, &line));
    live.wait_until("a bar", |record| super::text(&record.outs[0]).contains("0/3 done"));
    std::fs::write(&wait, "").expect("write file");
    let ended = live.wait().exit_code(0);
    for drawn in ended.text().split('\r').filter(|drawn| drawn.contains("done")) {
        let drawn = drawn.split('\x1b').next().unwrap_or_default().trim_start();
        assert!(drawn.chars().count() < 30, "{drawn:?}");
    }
    // A line without an end is not written over.
    let mut command = on_terminal_of(60, "run -j1 --bar");
    command.arg(format!("printf begun; {CHILD} await {{}}")).args([":::", path(&half)]);
    let mut live = Run::start(&command);
    live.wait_until("the bar", |record| super::text(&record.outs[0]).contains("0/1 done"));
    live.wait_until("the bar below the line", |record| {
        let screen = screen(&super::text(&record.outs[0]));
        let mut lines = screen.lines();
        lines.next() == Some("begun") && lines.next().is_some_and(|line| line.contains("0/1 done"))
    });
    std::fs::write(&half, "").expect("write file");
    let ended = live.wait().exit_code(0);
    assert!(screen(&ended.text()).starts_with("begun\n"), "{:?}", ended.text());
}

#[test]
fn list_of_runs_fits_a_narrow_terminal() {
    let dir = temp_dir();
    let listed = |columns| {
        let mut command = on_terminal_of(columns, "log");
        shown(command.env("MINDER_STATE_DIR", dir.path())).exit_code(0).text().replace('\r', "")
    };
    let mut run =
        minder("run -j1 --quiet --halt now,fail=1 CHILD exit ::: 1 2 a-long-argument another-long-argument");
    Run::start(run.env("MINDER_STATE_DIR", dir.path())).wait().exit_code(1);
    let colors = Regex::new("\x1b\\[[0-9;]*m").expect("compile pattern");
    for columns in [50, 58, 70, 80, 99] {
        let colored = listed(columns);
        let text = colors.replace_all(&colored, "");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{columns}:\n{text}");
        assert!(text.contains("enough have failed · 3 left ·"), "{columns}:\n{text}");
    }
    assert!(listed(58).lines().next().is_some_and(|head| head.contains("failed")), "{}", listed(58));
    assert!(listed(50).lines().any(|line| line.starts_with("    enough")), "{}", listed(50));
}

#[test]
fn lost_input_is_asked_for_unless_the_run_is_complete() {
    let dir = temp_dir();
    let mut run = minder("run CHILD exit");
    let run = run.stdin(super::input(b"0\n3\n")).env("MINDER_STATE_DIR", dir.path());
    Run::start(run).wait().exit_code(1);
    let again = |line: &str| shown(on_terminal(line).env("MINDER_STATE_DIR", dir.path()));
    let text = again("resume").exit_code(0).text();
    assert!(text.starts_with("minder: nothing to resume: run ") && text.lines().count() == 1, "{text}");
    for verb in ["retry", "resume --failed"] {
        let text = again(verb).exit_code(255).text();
        let wanted = format!("its input came through a pipe: give the input again, … | minder {verb} ");
        assert!(text.contains(&wanted), "{text}");
    }
}

#[test]
fn ungrouped_output_disables_the_bar() {
    for flags in ["-u --bar", "-u --progress --eta"] {
        let line = format!("run -j1 {flags} CHILD script 3 0 0 ::: a b");
        let text = shown(&on_terminal(&line)).exit_code(0).text();
        assert!(!text.contains("running") && text.contains("minder: 2 jobs · 0 failed"), "{flags}: {text:?}");
    }
}

#[test]
fn summary_starts_on_its_own_line_without_color() {
    let mut command = on_terminal("run -j1");
    command.args(["printf '\\033[31mred %s' {}", ":::", "6"]);
    let text = shown(&command).exit_code(0).text().replace('\r', "");
    assert!(text.starts_with("\x1b[31mred 6\n\x1b[0mminder: 1 job"), "{text:?}");
    let mut command = on_terminal("run -j1");
    let text = shown(command.args(["echo {}", ":::", "6"])).exit_code(0).text();
    assert!(text.starts_with("6\r\nminder: 1 job"), "nothing is added where nothing is left: {text:?}");
}

#[test]
fn summary_escapes_bidirectional_controls() {
    let mut command = minder("run -j1");
    let ended = Run::start(command.args(["false", ":::", "a\u{202e}b"])).wait().exit_code(1);
    assert!(ended.err.contains("failed: false") && !ended.err.contains('\u{202e}'), "{ended:?}");
}

#[test]
fn failures_are_red_if_colors_are_enabled() {
    let ended = shown(&on_terminal("run -j1 CHILD exit ::: 0 1")).exit_code(1);
    assert!(ended.text().contains("\x1b[31m1 failed\x1b[0m"), "{:?}", ended.text());
}

/// Returns the visible text, after carriage returns, erased lines and upward moves of the cursor.
fn screen(bytes: &str) -> String {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let mut row = 0;
    let mut column = 0;
    let mut rest = bytes.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                if lines.len() <= row {
                    lines.push(Vec::new());
                }
            }
            '\x1b' if rest.next_if_eq(&'[').is_some() => {
                let mut number = String::new();
                while let Some(digit) = rest.next_if(|c| c.is_ascii_digit() || *c == '?' || *c == ';') {
                    number.push(digit);
                }
                match rest.next() {
                    Some('K') if number == "2" => lines[row].clear(),
                    Some('K') => lines[row].truncate(column),
                    Some('A') => row = row.saturating_sub(number.parse().unwrap_or(1)),
                    Some('J') => {
                        lines[row].truncate(column);
                        lines.truncate(row + 1);
                    }
                    _ => (),
                }
            }
            c => {
                if lines[row].len() <= column {
                    lines[row].resize(column + 1, ' ');
                }
                lines[row][column] = c;
                column += 1;
            }
        }
    }
    lines.into_iter().map(|line| line.into_iter().collect::<String>() + "\n").collect()
}

#[test]
fn pipe_gets_neither_bar_nor_color() {
    let ended = run_to_end("run --bar -j2 CHILD sleep-ms ::: 150 150").exit_code(0);
    assert!(!ended.err.contains('\x1b') && !ended.err.contains("running"), "{:?}", ended.err);
    for (key, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = on_terminal("run -j1 CHILD exit ::: 0 1");
        let ended = shown(command.env(key, value)).exit_code(1);
        assert!(!ended.text().contains("\x1b["), "{:?}", ended.text());
    }
}

#[test]
fn ctrl_c_counts_as_one_interrupt() {
    // The terminal sends the signal to all processes of the group: to the one that was started and to
    // the runner.
    let dir = temp_dir();
    let mark = dir.path().join("mark");
    let mut command = on_terminal("run -j1 --grace 600");
    command.arg(format!("trap '' TERM; exec {CHILD} touch {{}} 600000")).args([":::", path(&mark)]);
    let mut live = Run::start(&command);
    live.wait_until_true("a job", || mark.exists());
    live.write(b"\x03");
    live.wait_until("an answer", |record| super::text(&record.outs[0]).contains("Ctrl-C again kills them"));
    live.read_for(Duration::from_millis(400));
    assert!(live.record().done.is_none(), "one key is two wishes");
    live.write(b"\x03");
    let ended = live.wait().killed_by(Signal::INT);
    assert!(ended.text().contains("killed by KILL"), "{}", ended.text());
}

#[test]
fn hint_for_jobs_that_use_the_terminal_is_named_once() {
    let mut command = on_terminal("run -j2");
    let text = shown(command.args([&format!("{CHILD} read-tty {{}}"), ":::", "1", "2", "3", "4"]))
        .exit_code(4)
        .text();
    assert_eq!(text.matches("uses the terminal").count(), 4, "{text}");
    assert!(text.matches("--tty").count() == 1 && text.matches("--pty").count() == 1, "{text}");
}

#[test]
fn terminals_of_jobs_follow_the_size_of_the_terminal() {
    let line =
        "trap 'stty size <&1; exit' WINCH; stty size <&1; echo rea''dy {}; while :; do sleep 0.02; done";
    let mut command = on_terminal("run --pty --lb -j2");
    command.args([line, ":::", "1", "2"]);
    let mut child = command.spawn().expect("start run");
    let terminal = child.stdout.take().expect("take terminal");
    let output = std::os::fd::AsFd::as_fd(&terminal).try_clone_to_owned().expect("duplicate");
    let mut reader = std::fs::File::from(output);
    let mut text = String::new();
    let mut piece = [0; 4096];
    let mut read_until = |holds: &dyn Fn(&str) -> bool| {
        while !holds(&text) {
            assert!(readable(std::os::fd::AsFd::as_fd(&reader), super::SOON), "{text:?}");
            let count = std::io::Read::read(&mut reader, &mut piece);
            let count = count.unwrap_or_else(|error| panic!("{error}: {text:?}"));
            text += &super::text(&piece[..count]);
        }
    };
    read_until(&|text| text.contains("ready 1") && text.contains("ready 2"));
    terminal.resize_terminal(Size::new(31, 61)).expect("resize terminal");
    read_until(&|text| text.matches("31 61").count() == 2);
    child.kill_and_wait(minder::Termination::IMMEDIATE).expect("kill run");
}

#[test]
fn signal_at_a_question_ends_the_run() {
    for key in [true, false] {
        let mut live = Run::start(&on_terminal("run -p CHILD exit ::: 0 0"));
        live.wait_until("the question", |record| super::text(&record.outs[0]).contains("?..."));
        if key {
            live.write(b"\x03");
        } else {
            live.signal(Signal::TERM);
        }
        let ended = live.wait().killed_by(if key { Signal::INT } else { Signal::TERM });
        assert!(ended.wall < super::SOON && ended.text().matches("?...").count() == 1, "{ended:?}");
    }
}

#[test]
fn ctrl_c_goes_to_a_job_that_has_the_terminal() {
    // The job handles it, as a debugger does.
    let mut command = on_terminal("run --tty -j1");
    let line = "trap 'echo ca''ught' INT; echo rea''dy {}; sleep 600; echo e''nd {}";
    let mut live = Run::start(command.args([line, ":::", "1", "2"]));
    for job in ["1", "2"] {
        live.wait_until("the job", |record| super::text(&record.outs[0]).contains(&format!("ready {job}")));
        live.read_for(Duration::from_millis(300));
        live.write(b"\x03");
        live.wait_until("its end", |record| super::text(&record.outs[0]).contains(&format!("end {job}")));
    }
    let ended = live.wait().exit_code(0);
    assert_eq!(ended.text().matches("caught").count(), 2, "{}", ended.text());
    // The job dies of it, which ends the run.
    let mut command = on_terminal("run --tty -j1");
    let mut live = Run::start(command.args(["echo rea''dy {}; exec sleep 600", ":::", "1", "2"]));
    live.wait_until("the job", |record| super::text(&record.outs[0]).contains("ready 1"));
    live.read_for(Duration::from_millis(100));
    live.write(b"\x03");
    let ended = live.wait().killed_by(Signal::INT);
    assert!(!ended.text().contains("ready 2"), "{}", ended.text());
    // The job ignores it: another request ends the run.
    let mut command = on_terminal("run --tty -j1");
    let mut live =
        Run::start(command.args(["trap '' INT; echo rea''dy {}; exec sleep 600", ":::", "1", "2"]));
    live.wait_until("the job", |record| super::text(&record.outs[0]).contains("ready 1"));
    live.read_for(Duration::from_millis(200));
    live.write(b"\x03");
    live.read_for(Duration::from_millis(300));
    assert!(live.record().done.is_none(), "the run has ended");
    live.signal(Signal::TERM);
    live.wait().killed_by(Signal::TERM);
}

#[test]
fn ctrl_c_between_short_jobs_ends_the_run() {
    const ROUNDS: u64 = 8;
    let mut repeated = 0;
    for round in 0..ROUNDS {
        let mut command = on_terminal("run --tty --no-record true :::");
        let mut live = Run::start(command.args((0..20_000).map(|job| job.to_string())));
        live.read_for(Duration::from_millis(150 + 20 * round));
        live.write(b"\x03");
        // On a busy machine, a job may take so long that the key was taken for its own.
        while !live.ends_within(Duration::from_secs(1)) {
            repeated += 1;
            live.write(b"\x03");
        }
        live.wait().killed_by(Signal::INT);
    }
    assert!(repeated <= ROUNDS / 2, "{repeated} keys were lost");
}

#[cfg(target_os = "linux")] // There are guardians.
#[test]
fn late_guardian_makes_no_second_request_of_a_key() {
    let mut command = on_terminal("run --tty -j1 --delay 1");
    let line = "trap 'echo ca''ught' INT; echo rea''dy {}; [ {} = 2 ] || sleep 600; echo e''nd {}";
    let mut live = Run::start(command.args([line, ":::", "1", "2"]));
    live.wait_until("the job", |record| super::text(&record.outs[0]).contains("ready 1"));
    live.read_for(Duration::from_millis(100));
    live.signal(Signal::STOP);
    live.write(b"\x03");
    live.wait_until("its end", |record| super::text(&record.outs[0]).contains("end 1"));
    live.read_for(Duration::from_millis(200));
    live.signal(Signal::CONT);
    let ended = live.wait().exit_code(0);
    let text = ended.text();
    assert!(text.matches("caught").count() == 1 && text.contains("end 2"), "{text}");
}

#[test]
fn job_that_reads_the_terminal_is_reported_and_ended() {
    let mut command = on_terminal("run -j2");
    command
        .arg(format!("case {{}} in ask) {CHILD} read-tty;; *) echo {{}};; esac"))
        .args([":::", "ask", "fine"]);
    let ended = shown(&command).exit_code(1);
    let text = ended.text();
    assert!(text.contains("fine\r\n") && text.contains("uses the terminal"), "{text}");
    assert!(text.contains("pass its input in a file"), "{text}");
    assert!(ended.wall < super::SOON, "{:?}", ended.wall);
}

#[test]
fn arguments_are_read_from_a_terminal() {
    let mut live = Run::start(&on_terminal("run -j1 CHILD echo-args"));
    live.wait_until("a word about it", |record| super::text(&record.outs[0]).contains("Ctrl-D ends them"));
    live.write(b"hello\n");
    live.wait_until("the job", |record| super::text(&record.outs[0]).contains("\"hello\""));
    live.write(b"\x04");
    live.wait().exit_code(0);
}

#[test]
fn jobs_have_no_terminal() {
    let ended = shown(&on_terminal("run -j1 CHILD fds ::: 1")).exit_code(0);
    assert!(!ended.text().contains("/dev/pts") && !ended.text().contains("/dev/tty"), "{}", ended.text());
}

#[test]
fn bench_reports_progress() {
    let text = shown(&on_terminal("bench wait --rounds 2 --objects 2 --mechanism poll")).exit_code(0).text();
    assert!(text.contains("\rwait: poll, 2 objects, round 1 of 2\x1b[K"), "{text:?}");
    assert!(text.contains("\rwait: poll, 2 objects, round 2 of 2, about 1 s left\x1b[K"), "{text:?}");
    // The line is gone when the table comes.
    assert!(text.contains("\r\x1b[KCPU time of one wait, all threads, median of 2 rounds:"), "{text:?}");
}
