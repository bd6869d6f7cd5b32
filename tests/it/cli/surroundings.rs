//! Runs where something is missing that every system has: the working directory, the null device, the
//! shell; and links where minder has its files.

use std::os::unix::fs::{MetadataExt as _, symlink};

use minder::Command;

use super::record::Place;
use super::{MINDER, Run, RunOutput, from, path, temp_dir};

/// Runs minder in a working directory that was deleted. Returns the output, and the name of the
/// directory.
fn run_in_deleted_dir(words: &[&str]) -> (RunOutput, String) {
    let root = temp_dir();
    let gone = root.path().canonicalize().expect("find path of the directory").join("gone");
    let mut shell: Command = from("sh", "-c");
    shell.arg("mkdir \"$0\" && cd \"$0\" && rmdir \"$0\" && exec \"$@\"").arg(&gone);
    shell.arg(MINDER).args(words).env("SHELL", "/bin/sh");
    (Run::start(&shell).wait(), path(&gone).to_owned())
}

#[test]
fn deleted_working_directory_is_named_unless_the_jobs_have_another() {
    for words in [&["run", "true", ":::", "a"][..], &["parallel", "true", ":::", "a"]] {
        let (ended, gone) = run_in_deleted_dir(words);
        ended.exit_code(255).stderr(&format!(
            "minder: cannot run jobs in the working directory `{gone}`: it was deleted (change to another \
             directory, or use --wd DIR)\n"
        ));
    }
    let (ended, _) = run_in_deleted_dir(&["run", "--wd", "/", "pwd; :", ":::", "a"]);
    assert_eq!(ended.exit_code(0).stderr("").text(), "/\n");
    let (ended, _) = run_in_deleted_dir(&["run", "--wd", "/", "--joblog", "x", "pwd; :", ":::", "a"]);
    ended.exit_code(255).stderr("minder: cannot write the joblog `x`: no such file or directory\n");
}

#[test]
fn deleted_working_directory_matters_to_runs_only() {
    for (words, code) in [
        (&["log"][..], 0),
        (&["help", "run"], 0),
        (&["--version"], 0),
        (&["config"], 0),
        (&["doctor"], 0),
        (&["sem", "--fg", "true"], 0),
        (&["xargs", "true"], 0),
        (&["relay", "true"], 0),
        (&["bench", "spawn", "--help"], 0),
        (&["resume", "last"], 255),
    ] {
        let (ended, _) = run_in_deleted_dir(words);
        assert!(!ended.err.contains("working directory"), "{words:?}: {ended:?}");
        ended.exit_code(code);
    }
}

/// Runs a command with an empty directory mounted there; `None` where this user may make no name space.
fn hidden(dir: &str, words: &[&str], state: impl AsRef<std::ffi::OsStr>) -> Option<RunOutput> {
    let run = |words: &[&str]| {
        let mut unshare = from("unshare", "-m sh -c");
        unshare.arg("mount -t tmpfs none \"$0\" && exec \"$@\"").arg(dir).args(words);
        Run::start(unshare.env("MINDER_STATE_DIR", state.as_ref())).wait()
    };
    let is_possible = run(&["true"]).status == minder::ExitStatus::Exited(0);
    is_possible.then(|| run(words))
}

/// Runs minder with an empty `/dev`.
fn without_devices(words: &[&str]) -> Option<RunOutput> {
    hidden("/dev", &[&[MINDER], words].concat(), super::STATE)
}

#[test]
fn missing_null_device_is_named() {
    let said = "cannot open `/dev/null`: no such file or directory (is /dev set up in this container or \
                chroot?)\n";
    for (words, code) in [
        (&["run", "true", ":::", "a"][..], 255),
        (&["parallel", "true", ":::", "a"], 255),
        (&["run", "--pipe", "cat"], 255),
        (&["xargs", "true"], 1),
    ] {
        let Some(ended) = without_devices(words) else { return };
        let ended = ended.exit_code(code).stderr_contains(said);
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
    // A child alone opens the device itself: that of the guardian.
    let Some(ended) = without_devices(&["relay", "echo", "a"]) else { return };
    assert_eq!(ended.exit_code(0).stderr_contains(said).text(), "a\n");
}

#[test]
fn files_of_a_semaphore_are_private_and_no_links() {
    let place = Place::new();
    place.ended("sem --fg --id x true").exit_code(0);
    let dir = place.at("state/semaphores/id-x");
    for name in ["gate", "turn-1"] {
        let file = dir.join(name);
        assert_eq!(file.metadata().expect("read the mode").mode() & 0o7777, 0o600, "{name}");
        std::fs::remove_file(&file).expect("remove file");
        symlink(place.at("elsewhere"), &file).expect("create link");
        let said = format!("cannot open `{}`: ", path(&file));
        place.ended("sem --fg --id x true").exit_code(255).error_line(&[&said, "link"]);
        assert!(!place.at("elsewhere").exists(), "{name}");
        std::fs::remove_file(&file).expect("remove link");
    }
    std::fs::remove_dir_all(&dir).expect("remove directory");
    std::fs::create_dir(place.at("elsewhere")).expect("create directory");
    symlink(place.at("elsewhere"), &dir).expect("create link");
    let said = format!("cannot use `{}`: it is a symbolic link", path(&dir));
    place.ended("sem --fg --id x true").exit_code(255).error_line(&[&said]);
    assert_eq!(std::fs::read_dir(place.at("elsewhere")).expect("list directory").count(), 0);
}

/// Without /proc, and where it hides the process of the run, running jobs are not counted as left.
#[test]
fn status_says_that_running_jobs_are_not_seen() {
    let place = Place::new();
    let go = place.at("go");
    let mut command = place.command("run -j1 CHILD await");
    let mut run = Run::start(command.arg(&go).args([":::", "1", "2"]));
    let status = || place.ended("status").exit_code(0);
    run.wait_until_true("the job", || status().text().contains("1 running · 1 left"));
    let said = "minder: running jobs cannot be seen: /proc is not mounted\n";
    let shown = hidden("/proc", &[MINDER, "status"], place.at("state"));
    if let Some(shown) = shown {
        let shown = shown.exit_code(0).stderr(said).text();
        assert!(shown.contains("0 of 2 done · 0 failed · 2 running or left · "), "{shown}");
        let json = hidden("/proc", &[MINDER, "status", "--json"], place.at("state"));
        let json = json.expect("hide /proc again").exit_code(0).text();
        assert!(json.contains(r#""running":null"#) && json.contains(r#""left":null"#), "{json}");
    }
    std::fs::write(&go, "").expect("write file");
    run.wait().exit_code(0);
}
