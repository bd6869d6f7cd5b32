//! The directories of runs: where they are, how they are found, and when they are removed.

use std::fs::File;
use std::time::{Duration, SystemTime};

use super::*;
use crate::event::{OutputDir, now};
use crate::lookup::find;
use crate::retention::{PruneReason, PruneReport, RetentionPolicy, prune, prune_daily};
use crate::store::{self, FileKind, file_kind, list, state_root_from};
use crate::writer::output_path;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Creates the directory of a run with this id that began `days` ago.
pub(super) fn run(root: &Path, id: &str, days: u32) -> PathBuf {
    let dir = root.join("runs").join(id);
    fs::create_dir_all(&dir).unwrap();
    let age = DAY * days;
    let mut manifest = manifest(InputSource::Lost { why: String::new() });
    manifest.run = id.to_owned();
    manifest.at = now() - age.as_secs_f64();
    fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    fs::write(dir.join("attempt-1.jsonl"), lines(&[JournalEvent::JobFinished(ended(1))])).unwrap();
    fs::write(dir.join("lock"), "").unwrap();
    set_age(&dir, age);
    dir
}

fn set_age(dir: &Path, age: Duration) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_file() {
            File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        }
    }
}

pub(super) fn removed(root: &Path, rule: RetentionPolicy) -> Vec<String> {
    let dry = prune(root, rule, true).unwrap();
    let pruned = prune(root, rule, false).unwrap();
    // A dry run reports the same.
    let left = |it: &PruneReport| it.left.iter().map(|(id, why)| format!("{id}: {why}")).collect::<Vec<_>>();
    assert_eq!((&dry.removed, left(&dry), dry.bytes), (&pruned.removed, left(&pruned), pruned.bytes));
    pruned.removed.into_iter().map(|run| run.id).collect()
}

fn remaining(root: &Path) -> Vec<String> {
    let mut ids = store::ids(root).unwrap();
    ids.sort();
    ids
}

#[test]
fn state_root_depends_on_environment() {
    let root = |family: &str, variables: &[(&str, &str)]| {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        state_root_from(variable, family).map_err(|error| error.to_string())
    };
    let home = ("HOME", "/h/u");
    let of = |path: &str| Ok(PathBuf::from(path));
    assert_eq!(root("unix", &[("MINDER_STATE_DIR", "here"), home]), of("here"));
    if std::path::MAIN_SEPARATOR == '/' {
        assert_eq!(root("unix", &[("XDG_STATE_HOME", "/s"), home]), of("/s/minder"));
        assert_eq!(root("unix", &[("XDG_STATE_HOME", "s"), home]), of("/h/u/.local/state/minder"));
        assert_eq!(root("unix", &[("MINDER_STATE_DIR", ""), home]), of("/h/u/.local/state/minder"));
        assert_eq!(root("windows", &[("LOCALAPPDATA", "/l"), home]), of("/l/minder"));
    }
    assert!(root("unix", &[]).unwrap_err().contains("XDG_STATE_HOME"));
    assert!(root("windows", &[home]).unwrap_err().contains("LOCALAPPDATA"));
    let relative = ("HOME", "u");
    let why = "no state directory: HOME is a relative path, which is not used";
    assert_eq!(root("unix", &[relative]).unwrap_err(), why);
    let both = root("unix", &[relative, ("XDG_STATE_HOME", "s")]).unwrap_err();
    assert!(both.ends_with(": XDG_STATE_HOME and HOME are relative paths, which are not used"), "{both}");
}

#[test]
fn find_accepts_unique_prefix_of_id() {
    let root = tempfile::tempdir().unwrap();
    assert!(find(root.path(), "6").unwrap_err().to_string().contains("there is no run `6`"));
    for (id, days) in [("61c00000", 3), ("61c10000", 1), ("7f3a0000", 2)] {
        run(root.path(), id, days);
    }
    fs::write(root.path().join("runs/7f3b0000"), "a file").unwrap();
    let name = |prefix: &str| {
        let found = find(root.path(), prefix).map_err(|error| error.to_string())?;
        Ok::<_, String>(found.file_name().unwrap().to_str().unwrap().to_owned())
    };
    assert_eq!(name("61c1"), Ok("61c10000".to_owned()));
    assert_eq!(name("7F3A"), Ok("7f3a0000".to_owned()));
    assert_eq!(name("61c00000"), Ok("61c00000".to_owned()));
    assert_eq!(
        name("61").unwrap_err(),
        "`61` is ambiguous: it matches 2 runs, 61c00000 (echo {}), 61c10000 (echo {})"
    );
    assert!(name("0").unwrap_err().contains("there is no run `0`"));
    assert!(name("7f3b").unwrap_err().contains("left alone"));
    for prefix in
        ["", ".", "..", "../runs/61c00000", "/", "61c0/", "61c00000/..", "61c000000", "é", "-1", "*", "6\0"]
    {
        assert!(name(prefix).unwrap_err().contains("invalid run id"), "{prefix}");
    }
    let order: Vec<String> = list(root.path()).unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(order, ["61c10000", "7f3a0000", "61c00000"], "newest first");
}

#[test]
fn file_kind_rejects_foreign_names() {
    for name in [
        "manifest.json",
        "manifest.json.tmp",
        "arguments",
        "lock",
        "attempt-1.jsonl",
        "out-1-0",
        "spill-3-1-77",
    ] {
        assert!(file_kind(name).is_some(), "{name}");
    }
    assert_eq!(file_kind("attempt-10.jsonl"), Some(FileKind::Attempt(10)));
    let foreign = [
        "",
        "..",
        "attempt-0.jsonl",
        "attempt-01.jsonl",
        "attempt-+1.jsonl",
        "attempt-1.json",
        "out-",
        "out-../x",
    ];
    for name in foreign.into_iter().chain([
        "out-1/2",
        "spill-\\",
        "out-a.b",
        "notes",
        "LOCK",
        "attempt-99999999999.jsonl",
    ]) {
        assert_eq!(file_kind(name), None, "{name}");
    }
    for name in ["../lock", "lock", "attempt-1.jsonl", "out-/../../x", "/etc/passwd", ""] {
        output_path(Path::new("/r"), name).unwrap_err();
    }
    assert_eq!(output_path(Path::new("/r"), "out-1-0").unwrap(), Path::new("/r/out-1-0"));
}

#[test]
fn prune_applies_limits_for_age_number_and_size() {
    let root = tempfile::tempdir().unwrap();
    let all = ["a", "b", "c", "d", "e"].map(|letter| letter.repeat(8));
    let fill = || {
        for (id, days) in all.iter().zip([31, 29, 20, 10, 0]) {
            run(root.path(), id, days);
        }
    };
    fill();
    let few = prune(root.path(), RetentionPolicy { runs_max: 2, ..RetentionPolicy::default() }, true)
        .unwrap()
        .removed;
    let whys: Vec<PruneReason> = few.iter().map(|run| run.why).collect();
    assert_eq!(whys, [PruneReason::Age, PruneReason::Runs, PruneReason::Runs]);
    assert_eq!(remaining(root.path()), all, "a dry run removes nothing");
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [all[0].clone()]);
    assert_eq!(remaining(root.path()), all[1..]);
    assert_eq!(
        removed(root.path(), RetentionPolicy { runs_max: 2, ..RetentionPolicy::default() }),
        all[1..3]
    );
    assert_eq!(remaining(root.path()), all[3..]);
    fill();
    fs::write(root.path().join("runs").join(&all[2]).join("spill-1-0"), vec![0; 5000]).unwrap();
    fs::write(root.path().join("runs").join(&all[3]).join("out-1-0"), vec![0; 5000]).unwrap();
    let pruned =
        prune(root.path(), RetentionPolicy { bytes_max: 9000, ..RetentionPolicy::default() }, false).unwrap();
    let whys: Vec<PruneReason> = pruned.removed.iter().map(|run| run.why).collect();
    assert_eq!(whys, [PruneReason::Age, PruneReason::Bytes, PruneReason::Bytes]);
    let ids: Vec<&str> = pruned.removed.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, [&all[0], &all[1], &all[2]]);
    assert!(pruned.removed[2].bytes > 5000 && pruned.bytes > 5000 && pruned.bytes <= 9000);
    // A run that began long ago and was resumed today is not old.
    run(root.path(), &all[0], 99);
    fs::write(root.path().join("runs").join(&all[0]).join("attempt-2.jsonl"), "").unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
}

#[test]
fn prune_keeps_live_unshown_and_foreign_runs() {
    let root = tempfile::tempdir().unwrap();
    let none = RetentionPolicy { runs_max: 0, ..RetentionPolicy::default() };
    // A live run of any age.
    let alive = run(root.path(), "aaaa0000", 99);
    let record = resume(&alive).unwrap();
    set_age(&alive, DAY * 99);
    // A run with output that was not shown.
    let unshown = run(root.path(), "bbbb0000", 29);
    fs::write(unshown.join("attempt-1.jsonl"), lines(&[JournalEvent::JobFinished(kept(1))])).unwrap();
    fs::write(unshown.join("out-1-0"), "x").unwrap();
    set_age(&unshown, DAY * 29);
    // Runs with agents, which hold no lock: one has no end.
    let detached = run(root.path(), "ffff0000", 29);
    fs::create_dir(detached.join("agents")).unwrap();
    let over = JournalEvent::AttemptFinished(AttemptFinished::default());
    let finished = run(root.path(), "ffff0001", 29);
    fs::create_dir(finished.join("agents")).unwrap();
    fs::write(finished.join("attempt-1.jsonl"), lines(&[JournalEvent::JobFinished(ended(1)), over])).unwrap();
    set_age(&finished, DAY * 29);
    // A run with output that was shown. The runner was killed before it removed the file.
    let shown = run(root.path(), "cccc0000", 29);
    let rows = [JournalEvent::JobFinished(kept(1)), JournalEvent::OutputShown(JobList { jobs: vec![1] })];
    fs::write(shown.join("attempt-1.jsonl"), lines(&rows)).unwrap();
    fs::write(shown.join("out-1-0"), "x").unwrap();
    // Runs with entries that minder does not create.
    fs::write(run(root.path(), "dddd0000", 99).join("notes.txt"), "mine").unwrap();
    fs::create_dir(run(root.path(), "eeee0000", 99).join("out-1-0")).unwrap();
    // Names that are not ids.
    fs::create_dir(root.path().join("runs/mine")).unwrap();
    fs::create_dir(root.path().join("runs/gone-mine")).unwrap();
    let pruned = prune(root.path(), none, false).unwrap();
    let mut gone = pruned.removed.iter().map(|run| run.id.as_str()).collect::<Vec<_>>();
    gone.sort_unstable();
    assert_eq!(gone, ["cccc0000", "ffff0001"]);
    assert_eq!(pruned.left.len(), 5, "{:?}", pruned.left);
    assert_eq!(remaining(root.path()), ["aaaa0000", "bbbb0000", "dddd0000", "eeee0000", "ffff0000"]);
    assert_eq!(fs::read_dir(root.path().join("runs/dddd0000")).unwrap().count(), 4, "all of it is left");
    assert!(root.path().join("runs/mine").is_dir() && root.path().join("runs/gone-mine").is_dir());
    drop(record);
    set_age(&unshown, DAY * 31);
    run(root.path(), "bbbb0000", 31);
    set_age(&unshown, DAY * 31);
    fs::remove_dir_all(detached).unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), ["aaaa0000", "bbbb0000"]);
}

#[test]
fn prune_removes_output_of_jobs_that_did_not_finish_after_a_week() {
    let root = tempfile::tempdir().unwrap();
    let tmp = root.path().join("minder-bbbb0000-1");
    let killed = |id: &str, days: u32| {
        let dir = run(root.path(), id, days);
        let outputs = OutputDir { attempt: 1, dir: OsBytes::from(tmp.as_os_str()) };
        let rows = [JournalEvent::OutputDir(outputs), JournalEvent::JobFinished(kept(1))];
        fs::write(dir.join("attempt-1.jsonl"), lines(&rows)).unwrap();
        // The first file is that of the finished job.
        for name in ["out-1-0", "spill-1-0-1", "part-1-0-1"] {
            fs::write(dir.join(name), "0123456789").unwrap();
        }
        set_age(&dir, DAY * days);
        dir
    };
    let outputs = |dir: &Path| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| file_kind(name) == Some(FileKind::Output)).collect();
        names.sort();
        names
    };
    let young = killed("aaaa0000", 6);
    let old = killed("bbbb0000", 8);
    let manifest = old.join("manifest.json");
    let flags = ("\"flags\":{", "\"flags\":{\"output_elsewhere\":true,");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains(flags.0), "{text}");
    fs::write(&manifest, text.replace(flags.0, flags.1).replace(",}", "}")).unwrap();
    set_age(&old, DAY * 8);
    minder_os::files::create_private_dir(&tmp).unwrap();
    fs::write(tmp.join("spill-1-0-1"), "x").unwrap();
    let alive = killed("cccc0000", 8);
    let record = resume(&alive).unwrap();
    set_age(&alive, DAY * 8);
    let rule = RetentionPolicy::default();
    let dry = prune(root.path(), rule, true).unwrap();
    assert_eq!(outputs(&old).len(), 3);
    let pruned = prune(root.path(), rule, false).unwrap();
    assert_eq!((pruned.bytes, pruned.removed.len()), (dry.bytes, 0));
    assert_eq!(outputs(&old), ["out-1-0"]);
    assert!(!tmp.exists());
    assert_eq!((outputs(&young).len(), outputs(&alive).len()), (3, 3));
    drop(record);
    // A damaged line may refer to any file.
    let mut events = fs::read(alive.join("attempt-1.jsonl")).unwrap();
    events.extend_from_slice(b"{}\n");
    fs::write(alive.join("attempt-1.jsonl"), events).unwrap();
    set_age(&alive, DAY * 8);
    prune(root.path(), rule, false).unwrap();
    assert_eq!(outputs(&alive).len(), 3);
}

#[test]
fn prune_finishes_earlier_pruning_that_was_killed() {
    let root = tempfile::tempdir().unwrap();
    let dir = run(root.path(), "aaaa0000", 0);
    fs::rename(dir, root.path().join("runs/gone-aaaa0000")).unwrap();
    assert_eq!(removed(root.path(), RetentionPolicy::default()), [""; 0]);
    assert_eq!(fs::read_dir(root.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn prune_daily_runs_once_a_day() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "eeee0000", 1);
    run(root.path(), "aaaa0000", 99);
    assert_eq!(prune_daily(root.path(), Path::new("")).unwrap().unwrap().removed.len(), 1);
    run(root.path(), "aaaa0000", 99);
    assert!(prune_daily(root.path(), Path::new("")).unwrap().is_none());
    let stamp = File::options().write(true).open(root.path().join("pruned")).unwrap();
    // The clock was set back in the meantime.
    stamp.set_modified(SystemTime::now() + DAY * 400).unwrap();
    drop(stamp);
    assert_eq!(prune_daily(root.path(), Path::new("")).unwrap().unwrap().removed.len(), 1);
    assert!(prune_daily(root.path(), Path::new("")).unwrap().is_none());
}

/// Returns how many runs daily pruning removes, for runs of these ages in days. The last one has
/// just finished.
fn removed_daily(days: &[u32]) -> usize {
    let root = tempfile::tempdir().unwrap();
    let runs: Vec<PathBuf> = days
        .iter()
        .enumerate()
        .map(|(number, days)| run(root.path(), &format!("aaaa{number:04}"), *days))
        .collect();
    prune_daily(root.path(), runs.last().unwrap()).unwrap().unwrap().removed.len()
}

#[test]
fn prune_daily_ignores_implausible_ages() {
    assert_eq!(removed_daily(&[40, 20, 10, 0]), 1);
    assert_eq!(removed_daily(&[40, 35, 10, 0]), 2);
    // All others are old at the same time, as if the clock had jumped.
    assert_eq!(removed_daily(&[61, 60, 60, 0]), 0);
    assert_eq!(removed_daily(&[40, 20, 15, 0]), 0);
    // The second run with such a clock.
    assert_eq!(removed_daily(&[61, 60, 60, 1, 0]), 0);
    // Pruning by hand applies the limits unconditionally.
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "aaaa0000", 60);
    assert_eq!(removed(root.path(), RetentionPolicy::default()), ["aaaa0000"]);
}

#[test]
fn prune_daily_applies_size_limit_with_wrong_clock() {
    let root = tempfile::tempdir().unwrap();
    let large = run(root.path(), "aaaa0000", 60);
    File::create(large.join("spill-1-0")).unwrap().set_len((1 << 30) + 1).unwrap();
    set_age(&large, DAY * 60);
    let own = run(root.path(), "bbbb0000", 0);
    let pruned = prune_daily(root.path(), &own).unwrap().unwrap();
    assert_eq!(pruned.removed.iter().map(|run| run.why).collect::<Vec<_>>(), [PruneReason::Bytes]);
    assert!(pruned.removed[0].unfinished, "its journal has no end");
}

/// Sets the number and the time of a run.
fn number(dir: &Path, number: Option<u64>, at: f64) {
    let mut manifest = Manifest::read(dir).unwrap();
    manifest.number = number;
    manifest.at = at;
    fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
}

#[test]
fn list_is_ordered_by_number() {
    let root = tempfile::tempdir().unwrap();
    // Two runs of an old version, three with numbers, of which one has a time in the future, and one
    // whose manifest lost its number.
    let runs = [
        ("aaaa0000", None, 10.0),
        ("bbbb0000", None, 20.0),
        ("cccc0000", Some(1), 30.0),
        ("dddd0000", Some(2), 9000.0),
        ("eeee0000", Some(3), 40.0),
        ("ffff0000", None, 35.0),
    ];
    for (id, place, at) in runs {
        number(&run(root.path(), id, 0), place, at);
    }
    let order: Vec<String> =
        list(root.path()).unwrap().into_iter().map(|run| run.id[..1].to_owned()).collect();
    assert_eq!(order, ["e", "d", "f", "c", "b", "a"]);
}

#[test]
fn numbers_continue_if_counter_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let counter = root.path().join("counter");
    let next = || Manifest::read(new_run(root.path()).dir()).unwrap().number.unwrap();
    assert_eq!([next(), next(), next()], [1, 2, 3]);
    fs::remove_file(&counter).unwrap();
    assert_eq!(next(), 4);
    for damaged in
        ["", "7\n", "x", "00000000000000000004", "99999999999999999999\n", "-0000000000000000001\n"]
    {
        let before = next();
        fs::write(&counter, damaged).unwrap();
        assert_eq!(next(), before + 1, "{damaged:?}");
    }
    // From several threads.
    let all = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let number = next();
                    all.lock().unwrap().push(number);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 160, "a number was assigned twice");
}
