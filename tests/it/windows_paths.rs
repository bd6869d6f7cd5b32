//! The surroundings of the command on Windows: names, files of text, directories, paths, records
//! that several processes read.

use std::ffi::OsString;
use std::fs;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use minder::{Command, Stdio};

use crate::support::{TEST_CHILD, file_of, output_of, patience};

const MINDER: &str = env!("CARGO_BIN_EXE_minder-dup");

/// A directory with a state directory in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("create temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(MINDER);
        command.args(words).env("MINDER_STATE_DIR", self.path("state")).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        output_of(&mut self.command(words))
    }

    /// Runs it with this input.
    fn fed(&self, words: &[&str], input: &[u8]) -> Output {
        output_of(self.command(words).stdin(file_of(input)))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn guardians_are_not_mentioned() {
    let output = Place::new().run(&["run", TEST_CHILD, "exit", ":::", "0", "0"]);
    assert!(output.status.success() && !text(&output.stderr).contains("guardians"), "{output:?}");
}

#[test]
fn unpaired_surrogates_reach_the_job() {
    let place = Place::new();
    let name = OsString::from_wide(&[0x61, 0xd800, 0x62]);
    let output = output_of(place.command(&["run", TEST_CHILD, "raw", ":::"]).arg(&name));
    assert_eq!(output.stdout, name.as_encoded_bytes(), "{output:?}");
    let log = place.run(&["log", "last", "--json"]);
    assert!(text(&log.stdout).contains("Ye2ggGI="), "{log:?}");
}

#[test]
fn windows_text_formats_are_read() {
    let place = Place::new();
    let words = ["run", "-k", TEST_CHILD, "raw", "[{}]"];
    let output = place.fed(&words, b"\xef\xbb\xbfone\r\ntwo\r\ncaf\xe9\r\nthree");
    assert_eq!(text(&output.stdout), "[one][two][three]", "{output:?}");
    let said =
        "cannot run `job 3`: a line with the byte e9, which is not UTF-8; hint: save the input as UTF-8";
    assert!(text(&output.stderr).contains(said) && output.status.code() == Some(1), "{output:?}");
    let output = place.fed(&words, b"\xff\xfeo\0n\0e\0\r\0\n\0");
    assert!(text(&output.stderr).contains("standard input is UTF-16"), "{output:?}");
    assert_eq!(output.status.code(), Some(255));
}

#[test]
fn both_slashes_separate_path_components() {
    let place = Place::new();
    let words = ["run", "-k", TEST_CHILD, "raw", "{//}|{/}|{/.}", ":::", r"C:\a b\c.txt", "d/e.f"];
    let output = place.run(&words);
    assert_eq!(text(&output.stdout), r"C:\a b|c.txt|cd|e.f|e", "{output:?}");
}

#[test]
fn results_have_names_valid_on_windows() {
    let place = Place::new();
    let root = place.path("results");
    let root = root.to_str().expect("path is UTF-8");
    let output =
        place.run(&["run", "--results", root, TEST_CHILD, "raw", ":::", "a:b", "NUL", "x.", "one", "ONE"]);
    assert!(output.status.success(), "{output:?}");
    let written = |name: &str| fs::read_to_string(Path::new(root).join("1").join(name).join("stdout")).ok();
    assert_eq!(
        ["a%3Ab", "%4EUL", "x%2E"].map(written),
        ["a:b", "NUL", "x."].map(|text| Some(text.to_owned()))
    );
    let found = fs::read_dir(Path::new(root).join("1")).expect("list results").count();
    assert_eq!(found, 5, "`one` and `ONE`, equal names on Windows, share a directory");
}

#[test]
fn record_path_may_be_long() {
    let place = Place::new();
    let mut state = place.path("state");
    while state.as_os_str().len() < 400 {
        state.push("d".repeat(50));
    }
    let with = |words: &[&str]| output_of(place.command(words).env("MINDER_STATE_DIR", &state));
    let output = with(&["run", TEST_CHILD, "exit", ":::", "0"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(text(&with(&["log", "--json"]).stdout).lines().count(), 1);
}

/// While a job waits for a file, other minder processes read the record and try to remove it. Then
/// minder is killed together with its job, and another minder resumes the run.
#[test]
fn killed_run_is_resumed() {
    let place = Place::new();
    let begun = place.path("begun");
    let go = place.path("go");
    let begun = begun.to_str().expect("path is UTF-8");
    let go = go.to_str().expect("path is UTF-8");
    let words = ["run", "-k", "--quiet", TEST_CHILD];
    let jobs = [":::", "append", "await", ":::+", begun, go, ":::", "word"];
    let mut child = place.command(&words).args(jobs).stdout(Stdio::null()).spawn().expect("start command");
    let listed = || text(&place.run(&["log", "--json"]).stdout);
    while !Path::new(begun).exists() || listed().is_empty() {
        assert!(std::time::Instant::now() < patience(), "no job has started");
    }
    let pruned = place.run(&["log", "--prune"]);
    assert_eq!(listed().lines().count(), 1, "{pruned:?}");
    let mut runs = fs::read_dir(place.path("state").join("runs")).expect("list runs");
    let run = runs.next().expect("find run").expect("read directory entry");
    let id = run.file_name().into_string().expect("decode text");
    let refused = place.run(&["run", "--resume", &id]);
    assert!(text(&refused.stderr).contains("is in use by another minder"), "{refused:?}");
    crate::support::end(child.id());
    child.wait().expect("wait for minder");
    fs::write(go, "").expect("write file");
    let output = place.run(&["run", "--quiet", "--resume", &id]);
    assert!(output.status.success() && text(&output.stdout).contains("word"), "{output:?}");
}
