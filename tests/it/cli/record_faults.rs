//! Runs whose record meets a full disk, a directory that cannot be written, a damaged journal,
//! another run, a clock that jumps.
#![cfg(any(target_os = "linux", windows))]

mod damaged_journal;
#[cfg(unix)] // Pipes and links with names.
mod pending_output;
#[cfg(unix)] // File systems that are mounted for them.
mod full_disk;

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};

#[cfg(unix)]
use super::is_root;
use super::record::Place;
use super::{Run, file, path, with_script};

/// Returns the arguments of three jobs that print their numbers, behind these flags.
fn three(flags: &str) -> String {
    format!("run -j1 -k {flags} CHILD append ../log ::: 1 2 3")
}

/// The run continues without a record, and reports it in one line; where the record was asked for,
/// it is an error.
fn goes_without(place: &Place, part: &str) {
    for flags in ["", "--lb", "--spool"] {
        let flags = if flags.is_empty() { "-j2" } else { flags };
        let ended = place
            .ended(&three(flags).replace("-k --lb", "--lb"))
            .exit_code(0)
            .error_line(&["no record is kept", part]);
        assert_eq!(ended.sorted(), ["1", "2", "3"], "{flags}");
    }
    assert_eq!(place.ended(&three("--quiet")).exit_code(0).stderr("").sorted(), ["1", "2", "3"]);
    assert_eq!(place.ended(&three("--no-record")).exit_code(0).stderr("").sorted(), ["1", "2", "3"]);
    fs::remove_file(place.at("log")).expect("remove file");
    place.ended(&three("--sync")).exit_code(255).error_line(&["record", part]);
    assert!(!place.at("log").exists(), "jobs ran");
}

#[test]
fn state_that_is_a_file_disables_only_the_record() {
    let place = Place::new();
    fs::write(place.at("state"), "mine").expect("write file");
    goes_without(&place, "state");
    assert_eq!(file(&place.at("state")), "mine");
}

#[cfg(unix)] // Not everybody may make links on Windows.
#[test]
fn state_that_is_a_dangling_link_disables_only_the_record() {
    let place = Place::new();
    symlink(place.at("nowhere"), place.at("state")).expect("create symbolic link");
    goes_without(&place, "state");
    assert!(!place.at("nowhere").exists(), "the link was followed");
}

#[cfg(unix)] // Modes are those of Unix.
#[test]
fn unwritable_state_disables_only_the_record() {
    let place = Place::new();
    if is_root() {
        // Root may write everywhere except on a read-only file system.
        let Some(_disk) = full_disk::Disk::mount(&place.at("state"), 1 << 20) else { return };
        full_disk::Disk::read_only(&place.at("state"));
        return goes_without(&place, "ead-only");
    }
    fs::create_dir(place.at("state")).expect("create directory");
    fs::set_permissions(place.at("state"), fs::Permissions::from_mode(0o500)).expect("set permissions");
    goes_without(&place, "ermission denied");
}

#[cfg(unix)] // File systems that are mounted for it.
#[test]
fn complete_run_is_resumed_where_nothing_can_be_written() {
    for (is_full, flags) in [(false, ""), (true, ""), (true, "--joblog DIR/jobs")] {
        let place = Place::new();
        let Some(_disk) = full_disk::Disk::mount(&place.at("state"), 1 << 20) else { return };
        place.ended(&format!("run {flags} CHILD exit ::: 0 0 0")).exit_code(0);
        if is_full {
            fs::write(place.at("state/rest"), vec![0; 2 << 20]).expect_err("fill the disk");
        } else {
            full_disk::Disk::read_only(&place.at("state"));
        }
        place.ended("resume").exit_code(0).error_line(&[
            "nothing to resume: run ",
            "is complete",
            "(3 jobs)",
        ]);
        place.ended("retry").exit_code(0).error_line(&["nothing to retry: no job of run "]);
        place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
    }
}

#[test]
fn run_is_resumed_by_one_process_only() {
    let place = Place::new();
    let wait = place.at("wait");
    let mut command = place.command("run -j2");
    let line = format!("echo {{}} >>../log; [ -e ../go ] || exit 1; exec CHILD await {} {{}}", path(&wait));
    Run::start(with_script(&mut command, &line).args([":::", "1", "2"])).wait().exit_code(2);
    fs::write(place.at("go"), "").expect("write file");
    let id = place.id();
    let mut first = Run::start(&place.command(&format!("run --retry-failed {id}")));
    first.wait_until_true("its jobs", || file(&place.at("log")).lines().count() == 4);
    for flag in ["--resume", "--resume-failed", "--retry-failed"] {
        let second = place.ended(&format!("run {flag} {id}"));
        second.exit_code(255).error_line(&[&id, "in use by another minder"]);
    }
    fs::write(&wait, "").expect("write file");
    assert_eq!(first.wait().exit_code(0).sorted(), ["1", "2"]);
    assert_eq!(file(&place.at("log")).lines().count(), 4, "something ran twice");
    place.ended(&format!("run --retry-failed {id}")).exit_code(0).error_line(&["no job has failed"]);
    assert_eq!(file(&place.at("log")).lines().count(), 4, "something ran twice");
}

#[test]
fn concurrent_resumes_run_each_job_once() {
    for _ in 0..5 {
        let place = Place::new();
        let mut command = place.command("run");
        let line = "echo {} >>../log; [ -e ../go ]";
        Run::start(with_script(&mut command, line).args([":::", "1", "2", "3"])).wait().exit_code(3);
        fs::write(place.at("go"), "").expect("write file");
        let again = place.command(&format!("run --retry-failed {}", place.id()));
        let both = [Run::start(&again), Run::start(&again)].map(Run::wait);
        for ended in both {
            // The second was refused, or came when all was done.
            assert!(
                ended.status == minder::ExitStatus::Exited(0) || ended.err.contains("another minder"),
                "{}",
                ended.err
            );
        }
        assert_eq!(file(&place.at("log")).lines().count(), 6, "a job ran twice, or not at all");
    }
}

#[test]
fn concurrent_runs_have_separate_records() {
    let place = Place::new();
    let mut lives: Vec<Run> = (0..6)
        .map(|run| Run::start(&place.command(&format!("run -j2 CHILD echo-args {run} ::: 1 2 3 4"))))
        .collect();
    for live in lives.drain(..) {
        let ended = live.wait().exit_code(0).stderr("");
        assert_eq!(ended.sorted().len(), 8);
    }
    let runs = place.runs();
    assert_eq!(runs.len(), 6);
    for run in runs {
        let text = file(&run.join("attempt-1.jsonl"));
        assert_eq!(text.matches("{\"event\":\"ended\"").count(), 4, "{text}");
    }
}

/// Returns every file below a directory, with its content.
fn all_below(directory: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("list directory").flatten() {
        if entry.path().is_dir() {
            found.extend(all_below(&entry.path()));
        } else {
            found.push((entry.path(), fs::read(entry.path()).expect("read file")));
        }
    }
    found.sort();
    found
}

#[test]
fn rejected_resume_changes_nothing() {
    for flags in ["-j1", "-k", "--tmpdir DIR/tmp"] {
        let place = Place::new();
        fs::create_dir(place.at("tmp")).expect("create directory");
        let mut command = place.command(&format!("run {flags} CHILD echo-args"));
        Run::start(command.stdin(super::input(b"1\n2\n3\n"))).wait().exit_code(0);
        let id = place.id();
        let before = all_below(&place.run());
        let tmp = all_below(&place.at("tmp"));
        for wrong in ["", "1\n2\n", "x\n2\n3\n"] {
            let mut command = place.command(&format!("run --resume {id}"));
            let ended = Run::start(command.stdin(super::input(wrong.as_bytes()))).wait();
            // Nothing is left to run, so the input need not be given again.
            match wrong {
                "" => ended.exit_code(0).stderr(""),
                _ => ended.exit_code(255).error_line(&["has changed"]),
            };
            assert!(
                all_below(&place.run()) == before && all_below(&place.at("tmp")) == tmp,
                "{flags} {wrong:?}"
            );
            assert_eq!(fs::read_dir(place.at("tmp")).expect("list directory").count(), 0);
        }
        let listed = place.ended("log").exit_code(0).text();
        assert!(!listed.contains('('), "{listed}");
        let mut command = place.command(&format!("run --resume {id}"));
        let ended = Run::start(command.stdin(super::input(b"1\n2\n3\n4\n"))).wait().exit_code(0);
        let text = ended.text();
        assert!(text.contains('4') && !text.contains('3'), "{text}");
    }
}

#[cfg(unix)] // Modes, links and owners are those of Unix.
#[test]
fn runs_directory_writable_by_others_is_repaired_or_rejected() {
    let place = Place::new();
    place.ended("run CHILD exit ::: 0").exit_code(0).stderr("");
    let runs = place.at("state/runs");
    let mode = || fs::metadata(&runs).expect("read metadata").permissions().mode() & 0o7777;
    for open in [0o777, 0o1777, 0o770] {
        fs::set_permissions(&runs, fs::Permissions::from_mode(open)).expect("set permissions");
        place
            .ended("run CHILD exit ::: 0")
            .exit_code(0)
            .error_line(&["other users could change", "0700 now"]);
        assert_eq!(mode(), 0o700);
    }
    fs::set_permissions(&runs, fs::Permissions::from_mode(0o755)).expect("set permissions");
    place.ended("run CHILD exit ::: 0").exit_code(0).stderr("");
    // A run of another user is that user's command.
    if is_root() {
        let run = &place.runs()[0];
        std::os::unix::fs::chown(run, Some(12_345), None).expect("change owner");
        let id = run.file_name().expect("path has a file name").to_string_lossy().into_owned();
        place.ended(&format!("run --resume {id}")).exit_code(255).error_line(&["belongs to another user"]);
        assert!(!place.ended("log").exit_code(0).text().contains(&id));
        std::os::unix::fs::chown(&runs, Some(12_345), None).expect("change owner");
        place
            .ended("run CHILD exit ::: 0")
            .exit_code(0)
            .error_line(&["no record is kept", "belongs to another user"]);
        place.ended("log").exit_code(255).error_line(&["belongs to another user"]);
        std::os::unix::fs::chown(&runs, Some(0), None).expect("change owner");
    } else {
        eprintln!("skipped: only root may change the owner of a directory");
    }
    fs::rename(&runs, place.at("elsewhere")).expect("rename");
    symlink(place.at("elsewhere"), &runs).expect("create symbolic link");
    place.ended("run CHILD exit ::: 0").exit_code(0).error_line(&["no record is kept", "it is a link"]);
    place.ended("run --sync CHILD exit ::: 0").exit_code(255).error_line(&["it is a link"]);
    place.ended("log").exit_code(255).error_line(&["it is a link"]);
    place.ended("run --resume last").exit_code(255).error_line(&["it is a link"]);
}

#[cfg(unix)] // A directory in which files are open stays on Windows.
#[test]
fn record_removed_during_a_run_is_reported() {
    let place = Place::new();
    let mut command = place.command("run -j1");
    let line = format!("echo up; CHILD await {} x", path(&place.at("go")));
    let mut live = Run::start(with_script(&mut command, &line).args([":::", "1"]));
    live.wait_until("its word", |record| !record.outs[0].is_empty());
    fs::remove_dir_all(place.run()).expect("remove directory");
    fs::write(place.at("go"), "").expect("write file");
    live.wait().exit_code(0).error_line(&["the record of this run is gone"]);
}
