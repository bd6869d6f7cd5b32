//! What only Unix has: modes, links, pipes with names, a device that is full.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use super::super::joblog::Joblog;
use super::super::retention::RetentionPolicy;
use super::super::store::{find, is_alive, list};
use super::folders::{removed, run};
use super::joblogs::encoded;
use super::*;

#[test]
fn all_that_is_made_is_private() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("a/minder");
    let record =
        JournalWriter::create(&state, manifest(InputSource::arguments(None, Vec::new(), None)), ["x"], false)
            .unwrap();
    drop(minder_os::files::create_private_file(&record.folder().join("out-1-0")).unwrap());
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [&root.path().join("a"), &state, &state.join("runs"), record.folder()] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(record.folder()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["arguments", "attempt-1.jsonl", "lock", "manifest.json", "out-1-0"]);
}

#[test]
fn links_lead_nowhere() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = run(elsewhere.path(), "aaaa0000", 99);
    fs::create_dir(root.path().join("runs")).unwrap();
    symlink(&target, root.path().join("runs/bbbb0000")).unwrap();
    assert!(find(root.path(), "bbbb").unwrap_err().to_string().contains("left alone"));
    assert!(list(root.path()).unwrap().is_empty());
    JournalWriter::resume(&root.path().join("runs/bbbb0000"), false).unwrap_err();
    // Links in the place of files.
    let folder = run(root.path(), "cccc0000", 99);
    for name in ["lock", "manifest.json", "attempt-1.jsonl"] {
        fs::remove_file(folder.join(name)).unwrap();
        symlink(target.join(name), folder.join(name)).unwrap();
    }
    assert!(!is_alive(&folder));
    JournalWriter::resume(&folder, false).unwrap_err();
    let read = read_run(&folder).unwrap();
    assert!(read.manifest.is_err() && read.jobs.is_empty() && read.attempts[0].error.is_some());
    fs::remove_file(folder.join("lock")).unwrap();
    symlink(target.join("attempt-1.jsonl"), folder.join("out-1-0")).unwrap();
    let never = RetentionPolicy { age_max: Duration::ZERO, runs_max: 0, bytes_max: 0 };
    assert_eq!(removed(root.path(), never), ["cccc0000"]);
    assert!(root.path().join("runs/bbbb0000").is_symlink());
    assert_eq!(fs::read_dir(&target).unwrap().count(), 3, "what they lead to is as it was");
}

#[test]
fn a_pipe_takes_a_joblog() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
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
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n1\t:\t1763731172.250\t     0.500\t0\t3\t0\t0\ta\n"
    );
}

#[test]
fn a_full_device_is_an_error() {
    let full = Path::new("/dev/full");
    if full.exists() {
        assert_eq!(Joblog::open(full, false).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_start_that_was_killed_is_passed_over_and_removed_later() {
    let root = tempfile::tempdir().unwrap();
    let whole = run(root.path(), "aaaa0000", 0);
    for (id, names) in
        [("bbbb0000", &["lock", "arguments"][..]), ("cccc0000", &[]), ("dddd0000", &["lock", "x"])]
    {
        let folder = root.path().join("runs").join(id);
        fs::create_dir(&folder).unwrap();
        names.iter().for_each(|name| fs::write(folder.join(name), "").unwrap());
    }
    let ids = || list(root.path()).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
    let mut listed = ids();
    listed.sort();
    assert_eq!(listed, ["aaaa0000", "dddd0000"], "what has other files is damaged");
    // A start may be under way.
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    let folder = |id: &str| root.path().join("runs").join(id);
    assert!(folder("bbbb0000").exists() && folder("cccc0000").exists());
    for id in ["bbbb0000", "cccc0000"] {
        let old = std::time::SystemTime::now() - Duration::from_secs(7200);
        fs::File::open(folder(id)).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    assert!(!folder("bbbb0000").exists() && !folder("cccc0000").exists());
    assert!(whole.exists() && folder("dddd0000").exists());
}

#[test]
fn folders_in_which_jobs_worked_go_with_their_run() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("kept"), "").unwrap();
    let folder = run(root.path(), "aaaa0000", 99);
    fs::create_dir_all(folder.join("work-12/deep")).unwrap();
    fs::write(folder.join("work-12/deep/file"), "four").unwrap();
    symlink(elsewhere.path(), folder.join("work-12/link")).unwrap();
    assert_eq!(
        removed(root.path(), RetentionPolicy::default()),
        [""; 0],
        "something was written there a moment ago"
    );
    let file = fs::File::options().write(true).open(folder.join("work-12/deep/file")).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(86_400 * 99)).unwrap();
    // Names that we do not give.
    for odd in ["work-", "work-x", "work-1-2"] {
        fs::create_dir(folder.join(odd)).unwrap();
        assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0], "{odd}");
        fs::remove_dir(folder.join(odd)).unwrap();
    }
    fs::write(folder.join("work-13"), "a file").unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    fs::remove_file(folder.join("work-13")).unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), ["aaaa0000"]);
    assert!(elsewhere.path().join("kept").exists());
}
