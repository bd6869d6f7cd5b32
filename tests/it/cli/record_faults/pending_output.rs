//! Output that waits to be shown, and that is gone, cut or not ours when the run is resumed.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use minder_os::files::create_fifo;

use super::Place;
use crate::cli::{Run, file, is_root, path, text, with_script};

/// A job of more bytes than are kept in memory has its own file.
const LARGE: usize = 600_000;

/// Makes a run of five jobs, of which the first waits for `go`, and kills it when the others have
/// ended. Job 4 wrote much.
fn killed_and_held(place: &Place, flags: &str) {
    let line = format!(
        "echo {{}} >>../log; if [ {{}} = 1 ]; then CHILD await {} x; fi; echo out {{}}; \
         if [ {{}} = 4 ]; then CHILD spew {LARGE}; echo; fi",
        path(&place.at("go"))
    );
    let mut command = place.command(&format!("run -k -j4 {flags}"));
    let mut live = Run::start(with_script(&mut command, &line).args([":::", "1", "2", "3", "4", "5"]));
    let rows = || {
        let journals = place.runs().into_iter().map(|run| file(&run.join("attempt-1.jsonl")));
        journals.map(|text| text.matches("\"event\":\"ended\"").count()).sum::<usize>()
    };
    live.wait_until_true("four rows", || rows() == 4);
    let outer = live.pid();
    live.kill();
    live.wait_until_true("its end", || !crate::support::lives(outer));
    live.wait();
    fs::write(place.at("log"), "").expect("write file");
}

/// The same, and lets the first job end when it runs again.
fn killed(place: &Place, flags: &str) {
    killed_and_held(place, flags);
    fs::write(place.at("go"), "").expect("write file");
}

/// Returns the files in a directory whose names begin with this prefix.
fn outputs(dir: &Path, begins: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("list directory").flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().expect("path has a file name").to_string_lossy().into_owned();
        name.starts_with(begins) && fs::metadata(path).expect("read metadata").len() > 0
    };
    entries.filter(is_wanted).collect()
}

fn cut(path: &Path) {
    File::options().write(true).open(path).and_then(|file| file.set_len(3)).expect("truncate file");
}

fn pipe_instead(path: &Path) {
    fs::remove_file(path).expect("remove file");
    create_fifo(path).expect("create FIFO");
}

fn link_instead(path: &Path) {
    let aside = path.with_file_name("../../../aside");
    fs::rename(path, &aside).expect("rename");
    symlink(&aside, path).expect("create symbolic link");
}

fn dir_instead(path: &Path) {
    fs::remove_file(path).expect("remove file");
    fs::create_dir(path).expect("create directory");
}

fn nothing_instead(path: &Path) {
    fs::remove_file(path).expect("remove file");
}

fn give_away(path: &Path) {
    std::os::unix::fs::chown(path, Some(12_345), None).expect("change owner");
}

/// Returns the lines of all five jobs that were shown.
fn all_of(out: &[u8]) -> Vec<String> {
    text(out).lines().filter(|line| line.starts_with("out ")).map(str::to_owned).collect()
}

const ALL: [&str; 5] = ["out 1", "out 2", "out 3", "out 4", "out 5"];

fn ran(place: &Place) -> Vec<String> {
    let mut ran: Vec<String> = file(&place.at("log")).lines().map(str::to_owned).collect();
    ran.sort();
    ran
}

#[test]
fn unreadable_pending_output_reruns_only_its_jobs() {
    let damages: [fn(&Path); 6] = [cut, nothing_instead, pipe_instead, link_instead, dir_instead, give_away];
    for (number, damage) in damages.into_iter().enumerate() {
        if number == 5 && !is_root() {
            eprintln!("skipped: only root may give a file away");
            continue;
        }
        let place = Place::new();
        killed(&place, "");
        // Only the large job has this one.
        let large = outputs(&place.run(), "spill-");
        assert_eq!(large.len(), 1, "{large:?}");
        large.iter().for_each(|path| damage(path));
        let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
        assert_eq!(all_of(&ended.out), ALL, "damage {number}");
        assert_eq!(ran(&place), ["1", "4"], "damage {number}");
        let ended = ended.error_line(&["kept output of job 4", "will run again"]);
        assert!(!ended.err.contains("job 2"), "{}", ended.err);
        fs::write(place.at("log"), "").expect("write file");
        place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
        assert_eq!(ran(&place), [""; 0], "all was shown");
    }
}

#[test]
fn truncated_shared_file_reruns_jobs_whose_bytes_are_lost() {
    let place = Place::new();
    killed(&place, "");
    outputs(&place.run(), "out-").iter().for_each(|path| cut(path));
    let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0).error_line(&["too short"]);
    assert_eq!(all_of(&ended.out), ALL);
    assert_eq!(ran(&place), ["1", "2", "3", "4", "5"]);
    place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
}

#[test]
fn skip_lost_counts_lost_jobs_as_done() {
    let place = Place::new();
    killed(&place, "");
    outputs(&place.run(), "spill-").iter().for_each(|path| nothing_instead(path));
    // Only failed jobs are asked for, and there is none: nothing is forgotten.
    let none = place.ended(&format!("run --retry-failed {}", place.id())).exit_code(0);
    none.stderr_contains("--resume would run what is lost again").stderr_contains("nothing was run");
    assert_eq!(ran(&place), [""; 0]);
    let dry = place.ended(&format!("run --resume --dry-run {}", place.id())).exit_code(0);
    assert_eq!(dry.text().lines().count(), 2, "{}", dry.text());
    let ended = place.ended(&format!("run --resume --skip-lost {}", place.id())).exit_code(0);
    // The rest of job 4, and all of the others that was not shown before.
    assert!(!all_of(&ended.out).contains(&"out 2".to_owned()), "shown by the attempt before");
    ended.error_line(&["job 4", "counted as done"]);
    assert_eq!(ran(&place), ["1"]);
    place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
    assert_eq!(ran(&place), ["1"]);
    place.ended("run --skip-lost CHILD exit 0").exit_code(255).error_line(&["--skip-lost", "requires"]);
}

#[test]
fn missing_or_foreign_output_directory_reruns_only_its_jobs() {
    for stranger in [false, true] {
        if stranger && !is_root() {
            eprintln!("skipped: only root may change the owner of a directory");
            continue;
        }
        let place = Place::new();
        fs::create_dir(place.at("tmp")).expect("create directory");
        killed(&place, "--tmpdir DIR/tmp");
        let dir = place.at("tmp").join(format!("minder-{}-1", place.id()));
        if stranger {
            std::os::unix::fs::chown(&dir, Some(12_345), None).expect("change owner");
        } else {
            fs::remove_dir_all(&dir).expect("remove directory");
        }
        // The name of the next directory is predictable, so that another program may take it.
        fs::create_dir(place.at("tmp").join(format!("minder-{}-2", place.id()))).expect("create directory");
        let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
        assert_eq!(all_of(&ended.out), ALL);
        assert_eq!(ran(&place), ["1", "2", "3", "4", "5"]);
        let part = if stranger { "belongs to another user" } else { "no such file" };
        ended.error_line(&["jobs 2-5", part]);
        assert_eq!(dir.exists(), stranger, "what is not ours stays");
        let left: Vec<_> = fs::read_dir(place.at("tmp")).expect("list directory").flatten().collect();
        assert_eq!(left.len(), 1 + usize::from(stranger), "{left:?}");
        place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
    }
}

#[test]
fn output_truncated_during_resume_is_reported_and_rerun_next_time() {
    let place = Place::new();
    killed_and_held(&place, "");
    let mut live = Run::start(&place.command(&format!("run --resume {}", place.id())));
    live.wait_until_true("the first job", || file(&place.at("log")) == "1\n");
    outputs(&place.run(), "spill-1-").iter().for_each(|path| cut(path));
    fs::write(place.at("go"), "").expect("write file");
    let ended = live.wait().exit_code(255);
    // What was there of job 4 ends anywhere.
    assert!(["out 1\n", "out 2\n", "out 3\n", "out 5\n"].iter().all(|one| ended.text().contains(one)));
    ended.error_line(&[
        "kept output of job 4",
        "bytes of it are missing",
        "when the run is resumed once more",
    ]);
    let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
    assert_eq!(all_of(&ended.out), ["out 4"]);
    assert_eq!(ran(&place), ["1", "4"]);
    place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
}

#[test]
fn damaged_directory_event_is_reported() {
    let place = Place::new();
    fs::create_dir(place.at("tmp")).expect("create directory");
    killed(&place, "--tmpdir DIR/tmp");
    let journal = place.run().join("attempt-1.jsonl");
    fs::write(&journal, file(&journal).replacen("\"folder\":", "\"folded\":", 1)).expect("write file");
    let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
    assert_eq!(all_of(&ended.out), ALL);
    let said: Vec<&str> = ended.err.lines().collect();
    assert!(said.len() == 2 && said[0].contains("line 3 cannot be read"), "{said:?}");
    assert!(said[1].contains("kept output of jobs 2-5: "), "{said:?}");
}

#[test]
fn output_truncated_during_a_run_ends_only_that_run() {
    let place = Place::new();
    let line = format!("if [ {{}} = 1 ]; then CHILD await {} x; fi; echo out {{}}", path(&place.at("go")));
    let mut command = place.command("run -k -j2");
    let mut live = Run::start(with_script(&mut command, &line).args([":::", "1", "2", "3", "4", "5"]));
    let rows = || place.runs().iter().map(|run| file(&run.join("attempt-1.jsonl"))).collect::<String>();
    live.wait_until_true("four rows", || rows().matches("\"event\":\"ended\"").count() == 4);
    outputs(&place.run(), "out-").iter().for_each(|path| cut(path));
    fs::write(place.at("go"), "").expect("write file");
    live.wait().exit_code(255).error_line(&["cannot read output that waited in a file"]);
    let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
    let seen = all_of(&ended.out);
    assert_eq!(seen[seen.len() - 4..], ALL[1..], "{}", ended.err);
    place.ended(&format!("run --resume {}", place.id())).exit_code(0).stderr("");
}

/// A journal that is gone is named; its output is left as it is, and all jobs run again.
#[test]
fn attempt_without_a_journal_is_named() {
    let place = Place::new();
    killed(&place, "");
    fs::remove_file(place.run().join("attempt-1.jsonl")).expect("remove file");
    let ended = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
    assert!(ended.err.contains("attempt 1 of the record in") && ended.err.lines().count() == 1, "{ended:?}");
    assert_eq!(
        (all_of(&ended.out), ran(&place)),
        (ALL.map(str::to_owned).to_vec(), ["1", "2", "3", "4", "5"].map(str::to_owned).to_vec())
    );
    let again = place.ended(&format!("run --resume {}", place.id())).exit_code(0);
    assert_eq!(again.text(), "", "{again:?}");
}
