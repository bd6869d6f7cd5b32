//! `--prune`: which runs it removes, and which it keeps.

use std::fs::{self, File};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{State, assert_there};
use crate::cli::{Run, file, with_script};

/// Makes a run look as if it was last changed this many days ago.
fn grow_old(state: &State, id: &str, days: u32) {
    let then = SystemTime::now() - Duration::from_secs(86_400) * days;
    let at = then.duration_since(UNIX_EPOCH).expect("clock is after 1970").as_secs();
    let manifest = state.dir(id).join("manifest.json");
    let old = |line: &str| {
        if line.trim_start().starts_with("\"at\":") {
            format!("  \"at\": {at}.5,\n")
        } else {
            format!("{line}\n")
        }
    };
    let text: String = file(&manifest).lines().map(old).collect();
    fs::write(&manifest, text).expect("write file");
    for entry in fs::read_dir(state.dir(id)).expect("list directory").flatten() {
        let file = File::options().write(true).open(entry.path()).expect("open file");
        file.set_modified(then).expect("set modification time");
    }
}

fn run(state: &State, id: &str, days: u32) {
    state.run(id, "CHILD exit :::", &["0"]).exit_code(0);
    grow_old(state, id, days);
}

/// A run whose second job wrote something that was never shown.
fn unshown(state: &State, id: &str, flags: &str) {
    let go = state.file("go");
    let mut command = state.command(&format!("run -k -j2 {flags} CHILD await {{}} word :::"));
    let mut live = Run::start(command.args([&go, &state.file("")]));
    let ended = |text: String| text.contains("\"event\":\"ended\"");
    let journal = |id: &String| ended(file(&state.journal(id)));
    live.wait_until_true("an end in the journal", || state.ids().iter().any(journal));
    live.kill();
    live.wait().killed();
    state.rename_last(id);
    let listed = Run::start(&state.command("log")).wait().exit_code(0);
    assert!(listed.text().contains("killed"), "{}", listed.text());
}

#[test]
fn prune_removes_old_runs_only() {
    let state = State::new();
    run(&state, "aaaa0001", 99);
    run(&state, "bbbb0002", 31);
    run(&state, "cccc0003", 29);
    let rule = "(limits: 30 days, 1000 runs, 1.0 GiB in total)\n";
    for _ in 0..2 {
        let dry = state.log("--prune --dry-run").exit_code(0);
        let lines: Vec<String> = dry.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("aaaa0001  ") && lines[0].ends_with("  older than 30 days"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("bbbb0002  "), "{lines:?}");
        assert!(dry.err.starts_with("minder: would remove 2 runs; ") && dry.err.ends_with(rule), "{dry:?}");
        assert_eq!(state.ids(), ["aaaa0001", "bbbb0002", "cccc0003"]);
    }
    let dry = state.log("--prune --dry-run").exit_code(0).text();
    let real = state.log("--prune").exit_code(0);
    assert_eq!(real.text(), dry);
    assert!(real.err.starts_with("minder: removed 2 runs; ") && real.err.ends_with(rule), "{real:?}");
    assert_eq!(state.ids(), ["cccc0003"]);
    assert_eq!(state.log("--prune").exit_code(0).text(), "");
}

#[test]
fn prune_keeps_a_running_run() {
    let state = State::new();
    let go = state.file("go");
    let mut command = state.command("run -j1");
    let line = with_script(&mut command, "echo started; exec CHILD await {} word");
    let mut live = Run::start(line.args([":::".as_ref(), go.as_os_str()]));
    live.wait_until("word of the job", |record| !record.outs[0].is_empty());
    let id = state.ids().remove(0);
    for words in ["--prune --dry-run", "--prune"] {
        grow_old(&state, &id, 99);
        let ended = state.log(words).exit_code(0);
        assert_eq!(ended.text(), "");
        let files = || fs::read_dir(state.dir(&id)).expect("list directory").flatten();
        let about: Vec<_> =
            files().map(|it| (it.file_name(), it.metadata().map(|of| of.modified()))).collect();
        let kept = format!("minder: run {id} is kept: it is running\n");
        assert!(ended.err.contains(&kept), "{} {about:?}", ended.err);
    }
    fs::write(&go, "").expect("write file");
    live.wait().exit_code(0);
    grow_old(&state, &id, 99);
    assert!(state.log("--prune").exit_code(0).text().starts_with(&id));
    assert_eq!(state.ids(), [""; 0]);
}

#[test]
fn prune_keeps_unshown_output_until_it_is_old() {
    let state = State::new();
    unshown(&state, "aaaa0001", "");
    grow_old(&state, "aaaa0001", 20);
    run(&state, "bbbb0002", 10);
    // Takes more than all may, without a byte on the disk.
    let spill = File::create(state.dir("bbbb0002").join("spill-1-0")).expect("create file");
    spill.set_len((1 << 30) + 1).expect("set file size");
    drop(spill);
    run(&state, "cccc0003", 0);
    for words in ["--prune --dry-run", "--prune"] {
        let ended = state.log(words).exit_code(0);
        let kept = "minder: run aaaa0001 is kept: it keeps output that was not shown\n";
        assert!(ended.err.starts_with(kept), "{}", ended.err);
        let text = ended.text();
        assert!(
            text.starts_with("bbbb0002  ") && text.ends_with("  1.0 GiB  more than 1.0 GiB in total\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    assert_eq!(state.ids(), ["aaaa0001", "cccc0003"]);
    // Too old for that, too.
    grow_old(&state, "aaaa0001", 31);
    assert!(state.log("--prune").exit_code(0).text().contains("older than 30 days"));
    assert_eq!(state.ids(), ["cccc0003"]);
}

#[test]
fn prune_keeps_unknown_files() {
    let state = State::new();
    run(&state, "aaaa0001", 0);
    fs::write(state.dir("aaaa0001").join("notes.txt"), "mine").expect("write file");
    grow_old(&state, "aaaa0001", 99);
    fs::create_dir(state.dir("mine")).expect("create directory");
    let ended = state.log("--prune").exit_code(0);
    assert!(ended.err.contains("run aaaa0001 is kept: `notes.txt` in it is not ours"), "{}", ended.err);
    assert_there(&state.journal("aaaa0001"));
    assert_there(&state.dir("mine"));
}

#[test]
fn clock_jump_removes_no_record_and_keeps_the_newest_last() {
    let state = State::new();
    for id in ["aaaa0001", "bbbb0002", "cccc0003"] {
        run(&state, id, 60);
    }
    // As it is for the first run after the clock was set forth by 60 days.
    fs::remove_file(state.root().join("pruned")).expect("remove file");
    state.run("dddd0004", "CHILD exit :::", &["0"]).exit_code(0).stderr("");
    assert_eq!(state.ids(), ["aaaa0001", "bbbb0002", "cccc0003", "dddd0004"]);
    let manifest = state.dir("dddd0004").join("manifest.json");
    // That clock is right again.
    let text = file(&manifest).replace("\"at\": 1", "\"at\": 2");
    fs::write(&manifest, text).expect("write file");
    state.run("eeee0005", "CHILD exit {} :::", &["5"]).exit_code(1);
    let ids: Vec<String> =
        state.log("").exit_code(0).text().lines().skip(1).map(|line| line[..8].to_owned()).collect();
    assert_eq!(ids, ["eeee0005", "dddd0004", "cccc0003", "bbbb0002", "aaaa0001"]);
    assert!(state.log("last").exit_code(0).text().contains(" 5 "));
    Run::start(&state.command("run --retry-failed last")).wait().exit_code(1);
}

#[test]
fn daily_prune_reports_resumable_runs_it_removed() {
    let state = State::new();
    run(&state, "aaaa0001", 60);
    state.killed("bbbb0002");
    grow_old(&state, "bbbb0002", 60);
    for id in ["cccc0003", "dddd0004"] {
        run(&state, id, 1);
    }
    fs::remove_file(state.root().join("pruned")).expect("remove file");
    let ended = state.run("eeee0005", "CHILD exit :::", &["0"]).exit_code(0);
    ended.error_line(&["removed the records of 1 old run that could have been resumed: bbbb0002"]);
    assert_eq!(state.ids(), ["cccc0003", "dddd0004", "eeee0005"]);
}

#[test]
fn prune_removes_files_of_jobs_that_a_kill_cut_off() {
    let state = State::new();
    unshown(&state, "aaaa0001", "--spool");
    let spooled = || {
        let names = fs::read_dir(state.dir("aaaa0001")).expect("list directory").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("spill-")).collect();
        names.sort();
        names
    };
    let before = spooled();
    assert!(before.len() > 2, "{before:?}");
    grow_old(&state, "aaaa0001", 6);
    state.log("--prune").exit_code(0);
    assert_eq!(spooled(), before);
    grow_old(&state, "aaaa0001", 8);
    state.log("--prune").exit_code(0);
    let after = spooled();
    assert!(!after.is_empty() && after.len() < before.len(), "{after:?} of {before:?}");
    // What was recorded is shown, and the other job runs again.
    fs::write(state.file("go"), "").expect("write file");
    let resumed = Run::start(&state.command("resume aaaa0001")).wait().exit_code(0);
    assert_eq!(resumed.text(), "word\nword\n");
}
