//! What the command says when something is wrong: every message, with how it comes about.
//!
//! The tables are the files beside this one. A case is what a terminal would show, in paragraphs:
//!
//! ```text
//! given file procs many
//! $ minder run -j procs echo ::: a
//! minder: -j: `procs` holds `many`, which is no number of jobs (8, 150%, +2, -1 or 0)
//! exit 255
//! ```
//!
//! Words are quoted as for a shell: `'…'`, or `$'…'` with `\n`, `\t`, `\0`, `\\` and `\xff`. The lines are all of stderr;
//! `***` in them stands for anything. `exit 255` is left out; with `exit *` the run is killed when it has said the lines.
//! `DIR` is the folder of the case, in which it runs, `ID` the run that was given, `KID` testkid, and `X3000` a word of so
//! many letters. What `given` knows is in [`Scene::give`].
//!
//! Whoever adds a message adds a case: `every_message_is_in_a_table` reads the sources for those that have none.
#![cfg(target_os = "linux")]

mod sources;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use minder::{Command, Status};

use super::{Live, MINDER, input, text};
use crate::kit::TESTKID;

/// The tables.
const TABLES: &[(&str, &str)] = &[
    ("flags", include_str!("messages/flags.txt")),
    ("template", include_str!("messages/template.txt")),
    ("parallel", include_str!("messages/parallel.txt")),
    ("record", include_str!("messages/record.txt")),
    ("run", include_str!("messages/run.txt")),
    ("bench_children", include_str!("messages/bench_children.txt")),
];

/// Variables of whoever runs the tests that would be heard.
const HEARD: &[&str] = &[
    "MINDER_BACKEND",
    "XDG_STATE_HOME",
    "TMPDIR",
    "MAKEFLAGS",
    "PARALLEL",
    "PARALLEL_HOME",
    "PARALLEL_SHELL",
    "NO_COLOR",
];

/// One paragraph of a table.
#[derive(Debug, Default)]
struct Case {
    given: Vec<&'static str>,
    words: Vec<OsString>,
    line: &'static str,
    says: Vec<&'static str>,
    /// None: it goes on, and is killed.
    code: Option<i32>,
}

fn cases(table: &'static str) -> Vec<Case> {
    let mut cases = Vec::new();
    for paragraph in table.split("\n\n") {
        let mut case = Case { code: Some(255), ..Case::default() };
        for line in paragraph.lines().filter(|line| !line.starts_with('#')) {
            if let Some(given) = line.strip_prefix("given ") {
                case.given.push(given);
            } else if let Some(words) = line.strip_prefix("$ minder") {
                (case.line, case.words) = (line, split(words));
            } else if let Some(code) = line.strip_prefix("exit ") {
                case.code = code.parse().ok();
            } else if !line.is_empty() {
                case.says.push(line);
            }
        }
        if !case.line.is_empty() {
            cases.push(case);
        }
    }
    cases
}

/// The words of a line.
fn split(line: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if first == ' ' {
            words.extend(word.take());
            rest = &rest[1..];
            continue;
        }
        let word = word.get_or_insert_default();
        if let Some(quoted) = rest.strip_prefix("$'") {
            let mut escaped = false;
            let ends = |byte| {
                let before = escaped;
                escaped = byte == b'\\' && !before;
                byte == b'\'' && !before
            };
            let end = quoted.bytes().position(ends).unwrap_or_else(|| panic!("no end of a quote: {line}"));
            word.extend(unescape(&quoted[..end]));
            rest = &quoted[end + 1..];
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            let (inner, after) =
                quoted.split_once('\'').unwrap_or_else(|| panic!("no end of a quote: {line}"));
            word.extend(inner.as_bytes());
            rest = after;
        } else {
            word.extend(first.to_string().as_bytes());
            rest = &rest[first.len_utf8()..];
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let (meant, used) = match (byte, after) {
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'0', ..]) => (0, 2),
            (b'\\', [b'x', b'f', b'f', ..]) => (0xff, 4),
            (b'\\', [other, ..]) => (*other, 2),
            _ => (byte, 1),
        };
        out.push(meant);
        rest = &rest[used..];
    }
    out
}

/// Where a case runs.
struct Scene {
    /// Removed when this is dropped.
    _folder: tempfile::TempDir,
    dir: PathBuf,
    command: Vec<OsString>,
    input: Vec<u8>,
    variables: Vec<(String, Option<String>)>,
    stdout: Option<PathBuf>,
    locked: Vec<fs::File>,
}

impl Scene {
    fn new(case: &Case) -> Self {
        let folder = super::folder();
        let dir = fs::canonicalize(folder.path()).expect("our folder");
        let (command, variables) = (vec![MINDER.into()], Vec::new());
        let mut scene = Self {
            _folder: folder,
            dir,
            command,
            input: Vec::new(),
            variables,
            stdout: None,
            locked: Vec::new(),
        };
        for given in &case.given {
            scene.give(given);
        }
        scene
    }

    /// Prepares what a line asks for.
    fn give(&mut self, line: &str) {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let path = self.dir.join(name);
        match what {
            "file" => fs::write(path, self.filled(unescape(text))).expect("a file"),
            "folder" => fs::create_dir_all(path).expect("a folder"),
            "link" => std::os::unix::fs::symlink(text, path).expect("a link"),
            "input" => self.input = self.filled(unescape(rest)),
            // So many lines as input.
            "lines" => {
                self.input = (0..name.parse().expect("a number")).flat_map(|_: u32| *b"a line\n").collect()
            }
            "set" => self.variables.push((name.to_owned(), Some(text.to_owned()))),
            "unset" => self.variables.push((name.to_owned(), None)),
            "stdout" => self.stdout = Some(name.into()),
            // The circumstances of testkid's `as`.
            "as" => self.command = vec![TESTKID.into(), "as".into(), name.into(), MINDER.into()],
            // An earlier run.
            "run" => {
                let words = split(rest);
                let mut command = Command::new(MINDER);
                command.arg("run").args(
                    words.iter().map(|word| self.filled(word.as_bytes().to_vec())).map(OsString::from_vec),
                );
                Live::start(self.dressed(&mut command)).finish();
            }
            // A change in the record of that run, or the end of one of its files.
            "edit" => {
                let file = self.run().join(name);
                let before = fs::read_to_string(&file).expect("a file of the record");
                let (old, new) = text.split_once(" => ").expect("what it was and what it becomes");
                assert!(before.contains(old), "{line}: {before}");
                fs::write(file, before.replace(old, new)).expect("a file of the record");
            }
            "remove" => fs::remove_file(self.run().join(name)).expect("a file of the record"),
            // A folder where a file was, of the record.
            "spoil" => {
                let _ = fs::remove_file(self.run().join(name));
                fs::create_dir(self.run().join(name)).expect("a folder in the record");
            }
            // Nothing was written to the run for long.
            "age" => {
                let manifest = self.run().join("manifest.json");
                let text = fs::read_to_string(&manifest).expect("a manifest");
                fs::write(manifest, text.replace("\"at\": 1", "\"at\": ")).expect("a manifest");
                let then = SystemTime::now() - Duration::from_secs(60 * 86_400);
                for entry in
                    fs::read_dir(self.run()).expect("a run").flatten().filter(|it| it.path().is_file())
                {
                    let file =
                        fs::OpenOptions::new().append(true).open(entry.path()).expect("a file of the record");
                    file.set_modified(then).expect("its time");
                }
            }
            "delete" => fs::remove_file(path).expect("a file"),
            // Somebody else holds its lock.
            "lock" => {
                let path = match name.strip_prefix("ID/") {
                    Some(rest) => self.run().join(rest),
                    None => path,
                };
                let file = fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
                file.lock().expect("its lock");
                self.locked.push(file);
            }
            _ => panic!("what is given with `{line}`?"),
        }
    }

    /// The run that was given.
    fn run(&self) -> PathBuf {
        let mut runs = fs::read_dir(self.dir.join("state/runs")).into_iter().flatten().flatten();
        runs.next().expect("a run").path()
    }

    fn ids(&self) -> Vec<String> {
        let runs = fs::read_dir(self.dir.join("state/runs")).into_iter().flatten().flatten();
        let names = runs.map(|run| run.file_name().to_string_lossy().into_owned());
        // Those that a case made by hand are not found by chance.
        names.filter(|name| name.len() == 8 && !name.starts_with("aabb")).collect()
    }

    /// A text with what its placeholders stand for.
    fn filled(&self, text: Vec<u8>) -> Vec<u8> {
        let Ok(text) = String::from_utf8(text) else { return b"\xff".to_vec() };
        let mut text = text.replace("DIR", &self.dir.to_string_lossy()).replace("KID", TESTKID);
        if let Some(id) = self.ids().first() {
            text = text.replace("ID", id);
        }
        for length in [3_000_000, 140_000, 5000, 300] {
            text = text.replace(&format!("X{length}"), &"x".repeat(length));
        }
        text.into_bytes()
    }

    /// The same the other way round.
    fn plain(&self, text: &str) -> String {
        let mut text = text.replace(&*self.dir.to_string_lossy(), "DIR").replace(TESTKID, "KID");
        for id in self.ids() {
            text = text.replace(&id, "ID");
        }
        for length in [5000, 300] {
            text = text.replace(&"x".repeat(length), &format!("X{length}"));
        }
        text
    }

    fn dressed<'a>(&self, command: &'a mut Command) -> &'a Command {
        for name in HEARD {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8").env("SHELL", "/bin/sh").env("HOME", &self.dir);
        command.env("MINDER_STATE_DIR", self.dir.join("state")).current_dir(&self.dir);
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdout(minder::Stdio::Piped).stderr(minder::Stdio::Piped).stdin(input(&self.input))
    }

    /// Runs the case; what is not as it stands there comes back as the paragraph that would be true.
    fn play(&self, case: &Case) -> Result<(), String> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command.args(case.words.iter().map(|word| OsString::from_vec(self.filled(word.as_bytes().to_vec()))));
        self.dressed(&mut command);
        if let Some(path) = &self.stdout {
            command.stdout(fs::OpenOptions::new().write(true).open(path).expect("an output"));
        }
        let mut live = Live::start(&command);
        let (code, err) = match case.code {
            Some(_) => {
                let ended = live.finish();
                let code = match ended.status {
                    Status::Exited(code) => code.to_string(),
                    status => format!("{status:?}"),
                };
                (code, ended.err)
            }
            None => {
                live.until("message", |record| text(&record.outs[1]).lines().count() >= case.says.len());
                ("*".to_owned(), text(&live.record().outs[1]))
            }
        };
        let said = self.plain(&err);
        let wanted = case.code.map_or("*".to_owned(), |code| code.to_string());
        let lines: Vec<&str> = said.lines().collect();
        let same = lines.len() == case.says.len()
            && lines.iter().zip(&case.says).all(|(line, pattern)| matches(line, pattern));
        if same && code == wanted {
            return Ok(());
        }
        let given: String = case.given.iter().map(|line| format!("given {line}\n")).collect();
        Err(format!("{given}{}\n{said}exit {code}\n", case.line))
    }
}

/// Whether a line is as a pattern has it, where `***` is anything.
fn matches(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.split("***");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

fn play(table: &str) {
    let (_, text) = TABLES.iter().find(|(name, _)| *name == table).expect("a table");
    let mut wrong = String::new();
    for case in cases(text) {
        if let Err(said) = Scene::new(&case).play(&case) {
            wrong += &format!("{said}\n");
        }
    }
    assert!(wrong.is_empty(), "said otherwise:\n\n{wrong}");
}

#[test]
fn of_flags() {
    play("flags");
}

#[test]
fn of_shell_lines() {
    play("template");
}

#[test]
fn of_the_compatible_face() {
    play("parallel");
}

#[test]
fn of_the_record() {
    play("record");
}

#[test]
fn of_runs() {
    play("run");
}

#[test]
fn of_benches_with_children() {
    play("bench_children");
}

#[test]
fn without_a_word_help_is_shown_as_an_error() {
    let ended = super::ended("").code(255);
    assert!(
        ended.out.is_empty() && ended.err.contains("Usage: ") && ended.err.contains("doctor"),
        "{ended:?}"
    );
}

#[test]
fn each_message_is_one_line_in_our_manner() {
    for (table, text) in TABLES {
        for line in text.lines().filter(|line| line.starts_with("minder: ")) {
            let begin = line["minder: ".len()..].chars().next().unwrap_or_default();
            assert!(!begin.is_uppercase(), "{table}: a capital: {line}");
            assert!(!line.ends_with('.'), "{table}: a full stop: {line}");
            assert!(!line.contains("(os error"), "{table}: a number of the system: {line}");
        }
    }
}

#[test]
fn every_message_is_in_a_table() {
    let lines: Vec<&str> = TABLES.iter().flat_map(|(_, text)| text.lines()).collect();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/minder-cli/src"));
    sources::check(root, &lines);
}
