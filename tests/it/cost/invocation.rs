//! Starts of the program under test whose input, arguments and environment are always the same.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

use crate::support::{TEST_CHILD, skip};

/// The number of variables of each start, unless a test asks for more.
const VARIABLES: usize = 20;

/// The program under test, and a directory with what it needs.
#[derive(Debug)]
pub(super) struct Setting {
    program: PathBuf,
    dir: tempfile::TempDir,
    variables: usize,
    runs: Cell<usize>,
}

/// One start of the program under test.
#[derive(Debug)]
pub(super) struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    input: PathBuf,
    dir: PathBuf,
    state: PathBuf,
}

impl Setting {
    /// Returns `None`, and says so once, if `MINDER_COST` names no program. An empty value means that
    /// another process counts.
    pub(super) fn new() -> Option<Self> {
        static SKIPPED: Once = Once::new();
        let Some(program) = std::env::var_os("MINDER_COST") else {
            SKIPPED.call_once(|| {
                skip(format_args!(
                    "no counts of costs: MINDER_COST names no release build; hint: cargo xtask cost"
                ));
            });
            return None;
        };
        if program.is_empty() {
            return None;
        }
        let dir = tempfile::tempdir().expect("create temporary directory");
        compile_tiny(&dir.path().join("tiny"));
        Some(Self { program: program.into(), dir, variables: VARIABLES, runs: Cell::new(0) })
    }

    /// Returns `None`, and says so, if valgrind is missing, too.
    pub(super) fn with_valgrind() -> Option<Self> {
        let setting = Self::new()?;
        match Command::new("valgrind").arg("--version").output() {
            Ok(output) if output.status.success() => Some(setting),
            _ => {
                skip(format_args!("no valgrind; hint: sudo apt-get install valgrind"));
                None
            }
        }
    }

    /// Returns a setting with another number of variables.
    pub(super) fn with_variables(&self, variables: usize) -> Self {
        Self { variables, ..Self::new().expect("MINDER_COST is set") }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns `minder --version`.
    pub(super) fn version(&self) -> Invocation {
        self.invocation(&["--version"], 0)
    }

    /// Returns a run of this number of jobs, each of which exits at once. Eight run at the same time.
    pub(super) fn run(&self, flags: &[&str], jobs: usize) -> Invocation {
        let tiny = self.dir.path().join("tiny");
        let tiny = tiny.to_str().expect("a path in UTF-8");
        self.invocation(&[&["run", "-j8"], flags, &[tiny, "{}"]].concat(), jobs)
    }

    /// Returns a run whose two jobs print `bytes` in total, in lines, grouped by job.
    pub(super) fn output(&self, flags: &[&str], bytes: usize) -> Invocation {
        let line = format!("yes a line of forty bytes, with its end.... | head -c {}", bytes / 2);
        self.invocation(&[&["run", "-j2", "--no-record"], flags, &[":::", &line, &line]].concat(), 0)
    }

    /// Returns a run of `echo` that reads its input from elsewhere.
    pub(super) fn echo(&self) -> Invocation {
        self.invocation(&["run", "-j8", "/bin/echo", "{}"], 0)
    }

    fn invocation(&self, args: &[&str], lines: usize) -> Invocation {
        let number = self.runs.replace(self.runs.get() + 1);
        let dir = self.dir.path().join(format!("{number:03}"));
        let state = dir.join("state");
        fs::create_dir_all(&state).expect("create directories");
        let input = dir.join("input");
        let text: String = (0..lines).map(|line| format!("{line:05}\n")).collect();
        fs::write(&input, text).expect("write input");
        let fixed = [
            ("PATH", OsString::from("/usr/bin:/bin")),
            ("HOME", self.dir.path().into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("MINDER_STATE_DIR", state.clone().into()),
            ("MINDER_CONFIG_DIR", self.dir.path().join("no-config").into()),
        ];
        let mut variables: Vec<_> = fixed.into_iter().map(|(name, value)| (name.into(), value)).collect();
        for number in variables.len()..self.variables {
            variables.push((format!("VARIABLE_{number:03}").into(), "a value of average length".into()));
        }
        let args = args.iter().map(OsString::from).collect();
        Invocation { program: self.program.clone(), args, variables, input, dir, state }
    }
}

impl Invocation {
    /// Returns the command in a session without a terminal, without descriptors above 2. If `before` has
    /// words, the command is an argument of that program. `changes` are those of test_child's `as`.
    pub(super) fn command(&self, changes: &str, before: &[&str]) -> Command {
        let mut command = Command::new(TEST_CHILD);
        command.args(["as", &format!("session,plain{changes}")]).args(before).arg(&self.program);
        command.args(&self.args).env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(File::open(&self.input).expect("open input")).stdout(Stdio::null());
        command.stderr(File::create(self.dir.join("errors")).expect("create file"));
        command
    }

    /// Runs the program to its end, as an argument of another program if `before` has words.
    pub(super) fn finish_by(&self, before: &[&str]) {
        let status = self.command("", before).status().expect("start the program under test");
        assert!(status.success(), "{:?}: {status}: {}", self.args, self.errors());
    }

    /// Runs the program to its end.
    pub(super) fn finish(&self) {
        self.finish_by(&[]);
    }

    /// Returns what the program printed on stderr.
    pub(super) fn errors(&self) -> String {
        fs::read_to_string(self.dir.join("errors")).unwrap_or_default()
    }

    /// Returns the directory of this start, for files of the test.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory of its records.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }
}

/// Builds the smallest child: a static program without libc that exits at once.
fn compile_tiny(path: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/peers/tiny.c");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-static", "-nostdlib", "-o"]).arg(path).arg(source);
    let output = cc.output().expect("start the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
