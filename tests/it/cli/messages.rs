//! Every message of the command about an error, with its cause.
//!
//! The tables are the files next to this one. A case is what a terminal would show, in paragraphs:
//!
//! ```text
//! given file procs many
//! $ minder run -j procs echo ::: a
//! minder: -j: invalid value `many` in `procs`: expected a number of jobs such as 8, ***
//! exit 255
//! ```
//!
//! Words are quoted as for a shell: `'…'`, or `$'…'` with `\n`, `\r`, `\t`, `\0`, `\\` and `\xff`.
//! The lines are all of stderr; `***` in them stands for anything. `exit 255` is left out; with
//! `exit *` the run is killed when it has printed the lines. `DIR` is the directory of the case, in
//! which it runs, `ID` the run that was given, `CHILD` test_child, `TMPDIR` the platform's variable
//! for temporary files, and `X3000` a word of that many letters. What `given` knows is in
//! [`Scene::give`].
//!
//! All of it holds on Linux and on Windows, where both slashes are one, `\xff` in a word is half of
//! a pair of surrogates, and the text of an OS error differs: see [`ERRORS`]. What
//! holds on one of them alone has a line more, with the reason:
//!
//! ```text
//! only linux # signals
//! ```
//!
//! The table `windows` is of Windows alone.
//!
//! A new message needs a case: `every_message_has_a_case` searches the sources for those
//! that have none.
#![cfg(any(target_os = "linux", windows))]

#[cfg(target_os = "linux")] // The sources are the same everywhere.
mod sources;
#[cfg(target_os = "linux")] // The errors of /proc.
mod foreign_text;

use std::ffi::OsString;
use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime};

use minder::{Command, ExitStatus};
use minder_os::system_paths::TEMP_DIR_VARIABLE;

use super::{MINDER, Run, input, text};
use crate::support::{CHILD, TEST_CHILD, path_with_test_child};

/// The tables.
const TABLES: &[(&str, &str)] = &[
    ("flags", include_str!("messages/flags.txt")),
    ("typos", include_str!("messages/typos.txt")),
    ("template", include_str!("messages/template.txt")),
    ("parallel", include_str!("messages/parallel.txt")),
    ("record", include_str!("messages/record.txt")),
    ("run", include_str!("messages/run.txt")),
    ("bench_children", include_str!("messages/bench_children.txt")),
    ("bench_turnaround", include_str!("messages/bench_turnaround.txt")),
    ("clock", include_str!("messages/clock.txt")),
    ("windows", include_str!("messages/windows.txt")),
];

/// The operating system of these tests, as `only` names it.
const HERE: &str = std::env::consts::OS;

/// The number of cases that run at once: they wait for processes more than they work.
const AT_ONCE: usize = 4;

/// OS errors as the tables have them, and their numbers on Windows ("System Error
/// Codes"), whose words for them differ between versions and languages.
const ERRORS: &[(&str, &[i32])] = &[
    // ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND.
    ("no such file or directory", &[2, 3]),
    // ERROR_ACCESS_DENIED: so it calls a directory where a file is wanted.
    ("is a directory", &[5]),
    // ERROR_PATH_NOT_FOUND, ERROR_DIRECTORY; ERROR_ALREADY_EXISTS where the directory above is made, which
    // is a file.
    ("not a directory", &[3, 267, 183]),
    // ERROR_FILE_EXISTS, ERROR_ALREADY_EXISTS.
    ("file exists", &[80, 183]),
    // ERROR_ACCESS_DENIED.
    ("bad file descriptor", &[5]),
];

/// Variables of the environment of the tests that minder would read.
const HEARD: &[&str] = &[
    "MINDER_BACKEND",
    "XDG_STATE_HOME",
    "MINDER_CONFIG_DIR",
    "XDG_CONFIG_HOME",
    TEMP_DIR_VARIABLE,
    "MAKEFLAGS",
    "PARALLEL",
    "PARALLEL_HOME",
    "PARALLEL_SHELL",
    "NO_COLOR",
    // Of a system around Wine.
    "SHELL",
];

/// One paragraph of a table.
#[derive(Debug, Default)]
struct Case {
    given: Vec<&'static str>,
    words: Vec<Vec<u8>>,
    line: &'static str,
    says: Vec<&'static str>,
    /// None: it continues, and is killed.
    code: Option<i32>,
}

/// Returns the cases of this system.
fn cases(table: &'static str) -> Vec<Case> {
    let mut cases = Vec::new();
    for paragraph in table.split("\n\n") {
        let mut case = Case { code: Some(255), ..Case::default() };
        let mut holds = true;
        for line in paragraph.lines().filter(|line| !line.starts_with('#')) {
            if let Some(only) = line.strip_prefix("only ") {
                holds = only_system(only) == HERE;
            } else if let Some(given) = line.strip_prefix("given ") {
                case.given.push(given);
            } else if let Some(words) = line.strip_prefix("$ minder") {
                (case.line, case.words) = (line, split(words));
            } else if let Some(code) = line.strip_prefix("exit ") {
                case.code = code.parse().ok();
            } else if !line.is_empty() {
                case.says.push(line);
            }
        }
        if holds && !case.line.is_empty() {
            cases.push(case);
        }
    }
    cases
}

/// Returns the operating system of an `only` line, which also has a reason.
fn only_system(text: &'static str) -> &'static str {
    let (system, why) = text.split_once(" # ").unwrap_or((text, ""));
    assert!(["linux", "windows"].contains(&system) && !why.is_empty(), "only {text}: which system, and why?");
    system
}

/// Returns the words of a line.
fn split(line: &str) -> Vec<Vec<u8>> {
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
    words
}

/// Converts bytes to an argument.
#[cfg(unix)]
fn os(word: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(word)
}

/// Converts bytes to an argument. Each byte that is not UTF-8 becomes half of a surrogate pair.
#[cfg(windows)]
fn os(word: Vec<u8>) -> OsString {
    let text = String::from_utf8_lossy(&word);
    let units = text.encode_utf16().map(|unit| if unit == 0xfffd { 0xd800 } else { unit });
    std::os::windows::ffi::OsStringExt::from_wide(&units.collect::<Vec<u16>>())
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (meant, used) = match (byte, after) {
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'0', ..]) => (0, 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b'x', high, low, ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).expect("parse hexadecimal digit") as u8;
                (16 * digit(high) + digit(low), 4)
            }
            (b'\\', [other, ..]) => (*other, 2),
            _ => (byte, 1),
        };
        out.push(meant);
        rest = &rest[used..];
    }
    out
}

/// The environment in which a case runs.
struct Scene {
    /// Removed when this is dropped.
    _temp_dir: tempfile::TempDir,
    dir: PathBuf,
    command: Vec<OsString>,
    input: Vec<u8>,
    variables: Vec<(String, Option<String>)>,
    stdout: Option<fs::File>,
    locked: Vec<fs::File>,
}

impl Scene {
    fn new(case: &Case) -> Self {
        let temp_dir = super::temp_dir();
        // Canonical paths of Windows begin with `\\?\`, which messages do not show.
        let dir = if cfg!(windows) {
            std::path::absolute(temp_dir.path())
        } else {
            fs::canonicalize(temp_dir.path())
        };
        let dir = dir.expect("find path of the temporary directory");
        let command = vec![MINDER.into()];
        let variables = Vec::new();
        let mut scene = Self {
            _temp_dir: temp_dir,
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
            "file" => fs::write(path, self.filled(unescape(text))).expect("write file"),
            "dir" => fs::create_dir_all(path).expect("create directory"),
            #[cfg(unix)]
            "link" => std::os::unix::fs::symlink(text, path).expect("create symbolic link"),
            "input" => self.input = self.filled(unescape(rest)),
            // That many lines as input.
            "lines" => {
                self.input =
                    (0..name.parse().expect("parse number")).flat_map(|_: u32| *b"a line\n").collect()
            }
            "set" => self.variables.push((name.to_owned(), Some(text.to_owned()))),
            "unset" => self.variables.push((name.to_owned(), None)),
            "stdout" => self.stdout = fs::OpenOptions::new().write(true).open(name).ok(),
            // Standard output is this file, and open for reading only.
            "unwritable" => self.stdout = fs::File::open(path).ok(),
            // The circumstances of test_child's `as`.
            "as" => self.command = vec![TEST_CHILD.into(), "as".into(), name.into(), MINDER.into()],
            // An earlier run.
            "run" => {
                let mut command = Command::new(MINDER);
                command.arg("run").args(split(rest).into_iter().map(|word| os(self.filled(word))));
                Run::start(self.dressed(&mut command)).wait();
            }
            // A change in the record of that run, or the end of one of its files.
            "edit" => {
                let file = self.run().join(name);
                let before = fs::read_to_string(&file).expect("read file of the record");
                let (old, new) = text.split_once(" => ").expect("split OLD => NEW");
                assert!(before.contains(old), "{line}: {before}");
                fs::write(file, before.replace(old, new)).expect("write file");
            }
            "remove" => fs::remove_file(self.run().join(name)).expect("remove file"),
            // A directory where a file was, of the record.
            "spoil" => {
                let _ = fs::remove_file(self.run().join(name));
                fs::create_dir(self.run().join(name)).expect("create directory");
            }
            // Nothing was written to the run for long.
            "age" => {
                let manifest = self.run().join("manifest.json");
                let text = fs::read_to_string(&manifest).expect("read manifest");
                fs::write(manifest, text.replace("\"at\": 1", "\"at\": ")).expect("write file");
                let then = SystemTime::now() - Duration::from_secs(60 * 86_400);
                for entry in fs::read_dir(self.run()).expect("list directory").flatten() {
                    let path = entry.path();
                    if path.is_file() {
                        let file = fs::OpenOptions::new().append(true).open(path).expect("open file");
                        file.set_modified(then).expect("set modification time");
                    }
                }
            }
            "delete" => fs::remove_file(path).expect("remove file"),
            // Another process holds its lock.
            "lock" => {
                let path = match name.strip_prefix("ID/") {
                    Some(rest) => self.run().join(rest),
                    None => path,
                };
                let file = fs::OpenOptions::new().create(true).append(true).open(path).expect("open file");
                file.lock().expect("lock file");
                self.locked.push(file);
            }
            _ => panic!("unknown `given {line}`"),
        }
    }

    /// Returns the directory of the first run.
    fn run(&self) -> PathBuf {
        let mut runs = fs::read_dir(self.dir.join("state/runs")).into_iter().flatten().flatten();
        runs.next().expect("find run").path()
    }

    fn ids(&self) -> Vec<String> {
        let runs = fs::read_dir(self.dir.join("state/runs")).into_iter().flatten().flatten();
        let names = runs.map(|run| run.file_name().to_string_lossy().into_owned());
        // Those that a case made by hand are not found by chance.
        names.filter(|name| name.len() == 8 && !name.starts_with("aabb")).collect()
    }

    /// Replaces the placeholders in a text.
    fn filled(&self, text: Vec<u8>) -> Vec<u8> {
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(error) => return error.into_bytes(),
        };
        // In a line of several words it is a separate argument, for any path.
        let child = if text == "CHILD" || cfg!(windows) { TEST_CHILD } else { CHILD };
        let mut text = text.replace("DIR", &self.dir.to_string_lossy()).replace("CHILD", child);
        if let Some(id) = self.ids().first() {
            text = text.replace("ID", id);
        }
        for length in [3_000_000, 140_000, 5000, 300] {
            text = text.replace(&format!("X{length}"), &"x".repeat(length));
        }
        text.into_bytes()
    }

    /// Replaces paths, ids and long arguments in a text by their placeholders.
    fn plain(&self, text: &str) -> String {
        let slashes = |text: &str| if cfg!(windows) { text.replace('\\', "/") } else { text.to_owned() };
        let mut text = slashes(text).replace(&slashes(&self.dir.to_string_lossy()), "DIR");
        text = text.replace(CHILD, "CHILD").replace(&slashes(TEST_CHILD), "CHILD");
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
        if cfg!(unix) {
            command.env("SHELL", "/bin/sh");
        }
        command.env("LC_ALL", "C.UTF-8").env("HOME", &self.dir).env("PATH", path_with_test_child());
        command.env("MINDER_STATE_DIR", self.dir.join("state")).current_dir(&self.dir);
        for (name, value) in &self.variables {
            let name = if name == "TMPDIR" { TEMP_DIR_VARIABLE } else { name };
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdout(minder::Stdio::piped()).stderr(minder::Stdio::piped()).stdin(input(&self.input))
    }

    /// Runs the case; what is not as it stands there comes back as the paragraph that would be
    /// true.
    fn check(&self, case: &Case) -> Result<(), String> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command.args(case.words.iter().map(|word| os(self.filled(word.clone()))));
        self.dressed(&mut command);
        if let Some(file) = &self.stdout {
            command.stdout(file.try_clone().expect("duplicate handle"));
        }
        let mut live = Run::start(&command);
        let (code, err) = match case.code {
            Some(_) => {
                let ended = live.wait();
                let code = match ended.status {
                    ExitStatus::Exited(code) => code.to_string(),
                    status => format!("{status:?}"),
                };
                (code, ended.err)
            }
            None => {
                live.wait_until("message", |record| text(&record.outs[1]).lines().count() >= case.says.len());
                ("*".to_owned(), text(&live.record().outs[1]))
            }
        };
        let said = self.plain(&err);
        let wanted = case.code.map_or("*".to_owned(), |code| code.to_string());
        let lines: Vec<&str> = said.lines().collect();
        let same = lines.len() == case.says.len()
            && lines.iter().zip(&case.says).all(|(line, pattern)| says(line, pattern));
        if same && code == wanted {
            return Ok(());
        }
        let given: String = case.given.iter().map(|line| format!("given {line}\n")).collect();
        Err(format!("{given}{}\n{said}exit {code}\n", case.line))
    }
}

/// Returns whether a line matches a pattern, with the OS error texts of this platform.
fn says(line: &str, pattern: &str) -> bool {
    if cfg!(unix) {
        return matches(line, pattern);
    }
    let pattern = pattern.replace("TMPDIR", TEMP_DIR_VARIABLE).replace('\\', "/");
    let known = ERRORS.iter().filter(|(words, _)| pattern.contains(words));
    let mut reasons =
        known.flat_map(|(words, numbers)| numbers.iter().map(|number| (*words, spoken(*number))));
    matches(line, &pattern) || reasons.any(|(words, reason)| matches(line, &pattern.replace(words, &reason)))
}

/// Returns the text of an OS error as part of a sentence.
fn spoken(number: i32) -> String {
    let text = io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next().unwrap_or_default().trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Returns whether a line matches a pattern, in which `***` stands for any text.
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

fn run(table: &str) {
    let (_, text) = TABLES.iter().find(|(name, _)| *name == table).expect("read table");
    let cases = cases(text);
    let next = Mutex::new(cases.iter().enumerate());
    let wrong = Mutex::new(Vec::new());
    let take = || next.lock().expect("lock list").next();
    let work = || {
        while let Some((at, case)) = take() {
            if let Err(said) = Scene::new(case).check(case) {
                wrong.lock().expect("lock list").push((at, said));
            }
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let mut wrong = wrong.into_inner().expect("lock list");
    wrong.sort();
    let wrong: String = wrong.into_iter().map(|(_, said)| format!("{said}\n")).collect();
    assert!(wrong.is_empty(), "said otherwise:\n\n{wrong}");
    eprintln!("{table}: {} cases", cases.len());
}

#[test]
fn flag_messages_match() {
    run("flags");
}

#[test]
fn typo_messages_match() {
    run("typos");
}

#[test]
fn template_messages_match() {
    run("template");
}

#[test]
fn parallel_messages_match() {
    run("parallel");
}

#[test]
fn record_messages_match() {
    run("record");
}

#[test]
fn run_messages_match() {
    run("run");
}

#[test]
fn bench_children_messages_match() {
    run("bench_children");
}

#[test]
fn bench_turnaround_messages_match() {
    run("bench_turnaround");
}

#[test]
fn clock_messages_match() {
    run("clock");
}

#[cfg(windows)]
#[test]
fn windows_messages_match() {
    run("windows");
}

#[test]
fn missing_verb_shows_help_as_an_error() {
    let ended = super::run_to_end("").exit_code(255);
    assert!(
        ended.out.is_empty() && ended.err.contains("Usage: ") && ended.err.contains("doctor"),
        "{ended:?}"
    );
}

/// The longest message that is not a list of names, in characters.
const LENGTH_MAX: usize = 300;

/// See docs/development/messages.md.
#[test]
fn each_message_follows_the_style() {
    let number = regex::Regex::new(r"\d (x|us)\b").expect("compile pattern");
    for (table, text) in TABLES {
        for line in text.lines().filter(|line| line.starts_with("minder: ")) {
            let begin = line["minder: ".len()..].chars().next().unwrap_or_default();
            assert!(!begin.is_uppercase(), "{table}: a capital: {line}");
            assert!(!line.ends_with('.'), "{table}: a full stop: {line}");
            assert!(!line.contains("(os error"), "{table}: a number of the system: {line}");
            assert!(!line.contains('!') || line.contains('`'), "{table}: an exclamation mark: {line}");
            let hints = ["(see ", "hint: ", "did you mean "].map(|hint| line.matches(hint).count());
            assert!(hints.iter().all(|count| *count <= 1), "{table}: a second hint: {line}");
            let is_list = line.contains("x".repeat(100).as_str());
            assert!(is_list || line.chars().count() <= LENGTH_MAX, "{table}: too long: {line}");
            let plain = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
            assert!(!number.is_match(&plain), "{table}: a number with a unit: {line}");
        }
    }
}

#[cfg(target_os = "linux")] // The sources are the same everywhere.
#[test]
fn every_message_has_a_case() {
    let lines: Vec<&str> = TABLES.iter().flat_map(|(_, text)| text.lines()).collect();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    sources::check(root, &lines);
}
