//! The data that a child gets at its start: its arguments as one line, its environment as one
//! block, its directory.

#![expect(unsafe_code, reason = "the environment of a process that a test has for itself")]

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::Path;

use minder::{Command, ErrorKind, Stdio};

use crate::support::{TEST_CHILD, alone, stdout_of, test_child};

/// Formats arguments as test_child prints them, one on a line.
fn shown(args: &[OsString]) -> String {
    args.iter().map(|arg| format!("{arg:?}\n")).collect()
}

fn odd(units: &[u16]) -> OsString {
    OsString::from_wide(units)
}

#[test]
fn quoted_arguments_round_trip() {
    let mut args: Vec<OsString> = [
        "",
        " ",
        "\t",
        " a ",
        "\"",
        "\"\"",
        "\"\"\"",
        "\\",
        "\\\\",
        "\\\"",
        "\\\\\"",
        "a\\",
        "a b\\",
        "a b\\\\",
        "\\ \\",
        "a\"b\"c",
        "a\\\"b c\\\\\"d\\",
        "C:\\Program Files\\x\\",
        "\\\\server\\share\\",
        "%PATH%",
        "%",
        "100%",
        "^",
        "^&",
        "&|<>^()!;,=",
        "'",
        "`",
        "$(x)",
        "~",
        "*",
        "?",
        "[a]",
        "{a,b}",
        "@file",
        "-",
        "--",
        "/?",
        "a\nb",
        "\r\n",
        "\u{1}",
        "grün",
        "日本語",
        "🦀",
        "🦀 🦀",
        "\u{202e}",
        "\u{feff}",
        "\u{ff02}",
    ]
    .map(OsString::from)
    .to_vec();
    args.extend([odd(&[0xd800]), odd(&[0xdc00, 0xd800]), odd(&[0x20, 0xdfff, 0x22]), odd(&[0xffff])]);
    let mut command = test_child("echo-args");
    command.args(&args);
    assert_eq!(stdout_of(&command), shown(&args));
    // Alone, too: what stands at an end of the line has no neighbour that hides a mistake.
    for arg in args {
        let mut command = test_child("echo-args");
        command.arg(&arg);
        assert_eq!(stdout_of(&command), shown(&[arg]));
    }
}

#[test]
fn longest_command_line_arrives_and_a_longer_one_is_rejected() {
    // Both marks around the program, the verb with its space, a space, and the end mark.
    let rest = TEST_CHILD.encode_utf16().count() + 2 + "count-args".len() + 1 + 1 + 1;
    let longest = "x".repeat(32_767 - rest);
    let text = stdout_of(test_child("count-args").arg(&longest));
    assert_eq!(text.trim(), longest.len().to_string());
    let error =
        test_child("count-args").arg(longest + "x").spawn().expect_err("spawn with overlong command line");
    assert_eq!(error.kind(), ErrorKind::TooLong);
    let text = "with its arguments it is longer than the 32,766 characters that the system takes: \
                pass them through a file or standard input";
    assert_eq!(error.reason(), text);
    // Quoting counts.
    let error = test_child("count-args")
        .arg("\"".repeat(17_000))
        .spawn()
        .expect_err("spawn with overlong quoted argument");
    assert_eq!(error.kind(), ErrorKind::TooLong);
}

/// Returns the variables of a child, except those that begin with `=` and those that Wine sets.
fn variables(command: &Command) -> Vec<String> {
    let text = stdout_of(command);
    let of_wine = ["\"=", "\"WINE", "\"System"];
    let lines = text.lines().filter(|line| !of_wine.iter().any(|start| line.starts_with(start)));
    lines.map(str::to_owned).collect()
}

#[test]
fn variable_names_ignore_case() {
    let mut command = test_child("echo-env");
    command.env_clear().env("Minder_A", "1").env("MINDER_A", "2").env("b", "").env("ü", "3").env("Ü", "4");
    command.env("z", "5").env_remove("Z").env("c", "a=b\"\n");
    assert_eq!(variables(&command), [r#""MINDER_A"="2""#, r#""b"="""#, r#""c"="a=b\"\n""#, r#""Ü"="4""#]);
    let mut command = test_child("echo-env");
    command.env("pAtH", "C:\\x");
    let found = variables(&command).into_iter().filter(|line| line.to_lowercase().starts_with("\"path\"="));
    assert_eq!(found.collect::<Vec<_>>(), [r#""pAtH"="C:\\x""#]);
}

#[test]
fn current_directories_of_drives_are_inherited() {
    alone("spawn::windows::command_line::current_directories_of_drives_are_inherited", || {
        // As a shell leaves them. SAFETY: this process has no other thread that reads the environment.
        unsafe { std::env::set_var("=Q:", "Q:\\x") };
        let mut command = test_child("echo-env");
        command.env("MINDER_TEST_NEW", "1");
        for command in [test_child("echo-env"), command] {
            let text = stdout_of(&command);
            assert!(text.contains(r#""=Q:"="Q:\\x""#), "{text}");
        }
        assert!(!stdout_of(test_child("echo-env").env_clear()).contains("=Q:"));
    });
}

#[test]
fn directory_may_be_relative_or_verbatim() {
    alone("spawn::windows::command_line::directory_may_be_relative_or_verbatim", || {
        let temp_dir = tempfile::tempdir_in("C:\\").expect("create temporary directory");
        std::fs::create_dir(temp_dir.path().join("sub")).expect("create directory");
        std::env::set_current_dir(temp_dir.path()).expect("change directory");
        let name = temp_dir.path().file_name().expect("path has a file name").to_string_lossy().into_owned();
        let expected = temp_dir.path().join("sub").to_string_lossy().into_owned();
        for dir in
            ["sub", ".\\sub", "./sub/../sub", "C:sub", &format!("\\{name}\\sub"), &format!(r"\\?\{expected}")]
        {
            assert_eq!(stdout_of(test_child("cwd").current_dir(dir)).trim(), expected, "{dir}");
        }
        // A relative path starts at the directory of the child. A bare name is searched in PATH only.
        std::fs::copy(TEST_CHILD, temp_dir.path().join("sub/here.exe")).expect("copy file");
        for program in ["./here", ".\\here.exe", "..\\sub\\here"] {
            let mut command = Command::new(program);
            assert_eq!(
                stdout_of(command.args(["echo-args", "x"]).current_dir("sub")),
                "\"x\"\n",
                "{program}"
            );
        }
        let error =
            Command::new("here").current_dir("sub").spawn().expect_err("start program that is not in PATH");
        assert_eq!(error.reason(), "not found in PATH");
        std::env::set_current_dir("C:\\").expect("change directory");
    });
}

#[test]
fn unusable_directory_is_reported() {
    let temp_dir = tempfile::tempdir().expect("create temporary directory");
    let file = temp_dir.path().join("file");
    std::fs::write(&file, "").expect("write file");
    for dir in [Path::new("Q:\\no\\such"), &temp_dir.path().join("missing"), &file, Path::new("")] {
        let error = test_child("exit 0").current_dir(dir).spawn().expect_err("enter unusable directory");
        assert!(error.to_string().starts_with("failed to enter the directory `"), "{error}");
    }
    let long = (0..6).fold(temp_dir.path().to_owned(), |path, _| path.join("x".repeat(50)));
    std::fs::create_dir_all(Path::new(&format!(r"\\?\{}", long.display()))).expect("create directory");
    for dir in [long.clone(), format!(r"\\?\{}", long.display()).into()] {
        let error =
            test_child("exit 0").current_dir(dir).spawn().expect_err("enter directory with a long path");
        assert!(error.to_string().starts_with("failed to enter the directory `"), "{error}");
        assert!(error.to_string().contains("longer than the 258 characters"), "{error}");
    }
}

#[test]
fn resource_usage_is_reported() {
    let exit = test_child("burn 200")
        .stdout(Stdio::null())
        .spawn()
        .expect("spawn test child")
        .wait()
        .expect("wait for child");
    let usage = exit.usage.expect("get resource usage");
    assert!(usage.user + usage.system >= std::time::Duration::from_millis(50), "{usage:?}");
    assert!(usage.max_rss.is_none_or(|bytes| bytes > 100_000), "{usage:?}");
}
