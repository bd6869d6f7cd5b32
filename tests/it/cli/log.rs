//! `minder log`: what is told of runs that ended well, badly or not at all, and of records that are
//! damaged.
#![cfg(any(target_os = "linux", windows))]

mod data;
mod ends;
mod live;
mod prune;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use minder::Command;

use super::{Ended, Live, minder, path, pipe, script};
#[cfg(unix)]
use super::{is_public, is_root, minder_as};
use crate::kit::TESTKID;

/// A state folder of our own, and the runs in it.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(super::folder())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn folder(&self, id: &str) -> PathBuf {
        self.root().join("runs").join(id)
    }

    /// The ids of all runs, sorted.
    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root().join("runs")).into_iter().flatten().flatten();
        let mut ids: Vec<String> =
            entries.map(|entry| super::text(entry.file_name().as_encoded_bytes())).collect();
        ids.sort();
        ids
    }

    fn command(&self, line: &str) -> Command {
        let mut command = minder(line);
        command.env("MINDER_STATE_DIR", self.root());
        command
    }

    /// `minder` with the words of a line, and then with these as they are.
    fn with(&self, line: &str, words: &[impl AsRef<OsStr>]) -> Ended {
        Live::start(self.command(line).args(words.iter().map(AsRef::as_ref))).finish()
    }

    fn log(&self, line: &str) -> Ended {
        Live::start(&self.command(&format!("log {line}"))).finish()
    }

    /// Makes a run and gives it this id. The next one is later.
    fn run(&self, id: &str, line: &str, words: &[impl AsRef<OsStr>]) -> Ended {
        let ended = self.with(&format!("run {line}"), words);
        self.rename_last(id);
        ended
    }

    /// Gives this id to the only run that has none of ours: the last that was made.
    fn rename_last(&self, id: &str) {
        let fresh = |id: &String| !self.file(&format!("named-{id}")).exists();
        let fresh: Vec<String> = self.ids().into_iter().filter(fresh).collect();
        assert_eq!(fresh.len(), 1, "new runs: {fresh:?}");
        fs::rename(self.folder(&fresh[0]), self.folder(id)).expect("a run to rename");
        fs::write(self.file(&format!("named-{id}")), "").expect("room");
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.folder(id).join("attempt-1.jsonl")
    }

    /// Whether the only run has begun: the first line of its journal is there.
    fn has_begun(&self) -> bool {
        self.ids().first().is_some_and(|id| super::file(&self.journal(id)).ends_with('\n'))
    }

    /// Cuts so many lines, and so many bytes before them, from a journal.
    fn cut(&self, id: &str, lines: usize, bytes: usize) {
        let text = fs::read(self.journal(id)).expect("a journal");
        let all: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let rest = all[..all.len() - lines].concat();
        fs::write(self.journal(id), &rest[..rest.len() - bytes]).expect("room");
    }

    /// A run of three jobs in this state, killed after the first.
    fn killed(&self, id: &str) {
        self.run(id, "-j1 KID exit :::", &["0", "0", "0"]).code(0);
        self.cut(id, 3, 0);
    }
}

/// The words of each line.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn runs_are_listed_newest_first() {
    let state = State::new();
    state.run("aaaa0001", "KID exit :::", &["0", "3", "0"]).code(1);
    state.run("bbbb0002", "KID exit {} :::", &["0"]).code(0);
    state.run("cccc0003", "KID echo-args -- x :::", &["a b"]).code(0);
    let listed = state.log("").code(0).says("").text();
    let rows = table(&listed);
    assert_eq!(rows[0], ["run", "when", "command", "jobs", "failed", "elapsed"], "{listed}");
    let ids: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(ids, ["cccc0003", "bbbb0002", "aaaa0001"], "{listed}");
    let command = format!("{TESTKID} exit");
    let first = listed.lines().last().expect("a line");
    assert!(first.contains(&command) && first.contains(" 3 ") && first.contains(" 1 "), "{listed}");
    assert!(rows[3][1] == "today" || rows[3][1] == "yesterday", "{listed}");
    assert!(!listed.contains('('), "nothing to note: {listed}");
    // Fewer of them.
    let two = state.log("-n2").code(0).text();
    assert_eq!(two.lines().count(), 3, "{two}");
    assert!(!two.contains("aaaa0001"), "{two}");
    assert_eq!(state.log("-n 0").code(0).text().lines().count(), 1);
}

#[test]
fn a_table_has_twenty_runs_and_data_has_all() {
    let state = State::new();
    state.run("aaaa0000", "KID exit :::", &["0"]).code(0);
    for number in 1..25 {
        let copy = state.folder(&format!("aaaa{number:04}"));
        fs::create_dir(&copy).expect("a folder");
        for name in ["manifest.json", "attempt-1.jsonl", "lock", "arguments"] {
            fs::copy(state.folder("aaaa0000").join(name), copy.join(name)).expect("a copy");
        }
    }
    assert_eq!(state.log("").code(0).text().lines().count(), 21);
    assert_eq!(state.log("--json").code(0).text().lines().count(), 25);
    assert_eq!(state.log("--csv").code(0).text().lines().count(), 26);
    assert_eq!(state.log("--csv -n 3").code(0).text().lines().count(), 4);
}

#[test]
fn a_killed_run_is_named_with_what_resumes_it() {
    let state = State::new();
    state.killed("aaaa0001");
    state.run("aabb0002", "KID exit :::", &["0"]).code(0);
    let listed = state.log("").code(0).says("").text();
    let note = "(killed, 2 not run: minder run --resume aaaa)";
    assert!(listed.lines().any(|line| line.starts_with("aaaa0001") && line.ends_with(note)), "{listed}");
    assert_eq!(listed.matches('(').count(), 1, "{listed}");
    // As many digits as it takes.
    state.run("aaaa9999", "KID exit :::", &["0"]).code(0);
    let listed = state.log("").code(0).says("").text();
    assert!(listed.contains("(killed, 2 not run: minder run --resume aaaa0)"), "{listed}");
    // And it does.
    Live::start(&state.command("run --resume aaaa0")).finish().code(0);
    let listed = state.log("").code(0).says("").text();
    let row = listed.lines().find(|line| line.starts_with("aaaa0001")).expect("the run");
    assert!(row.contains(" 3 ") && !row.contains('('), "{listed}");
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id() {
    let state = State::new();
    state.run("abcd0001", "KID exit :::", &["0"]).code(0);
    state.run("abce0002", "KID exit :::", &["0", "0"]).code(0);
    for (word, jobs) in [("abcd", 1), ("ABCD0", 1), ("abce0002", 2), ("last", 2)] {
        let text = state.log(word).code(0).says("").text();
        assert_eq!(text.lines().count(), 1 + jobs, "{word}: {text}");
    }
    state.log("abc").code(255).complains(&["`abc`", "2 runs", "abcd0001, abce0002"]);
    state.log("ffff").code(255).complains(&["no run `ffff`", "runs"]);
    for word in ["../x", "..", "/etc", "abcd0001/", "abcd00010", "lastx", "*", "g"] {
        state.log(word).code(255).complains(&["is no run", word]);
    }
    assert_eq!(state.with("log", &[""]).code(255).complains(&["is no run"]).text(), "");
    // A link leads nowhere, where everybody may make one.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(state.folder("abcd0001"), state.folder("dddd0004")).expect("a link");
        state.log("dddd").code(255).complains(&["left alone"]);
        assert!(!state.log("").code(0).text().contains("dddd"));
    }
}

#[test]
fn damaged_journals_are_named_and_read_as_far_as_they_go() {
    let state = State::new();
    state.run("aaaa0001", "-j1 KID exit :::", &["0", "0", "0", "0"]).code(0);
    // Its end is gone, and half of a line before it.
    state.cut("aaaa0001", 2, 10);
    let torn = "minder: run aaaa0001 is damaged: attempt-1.jsonl: its last line is incomplete\n";
    let listed = state.log("").code(0).says(torn).text();
    assert!(listed.contains("damaged") && listed.contains("--resume aaaa"), "{listed}");
    let jobs = state.log("aaaa").code(0).says(torn).text();
    assert!((2..5).contains(&jobs.lines().count()), "{jobs}");
    // A line in the middle.
    let mut text = fs::read(state.journal("aaaa0001")).expect("a journal");
    let second = text.iter().position(|byte| *byte == b'\n').expect("a line") + 20;
    text[second] ^= 1;
    fs::write(state.journal("aaaa0001"), text).expect("room");
    let both =
        "run aaaa0001 is damaged: attempt-1.jsonl: line 2 cannot be read, its last line is incomplete\n";
    for line in ["", "aaaa", "--json", "aaaa --csv", "--follow", "--failed", "--sql select(1)"] {
        let ended = state.log(line).code(0);
        // Of a journal that is followed, the last line may still be written.
        let wanted = if line == "--follow" { "line 2 cannot be read" } else { both };
        assert!(ended.err.contains(wanted), "{line}: {}", ended.err);
    }
    // Others are shown all the same.
    state.run("bbbb0002", "KID exit :::", &["0"]).code(0);
    fs::write(state.folder("bbbb0002").join("manifest.json"), "{").expect("room");
    state.run("cccc0003", "KID exit :::", &["0"]).code(0);
    fs::remove_file(state.journal("cccc0003")).expect("a journal");
    fs::create_dir(state.journal("cccc0003")).expect("a folder");
    let ended = state.log("").code(0);
    assert_eq!((ended.err.lines().count(), ended.text().lines().count()), (3, 4), "{ended:?}");
    assert!(ended.err.contains("run bbbb0002 is damaged: cannot read the manifest"), "{}", ended.err);
    assert!(ended.err.contains("run cccc0003 is damaged: attempt-1.jsonl: "), "{}", ended.err);
    assert_eq!(state.log("bbbb").code(0).text().lines().count(), 2);
}

#[test]
fn what_failed_is_shown_with_its_last_lines() {
    let line = "[ {} = 0 ] || { echo first {} >&2; echo out; echo last {} >&2; }; exit {}";
    for flags in ["-j1", "-j4", "-k -j4", "--lb -j4", "--spool -j4", "--spool -j1", "--lb -j1"] {
        let state = State::new();
        let words = [script(line), [":::", "3", "0", "4"].map(str::to_owned).to_vec()].concat();
        state.run("aaaa0001", flags, &words).code(2);
        for words in ["--failed", "aaaa --failed", "last --failed"] {
            let text = state.log(words).code(0).says("").text();
            let lines: Vec<&str> = text.lines().collect();
            let rows = table(&text);
            assert_eq!(lines.len(), 13, "{flags}: {text}");
            assert_eq!(
                (&rows[1][..3], &rows[7][..3]),
                (&["1", "3", "3"][..], &["3", "4", "4"][..]),
                "{text}"
            );
            let both = |job: u32| {
                let stderr = [format!("    first {job}"), format!("    last {job}")];
                [
                    vec!["    stdout:".to_owned(), "    out".to_owned(), "    stderr:".to_owned()],
                    stderr.to_vec(),
                ]
                .concat()
            };
            assert_eq!(lines[2..7], both(3), "{flags}: {text}");
            assert_eq!(lines[8..], both(4), "{flags}: {text}");
        }
        assert_eq!(state.log("aaaa").code(0).text().lines().count(), 4);
    }
}

#[test]
fn of_many_last_lines_ten_are_shown() {
    let state = State::new();
    let words = [script("seq 5000 >&2; exit 7 #"), vec![":::".to_owned(), "a".to_owned()]].concat();
    state.run("aaaa0001", "-j2", &words).code(1);
    let text = state.log("--failed").code(0).says("").text();
    let tail: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
    assert_eq!(tail, (4991..=5000).map(|line| line.to_string()).collect::<Vec<_>>(), "{text}");
    // No failure, no table.
    state.run("bbbb0002", "KID exit :::", &["0"]).code(0);
    assert_eq!(state.log("--failed").code(0).says("minder: run bbbb0002: no job has failed\n").text(), "");
    // Killed by a signal.
    #[cfg(unix)]
    state.run("cccc0003", "", &["kill -9 $$ #", ":::", "a"]).code(1);
    #[cfg(unix)]
    assert!(state.log("--failed").code(0).text().contains(" KILL "));
}

/// Bytes that a terminal would obey.
fn obeyed(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let turning = ['\u{202e}', '\u{2066}', '\u{2028}'];
    text.chars().any(|c| (c.is_control() && c != '\n') || turning.contains(&c))
}

#[test]
fn nothing_that_a_terminal_would_obey_reaches_it() {
    let state = State::new();
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\r\u{8}\u{9b}31m\u{202e}\u{2066}\u{2028}\n\ttail\u{7f}\0";
    let evil_arg = evil.trim_end_matches('\0');
    // What is no text, too, where arguments are bytes.
    let no_text: &[u8] = if cfg!(unix) { b"\xff" } else { b"" };
    let arg = minder_os::encoding::os_string_from_encoded([evil_arg.as_bytes(), no_text].concat());
    let words = script("cat >/dev/null; printf %s {} >&2; exit 3");
    let words = [words.iter().map(Into::into).collect(), vec![":::".into(), arg]].concat();
    state.run("aaaa0001", "-j2", &words).code(1);
    let words = [TESTKID, "exit", "3", evil_arg, ":::", evil_arg];
    state.run("bbbb0002", "", &words).code(1);
    let sql = |query: &str| state.with("log --sql", &[query]);
    let mut all = Vec::from(
        ["", "last", "aaaa", "aaaa --failed", "--failed", "--follow", "aaaa --follow"]
            .map(|line| state.log(line).code(0)),
    );
    all.push(sql("select args, tail, command from jobs join runs using (run)").code(0));
    all.push(sql(&format!("select 1 as \"{}\"", evil_arg)).code(0));
    for ended in &all {
        assert!(!obeyed(&ended.out) && !obeyed(&ended.errors), "{:?} {:?}", ended.text(), ended.err);
    }
    let text = all[3].text();
    let wanted = r"\x1b[2J\x1b]0;x\x07\r\x08\u{9b}31m\u{202e}\u{2066}\u{2028}\n\ttail\x7f";
    assert!(text.contains(&format!("{wanted}{}", if cfg!(unix) { r"\xff" } else { "" })), "{text}");
    assert!(all[4].text().contains(r"\x1b[2J"), "{text}");
    // Nor by an error, nor by a folder's or a file's name.
    all = vec![
        sql(&format!("select {evil_arg}")).code(255),
        state.with("log", &[evil_arg]).code(255),
        state.with("log --sqlite", &[format!("/no/{evil_arg}")]).code(255),
        state.with("log", &[format!("--no{evil_arg}")]).code(255),
        state.with("log -n", &[evil_arg]).code(255),
    ];
    for ended in &all {
        assert!(!obeyed(&ended.out) && !obeyed(&ended.errors), "{:?}", ended.err);
    }
}

#[test]
fn an_empty_state_has_no_runs() {
    let state = State::new();
    for _ in 0..2 {
        let none = format!("minder: no run is recorded in `{}`\n", path(&state.root().join("runs")));
        assert_eq!(state.log("").code(0).says(&none).text(), "");
        assert_eq!(state.log("--json").code(0).says("").text(), "");
        let head = "run,at,command,jobs,failed,elapsed,state,note,command_form\r\n";
        assert_eq!(state.log("--csv").code(0).says("").text(), head);
        for line in ["last", "--failed", "--follow", "last --json"] {
            assert_eq!(state.log(line).code(255).complains(&["no run is recorded in"]).text(), "");
        }
        assert!(state.with("log --sql", &["select count(*) n from jobs"]).code(0).text().ends_with("0\n"));
        state.log("--prune --dry-run").code(0).complains(&["0 runs would be removed"]);
        // It is there, and empty.
        fs::create_dir_all(state.root().join("runs")).expect("a folder");
    }
    assert_eq!(fs::read_dir(state.root()).expect("the folder").count(), 1, "to look changes nothing");
}

#[test]
fn a_state_that_cannot_be_read_is_named() {
    let state = State::new();
    fs::create_dir(state.root()).expect("a folder");
    fs::write(state.root().join("runs"), "").expect("room");
    for line in ["", "last", "abcd", "--json", "--prune"] {
        let runs = if cfg!(windows) { r"state\runs`" } else { "state/runs`" };
        let why = if cfg!(windows) { "" } else { "not a directory" };
        state.log(line).code(255).complains(&["cannot read `", runs, why]);
    }
    fs::remove_file(state.root().join("runs")).expect("a file");
    state.run("aaaa0001", "KID exit :::", &["0"]).code(0);
}

#[cfg(unix)] // Another user.
#[test]
fn the_state_of_another_user_is_named() {
    let state = State::new();
    state.run("aaaa0001", "KID exit :::", &["0"]).code(0);
    if !is_root() || !is_public(super::MINDER) {
        crate::kit::skip(format_args!("a folder of another user: no right to become one"));
        return;
    }
    let mut other = minder_as("user=65534", "log");
    Live::start(other.env("MINDER_STATE_DIR", state.root()))
        .finish()
        .code(255)
        .complains(&["cannot read `", "permission denied"]);
}

#[test]
fn whoever_closes_the_output_ends_it_quietly() {
    let state = State::new();
    state.run("aaaa0001", "KID exit :::", &["0", "1"]).code(1);
    let closed = |line: &str| {
        let (reader, writer) = pipe();
        drop(reader);
        Live::start(state.command(line).stdout(writer)).finish().code(141).says("");
    };
    for line in ["", "last", "--failed", "--follow", "--json", "last --csv", "--sql values(1)"] {
        closed(&format!("log {line}"));
    }
}

#[cfg(unix)] // Windows has no device that is always full.
#[test]
fn a_full_output_is_one_line() {
    let state = State::new();
    state.run("aaaa0001", "KID exit :::", &["0", "1"]).code(1);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("the full device");
    let mut command = state.command("log");
    Live::start(command.stdout(full)).finish().code(255).complains(&["cannot write", "no space left"]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let state = State::new();
    for (line, parts) in [
        ("--dry-run", &["--dry-run", "--prune"][..]),
        ("--prune last", &["cannot be used with", "log --help"]),
        ("--json --csv", &["cannot be used with"]),
        ("-n3 last", &["cannot be used with"]),
        ("--sql", &["--sql", "log --help"]),
        ("--sqlite x.db --json", &["cannot be used with"]),
        ("a b", &["unexpected argument `b`"]),
        ("--nonsense", &["--nonsense", "log --help"]),
    ] {
        let ended = state.log(line).code(255);
        let err = ended.err.replace('\'', "`");
        assert!(err.lines().count() == 1 && parts.iter().all(|part| err.contains(part)), "{line}: {err}");
    }
}

#[cfg(unix)]
/// The checksum of a line, as zlib and PNG compute it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(unix)]
/// Makes the record of a run with so many jobs, which was killed.
fn large(state: &State, id: &str, jobs: usize) {
    state.killed(id);
    let mut text = super::file(&state.journal(id));
    for job in 2..=jobs {
        let line = format!(
            "{{\"event\":\"ended\",\"job\":{job},\"args\":[\"0\"],\"at\":1.5,\"wall\":0.25,\"exit\":0,\"out\":0,\"err\":0"
        );
        text += &format!("{line},\"crc\":\"{:08x}\"}}\n", crc32(line.as_bytes()));
    }
    fs::write(state.journal(id), text).expect("room");
}

#[cfg(unix)]
/// The most memory that `minder log` takes, in KiB, by the record of a run that runs it.
fn peak(state: &State, line: &str) -> u64 {
    let outer = State::new();
    let inner = format!("MINDER_STATE_DIR={}", path(&state.root()));
    let words = ["env", &inner, super::MINDER, "log"];
    let words: Vec<&str> = words.into_iter().chain(line.split_whitespace()).chain([":::", "-n20"]).collect();
    outer.with("run", &words).code(0);
    let rss = outer.with("log --json --sql", &["select rss from jobs"]).code(0).text();
    let rss = rss.trim().trim_start_matches("{\"rss\":").trim_end_matches('}');
    rss.parse::<u64>().unwrap_or_else(|_| panic!("a size: {rss}")) >> 10
}

#[cfg(unix)] // Wine's figures of memory are not those of Windows.
#[test]
fn a_large_run_is_listed_in_little_memory() {
    let (small, big) = (State::new(), State::new());
    large(&small, "aaaa0001", 10);
    large(&big, "aaaa0001", 100_000);
    let listed = big.log("").code(0).says("").text();
    assert!(listed.contains(" 100000 "), "{listed}");
    for flags in ["", "--json"] {
        let (few, many) = (peak(&small, flags), peak(&big, flags));
        eprintln!("{flags} {few} KiB, {many} KiB");
        assert!(many < few + 2048 && many < 32 << 10, "{few} KiB of a small run, {many} KiB of a large one");
    }
}

/// The beginning of a line of data, up to the first time in it.
fn before_times(line: &str) -> &str {
    line.split_once("\"at\":").map_or(line, |(before, _)| before)
}

/// Fails unless the only file of a run's folder with this name is there.
#[track_caller]
fn assert_there(path: &Path) {
    assert!(path.exists(), "{} is gone", path.display());
}
