//! Batch files: what they are given is what was meant, or they are not started.

#![expect(unsafe_code, reason = "a variable of a process that runs one test")]

use std::path::{Path, PathBuf};

use minder::{Command, ErrorKind, Stdio};

use super::super::{listed, set_path};
use crate::support::{TEST_CHILD, alone, stdout_of};

/// Shows what test_child gets of what the batch file gets, then the first two arguments, and ends
/// with 7.
fn batch(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    let text =
        format!("@echo off\r\n\"{TEST_CHILD}\" echo-args %*\r\necho 1:%1\r\necho \"2:%~2\"\r\nexit /b 7\r\n");
    std::fs::write(&path, text).expect("write file");
    path
}

fn output(command: &mut Command) -> (String, Option<i32>) {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("spawn test child");
    let text = crate::support::read_all(child.stdout.take());
    (text, child.wait().expect("wait for child").status.code())
}

#[test]
fn batch_file_receives_its_arguments() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    for name in ["x.bat", "a & b ^ (c) !d! ;e,f=g'.cmd", "grün.BAT"] {
        let path = batch(dir.path(), name);
        for args in [
            &["a", "b c"][..],
            &["", "x"],
            &["&echo injected", "|more"],
            &["a^b", "<in>out"],
            &["!PATH!", "(a)"],
            &["a,b;c=d", "*"],
            &[r"C:\x\", r"\\server\share\a b"],
            &["'`$~", "/?"],
            &["-x=1", "grün 🦀"],
        ] {
            let (text, code) = output(Command::new(&path).args(args));
            let mut lines = text.lines();
            for arg in args {
                assert_eq!(lines.next(), Some(format!("{arg:?}").as_str()), "{name} {args:?}: {text}");
            }
            let first = lines.next().and_then(|line| line.strip_prefix("1:"));
            assert_eq!(first.map(|first| first.trim_matches('"')), Some(args[0]), "{name} {args:?}: {text}");
            // `echo` writes in a code page that knows few letters.
            if !args[1].is_ascii() {
                continue;
            }
            assert_eq!(
                (lines.next(), code),
                (Some(format!("\"2:{}\"", args[1]).as_str()), Some(7)),
                "{name} {args:?}"
            );
        }
    }
}

#[test]
fn unsafe_batch_argument_is_rejected() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let path = batch(dir.path(), "x.cmd");
    let fails = |arg: &str| {
        Command::new(&path).args(["a", arg]).spawn().expect_err("start batch file with refused argument")
    };
    for (arg, what) in [
        ("100%", "`100%`, holds `%`"),
        ("a\"&calc", "`a\"&calc`, holds `\"`"),
        ("a\nb", "`a\\nb`, holds a line end"),
        ("a b\\", "`a b\\`, holds a space or special character, and `\\` at its end"),
    ] {
        let error = fails(arg);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(
            error.reason(),
            format!(
                "argument 2, {what}, which cannot be passed to cmd.exe, which runs batch files: \
                 pass it through a file or a variable"
            )
        );
    }
    let error = fails(&"x".repeat(9000));
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
    assert!(error.to_string().contains("8,191 characters"), "{error}");
    let error = Command::new(batch(dir.path(), "100%.cmd"))
        .spawn()
        .expect_err("start batch file with `%` in its name");
    assert!(error.to_string().contains("its path holds `%`"), "{error}");
    let error = Command::new(dir.path().join("missing.bat")).spawn().expect_err("start missing batch file");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

/// Dots and spaces at the end of a name are ignored by Windows, which would start the batch file
/// by itself.
#[test]
fn no_spelling_of_a_name_bypasses_the_rules() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let path = batch(dir.path(), "x.bat");
    for tail in ["", ".", " ", ". .", "...   "] {
        let mut name = path.clone().into_os_string();
        name.push(tail);
        for name in [name.clone(), format!(r"\\?\{}", name.display()).into()] {
            match Command::new(&name).arg("%PATH%").stdout(Stdio::null()).spawn() {
                Ok(_) => panic!("{} was started", name.display()),
                Err(error) => assert_ne!(error.kind(), ErrorKind::Exhausted, "{error}"),
            }
        }
    }
}

#[test]
fn path_finds_batch_files_and_no_documents() {
    alone("spawn::windows::batch::path_finds_batch_files_and_no_documents", || {
        let dir = tempfile::tempdir().expect("create temporary directory");
        batch(dir.path(), "tool.cmd");
        std::fs::write(dir.path().join("page.js"), "").expect("write file");
        set_path(listed(&[dir.path()]));
        // SAFETY: this process has no other thread that reads the environment.
        unsafe { std::env::set_var("PATHEXT", ".COM;.EXE;.BAT;.CMD;.VBS;.JS") };
        assert_eq!(
            output(Command::new("tool").args(["a b", "c"])).0,
            "\"a b\"\n\"c\"\n1:\"a b\"\r\n\"2:c\"\r\n"
        );
        for name in ["page", "page.js"] {
            let error = Command::new(name).spawn().expect_err("start document");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = "`page.js` is a document, not a program: start the program that reads it";
            assert_eq!(error.to_string(), format!("failed to start `{name}`: {text}"));
        }
        // Batch files are run by the interpreter of Windows, whatever the environment names.
        std::fs::copy(TEST_CHILD, dir.path().join("cmd.exe")).expect("copy file");
        let mut command = Command::new("tool");
        command.args(["a", "b"]).env("COMSPEC", dir.path().join("cmd.exe")).env("PATHEXT", ".EXE");
        assert_eq!(output(&mut command).1, Some(7));
        assert_eq!(
            stdout_of(Command::new("cmd").args(["echo-args", "x"])),
            "\"x\"\n",
            "a bare `cmd` was not found in PATH"
        );
    });
}
