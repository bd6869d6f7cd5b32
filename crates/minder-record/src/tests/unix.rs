//! Modes, links, named pipes and `/dev/full`, which only Unix has.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use super::dirs::{removed, run};
use super::joblogs::encoded;
use super::*;
use crate::joblog::Joblog;
use crate::lookup::find;
use crate::retention::RetentionPolicy;
use crate::store::{is_alive, list, recent};

#[test]
fn all_files_are_private() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("a/minder");
    let record =
        JournalWriter::create(&state, manifest(InputSource::arguments(None, Vec::new(), None)), ["x"], false)
            .unwrap();
    drop(minder_os::files::create_private_file(&record.dir().join("out-1-0")).unwrap());
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    for dir in [&root.path().join("a"), &state, &state.join("runs"), record.dir()] {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(record.dir()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["arguments", "attempt-1.jsonl", "lock", "manifest.json", "out-1-0"]);
}

#[test]
fn links_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = run(elsewhere.path(), "aaaa0000", 99);
    fs::create_dir(root.path().join("runs")).unwrap();
    symlink(&target, root.path().join("runs/bbbb0000")).unwrap();
    assert!(find(root.path(), "bbbb").unwrap_err().to_string().contains("left alone"));
    assert!(list(root.path()).unwrap().is_empty());
    resume(&root.path().join("runs/bbbb0000")).unwrap_err();
    // Links in place of files.
    let dir = run(root.path(), "cccc0000", 99);
    for name in ["lock", "manifest.json", "attempt-1.jsonl"] {
        fs::remove_file(dir.join(name)).unwrap();
        symlink(target.join(name), dir.join(name)).unwrap();
    }
    assert!(!is_alive(&dir));
    resume(&dir).unwrap_err();
    let read = read_run(&dir).unwrap();
    assert!(read.manifest.is_err() && read.jobs.is_empty() && read.attempts[0].error.is_some());
    fs::remove_file(dir.join("lock")).unwrap();
    symlink(target.join("attempt-1.jsonl"), dir.join("out-1-0")).unwrap();
    let never = RetentionPolicy { age_max: Duration::ZERO, runs_max: 0, bytes_max: 0 };
    assert_eq!(removed(root.path(), never), ["cccc0000"]);
    assert!(root.path().join("runs/bbbb0000").is_symlink());
    assert_eq!(fs::read_dir(&target).unwrap().count(), 3, "the targets are unchanged");
}

#[test]
fn joblog_can_be_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let reader = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut text = String::new();
            fs::File::open(path).unwrap().read_to_string(&mut text).map(|_| text)
        }
    });
    let log = Joblog::open(&path, true).unwrap();
    log.append(&encoded(&[(ended(1), "a")])).unwrap();
    drop(log);
    let text = reader.join().unwrap().unwrap();
    assert_eq!(
        text,
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
         1\t:\t1763731172.250\t     0.500\t0\t3\t0\t0\ta\n"
    );
}

#[test]
fn joblog_fails_on_full_device() {
    let full = Path::new("/dev/full");
    if full.exists() {
        assert_eq!(Joblog::open(full, false).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn recent_reads_the_runs_that_changed_last() {
    let root = tempfile::tempdir().unwrap();
    for (hours, id) in [(9, "aaaa0000"), (1, "bbbb0000"), (3, "cccc0000"), (2, "dddd0000")] {
        let dir = run(root.path(), id, 0);
        if id == "dddd0000" {
            fs::remove_file(dir.join("attempt-1.jsonl")).unwrap();
            fs::remove_file(dir.join("manifest.json")).unwrap();
        }
        let changed = std::time::SystemTime::now() - Duration::from_secs(3600 * hours);
        fs::File::open(dir).unwrap().set_modified(changed).unwrap();
    }
    let ids = |most| recent(root.path(), most).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(1), ["bbbb0000"]);
    let mut two = ids(2);
    two.sort();
    assert_eq!(two, ["bbbb0000", "cccc0000"], "no job of dddd0000 ran");
    assert_eq!(ids(9).len(), 3);
}

#[test]
fn run_without_manifest_is_hidden_and_removed_later() {
    let root = tempfile::tempdir().unwrap();
    let whole = run(root.path(), "aaaa0000", 0);
    for (id, names) in
        [("bbbb0000", &["lock", "arguments"][..]), ("cccc0000", &[]), ("dddd0000", &["lock", "x"])]
    {
        let dir = root.path().join("runs").join(id);
        fs::create_dir(&dir).unwrap();
        for name in names {
            fs::write(dir.join(name), "").unwrap();
        }
    }
    let ids = || list(root.path()).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
    let mut listed = ids();
    listed.sort();
    assert_eq!(listed, ["aaaa0000", "dddd0000"], "what has other files is damaged");
    // A process may just be starting such a run.
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    let dir = |id: &str| root.path().join("runs").join(id);
    assert!(dir("bbbb0000").exists() && dir("cccc0000").exists());
    for id in ["bbbb0000", "cccc0000"] {
        let old = std::time::SystemTime::now() - Duration::from_secs(7200);
        fs::File::open(dir(id)).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    assert!(!dir("bbbb0000").exists() && !dir("cccc0000").exists());
    assert!(whole.exists() && dir("dddd0000").exists());
}

#[test]
fn working_directories_of_jobs_are_removed_with_their_run() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("kept"), "").unwrap();
    let dir = run(root.path(), "aaaa0000", 99);
    fs::create_dir_all(dir.join("work-12/deep")).unwrap();
    fs::write(dir.join("work-12/deep/file"), "four").unwrap();
    symlink(elsewhere.path(), dir.join("work-12/link")).unwrap();
    assert_eq!(
        removed(root.path(), RetentionPolicy::default()),
        [""; 0],
        "something was written there a moment ago"
    );
    let file = fs::File::options().write(true).open(dir.join("work-12/deep/file")).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(86_400 * 99)).unwrap();
    // Names that minder does not create.
    for odd in ["work-", "work-x", "work-1-2"] {
        fs::create_dir(dir.join(odd)).unwrap();
        assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0], "{odd}");
        fs::remove_dir(dir.join(odd)).unwrap();
    }
    fs::write(dir.join("work-13"), "a file").unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    fs::remove_file(dir.join("work-13")).unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), ["aaaa0000"]);
    assert!(elsewhere.path().join("kept").exists());
}
