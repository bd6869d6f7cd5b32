//! `minder log RUN JOB`: everything that is recorded of one job.

use std::fs;

use super::State;
use crate::cli::{Run, script, with_script};

/// Makes a run in which job 2 fails with output on both streams.
fn state() -> State {
    let state = State::new();
    let line = "echo out {}; echo err {} >&2; [ {} != b ] || exit 3";
    let words = [script(line), [":::", "a", "b"].map(str::to_owned).to_vec()].concat();
    state.run("aaaa0001", "-j1 --env GREETING=hello", &words).exit_code(1);
    state
}

/// Returns the text that stands after a label.
fn value_of<'a>(page: &'a str, label: &str) -> &'a str {
    let found = page.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {label}: {page}")).trim_start()
}

#[test]
fn page_shows_everything_about_a_failed_job() {
    let state = state();
    let page = state.log("aaaa 2").exit_code(0).stderr("").text();
    assert!(value_of(&page, "run").starts_with("aaaa0001: "), "{page}");
    assert_eq!(value_of(&page, "job"), "2 of 2");
    let cwd = std::env::current_dir().expect("find directory");
    assert_eq!(value_of(&page, "directory"), cwd.to_str().expect("path is UTF-8"));
    assert_eq!(value_of(&page, "environment"), "GREETING=hello");
    assert!(page.lines().any(|line| line.trim_start().starts_with("PATH=")), "{page}");
    assert_eq!(value_of(&page, "ended"), "exit 3");
    assert!(value_of(&page, "took").contains(" user"), "{page}");
    assert!(value_of(&page, "started").starts_with("20"), "{page}");
    assert!(page.contains("\nstdout      6 B\n    out b\nstderr      6 B\n    err b\n"), "{page}");
    // How it ended comes first, the environment last.
    assert!(page.starts_with("ended       exit 3\ntook "), "{page}");
    let last = page.lines().rev().find(|line| !line.starts_with(' '));
    assert!(last.is_some_and(|line| line.starts_with("environment ")), "{page}");
    // A job that succeeded has no tails.
    let page = state.log("last 1").exit_code(0).text();
    let rest = "6 B (not stored; --keep-output stores it)";
    assert_eq!((value_of(&page, "stdout"), value_of(&page, "ended")), (rest, "exit 0"), "{page}");
}

#[cfg(unix)] // Commands for cmd.exe are not to be pasted.
#[test]
fn command_of_a_job_can_be_pasted() {
    let state = State::new();
    let odd = "it's\n$(exit 9) \"x\"";
    state.run("aaaa0001", "", &["printf '<%s>' {}; exit 4 #", ":::", "plain", odd]).exit_code(2);
    state.log("last 2 --sql x").exit_code(255).error_line(&["cannot be used with"]);
    let json = state.log("last 2 --json").exit_code(0).text();
    let (_, rest) = json.split_once(r#""command":""#).expect("find command");
    let (command, rest) = rest.split_once(r#"","cwd":""#).expect("find end of command");
    let command =
        command.replace(r"\\", "\0").replace(r"\n", "\n").replace(r#"\""#, "\"").replace('\0', r"\");
    let mut shell = minder::Command::new("sh");
    shell.args(["-c", &command]);
    shell.stdin(minder::Stdio::null()).stdout(minder::Stdio::piped()).stderr(minder::Stdio::piped());
    let ended = Run::start(&shell).wait().exit_code(4);
    assert_eq!(ended.text(), format!("<{odd}>"));
    assert!(json.starts_with(r#"{"run":"aaaa0001","job":2,"#) && json.contains(r#""exit":4,"#), "{json}");
    assert!(rest.contains(r#","environment":["#) && rest.ends_with("],\"output\":[]}\n"), "{json}");
    // On a terminal, nothing of it is obeyed, and it stays on its line.
    let page = state.log("last 2").exit_code(0).text();
    assert!(value_of(&page, "command").contains(r"s\n$(exit 9)"), "{page}");
}

#[test]
fn placeholder_of_the_slot_stays_in_a_command() {
    let state = State::new();
    let words = [script("echo {} {%} {#}"), [":::", "a", "b"].map(str::to_owned).to_vec()].concat();
    state.run("aaaa0001", "-j2", &words).exit_code(0);
    let page = state.log("last 2").exit_code(0).text();
    let command = value_of(&page, "command");
    assert!(command.contains("{%}") && !command.contains("{#}"), "{page}");
}

#[test]
fn page_is_ascii_without_utf8() {
    let state = state();
    let mut command = state.command("log last 2");
    let page = Run::start(command.env("LC_ALL", "C")).wait().exit_code(0).text();
    assert!(page.is_ascii() && value_of(&page, "took").contains(" user, "), "{page}");
}

#[test]
fn job_without_a_result_is_explained() {
    let state = state();
    state.log("aaaa 3").exit_code(255).error_line(&["run aaaa0001 has jobs 1 to 2, no job 3"]);
    state.log("aaaa 0").exit_code(255).error_line(&["jobs are counted from 1"]);
    state.log("aaaa x").exit_code(255).error_line(&["[JOB]", "`x`"]);
    state.log("aaaa 1 2").exit_code(255).error_line(&["unexpected argument `2`"]);
    state.cut("aaaa0001", 2, 0);
    state.log("aaaa 2").exit_code(255).error_line(&["has no result", "minder resume aaaa0001"]);
    let go = state.file("go");
    let mut command = state.command("run -j1");
    let line = format!("CHILD await {} {{}}", super::path(&go));
    let mut live = Run::start(with_script(&mut command, &line).args([":::", "a"]));
    let begun = |id: &String| id != "aaaa0001" && state.journal(id).exists();
    live.wait_until_true("a second run", || state.ids().iter().any(begun));
    state.log("last 1").exit_code(255).error_line(&["has not finished yet"]);
    fs::write(&go, "").expect("write file");
    live.wait().exit_code(0);
}

#[test]
fn number_of_runs_is_refused_with_a_run() {
    let state = state();
    state.log("last -n 1").exit_code(255).error_line(&["limits the list of runs", "`minder log last 1`"]);
    state.log("--last").exit_code(255).error_line(&["unknown flag `--last`", "`minder log last`"]);
}

#[test]
fn output_that_waits_is_named_by_its_file() {
    let state = State::new();
    let go = state.file("go");
    let line = format!("[ {{}} != a ] || CHILD await {} x; echo done {{}}", super::path(&go));
    let mut command = state.command("run -k -j2");
    let mut live = Run::start(with_script(&mut command, &line).args([":::", "a", "b"]));
    live.wait_until_true("the second job", || {
        state.ids().first().is_some_and(|id| super::super::file(&state.journal(id)).contains(r#""job":2"#))
    });
    live.kill();
    live.wait().killed();
    let page = state.log("last 2").exit_code(0).text();
    let id = state.ids().remove(0);
    let wanted = format!("; minder resume {id} shows it)");
    assert!(value_of(&page, "stdout").contains("waits in `") && page.contains(&wanted), "{page}");
}

#[test]
fn list_shows_first_arguments_and_how_to_resume_a_run_that_could_not_start() {
    let state = State::new();
    state.run("aaaa0001", "CHILD exit {} :::", &["0", "0", "0", "0", "0"]).exit_code(0);
    let mut piped = state.command("run -j1 CHILD exit");
    Run::start(piped.stdin(super::super::input(b"0\n00\n"))).wait().exit_code(0);
    state.rename_last("bbbb0002");
    state.run("cccc0003", "no-such-program :::", &["a\nb", "c"]).exit_code(255);
    let listed = state.log("").exit_code(0).text();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[1].contains(r"no-such-program ::: a\nb c "), "{listed}");
    assert!(lines[1].ends_with("aborted · 2 left · minder resume cccc"), "{listed}");
    assert!(lines[2].contains("exit ::: 0 00 "), "{listed}");
    assert!(lines[3].contains("exit {} ::: 0 0 0 …"), "{listed}");
    assert_eq!(listed.matches("minder resume").count(), 1, "{listed}");
    let ascii = Run::start(state.command("log").env("LC_ALL", "C")).wait().exit_code(0).text();
    assert!(ascii.is_ascii() && ascii.contains("exit {} ::: 0 0 0 ..."), "{ascii}");
}

#[test]
fn list_offers_only_what_resumes_a_run() {
    let state = State::new();
    let joblog = state.file("job log");
    let joblog = super::path(&joblog);
    let words = [joblog, crate::support::TEST_CHILD, "exit", ":::", "1", "0"];
    let halt = "--halt now,fail=1 -j1";
    // Its record has all that is needed: the joblog is only written.
    state.run("aaaa0001", &format!("{halt} --joblog"), &words).exit_code(1);
    // Where the joblog is, is quoted for a shell.
    let note = |id: &str, note: &str| {
        let listed = state.log("").exit_code(0).text();
        let line = listed.lines().find(|line| line.starts_with(id)).unwrap_or_default();
        assert!(line.ends_with(note), "{listed}");
    };
    note("aaaa", "enough have failed · 1 left · minder resume aaaa");
    fs::remove_file(joblog).expect("remove file");
    let flags = format!("{halt} --resume --joblog");
    state.run("bbbb0002", &flags, &words).exit_code(1);
    note("bbbb", "job log' COMMAND…");
    state.log("bbbb 2").exit_code(255).error_line(&["has no result", "(minder run --resume --joblog "]);
    let mut piped = state.command("run -j1 --pipe --round-robin --halt now,fail=1 CHILD exit 1");
    Run::start(piped.stdin(super::super::input(b"0\n00\n"))).wait().exit_code(1);
    state.rename_last("cccc0003");
    // Nothing is offered.
    let listed = state.log("").exit_code(0).text();
    assert_eq!(listed.matches("resume").count(), 2, "{listed}");
    state.log("cccc 7").exit_code(255).error_line(&["has no result: it did not run, or was cut off"]);
}
