//! `--prune`: what goes by the rule, and what stays all the same.

use std::fs::{self, File};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{State, assert_there};
use crate::cli::{Live, file, scripted};

/// Makes a run look as if nothing was done on it for so many days.
fn grow_old(state: &State, id: &str, days: u32) {
    let then = SystemTime::now() - Duration::from_secs(86_400) * days;
    let at = then.duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let manifest = state.folder(id).join("manifest.json");
    let old = |line: &str| match line.trim_start().starts_with("\"at\":") {
        true => format!("  \"at\": {at}.5,\n"),
        false => format!("{line}\n"),
    };
    let text: String = file(&manifest).lines().map(old).collect();
    fs::write(&manifest, text).expect("room");
    for entry in fs::read_dir(state.folder(id)).expect("a run").flatten() {
        let file = File::options().write(true).open(entry.path()).expect("a file");
        file.set_modified(then).expect("a time");
    }
}

fn run(state: &State, id: &str, days: u32) {
    state.run(id, "KID exit :::", &["0"]).code(0);
    grow_old(state, id, days);
}

/// A run whose second job wrote something that was never shown.
fn unshown(state: &State, id: &str) {
    let go = state.file("go");
    let mut command = state.command("run -k -j2 KID await {} word :::");
    let mut live = Live::start(command.args([&go, &state.file("")]));
    let ended = |text: String| text.contains("\"event\":\"ended\"");
    let journal = |id: &String| ended(file(&state.journal(id)));
    live.until_true("an end in the journal", || state.ids().iter().any(journal));
    live.kill();
    live.finish().killed();
    state.rename_last(id);
    let listed = Live::start(&state.command("log")).finish().code(0);
    assert!(listed.text().contains("killed"), "{}", listed.text());
}

#[test]
fn old_runs_go_and_others_stay() {
    let state = State::new();
    run(&state, "aaaa0001", 99);
    run(&state, "bbbb0002", 31);
    run(&state, "cccc0003", 29);
    let rule = "(limits: 30 days, 1000 runs, 1.0 GiB in total)\n";
    for _ in 0..2 {
        let dry = state.log("--prune --dry-run").code(0);
        let lines: Vec<String> = dry.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("aaaa0001  ") && lines[0].ends_with("  older than 30 days"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("bbbb0002  "), "{lines:?}");
        assert!(
            dry.err.starts_with("minder: 2 runs would be removed, ") && dry.err.ends_with(rule),
            "{dry:?}"
        );
        assert_eq!(state.ids(), ["aaaa0001", "bbbb0002", "cccc0003"]);
    }
    let dry = state.log("--prune --dry-run").code(0).text();
    let real = state.log("--prune").code(0);
    assert_eq!(real.text(), dry);
    assert!(real.err.starts_with("minder: 2 runs removed, ") && real.err.ends_with(rule), "{real:?}");
    assert_eq!(state.ids(), ["cccc0003"]);
    assert_eq!(state.log("--prune").code(0).text(), "");
}

#[test]
fn a_run_that_goes_on_stays() {
    let state = State::new();
    let go = state.file("go");
    let mut command = state.command("run -j1");
    let line = scripted(&mut command, "echo started; exec KID await {} word");
    let mut live = Live::start(line.args([":::".as_ref(), go.as_os_str()]));
    live.until("word of the job", |record| !record.outs[0].is_empty());
    let id = state.ids().remove(0);
    for words in ["--prune --dry-run", "--prune"] {
        grow_old(&state, &id, 99);
        let ended = state.log(words).code(0);
        assert_eq!(ended.text(), "");
        let files = || fs::read_dir(state.folder(&id)).expect("a run").flatten();
        let about: Vec<_> =
            files().map(|it| (it.file_name(), it.metadata().map(|of| of.modified()))).collect();
        let kept = format!("minder: run {id} is kept: it is running\n");
        assert!(ended.err.contains(&kept), "{} {about:?}", ended.err);
    }
    fs::write(&go, "").expect("room");
    live.finish().code(0);
    grow_old(&state, &id, 99);
    assert!(state.log("--prune").code(0).text().starts_with(&id));
    assert_eq!(state.ids(), [""; 0]);
}

#[test]
fn what_was_not_shown_stays_until_it_is_old() {
    let state = State::new();
    unshown(&state, "aaaa0001");
    grow_old(&state, "aaaa0001", 20);
    run(&state, "bbbb0002", 10);
    // Takes more than all may, without a byte on the disk.
    let spill = File::create(state.folder("bbbb0002").join("spill-1-0")).expect("a file");
    spill.set_len((1 << 30) + 1).expect("a large file");
    drop(spill);
    run(&state, "cccc0003", 0);
    for words in ["--prune --dry-run", "--prune"] {
        let ended = state.log(words).code(0);
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
    assert!(state.log("--prune").code(0).text().contains("older than 30 days"));
    assert_eq!(state.ids(), ["cccc0003"]);
}

#[test]
fn what_is_not_ours_stays() {
    let state = State::new();
    run(&state, "aaaa0001", 0);
    fs::write(state.folder("aaaa0001").join("notes.txt"), "mine").expect("room");
    grow_old(&state, "aaaa0001", 99);
    fs::create_dir(state.folder("mine")).expect("a folder");
    let ended = state.log("--prune").code(0);
    assert!(ended.err.contains("run aaaa0001 is kept: `notes.txt` in it is not ours"), "{}", ended.err);
    assert_there(&state.journal("aaaa0001"));
    assert_there(&state.folder("mine"));
}

#[test]
fn a_wrong_clock_costs_no_record_and_does_not_change_the_newest() {
    let state = State::new();
    for id in ["aaaa0001", "bbbb0002", "cccc0003"] {
        run(&state, id, 60);
    }
    // As it is for the first run after the clock was set forth by 60 days.
    fs::remove_file(state.root().join("pruned")).expect("a stamp");
    state.run("dddd0004", "KID exit :::", &["0"]).code(0).says("");
    assert_eq!(state.ids(), ["aaaa0001", "bbbb0002", "cccc0003", "dddd0004"]);
    let manifest = state.folder("dddd0004").join("manifest.json");
    // That clock is right again.
    let text = file(&manifest).replace("\"at\": 1", "\"at\": 2");
    fs::write(&manifest, text).expect("room");
    state.run("eeee0005", "KID exit {} :::", &["5"]).code(1);
    let ids: Vec<String> =
        state.log("").code(0).text().lines().skip(1).map(|line| line[..8].to_owned()).collect();
    assert_eq!(ids, ["eeee0005", "dddd0004", "cccc0003", "bbbb0002", "aaaa0001"]);
    assert!(state.log("last").code(0).text().contains(" 5 "));
    Live::start(&state.command("run --retry-failed last")).finish().code(1);
}

#[test]
fn the_daily_removal_of_what_could_be_resumed_is_said() {
    let state = State::new();
    run(&state, "aaaa0001", 60);
    state.killed("bbbb0002");
    grow_old(&state, "bbbb0002", 60);
    for id in ["cccc0003", "dddd0004"] {
        run(&state, id, 1);
    }
    fs::remove_file(state.root().join("pruned")).expect("a stamp");
    let ended = state.run("eeee0005", "KID exit :::", &["0"]).code(0);
    ended.complains(&["removed the records of 1 old run that could have been resumed: bbbb0002"]);
    assert_eq!(state.ids(), ["cccc0003", "dddd0004", "eeee0005"]);
}
