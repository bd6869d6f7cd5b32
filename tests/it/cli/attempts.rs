//! `minder resume` and `minder retry`: which run they choose, what they say about it, and which of
//! its jobs run.
#![cfg(any(target_os = "linux", windows))]

use std::fs;

use super::record::Place;
use super::{Run, RunOutput, file, input, path, with_script};
#[cfg(unix)]
use super::{is_public, is_root, minder_as};

/// Makes a run of three jobs, killed after its first.
fn killed(place: &Place) {
    let mut command = place.command("run -j1 CHILD append ../log {} :::");
    Run::start(command.args(["one", "two", "three"])).wait().exit_code(0);
    cut(place);
    fs::remove_file(place.at("log")).expect("remove file");
}

/// Removes all after the first job from the only journal of the only run.
fn cut(place: &Place) {
    let journal = place.run().join("attempt-1.jsonl");
    let text = file(&journal);
    let is_kept =
        |line: &&str| !line.contains(r#""event":"over""#) && !line.contains("[2") && !line.contains("[3");
    let rest = text.split_inclusive('\n').filter(is_kept);
    let rest: String =
        rest.filter(|line| !line.contains(r#""job":2"#) && !line.contains(r#""job":3"#)).collect();
    assert!(rest.contains(r#""job":1"#), "{text}");
    fs::write(&journal, rest).expect("write file");
}

/// Returns the journals of the only run.
fn journals(place: &Place) -> usize {
    let names = fs::read_dir(place.run()).expect("list directory").flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with("attempt-")).count()
}

/// A command whose jobs fail unless a file of their name exists.
fn failing(place: &Place, flags: &str, jobs: &[&str]) -> RunOutput {
    let mut command = place.command(&format!("run -j1 {flags}"));
    let line = r#"echo {} >>../log; [ -e {} ] || exit 3"#;
    Run::start(with_script(&mut command, line).arg(":::").args(jobs)).wait()
}

#[test]
fn every_form_of_resume_runs_the_unfinished_jobs() {
    for line in [
        "resume",
        "resume last",
        "resume -j8 ID",
        "resume ID -j8 --keep-order",
        "resume --jobs=2 last --bar",
        "run --resume last -j8",
        "run --resume=last",
        "run --resume=last -j8",
        "run --resume",
        "run -j8 --resume",
        "run --resume-failed",
        "run --resume -j8 ID",
    ] {
        let place = Place::new();
        killed(&place);
        let id = place.id();
        let ended = place.ended(&line.replace("ID", &id)).exit_code(0);
        let mut log: Vec<String> = file(&place.at("log")).lines().map(str::to_owned).collect();
        log.sort();
        assert_eq!(log, ["three", "two"], "{line}");
        // `minder run --resume ID` names nothing that was not named by its id.
        let said = format!("minder: resuming {id}: ");
        assert_eq!(ended.err.starts_with(&said), line != "run --resume -j8 ID", "{line}: {}", ended.err);
        assert!(
            !ended.err.contains("left)") || ended.err.contains("(2 of 3 left)\n"),
            "{line}: {}",
            ended.err
        );
        place.ended("log last").exit_code(0).stderr("");
    }
}

#[test]
fn quiet_resume_names_nothing() {
    let place = Place::new();
    killed(&place);
    assert_eq!(place.ended("resume --quiet -k").exit_code(0).stderr("").text(), "two\nthree\n");
}

#[test]
fn run_that_was_quiet_is_named_by_an_attempt_that_is_not() {
    let place = Place::new();
    place.ended("run --quiet -j1 --halt now,fail=1 CHILD exit ::: 1 0").exit_code(1).stderr("");
    let id = place.id();
    // Its other messages stay quiet.
    let ended = place.ended("resume").exit_code(0);
    assert!(ended.err.starts_with(&format!("minder: resuming {id}: ")), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    place.ended("resume").exit_code(0).error_line(&["nothing to resume: run "]);
    for line in ["resume --quiet", "resume -j1 --quiet last"] {
        place.ended(line).exit_code(0).stderr("");
    }
}

#[test]
fn killed_run_is_resumed_with_more_jobs_at_once() {
    let place = Place::new();
    let mut command = place.command("run -j1 CHILD await DIR/{} {} :::");
    command.args(["one", "two", "three", "four"]);
    fs::write(place.at("one"), "").expect("write file");
    let mut live = Run::start(&command);
    let has_one = || file(&place.run().join("attempt-1.jsonl")).contains(r#""job":1"#);
    live.wait_until_true("the first job", || place.runs().len() == 1 && has_one());
    live.kill();
    live.wait().killed();
    for name in ["two", "three", "four"] {
        fs::write(place.at(name), "").expect("write file");
    }
    let ended = place.ended("resume -j8 --keep-order").exit_code(0).stderr_contains("(3 of 4 left)");
    assert_eq!(ended.text(), "two\nthree\nfour\n");
    place.ended("resume").exit_code(0).error_line(&["nothing to resume: run ", "is complete", "(4 jobs)"]);
}

#[test]
fn run_of_this_directory_is_the_default() {
    let place = Place::new();
    place.ended("resume").exit_code(255).error_line(&["no run is recorded"]);
    killed(&place);
    let id = place.id();
    fs::create_dir(place.at("other")).expect("create directory");
    let elsewhere = |line: &str| {
        let mut command = place.command(line);
        Run::start(command.current_dir(place.at("other"))).wait()
    };
    for line in ["resume", "retry", "run --resume"] {
        let named = format!("the last run of all is {id}: ");
        elsewhere(line).exit_code(255).error_line(&["no run of this directory", &named, "here"]);
    }
    // A later run of another directory is the last of all, and not that of this one.
    elsewhere("run CHILD exit 0 ::: a").exit_code(0);
    let ended = place.ended("resume").exit_code(0).stderr_contains(&format!("resuming {id}: "));
    assert_eq!(ended.text(), "two\nthree\n");
    assert!(elsewhere("resume").exit_code(0).err.contains("nothing to resume"));
}

#[test]
fn wrong_ids_list_similar_runs() {
    let place = Place::new();
    for id in ["61c0aa00", "61c0bb00"] {
        let before = place.runs();
        place.ended("run CHILD exit 0 ::: a").exit_code(0);
        let new = place.runs().into_iter().find(|run| !before.contains(run)).expect("find run");
        fs::rename(&new, new.with_file_name(id)).expect("rename");
    }
    for verb in ["resume", "retry", "run --resume", "log"] {
        let ended = place.ended(&format!("{verb} 61c0")).exit_code(255);
        ended.error_line(&["`61c0` is ambiguous: it matches 2 runs, 61c0aa00 (", "), 61c0bb00 ("]);
        let ended = place.ended(&format!("{verb} 61d0a")).exit_code(255);
        let ended = ended.error_line(&["there is no run `61d0a`", "did you mean 61c0aa00 (", ")?"]);
        assert!(!ended.err.contains("61c0bb00"), "{}", ended.err);
        let ended = place.ended(&format!("{verb} ffff")).exit_code(255).error_line(&["there is no run"]);
        assert!(!ended.err.contains("did you mean"), "{}", ended.err);
        place.ended(&format!("{verb} build")).exit_code(255).error_line(&["invalid run id `build`"]);
    }
}

#[test]
fn complete_run_is_left_as_it_is() {
    let place = Place::new();
    failing(&place, "", &["a", "b"]).exit_code(2);
    let id = place.id();
    let said = ["nothing to resume: run ", "(2 jobs, 2 failed: minder retry ", &id];
    for line in ["resume", "resume last", "resume -j3", "run --resume"] {
        let ended = place.ended(line).exit_code(0).error_line(&said);
        assert_eq!((ended.text().as_str(), journals(&place)), ("", 1), "{line}");
    }
    place.ended("resume --quiet").exit_code(0).stderr("");
    assert!(!place.ended("log").exit_code(0).text().contains("(killed"));
    // Input that came through a pipe is not asked for.
    let place = Place::new();
    Run::start(place.command("run CHILD exit").stdin(input(b"0\n0\n"))).wait().exit_code(0);
    let said = ["nothing to resume: run ", "is complete", "(2 jobs)"];
    place.ended("resume").exit_code(0).error_line(&said);
    Run::start(place.command("resume").stdin(input(b"0\n0\n"))).wait().exit_code(0).error_line(&said);
    place.ended("retry").exit_code(0).error_line(&["nothing to retry: no job of run ", "has failed"]);
    assert_eq!(journals(&place), 1);
}

#[test]
fn retry_runs_failed_jobs_alone() {
    let place = Place::new();
    let log = || file(&place.at("log"));
    fs::write(place.at("here/b"), "").expect("write file");
    failing(&place, "--halt soon,fail=2", &["a", "b", "c", "d", "e"]).exit_code(2);
    assert_eq!(log(), "a\nb\nc\n");
    fs::write(place.at("here/a"), "").expect("write file");
    place.ended("retry --dry-run").exit_code(0).stderr_contains("(2 of 5 failed)");
    assert_eq!(journals(&place), 1);
    let ended = place.ended("retry -j1").exit_code(1);
    ended.stderr_contains(&format!("minder: retrying {}: ", place.id())).stderr_contains("(2 of 5 failed)\n");
    assert_eq!(log(), "a\nb\nc\na\nc\n", "what succeeded or never ran does not run");
    fs::write(place.at("here/c"), "").expect("write file");
    place.ended("retry --retries 2 last").exit_code(0).stderr_contains("(1 of 5 failed)");
    place
        .ended("retry")
        .exit_code(0)
        .error_line(&["nothing to retry", "(3 jobs, not complete: minder resume "]);
    // Two jobs never ran, and a retry does not change that.
    let listed = place.ended("log").exit_code(0).text();
    assert!(listed.contains("enough have failed · 2 left · minder resume "), "{listed}");
    assert_eq!(log(), "a\nb\nc\na\nc\nc\n");
    // The rest fails and succeeds: `--failed` runs both kinds again.
    let first = place.ended("resume -j1 --halt soon,fail=1").exit_code(3).stderr_contains("(2 of 5 left)");
    assert!(first.err.contains("1 not started"), "{}", first.err);
    fs::write(place.at("here/d"), "").expect("write file");
    fs::write(place.at("here/e"), "").expect("write file");
    place.ended("resume --failed -j1").exit_code(0).stderr_contains("(2 of 5 left)");
    assert_eq!(log(), "a\nb\nc\na\nc\nc\nd\nd\ne\n");
    place.ended("resume --failed").exit_code(0).error_line(&["nothing to resume", "(5 jobs)"]);
}

#[test]
fn jobs_of_a_recorded_run_cannot_be_changed() {
    let place = Place::new();
    killed(&place);
    for (flags, said) in [
        ("--results x", "`--results` cannot be changed when a run is resumed: it comes from the record"),
        ("-a x", "`-a` cannot be changed"),
        ("--pipe", "`--pipe` cannot be changed"),
        ("--template a=b", "`--template` cannot be changed"),
        ("--wd x", "`--wd` cannot be changed"),
        ("--env A=b", "`--env` cannot be changed"),
        ("last ./other", "`./other` is one argument too many"),
        ("last ::: a", "`:::` is one argument too many"),
        ("--jbos 3", "unknown flag `--jbos`; did you mean `--jobs`?"),
    ] {
        for verb in ["resume", "retry"] {
            let help = format!("(see `minder {verb} --help`)");
            place.ended(&format!("{verb} {flags}")).exit_code(255).error_line(&[said, &help]);
        }
        if let Some(flags) = flags.strip_prefix("last ").map(|_| "--results x") {
            let ended = place.ended(&format!("run --resume last {flags}")).exit_code(255);
            ended.error_line(&["`--results` cannot be changed"]);
        }
    }
    for line in ["run --resume last ./other", "run --resume=last ./other", "run --resume last -j8 ./other"] {
        place.ended(line).exit_code(255).error_line(&["without a command"]);
    }
    place
        .ended("resume -k -u")
        .exit_code(255)
        .error_line(&["`--keep-order` cannot be used with `--ungroup`"]);
    place.ended("run --resume --joblog ../joblog").exit_code(255).error_line(&["no command given"]);
    assert_eq!((journals(&place), file(&place.at("log"))), (1, String::new()));
}

#[test]
fn run_in_use_is_not_resumed() {
    let place = Place::new();
    let mut live = Run::start(&place.command("run -j1 CHILD await DIR/go {} ::: a"));
    live.wait_until_true("a run", || place.runs().len() == 1 && journals(&place) == 1);
    for line in ["resume", "retry", "run --resume"] {
        place.ended(line).exit_code(255).error_line(&[&place.id(), "by another minder"]);
    }
    fs::write(place.at("go"), "").expect("write file");
    live.wait().exit_code(0);
}

#[test]
fn piped_input_has_to_be_given_again() {
    let place = Place::new();
    let run = |line: &str, bytes: &[u8]| Run::start(place.command(line).stdin(input(bytes))).wait();
    run("run -j1 CHILD exit", b"3\n0\n4\n").exit_code(2);
    let ended = run("retry", b"").exit_code(255).stderr_contains("(2 failed)");
    assert!(
        ended.err.contains("it has 0 lines, and had at least 3 (give it again on standard input)"),
        "{}",
        ended.err
    );
    run("retry", b"3\n1\n4\n").exit_code(255).stderr_contains("job 2 of the input");
    run("retry", b"3\n0\n4\n").exit_code(2).stderr_contains("2 jobs · 2 failed");
}

#[test]
fn arguments_of_any_form_are_given_again() {
    let place = Place::new();
    let odd = ["one", "two words", "new\nline", "-j9", ":::", "$(exit)", "'"];
    let mut command = place.command("run -j1 CHILD echo-args -- {} :::");
    Run::start(command.args(&odd[..4]).args(&odd[5..])).wait().exit_code(0);
    cut(&place);
    let text = place.ended("resume -k").exit_code(0).text();
    for word in &odd[1..3] {
        assert!(text.contains(&format!("{word:?}\n")), "{word:?}: {text}");
    }
    assert!(!text.contains("one"), "{text}");
}

#[cfg(unix)] // Modes of files, and users.
#[test]
fn record_without_permission_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    killed(&place);
    if is_root() {
        if !is_public(super::MINDER) || !is_public(crate::support::TEST_CHILD) {
            return;
        }
        for line in ["resume", "retry last", "log last 1"] {
            let mut command = minder_as("user=65534", line);
            command.env("MINDER_STATE_DIR", place.at("state")).current_dir("/");
            Run::start(&command).wait().exit_code(255).error_line(&[path(&place.at("state")), "denied"]);
        }
        return;
    }
    let manifest = place.run().join("manifest.json");
    fs::set_permissions(&manifest, fs::Permissions::from_mode(0o000)).expect("set permissions");
    for line in ["resume last", "retry last"] {
        place.ended(line).exit_code(255).error_line(&["cannot read the manifest", "denied"]);
    }
}
