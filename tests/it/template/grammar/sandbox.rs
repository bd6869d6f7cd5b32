//! The sandbox of a drawn line: an empty directory, a `PATH` of harmless programs, a user that owns
//! nothing else, and resource limits.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getuid, kill_process_group, waitid};

use super::values::MARK;

/// The maximum run time of a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first of the user ids that lines run as if the tests run as root. No other process has these
/// ids, so a line cannot signal or write anything else.
const USERS: u32 = 61_840;

/// The programs and the directory that all workers share.
pub(super) struct Ground {
    root: tempfile::TempDir,
}

impl Ground {
    pub(super) fn new() -> Ground {
        let root = tempfile::tempdir().unwrap();
        let ground = Ground { root };
        open(ground.root.path());
        let programs = ground.programs();
        std::fs::create_dir(&programs).unwrap();
        open(&programs);
        // A copy, since another user may have no access to the build directory.
        let first = programs.join("prog");
        std::fs::copy(env!("CARGO_BIN_EXE_log_args"), &first).unwrap();
        std::fs::hard_link(&first, programs.join("cat")).unwrap();
        // Displayed lines use it, and not every shell has it as a builtin.
        let printf = ["/usr/bin/printf", "/bin/printf"].into_iter().find(|path| Path::new(path).exists());
        symlink(printf.expect("find printf"), programs.join("printf")).unwrap();
        ground
    }

    pub(super) fn programs(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// Creates a file that every worker can read.
    pub(super) fn add_file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.root.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Returns a link to a shell with the name `sh`.
    pub(super) fn called_sh(&self, name: &str, program: &Path) -> PathBuf {
        let dir = self.root.path().join(format!("as-{name}"));
        let link = dir.join("sh");
        if !link.exists() {
            std::fs::create_dir_all(&dir).unwrap();
            open(&dir);
            symlink(program, &link).unwrap();
        }
        link
    }
}

fn open(dir: &Path) {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The effects of a line.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) marked: bool,
    /// It was killed, because it took too long or stopped itself.
    pub(super) ended: bool,
    /// The arguments of programs, in order.
    pub(super) calls: Vec<Vec<Vec<u8>>>,
}

/// The sandbox of one worker.
pub(super) struct Sandbox<'a> {
    ground: &'a Ground,
    number: u32,
    /// The number of directories. One that cannot be emptied is replaced by another.
    dirs: u32,
    dir: PathBuf,
    log: PathBuf,
    /// The user id that lines run as, if it differs from that of the tests.
    user: Option<u32>,
    watch: Watch,
}

impl<'a> Sandbox<'a> {
    pub(super) fn new(ground: &'a Ground, number: u32) -> Sandbox<'a> {
        let user = getuid().is_root().then_some(USERS + number);
        let mut sandbox = Sandbox {
            ground,
            number,
            dirs: 0,
            dir: PathBuf::new(),
            log: PathBuf::new(),
            user,
            watch: Watch::new(),
        };
        sandbox.renew();
        sandbox
    }

    /// Creates a new directory.
    fn renew(&mut self) {
        self.dirs += 1;
        let outer = self.ground.root.path().join(format!("{}-{}", self.number, self.dirs));
        // In another directory, so that `..` is private, too.
        self.dir = outer.join("in");
        self.log = self.dir.join("LOG");
        std::fs::create_dir_all(&self.dir).unwrap();
        for dir in [&outer, &self.dir] {
            open(dir);
        }
        if let Some(user) = self.user {
            chown(&self.dir, Some(user), Some(user)).unwrap();
        }
    }

    /// Runs an argv with only the harmless programs, and empties the directory afterwards.
    pub(super) fn run(&mut self, argv: &[OsString], variables: &[(&str, &str)]) -> Trace {
        let mut command = Command::new(&argv[0]);
        command
            .args(&argv[1..])
            .env_clear()
            .env("PATH", self.ground.programs())
            .env("HOME", &self.dir)
            .env("ARGUMENT_LOG", &self.log)
            .env("TERM", "dumb")
            .env("LC_ALL", "C")
            .envs(variables.iter().copied())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        // A file for globs to find.
        let _ = std::fs::write(self.dir.join("f"), "");
        #[expect(clippy::disallowed_methods, reason = "another user's id is for std's commands only")]
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{argv:?}: {error}"));
        bound(&child, self.user.is_some());
        let ended = self.watch.wait(&mut child);
        let calls = std::fs::read(&self.log).map(|log| calls(&log)).unwrap_or_default();
        let marked = self.empty();
        Trace { marked, ended, calls }
    }

    /// Runs a script.
    pub(super) fn run_text(&mut self, head: &[OsString], text: &[u8], variables: &[(&str, &str)]) -> Trace {
        let argv: Vec<OsString> = head.iter().cloned().chain([OsString::from_vec(text.to_vec())]).collect();
        self.run(&argv, variables)
    }

    /// Empties the directory. Returns whether it contained the mark.
    fn empty(&mut self) -> bool {
        let mut marked = false;
        let mut failed = false;
        let Ok(entries) = std::fs::read_dir(&self.dir) else {
            self.renew();
            return false;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            marked |= name.as_bytes() == MARK.as_bytes();
            let path = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_dir { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            failed |= removed.is_err();
        }
        if failed {
            self.renew();
        }
        marked
    }
}

/// Returns the records of a log, each `LENGTH:BYTES` for an argument, then `;`.
fn calls(log: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut calls = Vec::new();
    let mut words = Vec::new();
    let mut rest = log;
    while let Some(&first) = rest.first() {
        if first == b';' {
            calls.push(std::mem::take(&mut words));
            rest = &rest[1..];
            continue;
        }
        let colon = rest.iter().position(|&byte| byte == b':').expect("find length prefix");
        let length: usize = std::str::from_utf8(&rest[..colon]).unwrap().parse().unwrap();
        words.push(rest[colon + 1..colon + 1 + length].to_vec());
        rest = &rest[colon + 1 + length..];
    }
    calls
}

/// Limits the resources of the child and its descendants. The child has just started.
#[cfg(target_os = "linux")]
fn bound(child: &Child, alone: bool) {
    use rustix::process::{Resource, Rlimit, prlimit};
    let pid = Pid::from_child(child);
    let limits = [
        (Resource::Cpu, 2),
        (Resource::Fsize, 1 << 20),
        (Resource::As, 1 << 30),
        (Resource::Core, 0),
        // This limit counts all processes of the user.
        (Resource::Nproc, if alone { 200 } else { 20_000 }),
    ];
    for (resource, most) in limits {
        let _ = prlimit(Some(pid), resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

#[cfg(not(target_os = "linux"))]
fn bound(_: &Child, _: bool) {}

/// Kills a child that runs too long, with its process group.
struct Watch {
    shared: Arc<(Mutex<Watched>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Watched {
    child: Option<(Pid, Instant)>,
    ended: bool,
    over: bool,
}

impl Watch {
    fn new() -> Watch {
        let shared = Arc::<(Mutex<Watched>, Condvar)>::default();
        let ours = Arc::clone(&shared);
        let thread = std::thread::spawn(move || watch(&ours));
        Watch { shared, thread: Some(thread) }
    }

    /// Waits for the child and kills the rest of its process group. Returns whether the child was
    /// killed.
    fn wait(&self, child: &mut Child) -> bool {
        let (watched, changed) = &*self.shared;
        let pid = Pid::from_child(child);
        *watched.lock().unwrap() =
            Watched { child: Some((pid, Instant::now() + PATIENCE)), ..Watched::default() };
        changed.notify_one();
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        let stopped = loop {
            match waitid(WaitId::Pid(pid), options) {
                Ok(status) => break status.is_some_and(|status| status.stopped()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("waitid: {error}"),
            }
        };
        let ended = {
            let mut watched = watched.lock().unwrap();
            watched.child = None;
            watched.ended
        };
        // It is not reaped yet, so the id is still that of its group.
        let _ = kill_process_group(pid, Signal::KILL);
        child.wait().expect("wait for child");
        ended || stopped
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.0.lock().unwrap().over = true;
        self.shared.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch((watched, changed): &(Mutex<Watched>, Condvar)) {
    let mut now = watched.lock().unwrap();
    while !now.over {
        let left = now.child.map(|(_, end)| end.saturating_duration_since(Instant::now()));
        now = match left {
            None => changed.wait(now).unwrap(),
            Some(Duration::ZERO) => {
                if let Some((pid, _)) = now.child.take() {
                    now.ended = true;
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                now
            }
            Some(left) => changed.wait_timeout(now, left).unwrap().0,
        };
    }
}
