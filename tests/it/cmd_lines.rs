//! Shell lines by the `cmd.exe` of this machine: a job sees exactly its value, and no value is ever
//! run.
//!
//! What holds for real Windows by its documentation is in
//! `crates/minder-template/src/windows/cmd.rs`; this shows it under the cmd that is there.

use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStringExt;
use std::process::Output;

use minder::{Command, Stdio};

use crate::support::{TEST_CHILD, output_of};

const MINDER: &str = env!("CARGO_BIN_EXE_minder-dup");

/// Values that try to break out, or that others take apart.
const HARD: [&str; 38] = [
    "a & echo x",
    "&echo x",
    "a|b",
    "| more",
    "a>b",
    "<a",
    "%PATH%",
    "%PATH",
    "%%PATH%%",
    "%CMDCMDLINE:~-1%&echo x",
    "%1",
    "%*",
    "^",
    "^^",
    "a^",
    "^&",
    "(",
    ")",
    ") & (",
    "!x!",
    "!PATH!",
    "a b",
    " a ",
    "a\tb",
    "'",
    "`",
    "$x",
    "*",
    "?",
    "/c",
    "-n",
    "@",
    ":x",
    "a,b;c=d",
    "grün",
    "🦀 🦀",
    "%MINDER_V1%",
    "~",
];

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn command(&self, words: &[&OsStr]) -> Output {
        let mut command = Command::new(MINDER);
        command
            .args(words)
            .current_dir(self.dir.path())
            .env("MINDER_STATE_DIR", self.dir.path().join("state"));
        // Of a system around Wine.
        command.env_remove("SHELL");
        output_of(command.stdin(Stdio::null()).env("P", "p"))
    }

    fn run(&self, flags: &[&str], line: &str, values: &[OsString]) -> Output {
        // Wine's console host belongs to the job, and holds the job's output open for a moment longer than
        // its programs.
        let own = ["run", "--no-record", "--no-guard", "-k", "--leak", "wait"];
        let mut words: Vec<&OsStr> = own.map(OsStr::new).to_vec();
        words.extend(flags.iter().map(OsStr::new));
        words.extend([OsStr::new(line), ":::".as_ref()]);
        words.extend(values.iter().map(OsString::as_os_str));
        self.command(&words)
    }

    /// Its stdout, if all jobs succeed.
    #[track_caller]
    fn says(&self, line: &str, values: &[OsString]) -> String {
        let output = self.run(&[], line, values);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {:?}: {error}", output.status);
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    }

    #[track_caller]
    fn refuses(&self, line: &str, value: &str, part: &str) {
        let output = self.run(&[], line, &[value.into()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(part), "{line}: {error}");
    }
}

/// test_child as cmd finds it, which takes `/` for the beginning of a flag.
fn program() -> String {
    std::path::absolute(TEST_CHILD.replace('/', "\\")).unwrap().into_os_string().into_string().unwrap()
}

fn hard() -> Vec<OsString> {
    let mut values: Vec<OsString> = HARD.iter().map(OsString::from).collect();
    values.extend([r"a\", r"a b\\", r"\", r"C:\x y\", ""].map(OsString::from));
    values.push(OsString::from_wide(&[b'a'.into(), 0xd800, b' '.into(), 0xdfff]));
    if expands_again() {
        crate::support::skip(format_args!(
            "values with `%`: this cmd expands again what came of a variable, as Wine's does"
        ));
        values.retain(|value| !value.as_encoded_bytes().contains(&b'%'));
    }
    values
}

/// Returns whether the shell expands variables in the values of variables. cmd.exe of Windows
/// expands a line once (`set /?`).
fn expands_again() -> bool {
    let mut command = Command::new(minder_os::system_paths::system_shell());
    command.args(["/d", "/c", "echo", "%OUTER%"]).env("OUTER", "%INNER%").env("INNER", "again");
    let said = String::from_utf8(output_of(&mut command).stdout).unwrap();
    let said = said.trim().trim_matches('"');
    assert!(["%INNER%", "again"].contains(&said), "{said}");
    said == "again"
}

/// Returns the output of `test_child echo-args` for these values.
fn echoed<'a>(values: impl IntoIterator<Item = &'a OsString>) -> String {
    values.into_iter().map(|value| format!("{value:?}\n")).collect()
}

#[test]
fn program_receives_the_exact_value() {
    let place = Place::new();
    let child = program();
    let values = hard();
    for line in [
        format!("\"{child}\" echo-args {{}}"),
        format!("\"{child}\" echo-args \"{{}}\""),
        format!("@\"{child}\" echo-args"),
        format!("if not {{}}==y (\"{child}\" echo-args {{}}) else echo y"),
        format!("cd . & \"{child}\" echo-args {{}} && cd ."),
    ] {
        assert_eq!(place.says(&line, &values), echoed(&values), "{line}");
    }
}

#[test]
fn value_may_be_part_of_a_word() {
    let place = Place::new();
    let values = hard();
    let joined = place.says(&format!("\"{}\" echo-args x{{}}y \"%P% {{}} ^\"", program()), &values);
    let with = |before: &str, value: &OsString, after: &str| {
        let mut out = OsString::from(before);
        out.push(value);
        out.push(after);
        out
    };
    let expected: Vec<OsString> =
        values.iter().flat_map(|value| [with("x", value, "y"), with("p ", value, " ^")]).collect();
    assert_eq!(joined, echoed(&expected));
}

#[test]
fn several_values_are_several_words() {
    let place = Place::new();
    let values = hard();
    let output = place.run(&["-n", "3"], &format!("\"{}\" echo-args {{}}", program()), &values);
    assert_eq!(String::from_utf8_lossy(&output.stdout), echoed(&values));
    // As many as fit: with all that it refers to a line has 8191 characters at most.
    let many: Vec<OsString> = (0..1000).map(|n| format!("{n}{}", "x".repeat(20)).into()).collect();
    let output = place.run(&["--xargs"], &format!("\"{}\" echo-args {{}}", program()), &many);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), echoed(&many));
}

#[test]
fn files_and_pipes_receive_the_value() {
    let place = Place::new();
    std::fs::write(place.dir.path().join("a & b ^x.txt"), "one\r\ntwo\r\n").unwrap();
    let files = [OsString::from("a & b ^x.txt")];
    assert_eq!(place.says("type {}", &files), "one\ntwo\n");
    assert_eq!(place.says("type \"{.}.txt\" > {}.copy & type {}.copy", &files), "one\ntwo\n");
    // Each side of a pipe is another cmd.
    let child = program();
    assert_eq!(place.says(&format!("type {{}} | \"{child}\" cat"), &files), "one\ntwo\n");
    let values: Vec<OsString> =
        hard().into_iter().filter(|value| !value.as_encoded_bytes().contains(&b'%')).collect();
    let piped = format!("\"{child}\" echo-args {{}} | \"{child}\" cat");
    assert_eq!(place.says(&piped, &values), echoed(&values));
    place.refuses(&piped, "50%", "may take it for a variable");
}

#[test]
fn unquotable_values_are_rejected() {
    let place = Place::new();
    place.refuses("echo {}", "a\"b", "holds a quotation mark");
    place.refuses("echo {}", "a\nb", "holds a line end");
    place.refuses("echo {}", &"x".repeat(8200), "and cmd takes 8191");
    place.refuses("call echo {}", "x", "expands variables in it again");
    let path = place.dir.path().join("input");
    std::fs::write(&path, "one\n").unwrap();
    let mut command = Command::new(MINDER);
    command.args(["run", "--no-record", "--no-guard", "--pipe", "--fifo", "type {}"]);
    let output = output_of(command.stdin(std::fs::File::open(&path).unwrap()));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("--fifo is not supported"), "{error}");
}

#[test]
fn shell_is_the_system_cmd() {
    let place = Place::new();
    // Files in the current directory are ignored.
    std::fs::write(place.dir.path().join("cmd.exe"), "no program").unwrap();
    assert_eq!(place.says("echo a {}", &["b".into()]), "a \"b\"\n");
    for shell in ["cmd", "CMD.EXE"] {
        let output = place.run(&["--shell", shell], "echo a {}", &["b".into()]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a \"b\"\r\n", "{shell}");
    }
    // One job failed.
    assert_eq!(place.run(&[], "exit {}", &["3".into()]).status.code(), Some(1));
}

#[test]
fn user_lines_run_unchanged() {
    let place = Place::new();
    let words = ["parallel", "--no-record", "-k", ":::", "echo a %P%", "echo \"b\" & echo c"];
    let said = place.command(&words.map(OsStr::new)).stdout;
    assert_eq!(String::from_utf8_lossy(&said).replace('\r', ""), "a p\n\"b\" \nc\n");
    let more = place.command(&["parallel", "--no-record", ":::", "echo a\necho b"].map(OsStr::new));
    assert!(String::from_utf8_lossy(&more.stderr).contains("the command has more than one line"));
}
