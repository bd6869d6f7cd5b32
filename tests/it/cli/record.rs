//! The content of the record of a run, and joblogs: ours and GNU parallel's.

mod joblog;
mod measured;

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use minder::{Command, Stdio};

use super::{Run, RunOutput, file, input, minder, path, temp_dir, with_script};
#[cfg(unix)]
use crate::support::CHILD;

/// Its own state directory, and a directory to work in.
pub(super) struct Place(tempfile::TempDir);

impl Place {
    pub(super) fn new() -> Self {
        let place = Self(temp_dir());
        fs::create_dir(place.at("here")).expect("create directory");
        place
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = minder(&line.replace("DIR", path(self.0.path())));
        command.env("MINDER_STATE_DIR", self.at("state")).current_dir(self.at("here"));
        command
    }

    pub(super) fn ended(&self, line: &str) -> RunOutput {
        Run::start(&self.command(line)).wait()
    }

    /// Returns the directories of all runs.
    pub(super) fn runs(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.at("state/runs")).into_iter().flatten().flatten();
        found.map(|entry| entry.path()).collect()
    }

    /// Returns the directory of the only run.
    pub(super) fn run(&self) -> PathBuf {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }

    pub(super) fn id(&self) -> String {
        self.run().file_name().expect("path has a file name").to_string_lossy().into_owned()
    }
}

/// Everything below a directory.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while at < found.len() {
        if found[at].is_dir() && !found[at].is_symlink() {
            let inner = fs::read_dir(&found[at]).expect("list directory").flatten().map(|entry| entry.path());
            found.extend(inner);
        }
        at += 1;
    }
    found
}

/// Returns a command that fails for arguments that begin with `b`, until a file `fixed` exists.
fn fails_first(place: &Place) -> String {
    let fixed = place.at("fixed");
    format!(
        r#"echo {{}} >>../log; echo "out {{}}"; case {{}} in b*) [ -e {} ] || exit 3;; esac"#,
        path(&fixed)
    )
}

const INPUT: [&str; 6] = [":::", "a1", "b2", "a3", "b4", "a5"];

#[test]
fn resume_failed_runs_only_failed_jobs() {
    for (flag, again) in [("--resume-failed", "b2\nb4\n"), ("--retry-failed", "b2\nb4\n"), ("--resume", "")] {
        let place = Place::new();
        let mut command = place.command("run -k -j1");
        Run::start(with_script(&mut command, &fails_first(&place)).args(INPUT)).wait().exit_code(2);
        fs::write(place.at("fixed"), "").expect("write file");
        fs::remove_file(place.at("log")).expect("remove file");
        let ended = place.ended(&format!("run {flag} {}", place.id())).exit_code(0);
        assert_eq!(file(&place.at("log")), again, "{flag}");
        assert_eq!(ended.text(), again.lines().map(|job| format!("out {job}\n")).collect::<String>());
        let ended = place.ended(&format!("run --retry-failed {}", place.id())).exit_code(0);
        // After --resume, the failed jobs are still to be retried.
        let wanted = if flag == "--resume" { "" } else { "minder: no job has failed: nothing was run\n" };
        assert_eq!(ended.err, wanted, "{flag}");
        assert_eq!(file(&place.at("log")).lines().count(), 2, "{flag}: what failed ran again once");
    }
}

/// A run that is taken up again checks its values as before, or by a flag that
/// is given then.
#[cfg(unix)] // The line is one for a POSIX shell.
#[test]
fn resume_checks_values_again() {
    let place = Place::new();
    let check = |ended: RunOutput, code: i32, text: &str, refused: Option<&str>| {
        let ended = ended.exit_code(code);
        assert_eq!(ended.text(), text);
        let said = refused.map(|only| format!("the value `x` does not match `--only {only}`"));
        assert_eq!(ended.err.contains("does not match"), refused.is_some(), "{}", ended.err);
        assert!(said.is_none_or(|said| ended.err.contains(&said)), "{}", ended.err);
    };
    let mut command = place.command("run -k -j1 --only [0-9]+");
    let line = format!("echo $(( {{}} + 1 )); [ -e {} ]", path(&place.at("fixed")));
    let ended = Run::start(with_script(&mut command, &line).args([":::", "1", "x", "3"])).wait();
    check(ended, 3, "2\n4\n", Some("[0-9]+"));
    fs::write(place.at("fixed"), "").expect("write file");
    let id = place.id();
    let again = |flags: &str| place.ended(&format!("run {flags} {id}"));
    // A value that was refused has ended: nothing is left to do.
    check(again("--resume"), 0, "", None);
    check(again("--resume-failed"), 1, "2\n4\n", Some("[0-9]+"));
    check(again("--resume-failed --only [a-w]+"), 1, "", Some("[a-w]+"));
    check(again("--resume-failed --only [a-z]+"), 0, "1\n", None);
}

#[test]
fn run_is_resumed_by_id_prefix_only() {
    let place = Place::new();
    place.ended("run CHILD echo-args ::: 1 2").exit_code(0);
    let id = place.id();
    place.ended(&format!("run --resume {}", &id[..4])).exit_code(0).stderr("");
    for wrong in [
        "../runs",
        "..",
        "/",
        &format!("../runs/{id}"),
        &format!("{id}/../{id}"),
        "zzzz",
        &format!("{id}0"),
        ".",
    ] {
        place.ended(&format!("run --resume {wrong}")).exit_code(255).error_line(&["invalid run id"]);
    }
    let none = if id.starts_with('0') { "1" } else { "0" };
    place.ended(&format!("run --resume {none}")).exit_code(255).error_line(&["there is no run"]);
}

#[cfg(unix)] // Not everybody may make links on Windows.
#[test]
fn linked_run_directory_is_not_followed() {
    let place = Place::new();
    place.ended("run CHILD echo-args ::: 1 2").exit_code(0);
    let id = place.id();
    let elsewhere = place.at("elsewhere");
    fs::rename(place.run(), &elsewhere).expect("rename");
    let before = below(&elsewhere).len();
    symlink(&elsewhere, place.at("state/runs").join(&id)).expect("create symbolic link");
    for flag in ["--resume", "--resume-failed", "--retry-failed"] {
        place.ended(&format!("run {flag} {id}")).exit_code(255).error_line(&["not a directory"]);
    }
    assert_eq!(below(&elsewhere).len(), before, "something was written behind the link");
}

#[cfg(unix)] // Not everybody may make links on Windows.
#[test]
fn links_inside_a_run_are_not_followed() {
    for name in ["manifest.json", "arguments", "attempt-1.jsonl", "lock"] {
        let place = Place::new();
        place.ended("run CHILD append ../log ::: 1 2").exit_code(0);
        let own = place.run().join(name);
        let moved = place.at("moved");
        fs::rename(&own, &moved).expect("rename");
        symlink(&moved, &own).expect("create symbolic link");
        let before = fs::read(&moved).expect("read file");
        place.ended(&format!("run --resume-failed {}", place.id())).exit_code(255).error_line(&[]);
        assert!(fs::read(&moved).expect("read file") == before, "{name} was written to");
        assert_eq!(file(&place.at("log")).lines().count(), 2, "{name}: jobs ran again");
    }
    // An attempt that is a link to nowhere: the next one gets another number.
    let place = Place::new();
    place.ended("run CHILD append ../log ::: 1 2").exit_code(0);
    symlink(place.at("planted"), place.run().join("attempt-2.jsonl")).expect("create symbolic link");
    let ended = place.ended(&format!("run --resume {}", place.id()));
    assert!(!place.at("planted").exists(), "a link was followed: {}", ended.err);
}

#[cfg(unix)] // Modes are those of Unix.
#[test]
fn record_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    place.ended("run CHILD echo-args ::: 1 2").exit_code(0);
    for entry in below(&place.at("state")) {
        let about = fs::symlink_metadata(&entry).expect("read metadata");
        let wanted = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.permissions().mode() & 0o777, wanted, "{}", entry.display());
    }
}

// Arguments are bytes on Unix; `windows.rs` has what is not text there.
#[cfg(unix)]
#[test]
fn non_utf8_arguments_are_recorded_exactly() {
    use std::os::unix::ffi::OsStringExt;

    let words = [
        b"\xff\xfe\x80".to_vec(),
        b"a\nb".to_vec(),
        b"tab\t\"quote\\".to_vec(),
        Vec::new(),
        b"\xc3\xa9 ".to_vec(),
    ];
    let place = Place::new();
    let mut command = place.command("run -k -j1");
    command.arg(format!("[ -e {} ] || exit 1; exec {CHILD} raw {{}}", path(&place.at("go"))));
    command.arg(":::").args(words.iter().map(|word| std::ffi::OsString::from_vec(word.clone())));
    Run::start(&command).wait().exit_code(5);
    fs::write(place.at("go"), "").expect("write file");
    let ended = place.ended(&format!("run --retry-failed {}", place.id())).exit_code(0);
    assert_eq!(ended.out, words.concat(), "{:?}", ended.text());
}

#[test]
fn resume_requires_the_same_piped_input() {
    let place = Place::new();
    let mut command = place.command("run -k -j1");
    let line = fails_first(&place);
    let mut live = Run::start(with_script(&mut command, &line).stdin(Stdio::piped()));
    live.write(b"a1\nb2\na3\nb4\n");
    live.close();
    live.wait().exit_code(2);
    fs::write(place.at("fixed"), "").expect("write file");
    let again = |flag: &str, bytes: &[u8]| {
        let mut live = Run::start(place.command(&format!("run {flag} {}", place.id())).stdin(Stdio::piped()));
        live.write(bytes);
        live.close();
        live.wait()
    };
    // Another input is refused, and runs nothing that was not asked for.
    let before = file(&place.at("log"));
    again("--resume", b"a1\nb2\nx3\nb4\na5\n").exit_code(255).error_line(&["job 3", "has changed"]);
    assert_eq!(file(&place.at("log")), before, "something ran");
    again("--resume", b"a1\nb2\na3\nb4\n").exit_code(0).stderr("");
    assert_eq!(file(&place.at("log")), before, "something ran");
    assert_eq!(again("--retry-failed", b"a1\nb2\na3\nb4\n").exit_code(0).text(), "out b2\nout b4\n");
    assert_eq!(again("--resume", b"a1\nb2\na3\nb4\na5\n").exit_code(0).text(), "out a5\n");
}

// Where the input came from is not known on Windows: it is given again.
#[cfg(unix)]
#[test]
fn resume_rejects_a_changed_input_file() {
    let place = Place::new();
    let list = place.at("list");
    fs::write(&list, "a1\nb2\n").expect("write file");
    let mut command = place.command("run -k -j1");
    with_script(&mut command, &fails_first(&place)).stdin(fs::File::open(&list).expect("open file"));
    Run::start(&command).wait().exit_code(1);
    fs::write(place.at("fixed"), "").expect("write file");
    let again = format!("run --resume-failed {}", place.id());
    let old = fs::metadata(&list).expect("read metadata").modified().expect("read modification time");
    fs::write(&list, "a1\nb2\na3\n").expect("write file");
    place.ended(&again).exit_code(255).error_line(&["list", "changed"]);
    fs::remove_file(&list).expect("remove file");
    place.ended(&again).exit_code(255).error_line(&["list"]);
    fs::write(&list, "a1\nb2\n").expect("write file");
    fs::File::options().write(true).open(&list).and_then(|file| file.set_modified(old)).expect("parse time");
    assert_eq!(place.ended(&again).exit_code(0).text(), "out b2\n");
}

#[test]
fn resume_reports_a_missing_working_directory() {
    let place = Place::new();
    place.ended("run CHILD exit ::: 1").exit_code(1);
    fs::remove_dir(place.at("here")).expect("remove directory");
    let mut command = place.command(&format!("run --retry-failed {}", place.id()));
    command.current_dir("/");
    Run::start(&command).wait().exit_code(255).error_line(&["here"]);
}

#[test]
fn resume_runs_in_the_original_directory() {
    let place = Place::new();
    let mut command = place.command("run -k -j1");
    Run::start(with_script(&mut command, &fails_first(&place)).args(INPUT)).wait().exit_code(2);
    fs::write(place.at("fixed"), "").expect("write file");
    let mut command = place.command(&format!("run --retry-failed {}", place.id()));
    Run::start(command.current_dir("/")).wait().exit_code(0);
    assert_eq!(file(&place.at("log")).lines().count(), 7);
}

#[test]
fn redacted_arguments_are_nowhere_in_the_record() {
    let place = Place::new();
    let secret = "hunter2-correct-horse";
    let mut command = place.command("run -k --redact-args --joblog ../joblog");
    command
        .args(super::script(&format!("echo {{}} >&2; CHILD raw x; [ -e {} ]", path(&place.at("go")))))
        .args([":::", secret, "other"]);
    // Output may name it: once it was shown, nothing of that is kept either.
    Run::start(&command).wait().exit_code(2);
    for entry in below(&place.at("state")).iter().filter(|entry| entry.is_file()) {
        let bytes = fs::read(entry).expect("read file");
        assert!(!super::text(&bytes).contains(secret), "{} has it", entry.display());
    }
    assert!(!file(&place.at("joblog")).contains(secret), "the joblog has it");
    // As the name of a program, too.
    let mut command = place.command("run --redact-args");
    command.arg("{}").args([":::", secret]).env("MINDER_STATE_DIR", place.at("state-2"));
    Run::start(&command).wait();
    for entry in below(&place.at("state-2")).iter().filter(|entry| entry.is_file()) {
        assert!(!file(entry).contains(secret), "{} has it", entry.display());
    }
    fs::write(place.at("go"), "").expect("write file");
    let mut command = place.command(&format!("run --retry-failed {}", place.id()));
    let ended = Run::start(command.stdin(input(format!("{secret}\nother\n").as_bytes()))).wait().exit_code(0);
    assert_eq!(ended.text(), "xx");
    for entry in below(&place.at("state")).iter().filter(|entry| entry.is_file()) {
        let bytes = fs::read(entry).expect("read file");
        assert!(!super::text(&bytes).contains(secret), "{} has it, taken up", entry.display());
    }
}

#[test]
fn no_record_leaves_no_files() {
    for flags in ["", "-k", "--lb", "--spool", "-k --buffer 64k", "--tag"] {
        let place = Place::new();
        fs::create_dir(place.at("tmp")).expect("create directory");
        // That many bytes at once: few take long, above all under Wine.
        let chunks = if cfg!(windows) { "4001 4002 4003 4004 4005 4006" } else { "11 12 13 14 15 16" };
        let line = format!("run -j2 --no-record {flags} CHILD spew 300000 ::: {chunks}");
        let mut command = place.command(&line);
        Run::start(command.env(minder_os::system_paths::TEMP_DIR_VARIABLE, place.at("tmp")))
            .wait()
            .exit_code(0);
        assert!(!place.at("state").exists(), "{flags}: a record");
        assert_eq!(below(&place.at("tmp")).len(), 1, "{flags}: {:?}", below(&place.at("tmp")));
    }
}

#[test]
fn killed_run_without_a_record_leaves_no_files() {
    for flags in ["-k", "--spool", "-k --buffer 64k"] {
        let place = Place::new();
        fs::create_dir(place.at("tmp")).expect("create directory");
        let wait = place.at("wait");
        let line = format!(
            "case {{}} in 1) CHILD await {} 1;; *) CHILD spew 300000; echo >>../log;; esac",
            path(&wait)
        );
        let mut command = place.command(&format!("run -j2 --no-record {flags}"));
        with_script(&mut command, &line).args([":::", "1", "2", "3", "4", "5", "6"]);
        command.env(minder_os::system_paths::TEMP_DIR_VARIABLE, place.at("tmp"));
        let mut live = Run::start(&command);
        live.wait_until_true("the others", || file(&place.at("log")).lines().count() == 5);
        let outer = live.pid();
        live.kill();
        live.wait_until("its end", |record| record.done.is_some());
        live.wait_until_true("its end", || !crate::support::lives(outer));
        drop(live);
        assert!(!place.at("state").exists(), "{flags}: a record");
        assert_eq!(below(&place.at("tmp")).len(), 1, "{flags}: {:?}", below(&place.at("tmp")));
    }
}

#[cfg(unix)] // Owners by number.
#[test]
fn record_files_belong_to_the_owner_of_the_state() {
    use std::os::unix::fs::MetadataExt;

    let place = Place::new();
    place.ended("run CHILD echo-args ::: 1").exit_code(0);
    let own = fs::metadata(place.0.path()).expect("read metadata").uid();
    assert!(
        below(&place.at("state"))
            .iter()
            .all(|entry| fs::metadata(entry).expect("read metadata").uid() == own)
    );
}

#[test]
fn job_is_recorded_before_it_is_shown() {
    let place = Place::new();
    // The last one keeps the others from being alone, and waits.
    let mut command = place.command("run -j2");
    let line = format!("case {{}} in last) CHILD await {} x;; *) echo {{}};; esac", path(&place.at("wait")));
    with_script(&mut command, &line);
    command.args([":::", "last"]).args((1..=30).map(|job| job.to_string()));
    let mut live = Run::start(&command);
    live.wait_until("the output of all others", |record| {
        // Seen first, looked up second.
        let seen = String::from_utf8_lossy(&record.outs[0]).into_owned();
        for job in seen.lines() {
            let rows = file(&place.run().join("attempt-1.jsonl"));
            assert!(
                rows.contains(&format!("\"args\":[\"{job}\"]")),
                "{job} is seen and not recorded: {rows}"
            );
        }
        seen.lines().count() == 30
    });
    fs::write(place.at("wait"), "").expect("write file");
    live.wait().exit_code(0);
}

/// The run was recorded and killed by the version before crates were split: one job had not ended,
/// and nothing was shown.
#[cfg(unix)] // The lines of the jobs are for a POSIX shell.
#[test]
fn run_of_an_older_version_is_listed_and_resumed() {
    use std::os::unix::fs::PermissionsExt as _;

    const FILES: [(&str, &[u8]); 4] = [
        ("manifest.json", include_bytes!("record/old-run/manifest.json")),
        ("attempt-1.jsonl", include_bytes!("record/old-run/attempt-1.jsonl")),
        ("arguments", include_bytes!("record/old-run/arguments")),
        ("out-1-0", include_bytes!("record/old-run/out-1-0")),
    ];
    let place = Place::new();
    let run = place.at("state/runs/b04e6f41");
    fs::create_dir_all(&run).expect("create the directory of the run");
    for dir in ["state", "state/runs", "state/runs/b04e6f41"] {
        fs::set_permissions(place.at(dir), fs::Permissions::from_mode(0o700)).expect("set the mode");
    }
    for (name, bytes) in FILES {
        fs::write(run.join(name), bytes).expect("write a file of the run");
    }
    let listed = place.ended("log b04e --csv").exit_code(0);
    // A header, three jobs, and the second line of a tail.
    assert_eq!(listed.text().lines().count(), 1 + 3 + 1, "{}", listed.text());
    let resumed = place.ended("run --resume b04e").exit_code(0);
    assert_eq!(resumed.text(), "out stay\nout b c\nout bad\nout d\n", "{}", resumed.err);
    assert!(resumed.err.starts_with("why\n"), "{}", resumed.err);
    // The formats are the same: each line of the new attempt has the members of the old ones.
    let journal = file(&run.join("attempt-2.jsonl"));
    for event in ["begun", "ended", "shown", "over"] {
        assert!(journal.contains(&format!("{{\"event\":\"{event}\",")), "no `{event}` in {journal}");
    }
}

#[test]
fn retry_without_failed_job_leaves_no_record() {
    let place = Place::new();
    let files = || place.runs().iter().map(|run| below(run).len()).collect::<Vec<_>>();
    place.ended("run --joblog DIR/log --no-record CHILD exit 0 ::: a b").exit_code(0);
    // No run with a record wrote this joblog, so the retry would be a new run.
    let ended = place.ended("run --joblog DIR/log --retry-failed CHILD exit 0 ::: a b").exit_code(0);
    ended.stderr_contains("no job has failed: nothing was run");
    assert_eq!(files(), [0; 0]);
    place.ended("run CHILD exit 0 ::: a").exit_code(0);
    let before = files();
    place.ended("run --retry-failed last").exit_code(0).stderr_contains("nothing to retry");
    assert_eq!((before.len(), files()), (1, before));
    assert_eq!(place.ended("run --quiet --retry-failed last").exit_code(0).err, "");
}
