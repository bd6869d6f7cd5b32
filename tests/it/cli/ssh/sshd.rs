//! An sshd for one test: with its own directory, keys, home directory and temporary directory.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use minder::Child;
use minder_record::run_state::{ComparedArgs, RunState};

use super::*;
use crate::support::{nap, output, skip};

/// The server. It starts itself again for each connection, and needs an absolute path for that.
const SSHD: &str = "/usr/sbin/sshd";
/// The hosts of a run that says nothing else.
pub(super) const TWO_HOSTS: &str = "ssh:2/alpha,2/beta";
/// The time after which nothing of a run is left on a host.
const LEFT_MAX: Duration = Duration::from_secs(20);

/// What differs from a usual host. `@DIR` stands for the directory of the test.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Setup<'a> {
    /// Variables of the session, in place of those with the same name.
    pub(super) env: &'a str,
    /// More lines for the server.
    pub(super) server: &'a str,
    /// Lines for the client that come before all others, and are preferred.
    pub(super) client: &'a str,
    /// The words in front of those that start the server.
    pub(super) enter: &'a [&'a str],
}

/// The hosts alpha, beta, gamma and delta, which are one sshd of this machine.
pub(super) struct Hosts {
    dir: tempfile::TempDir,
    server: Child,
    /// A variable that each process on a host has.
    mark: String,
}

impl Hosts {
    /// Starts a usual host, or skips the test.
    pub(super) fn start() -> Option<Self> {
        Self::with(Setup::default())
    }

    /// Starts a host. `None` if there is no sshd, which the test says.
    pub(super) fn with(setup: Setup<'_>) -> Option<Self> {
        if !Path::new(SSHD).exists() || keys().is_none() {
            skip(format_args!("needs sshd and ssh (apt-get install openssh-server openssh-client)"));
            return None;
        }
        let dir = tempfile::tempdir().expect("create directory");
        for name in ["home", "tmp", "here"] {
            fs::create_dir(dir.path().join(name)).expect("create directory");
        }
        if is_root() {
            // The package creates it when the machine starts, which containers leave out.
            fs::create_dir_all("/run/sshd").expect("create directory of sshd");
        }
        let mark = format!("MINDER_TEST_HOST={}", dir.path().display());
        for _ in 0..20 {
            if let Some(server) = start_server(dir.path(), &mark, &setup) {
                return Some(Self { dir, server, mark });
            }
        }
        panic!("sshd does not start: {}", file(&dir.path().join("sshd.log")));
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a path in the home directory of the login.
    pub(super) fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join("home").join(name)
    }

    /// Returns the value of --ssh.
    pub(super) fn ssh(&self) -> String {
        format!("ssh -F {}/ssh_config", self.dir.path().display())
    }

    /// Returns minder with these words, in a directory that is not the home directory.
    pub(super) fn command(&self, line: &str) -> Command {
        self.prepared(minder(line))
    }

    /// Does the same with another program.
    pub(super) fn command_of(&self, program: &Path, line: &str) -> Command {
        self.prepared(from(path(program), line))
    }

    fn prepared(&self, mut command: Command) -> Command {
        command.env("MINDER_STATE_DIR", self.dir.path().join("state"));
        command.current_dir(self.dir.path().join("here"));
        command
    }

    /// Returns a run on these hosts, without its command.
    pub(super) fn on(&self, hosts: &str, flags: &str) -> Command {
        let mut command = self.command(&format!("run --on {hosts} {flags}"));
        command.arg("--ssh").arg(self.ssh());
        command
    }

    /// Starts a run on two hosts.
    pub(super) fn run(&self, flags: &str, script: &str, jobs: &[&str]) -> Run {
        Run::start(self.on(TWO_HOSTS, flags).arg(script).arg(":::").args(jobs))
    }

    /// Returns the directory of the only run.
    pub(super) fn run_dir(&self) -> PathBuf {
        let mut runs = fs::read_dir(self.dir.path().join("state/runs")).expect("read runs");
        runs.next().expect("find run").expect("read entry").path()
    }

    pub(super) fn state(&self) -> RunState {
        RunState::of_run(&self.run_dir(), ComparedArgs::All).expect("read state").0
    }

    /// Creates a file in the home directory.
    pub(super) fn allow(&self, name: &str) {
        fs::write(self.home(name), "").expect("create file");
    }

    /// Waits for a file in the home directory.
    pub(super) fn wait_for(&self, name: &str) {
        let path = self.home(name);
        wait_until(&format!("`{name}`"), PATIENCE, || path.exists());
    }

    /// Waits until this number of jobs have a result.
    pub(super) fn wait_for_results(&self, jobs: u64) {
        wait_until("results", PATIENCE, || self.state().done.len() >= jobs);
    }

    /// Returns the lines of a file in the home directory, sorted.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let mut lines: Vec<String> = file(&self.home(name)).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Returns the processes on the hosts, with their command lines.
    pub(super) fn remote(&self) -> Vec<(u32, String)> {
        all_processes(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
        })
    }

    /// Returns the processes of this machine that have this in their command line, and the directory of the
    /// test.
    pub(super) fn local(&self, part: &str) -> Vec<(u32, String)> {
        let dir = self.dir.path().display().to_string();
        let mut found = all_processes(|_| true);
        found.retain(|(_, words)| words.contains(&dir) && words.contains(part));
        found
    }

    /// Returns the processes of sshd that serve connections.
    pub(super) fn connections(&self) -> Vec<u32> {
        children(self.server.id())
    }

    /// Returns the names in the temporary directory.
    pub(super) fn files(&self) -> Vec<std::ffi::OsString> {
        let files = fs::read_dir(self.dir.path().join("tmp")).expect("read directory").flatten();
        files.map(|entry| entry.file_name()).collect()
    }

    /// Fails unless nothing of a run is left on the hosts, soon.
    pub(super) fn expect_nothing_left(&self) {
        let begun = Instant::now();
        loop {
            let files = self.files();
            let processes = self.remote();
            if files.is_empty() && processes.is_empty() {
                return;
            }
            assert!(begun.elapsed() < LEFT_MAX, "left on the host: {processes:?} {files:?}");
            nap(Duration::from_millis(20)); // There is no event for the end of a process of others.
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of sshd: {}", file(&self.dir.path().join("sshd.log")));
        }
        let connections = self.connections();
        let _ = self.server.kill(Termination::IMMEDIATE);
        for pid in connections.into_iter().chain(self.remote().into_iter().map(|(pid, _)| pid)) {
            if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                // It may have ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Kills a process.
pub(super) fn kill(pid: u32) {
    crate::support::end(pid);
}

/// Returns those of these processes without those whose parent is one of them.
pub(super) fn first_of(processes: &[(u32, String)]) -> Vec<u32> {
    let is_child = |pid: u32| processes.iter().any(|(parent, _)| children(*parent).contains(&pid));
    processes.iter().map(|(pid, _)| *pid).filter(|pid| !is_child(*pid)).collect()
}

/// Waits until a condition holds that no event reports.
pub(super) fn wait_until(what: &str, most: Duration, holds: impl Fn() -> bool) {
    let until = Instant::now() + most;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        nap(Duration::from_millis(10));
    }
}

fn all_processes(chosen: impl Fn(u32) -> bool) -> Vec<(u32, String)> {
    let pids = fs::read_dir("/proc").expect("list processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter(|pid| *pid != std::process::id() && chosen(*pid) && !has_exited(*pid));
    pids.map(|pid| (pid, file(Path::new(&format!("/proc/{pid}/cmdline"))).replace('\0', " "))).collect()
}

/// The keys of the server and of the user. All tests of a process share them.
struct Keys {
    host: String,
    user: String,
    user_public: String,
}

fn keys() -> Option<&'static Keys> {
    static KEYS: OnceLock<Option<Keys>> = OnceLock::new();
    let create = || {
        let dir = tempfile::tempdir().expect("create directory");
        for name in ["host", "user"] {
            let mut command = std::process::Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.path().join(name));
            command.stdin(std::process::Stdio::null());
            if !command.output().ok()?.status.success() {
                return None;
            }
        }
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("read key");
        Some(Keys { host: read("host"), user: read("user"), user_public: read("user.pub") })
    };
    KEYS.get_or_init(create).as_ref()
}

/// Starts the server on a free port. Returns `None` if another process has taken the port meanwhile.
fn start_server(dir: &Path, mark: &str, setup: &Setup<'_>) -> Option<Child> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("find port");
    let port = free.local_addr().expect("read port").port();
    drop(free);
    write_files(dir, mark, setup, port);
    let log = File::create(dir.join("sshd.log")).expect("create log");
    crate::support::catch_ignored_signals();
    let config = dir.join("sshd_config").display().to_string();
    let dir_text = dir.display().to_string();
    let mut words: Vec<String> = setup.enter.iter().map(|word| word.replace("@DIR", &dir_text)).collect();
    words.extend([SSHD, "-D", "-e", "-f", &config].map(str::to_owned));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut server = command.spawn().expect("start sshd");
    let until = Instant::now() + PATIENCE;
    loop {
        if file(&dir.join("sshd.log")).contains("Server listening on") {
            return Some(server);
        }
        if server.try_wait().expect("poll sshd").is_some() {
            return None;
        }
        assert!(Instant::now() < until, "sshd does not listen");
        nap(Duration::from_millis(5));
    }
}

fn write_files(dir: &Path, mark: &str, setup: &Setup<'_>, port: u16) {
    let keys = keys().expect("create keys");
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        let text = text.replace("@DIR", &dir.display().to_string());
        fs::write(&path, text).expect("write file");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, private).expect("set permissions");
    };
    // Keys are not text in which a word is replaced.
    for (name, key) in [("host", &keys.host), ("user", &keys.user), ("authorized", &keys.user_public)] {
        write(name, "");
        fs::write(dir.join(name), key).expect("write key");
    }
    let Setup { env, server, client, .. } = setup;
    write(
        "sshd_config",
        &format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey @DIR/host\nAuthorizedKeysFile @DIR/authorized\n\
             PidFile none\nStrictModes no\nUsePAM no\nLogLevel VERBOSE\n\
             SetEnv {env} HOME=@DIR/home TMPDIR=@DIR/tmp {mark}\n{server}\n"
        ),
    );
    let user = output(std::process::Command::new("id").arg("-un"));
    let user = text(&user.stdout);
    write(
        "ssh_config",
        &format!(
            "{client}\nHost alpha beta gamma delta\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n\
             Host *\n  IdentityFile @DIR/user\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
             UserKnownHostsFile @DIR/known\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking accept-new\n"
        ),
    );
}
