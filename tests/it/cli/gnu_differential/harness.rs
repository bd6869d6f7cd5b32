//! The directories in which cases run. Each implementation gets an equal one at the same place, one
//! after the other.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minder::{Command, ExitStatus, Group, Stdio, Termination};

use super::case::{Case, See};
use super::shell_words::split;
use crate::cli::MINDER;
use crate::support::{file_of, nap, patience};

/// The status of what had to be ended.
const HUNG: &str = "no end within";
/// The time after which a run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The end of a command that refuses its words.
const REFUSED: &str = "exit 255";

/// The number of characters of a long stream or file that a report shows.
const SHOWN: usize = 700;

/// The implementation of the command that runs a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Implementation {
    Gnu,
    Ours,
}

/// The compared result of a case.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Result {
    pub(super) status: String,
    pub(super) out: String,
    /// `None` where it is not compared.
    err: Option<String>,
    tree: BTreeMap<String, String>,
    /// The text on standard error, for the report.
    said: Said,
}

/// Never compared.
#[derive(Debug)]
struct Said(String);

impl PartialEq for Said {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Said {}

/// Why GNU parallel cannot be used, if it cannot.
pub(super) fn lacks_parallel() -> Option<String> {
    let Some(path) = find("parallel") else {
        return Some("GNU parallel is not in PATH; hint: apt-get install parallel".to_owned());
    };
    let mut command = Command::new(&path);
    let version = crate::support::stdout_of(command.arg("--version").stdin(Stdio::null()));
    let named = version.lines().next().unwrap_or_default();
    (!named.starts_with("GNU parallel")).then(|| format!("`{}` is not GNU parallel: {named}", path.display()))
}

/// Returns whether Perl has this module.
pub(super) fn has_module(name: &str) -> bool {
    let mut command = Command::new("perl");
    command
        .arg(format!("-M{name}"))
        .arg("-e1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let exit = command.spawn().and_then(|mut child| child.wait());
    exit.is_ok_and(|exit| exit.status.success())
}

/// Returns the program of this name in `PATH`.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// A directory that holds everything that a case sees.
pub(super) struct Scene {
    root: tempfile::TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self { root: crate::cli::temp_dir() }
    }

    /// Runs the case in fresh directories.
    pub(super) fn run(&self, case: &Case, implementation: Implementation) -> Result {
        self.clear();
        for (name, content) in case.files {
            let path = self.at("work").join(name);
            fs::create_dir_all(path.parent().expect("path has a parent")).expect("create directory");
            fs::write(&path, content).expect("write file");
            if content.starts_with("#!") {
                let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                fs::set_permissions(&path, executable).expect("set permissions");
            }
        }
        let mut command = self.command(implementation, case.is_script, case.line);
        for (name, value) in case.env {
            command.env(name, value);
        }
        let input = file_of(case.input.as_bytes());
        let (mut status, mut out, err) = run_captured(&command, input);
        if out.starts_with("Usage:\n") {
            // GNU parallel shows its help where it does not understand; our message differs.
            out.clear();
        }
        if implementation == Implementation::Gnu && has_broken(&err) {
            (status, out) = (REFUSED.to_owned(), String::new());
        }
        Result {
            status,
            out: seen(&out, case.see),
            err: case.errors.then(|| seen(&err, case.see)),
            tree: if case.tree { tree(&self.at("work")) } else { BTreeMap::new() },
            said: Said(err),
        }
    }

    /// Runs the command with these arguments alone, and returns its status and both outputs.
    pub(super) fn run_words(
        &self,
        implementation: Implementation,
        words: &[String],
        input: &[u8],
    ) -> (String, Vec<u8>, String) {
        let mut command = self.program(implementation);
        command.args(words);
        let out = file_of(b"");
        let err = file_of(b"");
        let status = ended(self.dress(&mut command, implementation), file_of(input), &out, &err);
        (status, content(out), String::from_utf8_lossy(&content(err)).into_owned())
    }

    /// Writes files for the next cases. They stay until the next `run`.
    pub(super) fn place(&self, files: &[(String, Vec<u8>)]) {
        self.clear();
        for (name, content) in files {
            fs::write(self.at("work").join(name), content).expect("write file");
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn clear(&self) {
        for name in ["work", "home", "tmp", "state"] {
            let path = self.at(name);
            remove(&path);
            fs::create_dir(&path).expect("create directory");
        }
        fs::create_dir(self.at("home/.parallel")).expect("create directory");
        fs::write(self.at("home/.parallel/will-cite"), "").expect("write file");
    }

    /// Returns a directory with links `parallel` and `sem` to the implementation's program.
    fn links(&self, implementation: Implementation) -> PathBuf {
        let dir = self.at(if implementation == Implementation::Gnu { "gnu" } else { "ours" });
        if !dir.exists() {
            fs::create_dir(&dir).expect("create directory");
            let gnu = find("parallel").expect("find parallel");
            let program =
                if implementation == Implementation::Gnu { gnu.as_path() } else { Path::new(MINDER) };
            for name in ["parallel", "sem"] {
                std::os::unix::fs::symlink(program, dir.join(name)).expect("create symbolic link");
            }
        }
        dir
    }

    fn program(&self, implementation: Implementation) -> Command {
        match implementation {
            Implementation::Gnu => Command::new(self.links(implementation).join("parallel")),
            Implementation::Ours => {
                let mut command = Command::new(MINDER);
                command.arg("parallel");
                command
            }
        }
    }

    fn command(&self, implementation: Implementation, is_script: bool, line: &str) -> Command {
        let mut command = if is_script { Command::new("/bin/sh") } else { self.program(implementation) };
        if is_script {
            command.arg("-c").arg(line);
        } else {
            command.args(split(line));
        }
        self.dress(&mut command, implementation).clone()
    }

    fn dress<'a>(&self, command: &'a mut Command, implementation: Implementation) -> &'a mut Command {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.links(implementation).display());
        command.env_clear();
        // Where the modules of GNU parallel are, if they are not where Debian has them.
        if let Some(dirs) = std::env::var_os("PERL5LIB") {
            command.env("PERL5LIB", dirs);
        }
        command
            .env("PATH", path)
            .env("HOME", self.at("home"))
            .env("TMPDIR", self.at("tmp"))
            .env("MINDER_STATE_DIR", self.at("state"))
            .env("LC_ALL", "C.UTF-8")
            .env("PARALLEL_SHELL", "/bin/sh")
            .current_dir(self.at("work"))
            .group(Group::Session)
    }
}

/// Returns whether Perl reports a failure of GNU parallel itself. minder need not match such a
/// result: it rejects the arguments.
pub(super) fn has_broken(errors: &str) -> bool {
    errors.contains("/parallel line ")
}

/// Runs a command to its end, and returns its status and both outputs.
fn run_captured(command: &Command, input: fs::File) -> (String, String, String) {
    let out = file_of(b"");
    let err = file_of(b"");
    let status = ended(command, input, &out, &err);
    let text = |file| String::from_utf8_lossy(&content(file)).into_owned();
    (status, text(out), text(err))
}

fn ended(command: &Command, input: fs::File, out: &fs::File, err: &fs::File) -> String {
    let mut command = command.clone();
    let copy = |file: &fs::File| Stdio::from(file.try_clone().expect("duplicate handle"));
    let mut child =
        command.stdin(input).stdout(copy(out)).stderr(copy(err)).spawn().expect("spawn test child");
    match child.wait_timeout(PATIENCE).expect("wait for child") {
        Some(exit) => match exit.status {
            ExitStatus::Exited(code) => format!("exit {code}"),
            other => format!("{other:?}"),
        },
        None => {
            child.kill(Termination::IMMEDIATE).expect("kill child");
            child.wait().expect("wait for child");
            format!("{HUNG} {} s", PATIENCE.as_secs())
        }
    }
}

/// Removes a directory if there is one. A command that `sem` left in the background may still add files.
fn remove(dir: &Path) {
    let until = patience();
    while dir.exists() {
        match fs::remove_dir_all(dir) {
            Err(error) if Instant::now() > until => panic!("remove {}: {error}", dir.display()),
            Err(_) => nap(Duration::from_millis(20)),
            Ok(()) => (),
        }
    }
}

fn content(mut file: fs::File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().expect("rewind file");
    file.read_to_end(&mut bytes).expect("read to end");
    bytes
}

/// Returns the part of a stream that is compared.
fn seen(text: &str, see: See) -> String {
    match see {
        See::All => without_times(text),
        See::Sorted => sorted(text),
        See::Count => format!("{} lines", text.lines().count()),
        See::Nothing => String::new(),
    }
}

pub(super) fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

/// Replaces every time and duration of a joblog by `TIME`: each number with three decimals, with
/// the spaces before it.
fn without_times(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(point) = rest.find('.') {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = rest[..point].bytes().rev().take_while(u8::is_ascii_digit).count();
        let parts = digits(&rest[point + 1..]);
        let is_time = whole > 0 && parts == 3;
        let kept = if is_time { rest[..point - whole].trim_end_matches(' ') } else { &rest[..=point] };
        shown.push_str(kept);
        shown.push_str(if is_time { "TIME" } else { "" });
        rest = &rest[point + 1 + if is_time { parts } else { 0 }..];
    }
    shown + rest
}

/// Returns all files below a directory, with their content.
fn tree(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(&next).expect("list directory").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(dir).expect("strip directory").to_string_lossy().into_owned();
            if path.is_dir() {
                found.insert(format!("{name}/"), String::new());
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                found.insert(name, without_times(&String::from_utf8_lossy(&bytes)));
            }
        }
    }
    found
}

impl Result {
    /// Formats the compared parts for people.
    pub(super) fn shown(&self) -> String {
        let mut report = format!("  {}\n  stdout {:?}\n", self.status, self.out);
        let err = self.err.iter().map(|err| format!("  stderr {err:?}\n"));
        let tree = self.tree.iter().map(|(name, content)| format!("  {name}: {content:?}\n"));
        report.extend(err.chain(tree));
        report + &format!("  said {:?}\n", self.said.0.chars().take(300).collect::<String>())
    }

    /// Returns whether the case was ended, since it did not end by itself.
    pub(super) fn hung(&self) -> bool {
        self.status.starts_with(HUNG)
    }

    /// Formats both results, as far as they differ.
    pub(super) fn compared_with(&self, ours: &Self) -> String {
        let mut report = String::new();
        let mut part = |name: &str, theirs: &str, ours: &str| {
            if theirs != ours {
                let cut = |text: &str| text.chars().take(SHOWN).collect::<String>();
                report += &format!("  {name}: GNU  {:?}\n  {name}: ours {:?}\n", cut(theirs), cut(ours));
            }
        };
        part("status", &self.status, &ours.status);
        part("stdout", &self.out, &ours.out);
        part("stderr", self.err.as_deref().unwrap_or_default(), ours.err.as_deref().unwrap_or_default());
        let names: std::collections::BTreeSet<&String> = self.tree.keys().chain(ours.tree.keys()).collect();
        for name in names {
            let of =
                |tree: &BTreeMap<String, String>| tree.get(name).map_or("(not there)".into(), Clone::clone);
            part(name, &of(&self.tree), &of(&ours.tree));
        }
        let said: String = ours.said.0.chars().take(300).collect();
        report + &format!("  ours said {said:?}\n")
    }
}

#[test]
fn times_are_normalized() {
    let line = "1\t:\t1700000000.123\t     0.004\t0\t2\t0\t0\techo a.b 1.5 v1.";
    assert_eq!(without_times(line), "1\t:\tTIME\tTIME\t0\t2\t0\t0\techo a.b 1.5 v1.");
}
