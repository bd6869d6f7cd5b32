//! `minder log`: what is reported of runs that ended well, badly or not at all, and of records that
//! are damaged.
#![cfg(any(target_os = "linux", windows))]

mod data;
mod filters;
mod job;
mod job_status;
mod running;
mod prune;
#[cfg(unix)] // Lines of a shell.
mod stored;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use minder::Command;

use super::{Run, RunOutput, minder, path, pipe, script};
#[cfg(unix)]
use super::{is_public, is_root, minder_as};
use crate::support::TEST_CHILD;

/// A private state directory, and its runs.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(super::temp_dir())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn dir(&self, id: &str) -> PathBuf {
        self.root().join("runs").join(id)
    }

    /// Returns the ids of all runs, sorted.
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

    /// `minder` with the arguments of a line, and then with these as they are.
    fn with(&self, line: &str, words: &[impl AsRef<OsStr>]) -> RunOutput {
        Run::start(self.command(line).args(words.iter().map(AsRef::as_ref))).wait()
    }

    fn log(&self, line: &str) -> RunOutput {
        Run::start(&self.command(&format!("log {line}"))).wait()
    }

    /// Makes a run and gives it this id. The next one is later.
    fn run(&self, id: &str, line: &str, words: &[impl AsRef<OsStr>]) -> RunOutput {
        let ended = self.with(&format!("run {line}"), words);
        self.rename_last(id);
        ended
    }

    /// Gives this id to the only run that has none of ours: the last that was made.
    fn rename_last(&self, id: &str) {
        let fresh = |id: &String| !self.file(&format!("named-{id}")).exists();
        let fresh: Vec<String> = self.ids().into_iter().filter(fresh).collect();
        assert_eq!(fresh.len(), 1, "new runs: {fresh:?}");
        fs::rename(self.dir(&fresh[0]), self.dir(id)).expect("rename");
        fs::write(self.file(&format!("named-{id}")), "").expect("write file");
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.dir(id).join("attempt-1.jsonl")
    }

    /// Returns whether the only run has begun: the first line of its journal is written.
    fn has_begun(&self) -> bool {
        self.ids().first().is_some_and(|id| super::file(&self.journal(id)).ends_with('\n'))
    }

    /// Cuts that many lines, and that many bytes before them, from a journal.
    fn cut(&self, id: &str, lines: usize, bytes: usize) {
        let text = fs::read(self.journal(id)).expect("read journal");
        let all: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let rest = all[..all.len() - lines].concat();
        fs::write(self.journal(id), &rest[..rest.len() - bytes]).expect("write file");
    }

    /// A run of three jobs in this state, killed after the first.
    fn killed(&self, id: &str) {
        self.run(id, "-j1 CHILD exit :::", &["0", "0", "0"]).exit_code(0);
        self.cut(id, 3, 0);
    }
}

/// Returns the words of each line.
fn table(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn runs_are_listed_newest_first() {
    let state = State::new();
    state.run("aaaa0001", "CHILD exit :::", &["0", "3", "0"]).exit_code(1);
    state.run("bbbb0002", "CHILD exit {} :::", &["0"]).exit_code(0);
    state.run("cccc0003", "CHILD echo-args -- x :::", &["a b"]).exit_code(0);
    let listed = state.log("").exit_code(0).stderr("").text();
    let rows = table(&listed);
    assert_eq!(rows[0], ["run", "when", "command", "jobs", "failed", "elapsed"], "{listed}");
    let ids: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(ids, ["cccc0003", "bbbb0002", "aaaa0001"], "{listed}");
    let command = format!("{TEST_CHILD} exit");
    let first = listed.lines().last().expect("find last line");
    assert!(first.contains(&command) && first.contains(" 3 ") && first.contains(" 1 "), "{listed}");
    assert!(rows[3][1] == "today" || rows[3][1] == "yesterday", "{listed}");
    assert!(!listed.contains('·'), "nothing to note: {listed}");
    // Fewer of them.
    let two = state.log("-n2").exit_code(0).text();
    assert_eq!(two.lines().count(), 3, "{two}");
    assert!(!two.contains("aaaa0001"), "{two}");
    assert_eq!(state.log("-n 0").exit_code(0).text().lines().count(), 1);
}

#[test]
fn table_shows_twenty_runs_and_data_shows_all() {
    let state = State::new();
    state.run("aaaa0000", "CHILD exit :::", &["0"]).exit_code(0);
    for number in 1..25 {
        let copy = state.dir(&format!("aaaa{number:04}"));
        fs::create_dir(&copy).expect("create directory");
        for name in ["manifest.json", "attempt-1.jsonl", "lock", "arguments"] {
            fs::copy(state.dir("aaaa0000").join(name), copy.join(name)).expect("copy file");
        }
    }
    assert_eq!(state.log("").exit_code(0).text().lines().count(), 21);
    assert_eq!(state.log("--json").exit_code(0).text().lines().count(), 25);
    assert_eq!(state.log("--csv").exit_code(0).text().lines().count(), 26);
    assert_eq!(state.log("--csv -n 3").exit_code(0).text().lines().count(), 4);
}

#[test]
fn killed_run_is_listed_with_its_resume_command() {
    let state = State::new();
    state.killed("aaaa0001");
    state.run("aabb0002", "CHILD exit :::", &["0"]).exit_code(0);
    let listed = state.log("").exit_code(0).stderr("").text();
    let note = "killed · 2 left · minder resume aaaa";
    assert!(listed.lines().any(|line| line.starts_with("aaaa0001") && line.ends_with(note)), "{listed}");
    assert_eq!(listed.matches("left").count(), 1, "{listed}");
    // As many digits as it takes.
    state.run("aaaa9999", "CHILD exit :::", &["0"]).exit_code(0);
    let listed = state.log("").exit_code(0).stderr("").text();
    assert!(listed.contains("killed · 2 left · minder resume aaaa0"), "{listed}");
    // And it does.
    Run::start(&state.command("run --resume aaaa0")).wait().exit_code(0);
    let listed = state.log("").exit_code(0).stderr("").text();
    let row = listed.lines().find(|line| line.starts_with("aaaa0001")).expect("find line of the run");
    assert!(row.contains(" 3 ") && !row.contains('·'), "{listed}");
}

#[test]
fn run_is_found_by_id_prefix() {
    let state = State::new();
    state.run("abcd0001", "CHILD exit :::", &["0"]).exit_code(0);
    state.run("abce0002", "CHILD exit :::", &["0", "0"]).exit_code(0);
    for (word, jobs) in [("abcd", 1), ("ABCD0", 1), ("abce0002", 2), ("last", 2)] {
        let text = state.log(word).exit_code(0).stderr("").text();
        assert_eq!(text.lines().count(), 1 + jobs, "{word}: {text}");
    }
    state.log("abc").exit_code(255).error_line(&["`abc`", "2 runs", "abcd0001 (", "abce0002 ("]);
    state.log("ffff").exit_code(255).error_line(&["no run `ffff`", "runs"]);
    for word in ["../x", "..", "/etc", "abcd0001/", "abcd00010", "lastx", "*", "g"] {
        state.log(word).exit_code(255).error_line(&["invalid run id", word]);
    }
    assert_eq!(state.with("log", &[""]).exit_code(255).error_line(&["invalid run id"]).text(), "");
    // A symbolic link is not followed. On Windows not every user may create one.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(state.dir("abcd0001"), state.dir("dddd0004"))
            .expect("create symbolic link");
        state.log("dddd").exit_code(255).error_line(&["left alone"]);
        assert!(!state.log("").exit_code(0).text().contains("dddd"));
    }
}

#[test]
fn damaged_journals_are_reported_and_read_as_far_as_possible() {
    let state = State::new();
    state.run("aaaa0001", "-j1 CHILD exit :::", &["0", "0", "0", "0"]).exit_code(0);
    // Its end is gone, and half of a line before it.
    state.cut("aaaa0001", 2, 10);
    let torn = "minder: run aaaa0001 is damaged: attempt-1.jsonl: its last line is incomplete\n";
    let listed = state.log("").exit_code(0).stderr(torn).text();
    assert!(listed.contains("damaged") && listed.contains("resume aaaa"), "{listed}");
    let jobs = state.log("aaaa").exit_code(0).stderr(torn).text();
    assert!((2..5).contains(&jobs.lines().count()), "{jobs}");
    // A line in the middle.
    let mut text = fs::read(state.journal("aaaa0001")).expect("read journal");
    let second = text.iter().position(|byte| *byte == b'\n').expect("find end of line") + 20;
    text[second] ^= 1;
    fs::write(state.journal("aaaa0001"), text).expect("write file");
    let both =
        "run aaaa0001 is damaged: attempt-1.jsonl: line 2 cannot be read, its last line is incomplete\n";
    for line in ["", "aaaa", "--json", "aaaa --csv", "--follow", "--failed", "--sql select(1)"] {
        let ended = state.log(line).exit_code(0);
        // Of a journal that is followed, the last line may still be written.
        let wanted = if line == "--follow" { "line 2 cannot be read" } else { both };
        assert!(ended.err.contains(wanted), "{line}: {}", ended.err);
    }
    // The other runs are shown.
    state.run("bbbb0002", "CHILD exit :::", &["0"]).exit_code(0);
    fs::write(state.dir("bbbb0002").join("manifest.json"), "{").expect("write file");
    state.run("cccc0003", "CHILD exit :::", &["0"]).exit_code(0);
    fs::remove_file(state.journal("cccc0003")).expect("remove file");
    fs::create_dir(state.journal("cccc0003")).expect("create directory");
    let ended = state.log("").exit_code(0);
    assert_eq!((ended.err.lines().count(), ended.text().lines().count()), (3, 4), "{ended:?}");
    assert!(ended.err.contains("run bbbb0002 is damaged: cannot read the manifest"), "{}", ended.err);
    assert!(ended.err.contains("run cccc0003 is damaged: attempt-1.jsonl: "), "{}", ended.err);
    assert_eq!(state.log("bbbb").exit_code(0).text().lines().count(), 2);
}

#[test]
fn failed_jobs_are_shown_with_their_last_lines() {
    let line = "[ {} = 0 ] || { echo first {} >&2; echo out; echo last {} >&2; }; exit {}";
    for flags in ["-j1", "-j4", "-k -j4", "--lb -j4", "--spool -j4", "--spool -j1", "--lb -j1"] {
        let state = State::new();
        let words = [script(line), [":::", "3", "0", "4"].map(str::to_owned).to_vec()].concat();
        state.run("aaaa0001", flags, &words).exit_code(2);
        for words in ["--failed", "aaaa --failed", "last --failed"] {
            let text = state.log(words).exit_code(0).stderr("").text();
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
        assert_eq!(state.log("aaaa").exit_code(0).text().lines().count(), 4);
    }
}

#[test]
fn last_ten_lines_of_a_failed_job_are_shown() {
    let state = State::new();
    let words = [script("seq 5000 >&2; exit 7 #"), vec![":::".to_owned(), "a".to_owned()]].concat();
    state.run("aaaa0001", "-j2", &words).exit_code(1);
    let text = state.log("--failed").exit_code(0).stderr("").text();
    let tail: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
    assert_eq!(tail, (4991..=5000).map(|line| line.to_string()).collect::<Vec<_>>(), "{text}");
    // No failure, no table.
    state.run("bbbb0002", "CHILD exit :::", &["0"]).exit_code(0);
    assert_eq!(
        state.log("--failed").exit_code(0).stderr("minder: run bbbb0002: no job has failed\n").text(),
        ""
    );
    // Killed by a signal.
    #[cfg(unix)]
    state.run("cccc0003", "", &["kill -9 $$ #", ":::", "a"]).exit_code(1);
    #[cfg(unix)]
    assert!(state.log("--failed").exit_code(0).text().contains(" KILL "));
}

/// Bytes that a terminal would obey.
fn obeyed(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let turning = ['\u{202e}', '\u{2066}', '\u{2028}'];
    text.chars().any(|c| (c.is_control() && c != '\n') || turning.contains(&c))
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let state = State::new();
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\r\u{8}\u{9b}31m\u{202e}\u{2066}\u{2028}\n\ttail\u{7f}\0";
    let evil_arg = evil.trim_end_matches('\0');
    // What is not text, too, where arguments are bytes.
    let no_text: &[u8] = if cfg!(unix) { b"\xff" } else { b"" };
    let arg = minder_os::encoding::os_string_from_encoded([evil_arg.as_bytes(), no_text].concat());
    let words = script("cat >/dev/null; printf %s {} >&2; exit 3");
    let words = [words.iter().map(Into::into).collect(), vec![":::".into(), arg]].concat();
    state.run("aaaa0001", "-j2", &words).exit_code(1);
    let words = [TEST_CHILD, "exit", "3", evil_arg, ":::", evil_arg];
    state.run("bbbb0002", "", &words).exit_code(1);
    let sql = |query: &str| state.with("log --sql", &[query]);
    let mut all = Vec::from(
        ["", "last", "aaaa", "aaaa --failed", "--failed", "--follow", "aaaa --follow"]
            .map(|line| state.log(line).exit_code(0)),
    );
    all.push(sql("select args, tail, command from jobs join runs using (run)").exit_code(0));
    all.push(sql(&format!("select 1 as \"{}\"", evil_arg)).exit_code(0));
    for ended in &all {
        assert!(!obeyed(&ended.out) && !obeyed(&ended.errors), "{:?} {:?}", ended.text(), ended.err);
    }
    let text = all[3].text();
    let wanted = r"\x1b[2J\x1b]0;x\x07\r\x08\u{9b}31m\u{202e}\u{2066}\u{2028}\n\ttail\x7f";
    assert!(text.contains(&format!("{wanted}{}", if cfg!(unix) { r"\xff" } else { "" })), "{text}");
    assert!(all[4].text().contains(r"\x1b[2J"), "{text}");
    // Nor by an error, nor by a directory's or a file's name.
    all = vec![
        sql(&format!("select {evil_arg}")).exit_code(255),
        state.with("log", &[evil_arg]).exit_code(255),
        state.with("log --sqlite", &[format!("/no/{evil_arg}")]).exit_code(255),
        state.with("log", &[format!("--no{evil_arg}")]).exit_code(255),
        state.with("log -n", &[evil_arg]).exit_code(255),
    ];
    for ended in &all {
        assert!(!obeyed(&ended.out) && !obeyed(&ended.errors), "{:?}", ended.err);
    }
}

#[test]
fn empty_state_lists_no_runs() {
    let state = State::new();
    for _ in 0..2 {
        let none = format!("minder: no run is recorded in `{}`\n", path(&state.root().join("runs")));
        assert_eq!(state.log("").exit_code(0).stderr(&none).text(), "");
        assert_eq!(state.log("--json").exit_code(0).stderr("").text(), "");
        let head = "run,at,command,jobs,failed,elapsed,state,note,command_form\r\n";
        assert_eq!(state.log("--csv").exit_code(0).stderr("").text(), head);
        for line in ["last", "--failed", "--follow", "last --json"] {
            assert_eq!(state.log(line).exit_code(255).error_line(&["no run is recorded in"]).text(), "");
        }
        assert!(
            state.with("log --sql", &["select count(*) n from jobs"]).exit_code(0).text().ends_with("0\n")
        );
        state.log("--prune --dry-run").exit_code(0).error_line(&["would remove 0 runs"]);
        // It is there, and empty.
        fs::create_dir_all(state.root().join("runs")).expect("create directory");
    }
    assert_eq!(fs::read_dir(state.root()).expect("list directory").count(), 1, "to look changes nothing");
}

#[test]
fn unreadable_state_is_reported() {
    let state = State::new();
    fs::create_dir(state.root()).expect("create directory");
    fs::write(state.root().join("runs"), "").expect("write file");
    for line in ["", "last", "abcd", "--json", "--prune"] {
        let runs = if cfg!(windows) { r"state\runs`" } else { "state/runs`" };
        let why = if cfg!(windows) { "" } else { "not a directory" };
        state.log(line).exit_code(255).error_line(&["cannot read `", runs, why]);
    }
    fs::remove_file(state.root().join("runs")).expect("remove file");
    state.run("aaaa0001", "CHILD exit :::", &["0"]).exit_code(0);
}

#[cfg(unix)] // Another user.
#[test]
fn state_of_another_user_is_reported() {
    let state = State::new();
    state.run("aaaa0001", "CHILD exit :::", &["0"]).exit_code(0);
    if !is_root() || !is_public(super::MINDER) {
        crate::support::skip(format_args!("needs the right to become another user"));
        return;
    }
    let mut other = minder_as("user=65534", "log");
    Run::start(other.env("MINDER_STATE_DIR", state.root()))
        .wait()
        .exit_code(255)
        .error_line(&["cannot read `", "permission denied"]);
}

#[test]
fn log_exits_quietly_when_its_reader_is_gone() {
    let state = State::new();
    state.run("aaaa0001", "CHILD exit :::", &["0", "1"]).exit_code(1);
    let closed = |line: &str| {
        let (reader, writer) = pipe();
        drop(reader);
        Run::start(state.command(line).stdout(writer)).wait().exit_code(141).stderr("");
    };
    for line in ["", "last", "--failed", "--follow", "--json", "last --csv", "--sql values(1)"] {
        closed(&format!("log {line}"));
    }
}

#[cfg(unix)] // Windows has no device that is always full.
#[test]
fn full_output_device_is_one_line_of_error() {
    let state = State::new();
    state.run("aaaa0001", "CHILD exit :::", &["0", "1"]).exit_code(1);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("open /dev/full");
    let mut command = state.command("log");
    Run::start(command.stdout(full)).wait().exit_code(255).error_line(&["cannot write", "no space left"]);
}

#[test]
fn conflicting_flags_are_rejected() {
    let state = State::new();
    for (line, parts) in [
        ("--dry-run", &["--dry-run", "--prune"][..]),
        ("--prune last", &["cannot be used with", "log --help"]),
        ("--json --csv", &["cannot be used with"]),
        ("-n3 last", &["`--number` limits the list of runs"]),
        ("--sql", &["--sql", "log --help"]),
        ("--sqlite x.db --json", &["cannot be used with"]),
        ("a b", &["[JOB]: invalid value `b`"]),
        ("a 1 b", &["unexpected argument `b`"]),
        ("--nonsense", &["--nonsense", "log --help"]),
    ] {
        let ended = state.log(line).exit_code(255);
        let err = ended.err.replace('\'', "`");
        assert!(err.lines().count() == 1 && parts.iter().all(|part| err.contains(part)), "{line}: {err}");
    }
}

#[cfg(unix)]
/// Returns the CRC-32 of a line, as zlib and PNG compute it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(unix)]
/// Makes the record of a run with that many jobs, which was killed.
fn large(state: &State, id: &str, jobs: usize) {
    state.killed(id);
    let mut text = super::file(&state.journal(id));
    for job in 2..=jobs {
        let head = format!(r#"{{"event":"ended","job":{job},"args":["0"],"at":1.5,"wall":0.25"#);
        let line = head + r#","exit":0,"out":0,"err":0"#;
        text += &format!("{line},\"crc\":\"{:08x}\"}}\n", crc32(line.as_bytes()));
    }
    fs::write(state.journal(id), text).expect("write file");
}

/// Returns the peak memory of `minder log` in KiB, from the record of a run that runs it.
#[cfg(unix)]
fn peak(state: &State, line: &str) -> u64 {
    let outer = State::new();
    let inner = format!("MINDER_STATE_DIR={}", path(&state.root()));
    let words = ["env", &inner, super::MINDER, "log"];
    let words: Vec<&str> = words.into_iter().chain(line.split_whitespace()).chain([":::", "-n20"]).collect();
    outer.with("run", &words).exit_code(0);
    let rss = outer.with("log --json --sql", &["select rss from jobs"]).exit_code(0).text();
    let rss = rss.trim().trim_start_matches("{\"rss\":").trim_end_matches('}');
    rss.parse::<u64>().unwrap_or_else(|_| panic!("a size: {rss}")) >> 10
}

#[cfg(unix)] // Wine's figures of memory are not those of Windows.
#[test]
fn large_run_is_listed_in_constant_memory() {
    let small = State::new();
    let big = State::new();
    large(&small, "aaaa0001", 10);
    large(&big, "aaaa0001", 100_000);
    let listed = big.log("").exit_code(0).stderr("").text();
    assert!(listed.contains(" 100000 "), "{listed}");
    for flags in ["", "--json"] {
        let few = peak(&small, flags);
        let many = peak(&big, flags);
        eprintln!("{flags} {few} KiB, {many} KiB");
        assert!(many < few + 2048 && many < 32 << 10, "{few} KiB of a small run, {many} KiB of a large one");
    }
}

/// Returns a line of data up to its first time.
fn before_times(line: &str) -> &str {
    line.split_once("\"at\":").map_or(line, |(before, _)| before)
}

/// Fails unless the only file of a run's directory with this name is there.
#[track_caller]
fn assert_there(path: &Path) {
    assert!(path.exists(), "{} is gone", path.display());
}
