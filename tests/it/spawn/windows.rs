//! Features of Windows: extensions of programs, handles that are inherited by name, lines of a
//! bounded length.

#![expect(unsafe_code, reason = "a handle that children inherit")]

mod batch;
mod jobs;
mod command_line;

use std::os::windows::io::{AsRawHandle, OwnedHandle};

use minder::{Command, ErrorKind, Stdio};
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};

use super::{listed, program, set_path};
use crate::support::{TEST_CHILD, alone, open_descriptors, own_children, stdout_of, test_child};

#[test]
fn inheritable_handle_does_not_reach_a_child() {
    // What the standard library starts may inherit pipes of other tests, too.
    alone("spawn::windows::inheritable_handle_does_not_reach_a_child", || {
        let handles: Vec<OwnedHandle> =
            (0..20).map(|_| crate::support::file(std::io::pipe().expect("create pipe").0).into()).collect();
        let mut words = String::from("holds");
        for handle in &handles {
            // SAFETY: the handle is open.
            let answer = unsafe {
                SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)
            };
            assert!(answer != 0);
            words.push_str(&format!(" {}", handle.as_raw_handle() as usize));
        }
        // Started as others do, a child has them all. Its own handles may have the same numbers by chance:
        // not all of them.
        let args = words.split(' ');
        let output = std::process::Command::new(TEST_CHILD).args(args).output().expect("run test child");
        assert_eq!(String::from_utf8_lossy(&output.stdout).matches("true").count(), handles.len());
        let text = stdout_of(&test_child(&words));
        assert!(text.matches("true").count() < handles.len() / 2, "{text}");
    });
}

#[test]
fn path_is_searched_with_pathext_and_the_current_directory_is_not() {
    alone("spawn::windows::path_is_searched_with_pathext_and_the_current_directory_is_not", || {
        let dir = tempfile::tempdir().expect("create temporary directory");
        std::fs::copy(TEST_CHILD, dir.path().join(program("only-here"))).expect("copy file");
        std::fs::create_dir(dir.path().join("directory.exe")).expect("create directory");
        std::env::set_current_dir(dir.path()).expect("change directory");
        let fails = |name: &str| Command::new(name).spawn().expect_err(name);
        for name in ["only-here", "only-here.exe", "", "no-such-program"] {
            let error = fails(name);
            assert_eq!(
                (error.kind(), error.reason().as_str()),
                (ErrorKind::NotFound, "not found in PATH"),
                "{name}"
            );
        }
        set_path(listed(&["C:\\no\\such\\directory".as_ref(), dir.path()]));
        for name in ["only-here", "only-here.exe", "ONLY-HERE", "./only-here", ".\\only-here.exe"] {
            assert_eq!(stdout_of(Command::new(name).args(["echo-args", "x"])), "\"x\"\n", "{name}");
        }
        assert_eq!(fails("directory").kind(), ErrorKind::NotFound);
        std::env::set_current_dir("C:\\").expect("change directory");
    });
}

#[test]
fn unrunnable_program_is_reported_with_the_reason() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let text = dir.path().join("text.exe");
    std::fs::write(&text, "no program").expect("write file");
    for path in [text, dir.path().join("missing.exe"), dir.path().to_owned()] {
        let error = Command::new(&path).spawn().expect_err("start file without a program");
        assert!(error.to_string().starts_with("failed to start `C:"), "{error}");
    }
}

#[test]
fn overlong_command_line_is_rejected_with_its_limit() {
    let mut command = test_child("count");
    command.arg("x".repeat(32_000));
    assert!(command.spawn().expect("spawn with long argument").wait().is_ok());
    command.arg("x".repeat(1000));
    let error = command.spawn().expect_err("start with 33,000 characters");
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
}

#[test]
fn failed_spawn_leaves_no_process_and_no_handle() {
    alone("spawn::windows::failed_spawn_leaves_no_process_and_no_handle", || {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let text = dir.path().join("text.exe");
        std::fs::write(&text, "no program").expect("write file");
        test_child("exit 0").spawn().expect("spawn test child").wait().expect("wait for child");
        let fail = || {
            for path in [text.clone(), dir.path().join("missing.exe")] {
                let mut odd = Command::new(path);
                odd.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                odd.spawn().expect_err("start file without a program");
            }
            test_child("exit 0")
                .current_dir("C:\\no\\such\\directory")
                .spawn()
                .expect_err("enter missing directory");
        };
        fail();
        let before = open_descriptors();
        (0..20).for_each(|_| fail());
        assert_eq!((open_descriptors(), own_children()), (before, vec![]));
    });
}
