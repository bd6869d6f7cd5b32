//! The command line of xargs.

#[cfg(target_os = "linux")]
use super::TEST_CHILD;
#[cfg(unix)]
use super::path;
use super::{MINDER, Run, RunOutput, arguments, from, input, temp_dir};

/// Runs minder as xargs with these options and this input.
fn xargs(line: &str, bytes: &[u8]) -> RunOutput {
    let mut command = from(MINDER, "xargs");
    command.args(arguments(line)).stdin(input(bytes));
    Run::start(&command).wait()
}

#[test]
fn words_of_the_input_become_arguments() {
    let out = xargs("CHILD echo-args first", b"a 'b c'\n  d\\ e\n");
    assert_eq!(out.exit_code(0).stderr("").text(), "\"first\"\n\"a\"\n\"b c\"\n\"d e\"\n");
    let out = xargs("-n2 CHILD echo-args", b"1 2 3").exit_code(0).stderr("");
    assert_eq!(out.text(), "\"1\"\n\"2\"\n\"3\"\n");
    let out = xargs("-I{} CHILD echo-args <{}>", b"  a b \n\nc\n").exit_code(0).stderr("");
    assert_eq!(out.text(), "\"<a b >\"\n\"<c>\"\n");
    let out = xargs("-0 CHILD echo-args", b"a 'b\0c").exit_code(0).stderr("");
    assert_eq!(out.text(), "\"a 'b\"\n\"c\"\n");
}

#[test]
fn command_runs_once_without_arguments_unless_told_otherwise() {
    assert_eq!(xargs("CHILD echo-args x", b"").exit_code(0).text(), "\"x\"\n");
    assert_eq!(xargs("-r CHILD echo-args x", b"\n").exit_code(0).text(), "");
}

#[test]
fn exit_status_tells_kinds_of_failures_apart() {
    xargs("-n1 CHILD exit", b"0 0").exit_code(0).stderr("");
    xargs("-n1 CHILD exit", b"0 3 0").exit_code(123).stderr("");
    xargs("-n1 CHILD exit", b"255 0").exit_code(124).stderr_contains(": exited with status 255; aborting\n");
    xargs("no-such-command", b"a")
        .exit_code(127)
        .stderr("xargs: no-such-command: No such file or directory\n");
    xargs("-n0", b"").exit_code(1).stderr_contains("xargs: value 0 for -n option should be >= 1\n");
    xargs("CHILD exit", b"'a").exit_code(1).stderr_contains("xargs: unmatched single quote; ");
}

#[test]
fn names_are_in_the_quotes_of_the_locale_and_in_ascii_without_one() {
    for (locale, quoted) in
        [(None, "'no such file'"), (Some("C"), "'no such file'"), (Some("C.UTF-8"), "‘no such file’")]
    {
        let mut command = from(MINDER, "xargs");
        command.args(["-a", "no such file", "echo"]).stdin(input(b""));
        command.env_remove("LC_ALL").env_remove("LC_CTYPE").env_remove("LANG");
        command.envs(locale.map(|locale| ("LANG", locale)));
        Run::start(&command)
            .wait()
            .exit_code(1)
            .stderr_contains(&format!("xargs: Cannot open input file {quoted}: "));
    }
}

/// The program of the jobs is being written, by this process.
#[cfg(target_os = "linux")] // Other systems run such a program.
#[test]
fn program_open_for_writing_is_started_once_it_is_closed() {
    let dir = temp_dir();
    let busy = dir.path().join("busy");
    std::fs::copy(TEST_CHILD, &busy).expect("copy program");
    let open = || std::fs::File::options().append(true).open(&busy).expect("open program");
    let xargs = |options: &str| {
        let mut command = from(MINDER, &format!("xargs {options}"));
        command.arg(&busy).arg("exit").stdin(input(b"0 0"));
        Run::start(&command)
    };
    let file = open();
    let run = xargs("-n1");
    // Shorter than xargs waits.
    crate::support::nap(std::time::Duration::from_millis(200));
    drop(file);
    run.wait().exit_code(0).stderr("");
    let _file = open();
    xargs("-n1").wait().exit_code(126).stderr(&format!("xargs: {}: Text file busy\n", busy.display()));
}

#[test]
fn run_leaves_no_record() {
    let state = temp_dir();
    let mut command = from(MINDER, "xargs CHILD exit 0");
    command.env("MINDER_STATE_DIR", state.path());
    Run::start(&command).wait().exit_code(0).stderr("");
    assert_eq!(std::fs::read_dir(state.path()).expect("list directory").count(), 0);
}

#[cfg(target_os = "linux")] // Guardians.
#[test]
fn jobs_die_with_a_killed_xargs() {
    let mut command = from(MINDER, "xargs sh -c");
    command.arg(format!("echo started; exec '{TEST_CHILD}' await /no/such/file"));
    let mut run = Run::start(&command);
    run.wait_until("job", |record| !record.outs[0].is_empty());
    run.kill();
    // A job that lives on would hold the output, which `wait` refuses.
    run.wait().killed();
}

#[cfg(unix)]
#[test]
fn command_that_needs_a_terminal_ends_the_run_without_one() {
    let mut command = from(MINDER, "xargs -o -n1 CHILD echo-args");
    command.stdin(input(b"a b")).group(minder::Group::Session);
    let out = Run::start(&command).wait().exit_code(125);
    assert_eq!((out.text().as_str(), out.err.lines().count()), ("", 1), "{}", out.err);
    assert!(out.err.starts_with("xargs: ") && out.err.contains("/dev/tty"), "{}", out.err);
}

#[cfg(unix)]
#[test]
fn user_is_asked_on_the_terminal() {
    let dir = temp_dir();
    let list = dir.path().join("list");
    std::fs::write(&list, "a\nb\nc\n").expect("write file");
    let mut command = from(MINDER, &format!("xargs -p -n1 -a {} CHILD echo-args", path(&list)));
    command.group(minder::Group::Terminal(minder::Size::new(24, 300)));
    command.stdin(minder::Stdio::inherit());
    let mut run = Run::start(&command);
    for (value, answer) in [("a", "y\n"), ("b", "no\n"), ("c", "Yes\n")] {
        let question = format!("echo-args {value}?...");
        run.wait_until("a question", |record| super::text(&record.outs[0]).contains(&question));
        run.write(answer.as_bytes());
    }
    let text = run.wait().exit_code(0).text();
    let printed: Vec<bool> = ["\"a\"", "\"b\"", "\"c\""].iter().map(|line| text.contains(line)).collect();
    assert_eq!(printed, [true, false, true], "{text}");
}

/// Starts one job for each of these files, `jobs` at a time: `+NAME` is printed when it starts, `-NAME`
/// when the file is there and the job ends.
#[cfg(target_os = "linux")]
fn waiting_jobs(dir: &std::path::Path, jobs: usize, names: &str) -> Run {
    let mut command = from(MINDER, &format!("xargs -P{jobs} -n1 sh -c"));
    command.arg(format!("echo +$0; '{TEST_CHILD}' await {}/$0; echo -$0", path(dir)));
    command.stdin(input(names.as_bytes()));
    Run::start(&command)
}

#[cfg(target_os = "linux")]
#[test]
fn signals_change_the_number_of_jobs() {
    use rustix::process::Signal;

    /// Long enough for a signal to arrive, and for a job that must not start.
    const WHILE: std::time::Duration = std::time::Duration::from_millis(300);
    let dir = temp_dir();
    let end = |name: &str| std::fs::write(dir.path().join(name), "").expect("write file");
    let has = |text: &'static str| move |log: &crate::cli::ChildLog| super::text(&log.outs[0]).contains(text);

    let mut run = waiting_jobs(dir.path(), 1, "a b c");
    run.wait_until("the first job", has("+a"));
    run.signal(Signal::USR1);
    run.read_for(WHILE);
    end("a");
    run.wait_until("the second job", has("+b"));
    run.wait_until("the third job alongside it", has("+c"));
    end("b");
    end("c");
    run.wait().exit_code(0).stderr("");

    let mut run = waiting_jobs(dir.path(), 2, "d e f");
    run.wait_until("a job", has("+d"));
    run.wait_until("a job alongside it", has("+e"));
    // The number is never 0.
    run.signal(Signal::USR2);
    run.read_for(WHILE);
    run.signal(Signal::USR2);
    run.read_for(WHILE);
    end("d");
    run.wait_until("the end of a job", has("-d"));
    run.read_for(WHILE);
    end("e");
    end("f");
    let text = run.wait().exit_code(0).stderr("").text();
    assert!(text.find("-e") < text.find("+f"), "{text}");
}

#[cfg(unix)]
mod findutils {
    use std::path::Path;

    use minder::Command;

    use super::*;

    /// The lines of the shell whose result has to be that of findutils' xargs.
    const CASES: &str = include_str!("xargs_compat/cases.txt");
    /// The number of cases that run at once.
    const AT_ONCE: usize = 4;
    /// The version whose messages minder has.
    const VERSION: &str = "xargs (GNU findutils) 4.9.0";

    /// A directory with `gnu/xargs`, `our/xargs` and `our/minder`. Names of the same length give both
    /// the same room for arguments.
    struct Programs(tempfile::TempDir);

    impl Programs {
        /// Returns `None` if there is no xargs of this version.
        fn find() -> Option<Self> {
            let mut which = from("bash", "");
            which.args(["-c", "type -P xargs && xargs --version"]);
            let said = Run::start(&which).wait().text();
            if !said.contains(VERSION) {
                return None;
            }
            let gnu = said.lines().next()?;
            let dir = temp_dir();
            for (name, target) in [("gnu/xargs", gnu), ("our/xargs", MINDER), ("our/minder", MINDER)] {
                let link = dir.path().join(name);
                std::fs::create_dir_all(link.parent().expect("a directory")).expect("create directory");
                std::os::unix::fs::symlink(target, link).expect("create symbolic link");
            }
            Some(Self(dir))
        }

        /// Runs a line of bash in a new directory, with `gnu` or `our` first in PATH.
        fn run(&self, first: &str, line: &str) -> RunOutput {
            let dir = temp_dir();
            let files = [
                ("names", "one\ntwo words\nthree\n"),
                ("words", "one 'two words' three\ntwo  four\n"),
                ("hosts", "a\nb\nc\n"),
            ];
            for (name, text) in files {
                std::fs::write(dir.path().join(name), text).expect("write file");
            }
            let variable = std::env::var("PATH").unwrap_or_default();
            let mut bash: Command = from("bash", "");
            bash.args(["-c", line]).current_dir(dir.path());
            bash.env("PATH", format!("{}:{variable}", path(&self.0.path().join(first))));
            Run::start(&bash).wait()
        }
    }

    fn programs() -> Option<Programs> {
        let programs = Programs::find();
        if programs.is_none() {
            crate::support::skip(format_args!("needs {VERSION}"));
        }
        programs
    }

    #[test]
    fn results_are_those_of_findutils() {
        let Some(programs) = programs() else { return };
        let lines: Vec<&str> = CASES.lines().collect();
        let difference = |line: &&str| {
            let [gnu, ours] = ["gnu", "our"].map(|first| programs.run(first, line));
            let is_same = (gnu.status, &gnu.out, &gnu.errors) == (ours.status, &ours.out, &ours.errors);
            (!is_same).then(|| format!("{line}\n  findutils: {gnu:?}\n  minder:    {ours:?}"))
        };
        let wrong: Vec<String> = std::thread::scope(|scope| {
            let parts: Vec<_> = lines
                .chunks(lines.len().div_ceil(AT_ONCE))
                .map(|part| scope.spawn(|| part.iter().filter_map(difference).collect::<Vec<_>>()))
                .collect();
            parts.into_iter().flat_map(|part| part.join().expect("run the cases")).collect()
        });
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        assert!(lines.len() > 150);
    }

    #[test]
    fn habits_of_the_document_print_the_same() {
        let Some(programs) = programs() else { return };
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/from-xargs.md");
        let page = std::fs::read_to_string(page).expect("read the document");
        let mut habits = 0;
        for row in page.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |")) {
            let row = row.replace("\\|", "\u{0}");
            let cells: Vec<String> =
                row.split('|').map(|cell| cell.trim().trim_matches('`').replace('\u{0}', "|")).collect();
            let [_, number, theirs, ours, _] = cells.as_slice() else { panic!("cells of {row}") };
            let gnu = programs.run("gnu", theirs);
            let our = programs.run("our", ours);
            assert_eq!((gnu.text(), gnu.status), (our.text(), our.status), "{number}: {ours}\n{}", our.err);
            // minder reports what ends a run in other words.
            let is_status = ours.contains("--exit-status");
            assert!(is_status || our.err.is_empty(), "{number}: {ours}\n{}", our.err);
            habits += 1;
        }
        assert_eq!(habits, 40);
    }
}
