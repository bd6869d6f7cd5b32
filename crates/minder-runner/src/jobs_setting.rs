//! The argument of `-j`: how many jobs run at once.
//!
//! It is `8`, `150%` (of the processors), `+2` and `-1` (more and fewer than there are processors),
//! `0` (as many as possible), or the path of a file that contains one of these. The file may change
//! during the run.
//!
//! A run calls [`JobsSetting::now`] at its start, and again when a job has finished. The file is
//! read at most once a second.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use minder_os::sync::Mutex;

use crate::text::count;
use crate::text::os_error_text;

/// The least time between two reads of the file.
const PERIOD: Duration = Duration::from_secs(1);
/// The most bytes of the file that are read: a number and some spaces.
const FILE_BYTES_MAX: u64 = 4096;

/// A number of jobs, absolute or relative to the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsSpec {
    /// This many; 0 for as many as possible.
    Count(usize),
    /// A percentage of the processors.
    Percent(usize),
    /// This many more than there are processors.
    More(usize),
    /// This many fewer than there are processors.
    Fewer(usize),
}

impl JobsSpec {
    /// Parses the text. Returns `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| {
            // `str::parse` would accept a second sign.
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        if let Some(digits) = text.strip_suffix('%') {
            return number(digits).map(Self::Percent);
        }
        match text.as_bytes().first()? {
            b'+' => number(&text[1..]).map(Self::More),
            b'-' => number(&text[1..]).map(Self::Fewer),
            _ => number(text).map(Self::Count),
        }
    }

    /// Returns the number of jobs on a machine with this many processors: at least 1, except for a
    /// count of 0.
    pub fn of(self, processors: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (processors.saturating_mul(percent) / 100).max(1),
            Self::More(more) => processors.saturating_add(more).max(1),
            Self::Fewer(fewer) => processors.saturating_sub(fewer).max(1),
        }
    }
}

/// The valid values that messages about an invalid number of jobs name.
pub const EXPECTED_JOBS: &str = "a number of jobs such as 8, 100% (one per processor), +2, -1 or 0";

/// Returns how many processors this process may use.
pub fn processors() -> usize {
    minder_os::host_stats::processors()
}

/// The parsed argument of `-j`.
#[derive(Debug)]
pub struct JobsSetting {
    processors: usize,
    file: Option<File>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// `true` if the file can be read again. A pipe (`-j <(…)`) cannot: its content is gone.
    rereads: bool,
}

#[derive(Debug)]
struct State {
    spec: JobsSpec,
    read_at: Instant,
    /// `true` if the file could not be used, and that was reported.
    was_reported: bool,
}

impl JobsSetting {
    /// Parses the argument of `-j`, and reads the file that it may name.
    ///
    /// # Errors
    /// The text is neither a number nor the name of a file that contains one.
    pub fn parse(text: &OsStr) -> Result<Self> {
        Self::parse_on(text, processors(), Instant::now())
    }

    fn parse_on(text: &OsStr, processors: usize, now: Instant) -> Result<Self> {
        // The output of a command may end with a line break.
        if let Some(spec) = text.to_str().and_then(|text| JobsSpec::parse(text.trim_ascii())) {
            return Ok(Self {
                processors,
                file: None,
                state: Mutex::new(State { spec, read_at: now, was_reported: false }),
            });
        }
        let path = PathBuf::from(text);
        let spec = match read(&path) {
            Ok(content) => parse_content(&path, &content)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!(
                    "-j: invalid value `{}`: expected {EXPECTED_JOBS}, or a file that contains one",
                    path.display()
                )
            }
            Err(error) => bail!("-j: cannot read `{}`: {}", path.display(), os_error_text(&error)),
        };
        let file = File { rereads: path.is_file(), path };
        Ok(Self {
            processors,
            file: Some(file),
            state: Mutex::new(State { spec, read_at: now, was_reported: false }),
        })
    }

    /// Returns how many jobs may run at once; `None` for as many as possible. Reads the file, if
    /// there is one and the last read was at least a second ago.
    ///
    /// # Errors
    /// The file cannot be read, or contains no valid number any more. This is reported once; until
    /// the file is valid again, the last number stays.
    pub fn now(&self) -> Result<Option<usize>> {
        self.at(Instant::now())
    }

    /// Returns `true` if the number may change.
    pub fn may_change(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.rereads)
    }

    fn at(&self, now: Instant) -> Result<Option<usize>> {
        let mut state = self.state.lock();
        if let Some(File { path, rereads: true }) = &self.file
            && now.saturating_duration_since(state.read_at) >= PERIOD
        {
            state.read_at = now;
            let content = read(path).map_err(|error| {
                anyhow!("-j: cannot read `{}` any more: {}", path.display(), os_error_text(&error))
            });
            match content.and_then(|content| parse_content(path, &content)) {
                Ok(spec) => {
                    state.spec = spec;
                    state.was_reported = false;
                }
                Err(error) if !std::mem::replace(&mut state.was_reported, true) => {
                    let last = state.spec.of(self.processors);
                    return Err(error.context(format!("still {} at once", count(last as u64, "job"))));
                }
                Err(_) => (),
            }
        }
        Ok(Some(state.spec.of(self.processors)).filter(|count| *count > 0))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut content)?;
    Ok(content)
}

fn parse_content(path: &Path, content: &[u8]) -> Result<JobsSpec> {
    let text = String::from_utf8_lossy(content);
    let text = text.trim();
    JobsSpec::parse(text).ok_or_else(|| {
        let shown: String = text.chars().filter(|c| !c.is_control()).take(20).collect();
        anyhow!("-j: invalid value `{shown}` in `{}`: expected {EXPECTED_JOBS}", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_four(text: &str) -> Option<usize> {
        JobsSpec::parse(text).map(|spec| spec.of(4))
    }

    #[test]
    fn jobs_spec_parses_numbers_and_percentages() {
        let known = [
            ("8", 8),
            ("0", 0),
            ("007", 7),
            ("150%", 6),
            ("100%", 4),
            ("1%", 1),
            ("0%", 1),
            ("+2", 6),
            ("+0", 4),
            ("-1", 3),
            ("-4", 1),
            ("-100", 1),
        ];
        for (text, count) in known {
            assert_eq!(on_four(text), Some(count), "{text}");
        }
        for invalid in [
            "",
            "x",
            "3.5",
            "1e2",
            " 4",
            "+",
            "-",
            "%",
            "++1",
            "+-1",
            "+100%",
            "99999999999999999999999",
            "٣",
        ] {
            assert_eq!(on_four(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn parse_reports_one_line_for_invalid_argument() {
        let error = JobsSetting::parse(OsStr::new("procs")).expect_err("read missing file");
        assert_eq!(
            error.to_string(),
            format!("-j: invalid value `procs`: expected {EXPECTED_JOBS}, or a file that contains one")
        );
        let dir = tempfile::tempdir().expect("create temp dir");
        assert!(JobsSetting::parse(dir.path().as_os_str()).is_err());
        let path = dir.path().join("procs");
        std::fs::write(&path, "many\n").expect("write jobs file");
        let error = JobsSetting::parse(path.as_os_str()).expect_err("parse `many`").to_string();
        assert!(error.contains("invalid value `many` in"), "{error}");
    }

    #[test]
    fn jobs_file_is_read_at_most_once_a_second() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let path = dir.path().join("procs");
        let write = |text: &str| std::fs::write(&path, text).expect("write jobs file");
        write(" 3\n");
        let start = Instant::now();
        let slots = JobsSetting::parse_on(path.as_os_str(), 4, start).expect("parse jobs file");
        let at = |ms| slots.at(start + Duration::from_millis(ms));
        assert!(slots.may_change());
        assert_eq!(at(0).expect("read jobs file"), Some(3));
        write("200%");
        assert_eq!(at(999).expect("keep last number"), Some(3));
        assert_eq!(at(1000).expect("read jobs file"), Some(8));
        write("0");
        assert_eq!(at(1500).expect("keep last number"), Some(8));
        assert_eq!(at(2000).expect("read jobs file"), None);
    }

    #[test]
    fn invalid_jobs_file_is_reported_once() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let path = dir.path().join("procs");
        std::fs::write(&path, "3").expect("write jobs file");
        let start = Instant::now();
        let slots = JobsSetting::parse_on(path.as_os_str(), 4, start).expect("parse jobs file");
        let at = |seconds| slots.at(start + Duration::from_secs(seconds));
        std::fs::write(&path, "").expect("write jobs file");
        assert!(at(1).is_err());
        assert_eq!(at(2).expect("keep last number"), Some(3));
        std::fs::remove_file(&path).expect("remove jobs file");
        assert_eq!(at(3).expect("keep last number"), Some(3));
        std::fs::write(&path, "5").expect("write jobs file");
        assert_eq!(at(4).expect("read jobs file"), Some(5));
        std::fs::remove_file(&path).expect("remove jobs file");
        assert!(at(5).expect_err("read removed file").to_string().contains("still 5"));
    }
}
