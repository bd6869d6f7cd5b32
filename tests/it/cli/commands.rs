//! Runs without a command, in which each argument is a shell line; and scripts without `#!`.

use super::{Run, minder, path, run_to_end, temp_dir};
use crate::support::path_with_test_child;

/// Returns `minder` with these flags, then `:::` and these shell lines. They name test_child without
/// its directory, which may contain spaces.
fn run_lines(flags: &str, lines: &[&str]) -> minder::Command {
    let mut command = minder(flags);
    command.arg(":::").args(lines);
    command.env("PATH", path_with_test_child());
    command
}

#[test]
fn arguments_are_commands_if_no_command_is_given() {
    let ended = Run::start(&run_lines("run -k", &["test_child echo-args one two", "test_child exit 3"]))
        .wait()
        .exit_code(1);
    assert_eq!(ended.text(), "\"one\"\n\"two\"\n");
    let tagged = Run::start(&run_lines("run -k --tag", &["test_child echo-args one"])).wait().exit_code(0);
    assert_eq!(tagged.text(), "test_child echo-args one\t\"one\"\n");
    let listed = Run::start(&run_lines("run --dry-run", &["test_child exit 3", "test_child exit 4"]))
        .wait()
        .exit_code(0);
    assert_eq!(listed.text(), "test_child exit 3\ntest_child exit 4\n");
    run_to_end("run :::").exit_code(0).stderr("");
}

/// A shell interprets the line, and placeholders in it are text.
#[cfg(unix)]
#[test]
fn command_of_an_argument_is_a_shell_line() {
    let lines = ["echo a  b | tr a-z A-Z", "x='{} {#}'; echo \"$x\"", "echo one; exit 2"];
    let ended = Run::start(&run_lines("run -k", &lines)).wait().exit_code(1);
    assert_eq!(ended.text(), "A B\n{} {#}\none\n");
    // As with GNU parallel, several sources make one line of each combination.
    let mut several = minder("run -k");
    several.args([":::", "echo a", "echo b", ":::", "c", "d"]);
    assert_eq!(Run::start(&several).wait().exit_code(0).text(), "a c\na d\nb c\nb d\n");
}

/// Lines of files and of standard input may be file names: `ls | minder run` must not run them.
#[test]
fn lines_are_commands_only_with_the_flag() {
    let dir = temp_dir();
    let list = dir.path().join("list");
    std::fs::write(&list, "test_child echo-args one\ntest_child echo-args two\n").expect("write file");
    for line in ["run -k --commands -a LIST", "run -k --commands :::: LIST", "run -k --commands"] {
        let mut command = minder(&line.replace("LIST", path(&list)));
        command.env("PATH", path_with_test_child()).stdin(std::fs::File::open(&list).expect("open file"));
        assert_eq!(Run::start(&command).wait().exit_code(0).text(), "\"one\"\n\"two\"\n", "{line}");
        let mut without = minder(&line.replace(" --commands", "").replace("LIST", path(&list)));
        without.env("PATH", path_with_test_child()).stdin(std::fs::File::open(&list).expect("open file"));
        let refused = Run::start(&without).wait().exit_code(255);
        let refused = refused.error_line(&["minder run COMMAND", "minder run --commands"]);
        assert_eq!(refused.text(), "", "{line}");
    }
}

/// The record has the lines as the arguments of jobs, and a resumed run runs the rest of them.
#[test]
fn commands_are_recorded_and_resumed() {
    let dir = temp_dir();
    let state = dir.path().join("state");
    let log = dir.path().join("joblog");
    let flags = format!("run -j1 --halt soon,fail=1 --joblog {}", path(&log));
    let start = |command: &mut minder::Command| {
        Run::start(command.env("MINDER_STATE_DIR", &state).env("PATH", path_with_test_child())).wait()
    };
    let lines = ["test_child echo-args one", "test_child exit 3", "test_child echo-args three"];
    let first = start(&mut run_lines(&flags, &lines)).exit_code(3);
    assert_eq!(first.text(), "\"one\"\n");
    let jobs = super::file(&log);
    let second = jobs.lines().nth(2).expect("line of the second job");
    assert!(second.ends_with("\t3\t0\ttest_child exit 3"), "{jobs}");
    let listed = start(&mut minder("log last --csv")).exit_code(0).text();
    assert!(listed.contains("test_child echo-args one"), "{listed}");
    assert!(start(&mut minder("log")).exit_code(0).text().contains(" (commands) "));
    let rest = start(&mut minder("run --resume last")).exit_code(0);
    assert_eq!(rest.text(), "\"three\"\n");
}

/// Each command reads all of the input.
#[cfg(unix)]
#[test]
fn tee_feeds_commands() {
    let mut command = minder("run -k --pipe --tee");
    command.args([":::", "wc -l | tr -d ' '", "tr a-z A-Z"]).stdin(super::input(b"a\nb\n"));
    assert_eq!(Run::start(&command).wait().exit_code(0).text(), "2\nA\nB\n");
}

#[cfg(unix)]
#[test]
fn script_without_first_line_runs() {
    use std::os::unix::fs::PermissionsExt;

    let dir = temp_dir();
    let script = |name: &str, text: &[u8]| {
        std::fs::write(dir.path().join(name), text).expect("write file");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path().join(name), mode).expect("set permissions");
    };
    script("script", b"echo \"$0 <$1>\"; exit 3\n");
    script("foreign", b"\x7fELF\x02\x01\x01\0\n");
    let run = |line: &str| {
        let mut command = minder(line);
        Run::start(command.current_dir(dir.path())).wait()
    };
    let mut command = minder("run ./script :::");
    let ended = Run::start(command.arg("a  b").current_dir(dir.path())).wait().exit_code(1);
    assert_eq!(ended.text(), "./script <a  b>\n");
    assert_eq!(run("relay ./script x").exit_code(3).text(), "./script <x>\n");
    let refused = run("run ./foreign ::: a").exit_code(1);
    assert!(refused.err.contains("neither a program for this system nor a script"), "{}", refused.err);
}

#[cfg(unix)]
#[test]
fn files_that_are_no_scripts_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    let dir = temp_dir();
    let write = |name: &[u8], text: &[u8], mode| {
        let path = dir.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(&path, text).expect("write file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set permissions");
    };
    write(b"n\xffn", b"echo \"<$1>\"\n", 0o755);
    write(b"empty", b"", 0o755);
    write(b"data-behind", b"echo text; exit 0\n\0\x01\x02", 0o755);
    write(b"nul", b"echo a\0b\n", 0o755);
    write(b"plain", b"echo a\n", 0o644);
    write(b"interpreter", b"#!/no/such/shell\necho a\n", 0o755);
    std::fs::create_dir(dir.path().join("dir")).expect("create directory");
    let run = |name: &[u8]| {
        let mut command = minder("run -j1");
        let path = [b"./", name].concat();
        command.arg(std::ffi::OsStr::from_bytes(&path)).args([":::", "A"]);
        Run::start(command.current_dir(dir.path())).wait()
    };
    assert_eq!(run(b"n\xffn").exit_code(0).text(), "<A>\n");
    assert_eq!(run(b"empty").exit_code(0).text(), "");
    assert_eq!(run(b"data-behind").exit_code(0).text(), "text\n");
    let ended = run(b"nul").exit_code(1);
    assert!(ended.err.contains("neither a program for this system nor a script"), "{}", ended.err);
    for (name, why) in [
        (&b"dir"[..], "is a directory"),
        (b"plain", "permission denied"),
        (b"interpreter", "the interpreter named in its first line does not exist"),
        (b"plain/x", "not a directory"),
        (b"gone", "no such file"),
    ] {
        let ended = run(name);
        assert!(ended.err.contains(why) && ended.text().is_empty(), "{}", ended.err);
    }
}
