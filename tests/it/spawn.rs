//! Spawning: what a child inherits, what it does not, and the errors of a failed spawn.

#![expect(unsafe_code, reason = "the environment of processes that a test has for itself")]

#[cfg(unix)]
mod environment;
#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")] // Linux alone has cgroups.
mod cgroup;
#[cfg(unix)]
mod unix;
#[cfg(target_os = "linux")] // Where the child discards pending signals.
mod terminal_keys;
#[cfg(windows)]
mod windows;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use minder::{Command, Environment, ErrorKind, ExitStatus, Stdio};

use crate::support::{TEST_CHILD, alone, quiet_child, read_all, stdout_of, test_child};
#[cfg(unix)]
pub(crate) use unix::{count, ignore, restore_sigpipe};

/// Returns an argument that is not valid Unicode on this platform, and how test_child prints it.
fn no_text() -> (OsString, &'static str) {
    #[cfg(unix)]
    return (std::os::unix::ffi::OsStringExt::from_vec(b"\xff\xfe".to_vec()), "\\xFF\\xFE");
    #[cfg(windows)]
    return (std::os::windows::ffi::OsStringExt::from_wide(&[0xd800]), "\\u{d800}");
}

/// Returns the file name of a program on this platform: `NAME.exe` on Windows.
fn program(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

/// Returns a value of `PATH` that lists these directories.
fn listed(directories: &[&Path]) -> OsString {
    std::env::join_paths(directories).expect("join PATH")
}

#[test]
fn child_runs_in_the_given_directory() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let path = dir.path().canonicalize().expect("canonicalize path");
    let found = stdout_of(test_child("cwd").current_dir(&path));
    // Canonical paths of Windows begin with `\\?\`. The current directory of a process does not.
    assert_eq!(found.trim(), path.to_string_lossy().trim_start_matches(r"\\?\"));
    let error =
        test_child("cwd").current_dir(path.join("missing")).spawn().expect_err("enter missing directory");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().starts_with("failed to enter the directory `"), "{error}");
    let file = path.join("file");
    std::fs::write(&file, "").expect("write file");
    let error = test_child("cwd").current_dir(&file).spawn().expect_err("enter file");
    assert!(error.to_string().starts_with("failed to enter the directory `"), "{error}");
    // A relative path of a program starts at the directory of the child.
    std::fs::copy(TEST_CHILD, path.join(program("here"))).expect("copy file");
    assert_eq!(stdout_of(Command::new("./here").arg("exit").current_dir(&path)), "");
}

#[test]
fn environment_is_inherited_with_changes() {
    let mut command = test_child("echo-env");
    command.env("MINDER_TEST_NEW", "1").env("MINDER_TEST_NEW", "2 = two").env("MINDER_TEST_GONE", "x");
    command.env_remove("MINDER_TEST_GONE").env_remove("HOME");
    let text = stdout_of(&command);
    assert!(text.contains("\"MINDER_TEST_NEW\"=\"2 = two\"\n"), "{text}");
    assert_eq!(text.matches("MINDER_TEST_NEW").count(), 1);
    assert!(!text.contains("MINDER_TEST_GONE") && !text.contains("\"HOME\"="), "{text}");
    assert!(text.to_uppercase().contains("\"PATH\"="), "{text}");
    let mut command = test_child("echo-env");
    command.env("BEFORE", "1").env_clear();
    // Windows adds its own variables.
    let text = stdout_of(&command);
    assert!(text.is_empty() || cfg!(windows) && !text.contains("BEFORE"), "an empty environment: {text}");
    let (odd, shown) = no_text();
    command.env("B", "2").env("A", "").env(&odd, "odd");
    let expected = format!("\"A\"=\"\"\n\"B\"=\"2\"\n\"{shown}\"=\"odd\"\n");
    let text = stdout_of(&command);
    assert!(
        text == expected
            || cfg!(windows) && expected.lines().all(|line| text.lines().any(|said| said == line)),
        "{text}"
    );
}

#[test]
fn shared_environment_is_changed_for_each_start_alone() {
    let shared = Environment::empty().with("A", "1").with("B", "2").with("A", "3");
    let mut command = test_child("echo-env");
    // Before and after: the order of the calls is of no importance.
    command.env("B", "4").environment(&shared).env("C", "5");
    let lines = |command: &Command| -> Vec<String> {
        let text = stdout_of(command);
        let is_ours =
            |line: &&str| [r#""A"="#, r#""B"="#, r#""C"="#].iter().any(|name| line.starts_with(name));
        text.lines().filter(is_ours).map(str::to_owned).collect()
    };
    let mut changed = lines(&command);
    changed.sort();
    assert_eq!(changed, [r#""A"="3""#, r#""B"="4""#, r#""C"="5""#]);
    let mut set = minder::ChildSet::new(minder::ChildSetOptions::new()).expect("make set");
    for (removed, left) in [("A", r#""B"="2""#), ("B", r#""A"="3""#)] {
        let mut command = test_child("echo-env");
        command.environment(&shared).env_remove(removed).stdout(minder::Stdio::piped());
        set.spawn(&command, minder::SpawnOptions::new()).expect("start child");
        let mut output = Vec::new();
        let on_event = |event| {
            if let minder::Event::Output { chunk, .. } = event {
                output.extend_from_slice(&chunk);
            }
        };
        set.wait_all(None, on_event).expect("wait for child");
        let text = String::from_utf8_lossy(&output).into_owned();
        assert!(text.contains(left) && !text.contains(&format!("\"{removed}\"=")), "{text}");
    }
    for name in ["", "A=B"] {
        let bad = shared.clone().with(name, "1");
        let error = test_child("exit").environment(&bad).spawn().expect_err("start with a bad name");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}

#[test]
fn arguments_arrive_unchanged() {
    let mut command = test_child("echo-args");
    command.args(["", " ", "a b", "\"'$(x)`", "*", "-", "--", "\n"]);
    let (odd, shown) = no_text();
    command.arg(odd);
    let expected = "\"\"\n\" \"\n\"a b\"\n\"\\\"'$(x)`\"\n\"*\"\n\"-\"\n\"--\"\n\"\\n\"\n";
    assert_eq!(stdout_of(&command), format!("{expected}\"{shown}\"\n"));
}

fn set_path(path: impl AsRef<OsStr>) {
    // SAFETY: this process has no other thread that reads the environment.
    unsafe { std::env::set_var("PATH", path) };
}

/// A set caches lookups in PATH from one start to the next.
#[test]
fn moved_program_is_found_again() {
    alone("spawn::moved_program_is_found_again", || {
        let first = tempfile::tempdir().expect("create temporary directory");
        let second = tempfile::tempdir().expect("create temporary directory");
        let mover = program("mover");
        std::fs::copy(TEST_CHILD, first.path().join(&mover)).expect("copy file");
        set_path(listed(&[first.path(), second.path()]));
        let mut set = minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
        let mut command = Command::new("mover");
        command.args(["exit", "0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = |set: &mut minder::ChildSet| {
            set.spawn(&command, minder::SpawnOptions::default()).expect("spawn program");
            crate::support::EventLog::default().wait_all(set);
        };
        start(&mut set);
        std::fs::rename(first.path().join(&mover), second.path().join(&mover)).expect("rename");
        start(&mut set);
        // Another PATH is another search.
        let third = tempfile::tempdir().expect("create temporary directory");
        // It does not succeed with these arguments.
        std::fs::copy(env!("CARGO_BIN_EXE_minder-dup"), third.path().join(&mover)).expect("copy file");
        set_path(listed(&[third.path(), second.path()]));
        let id = set.spawn(&command, minder::SpawnOptions::default()).expect("spawn program");
        let mut event_log = crate::support::EventLog::default();
        event_log.wait_all(&mut set);
        assert!(!event_log.outcome(id).exit.status.success(), "the old PATH was used");
    });
}

#[cfg(unix)]
#[test]
fn program_is_searched_for_in_the_path_of_the_child() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("create temporary directory"));
    let name = "program-of-the-test";
    std::fs::copy(TEST_CHILD, second.path().join(name)).expect("copy file");
    let here = Environment::inherited().with("PATH", second.path());
    let elsewhere = Environment::inherited().with("PATH", first.path());
    let mut set = minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
    let mut found = |change: &dyn Fn(&mut Command) -> &mut Command| {
        let mut command = Command::new(name);
        change(command.args(["exit", "0"]));
        // A lone start, and one that may know the last search.
        let is_found = command.status().is_ok();
        assert_eq!(set.spawn(&command, minder::SpawnOptions::default()).is_ok(), is_found);
        is_found
    };
    assert!(!found(&|command| command), "the path of this process does not have it");
    assert!(found(&|command| command.env("PATH", "/nowhere").env("PATH", second.path())));
    assert!(found(&|command| command.environment(&here)));
    assert!(!found(&|command| command.environment(&here).env_remove("PATH")));
    assert!(!found(&|command| command.environment(&here).env("PATH", first.path())));
    assert!(found(&|command| command.environment(&elsewhere).env("PATH", second.path())));
    assert!(!found(&|command| command.env("PATH", second.path()).env_clear()));
    // Without a path, where the system has its programs.
    assert!(Command::new("sh").args(["-c", "exit"]).env_clear().status().expect("start sh").success());
    minder::ChildSet::wait_all(&mut set, None, drop).expect("wait for the children");
}

#[test]
fn invalid_variable_name_is_rejected() {
    for name in ["", "A=B"] {
        let mut command = test_child("exit 0");
        command.env(name, "x");
        let error = command.spawn().expect_err(name);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(!error.to_string().contains("NUL"), "{name:?} holds no NUL: {error}");
    }
}

#[test]
fn children_are_spawned_from_many_threads() {
    let threads: Vec<_> = (0..8)
        .map(|number| {
            std::thread::spawn(move || {
                for round in 0..25 {
                    let bytes = number * 100 + round;
                    let mut child = test_child(&format!("both {bytes}")).spawn().expect("spawn test child");
                    let out = read_all(child.stdout.take());
                    let err = read_all(child.stderr.take());
                    assert_eq!(
                        (out.len(), err.len()),
                        (bytes, bytes),
                        "another child holds a copy of the pipe"
                    );
                    assert!(child.wait().expect("wait for child").status.success());
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("join thread");
    }
}

#[test]
fn command_is_reusable_and_cloneable() {
    let command = quiet_child("exit 3");
    let copy = command.clone();
    let other = std::thread::spawn(move || {
        copy.spawn().expect("spawn test child").wait().expect("wait for child").status
    });
    for _ in 0..3 {
        assert_eq!(
            command.spawn().expect("spawn test child").wait().expect("wait for child").status,
            ExitStatus::Exited(3)
        );
    }
    assert_eq!(other.join().expect("join thread"), ExitStatus::Exited(3));
    assert_eq!((command.get_program(), command.get_args().len()), (OsStr::new(TEST_CHILD), 2));
}

#[test]
fn nul_byte_is_rejected_everywhere() {
    let nul = "a\0b";
    let mut variable = test_child("exit 0");
    variable.env("X", nul);
    let mut name = test_child("exit 0");
    name.env(nul, "x");
    let mut dir = test_child("exit 0");
    dir.current_dir(nul);
    let mut argument = test_child("exit 0");
    argument.arg(nul);
    for command in [Command::new(nul), argument, variable, name, dir] {
        let error = command.spawn().expect_err("spawn with NUL byte");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("NUL"), "{error}");
    }
}

/// golang/go#22315, rust-lang/rust#114554: a program that was just written is busy. A single start does not
/// wait, as that of std does not; the kind of its error tells the caller to try again.
#[cfg(target_os = "linux")] // Other systems run such a program.
#[test]
fn program_open_for_writing_fails_at_once_with_its_own_kind() {
    let dir = tempfile::tempdir().expect("create directory");
    let path = dir.path().join("busy");
    std::fs::copy(crate::support::TEST_CHILD, &path).expect("copy program");
    let _file = std::fs::File::options().append(true).open(&path).expect("open program");
    let error = minder::Command::new(&path).spawn().expect_err("spawn program");
    assert_eq!(error.io_error().kind(), std::io::ErrorKind::ExecutableFileBusy);
    assert_eq!((error.kind(), error.operation()), (minder::ErrorKind::Other, minder::Operation::Spawn));
}
