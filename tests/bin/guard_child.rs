//! The program that the guard's tests run: a runner under guard, the jobs that are hard to kill,
//! and a small shell. Linux only.
//!
//! `guard_child VERB …`: `runner REPORT [SETTING…] [JOB…]`, `job NAME`, and, in front of another
//! command line of this program, `session`, `terminal PATH`, `shell REPORT`, `unprivileged`,
//! `nohup`, `background`.
#![cfg_attr(unix, expect(unsafe_code, reason = "jobs must misbehave as real ones do"))]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = arguments.split_first().expect("split arguments");
    match verb.as_str() {
        "runner" => runner::run(rest),
        "job" => jobs::run(rest),
        _ => before::run(verb, rest),
    }
}

#[cfg(target_os = "linux")]
mod system {
    //! The few calls without a safe form.

    use std::ffi::CString;
    use std::io;
    use std::time::Duration;

    /// Forks; the child runs `child` and ends.
    pub(crate) fn fork(child: impl FnOnce()) -> i32 {
        let pid = fork_plainly();
        if pid == 0 {
            child();
            exit(0)
        }
        pid
    }

    /// Forks as fork(2) does: 0 in the child.
    pub(crate) fn fork_plainly() -> i32 {
        // SAFETY: this program never starts a thread before it forks.
        unsafe { libc::fork() }
    }

    pub(crate) fn exit(status: i32) -> ! {
        // SAFETY: ends the process.
        unsafe { libc::_exit(status) }
    }

    pub(crate) fn ignore(signal: i32) {
        // SAFETY: no handler is involved.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }

    /// Becomes this program with other arguments, by its own name.
    pub(crate) fn exec_self(arguments: &[String]) -> io::Error {
        match std::env::current_exe() {
            Ok(path) => exec(&path.to_string_lossy(), arguments),
            Err(error) => error,
        }
    }

    /// Becomes a job: this program with nothing in its name and arguments that shows where it came
    /// from.
    pub(crate) fn become_job(name: &str) -> io::Error {
        execute("/proc/self/exe", &["a-job".into(), "job".into(), name.into()])
    }

    pub(crate) fn exec(path: &str, arguments: &[String]) -> io::Error {
        let words: Vec<String> = std::iter::once(path.to_owned()).chain(arguments.iter().cloned()).collect();
        execute(path, &words)
    }

    fn execute(path: &str, words: &[String]) -> io::Error {
        let text = |word: &str| CString::new(word).expect("create C string");
        let path = text(path);
        let words = words.iter().map(|w| text(w)).collect::<Vec<_>>();
        let mut pointers: Vec<_> = words.iter().map(|w| w.as_ptr()).collect();
        pointers.push(std::ptr::null());
        // SAFETY: terminated strings in a terminated list, which live until the call has ended.
        unsafe { libc::execv(path.as_ptr(), pointers.as_ptr()) };
        io::Error::last_os_error()
    }

    /// Takes another user's identity, also in the set and the saved one.
    pub(crate) fn become_user(id: u32) -> io::Result<()> {
        // SAFETY: no memory is touched but the one group.
        let groups = unsafe { libc::setgroups(0, std::ptr::null()) };
        // SAFETY: no memory is touched.
        let group = unsafe { libc::setresgid(id, id, id) };
        // SAFETY: no memory is touched.
        let user = unsafe { libc::setresuid(id, id, id) };
        if groups | group | user == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn nap(time: Duration) {
        let time = rustix::time::Timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        };
        let _ = rustix::thread::nanosleep(&time);
    }

    pub(crate) fn for_ever() -> ! {
        loop {
            nap(Duration::from_secs(3600));
        }
    }

    pub(crate) fn report(path: &str, line: &str) {
        use std::io::Write as _;
        let file = std::fs::File::options().append(true).create(true).open(path);
        // One write, so that lines of several processes do not mix.
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("write report");
    }
}

#[cfg(target_os = "linux")]
mod runner {
    //! A runner with a guard, as `minder` is one.

    use std::io::{self, Write as _};
    use std::time::Duration;

    use minder::Signal;
    use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
    use rustix::event::{PollFd, PollFlags, poll};

    use crate::system;

    /// `REPORT [SETTING…] [JOB…]`; a setting has a `=`.
    pub(crate) fn run(arguments: &[String]) -> io::Result<()> {
        let (report, rest) = arguments.split_first().expect("split arguments");
        let setting =
            |key: &str| rest.iter().filter_map(|word| word.split_once('=')).find(|pair| pair.0 == key);
        let mut options = GuardOptions::new().guardians(setting("alone").is_none());
        if let Some((_, us)) = setting("late") {
            options = options.fault_late(Duration::from_micros(us.parse().expect("parse microseconds")));
        }
        if setting("no-children-file").is_some() {
            options = options.fault_no_children_file();
        }
        if setting("no-pidfd").is_some() {
            options = options.fault_no_pidfd();
        }
        options = options.watchdog(setting("deadline").is_some());
        if setting("bare").is_some() {
            // What the guard's cost is compared with.
            system::exit(0);
        }
        let mut guard = ProcessGuard::install(&options)?;
        if setting("unarmed").is_none() {
            guard.wait_ready()?;
        }
        for job in rest.iter().filter(|word| !word.contains('=')) {
            system::fork(|| {
                let error = system::become_job(job);
                panic!("{error}");
            });
        }
        if let Some((_, text)) = setting("say") {
            io::stdout().write_all(text.as_bytes())?;
            io::stdout().flush()?;
        }
        let (outer, inner) = guard.guardians().map_or((0, 0), |g| (g.outer, g.inner));
        system::report(report, &format!("ready {outer} {inner} {}", std::process::id()));
        if setting("read").is_some() {
            let mut line = String::new();
            io::stdin().read_line(&mut line)?;
            system::report(report, &format!("read {}", line.trim_end()));
        }
        match setting("end").map(|pair| pair.1) {
            None => {}
            Some("return") => std::process::exit(101),
            Some("die") => guard.terminate(ExitMode::Status(130)),
            Some("adopted") => {
                while guard.orphans().is_empty() {
                    system::nap(Duration::from_millis(1));
                }
                let names: Vec<String> = guard.orphans().into_iter().map(|found| found.1).collect();
                system::report(report, &format!("adopted {}", names.join(" ")));
                guard.exit(3)
            }
            Some(status) => guard.exit(status.parse().expect("parse status")),
        }
        if let Some((_, millis)) = setting("deadline") {
            set_deadlines(&guard, millis, report);
        }
        hear(&mut guard, report, setting("unstopped").is_none());
        guard.terminate(ExitMode::Signal(Signal::INT))
    }

    /// Sets a deadline, which is moved on for a while if the setting begins with `moved-`.
    fn set_deadlines(guard: &ProcessGuard, setting: &str, report: &str) {
        let Some(watchdog) = guard.watchdog() else { return };
        let millis = setting.strip_prefix("moved-").unwrap_or(setting);
        let Ok(millis) = millis.parse() else { return };
        let left = Duration::from_millis(millis);
        watchdog.set_deadline(Some(left));
        system::report(report, "deadline");
        if millis.to_string() == setting {
            return;
        }
        for _ in 0..8 {
            system::nap(left / 4);
            watchdog.set_deadline(Some(left));
        }
        watchdog.set_deadline(None);
        system::report(report, "no deadline");
    }

    /// Writes down each signal, and stops where it `follows` a stop; returns at a termination.
    fn hear(guard: &mut ProcessGuard, report: &str, follows: bool) {
        loop {
            let _ = poll(&mut [PollFd::from_borrowed_fd(guard.signals(), PollFlags::IN)], None);
            while let Some(signal) = guard.next_signal() {
                system::report(report, &format!("signal {signal:?}"));
                match signal {
                    Signal::TSTP if follows => {
                        guard.suspend_self();
                        system::report(report, "continued");
                    }
                    Signal::TERM => return,
                    _ => {}
                }
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod jobs {
    //! Processes that other runners leave behind.

    use std::io;
    use std::time::Duration;

    use rustix::process::{Signal, WaitOptions, getpid, kill_process, setsid, wait};

    use crate::system::{exec_self, exit, for_ever, fork, fork_plainly, ignore, nap};

    pub(crate) fn run(arguments: &[String]) -> io::Result<()> {
        let name = arguments.first().map_or("", String::as_str);
        match name {
            "plain" => for_ever(),
            "setsid" => {
                setsid()?;
                for_ever()
            }
            "daemon" => daemon(|| for_ever()),
            "ignore" => {
                (1..libc::SIGRTMAX())
                    .filter(|n| ![libc::SIGKILL, libc::SIGSTOP].contains(n))
                    .for_each(ignore);
                for_ever()
            }
            "stopped" => {
                setsid()?;
                kill_process(getpid(), Signal::STOP)?;
                for_ever()
            }
            "undying" => {
                rustix::process::set_parent_process_death_signal(None)?;
                for_ever()
            }
            "nested" => nested(10),
            "bush" => bush(),
            "comet" => daemon(|| comet()),
            "many" => many(400),
            "root" => {
                // All three ids: an unprivileged run cannot signal this one.
                crate::system::become_user(0)?;
                for_ever()
            }
            "litter" => {
                // Leaves orphans that are as little to be signalled as itself.
                crate::system::become_user(0)?;
                loop {
                    fork(|| _ = fork(|| nap(Duration::from_millis(100))));
                    let _ = wait(WaitOptions::empty());
                    nap(Duration::from_millis(50));
                }
            }
            "run" => {
                // A run inside the run, with its own tree.
                let words = ["runner", "/dev/null", "plain", "setsid", "daemon"].map(str::to_owned);
                Err(exec_self(&words))
            }
            "terminal" => {
                // Has no right to read it, being in the background or not: it waits, or is stopped.
                let _ = io::Read::read(&mut std::fs::File::open("/dev/tty")?, &mut [0]);
                for_ever()
            }
            _ => match name.split_once(':') {
                // Another copy of this program, which is setuid root.
                Some((job, path)) => Err(crate::system::exec(path, &["job".into(), job.into()])),
                None => panic!("no job `{name}`"),
            },
        }
    }

    /// Forks twice; the grandchild, in its own session, continues.
    fn daemon(then: impl FnOnce()) -> ! {
        fork(|| {
            let _ = setsid();
            fork(then);
            exit(0)
        });
        let _ = wait(WaitOptions::empty());
        exit(0)
    }

    fn nested(depth: u32) -> ! {
        if depth > 0 {
            fork(|| nested(depth - 1));
        }
        for_ever()
    }

    fn many(count: u32) -> ! {
        for _ in 0..count {
            fork(|| {
                let _ = setsid();
                for_ever()
            });
        }
        for_ever()
    }

    /// A new process and a new session every millisecond, each the parent of the next.
    fn comet() -> ! {
        loop {
            nap(Duration::from_millis(1));
            if fork_plainly() != 0 {
                exit(0)
            }
            let _ = setsid();
        }
    }

    /// Up to fifty processes that fork, leave and die all the time.
    fn bush() -> ! {
        let mut random = u64::from(std::process::id()) << 17 | 1;
        let mut alive = 0;
        loop {
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {
                alive -= 1;
            }
            if alive < 25 {
                alive += 1;
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let dice = random;
                fork(|| twig(dice));
            } else {
                nap(Duration::from_micros(500));
            }
        }
    }

    fn twig(dice: u64) -> ! {
        if dice & 1 == 0 {
            let _ = setsid();
        }
        if dice & 2 == 0 {
            fork(|| twig(dice | 3));
        }
        nap(Duration::from_micros(dice >> 4 & 0x3fff));
        exit(0)
    }
}

#[cfg(target_os = "linux")]
mod before {
    //! Verbs that prepare the process for the next verb.

    use std::io;
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, setpgid, setsid, waitpid};

    use crate::system::{self, exec_self, fork, ignore};

    pub(crate) fn run(verb: &str, rest: &[String]) -> io::Result<()> {
        let mut rest = rest;
        match verb {
            "session" => {
                setsid()?;
            }
            "terminal" => {
                let (path, after) = rest.split_first().expect("split arguments");
                setsid()?;
                // The first terminal that a session leader opens is its controlling one.
                let terminal = open(path.as_str(), OFlags::RDWR, Mode::empty())?;
                for standard in 0..=2 {
                    // SAFETY: nothing was written or read through `std` yet.
                    unsafe { libc::dup2(terminal.as_raw_fd(), standard) };
                }
                rest = after;
            }
            "shell" | "holding-shell" => {
                let (report, after) = rest.split_first().expect("split arguments");
                return shell(report, after, verb == "shell");
            }
            "server" => {
                fork(|| system::for_ever());
            }
            "container" => return container(rest),
            // The user that has no rights on files of others.
            "unprivileged" => system::become_user(65_534)?,
            "nohup" => ignore(libc::SIGHUP),
            "background" => {
                ignore(libc::SIGINT);
                ignore(libc::SIGQUIT);
            }
            _ => panic!("no verb `{verb}`"),
        }
        Err(exec_self(rest))
    }

    /// Runs the command as pid 1 of a new pid namespace with its own `/proc`, and repeats its exit
    /// status.
    fn container(command: &[String]) -> io::Result<()> {
        // SAFETY: this process has one thread; only its children and its mounts are concerned.
        if unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS) } != 0 {
            system::exit(77);
        }
        fork(|| {
            let nothing = std::ptr::null();
            let private = libc::MS_REC | libc::MS_PRIVATE;
            // SAFETY: terminated strings; a private namespace.
            let parted = unsafe { libc::mount(nothing, c"/".as_ptr(), nothing, private, nothing.cast()) };
            let proc = c"proc".as_ptr();
            // SAFETY: terminated strings; a private namespace.
            let mounted = unsafe { libc::mount(proc, c"/proc".as_ptr(), proc, 0, nothing.cast()) };
            if parted | mounted != 0 {
                system::exit(77);
            }
            panic!("{}", exec_self(command));
        });
        let ended = rustix::process::wait(WaitOptions::empty())?.expect("wait for container").1;
        // 1 for an end by signal, which pid 1 cannot give itself.
        system::exit(ended.exit_status().unwrap_or(1))
    }

    /// Runs the command as a job of a shell does: its own group, in the foreground if there is
    /// a terminal; when it stops, takes the terminal back, reports it, and continues it at once,
    /// as `fg` does, or not.
    fn shell(report: &str, command: &[String], continues: bool) -> io::Result<()> {
        ignore(libc::SIGTTOU);
        let job = fork(|| {
            let _ = setpgid(None, None);
            let _ = rustix::termios::tcsetpgrp(io::stdin(), getpid());
            let error = exec_self(command);
            panic!("{error}");
        });
        let job = Pid::from_raw(job).expect("valid pid");
        let _ = setpgid(Some(job), Some(job));
        let _ = rustix::termios::tcsetpgrp(io::stdin(), job);
        loop {
            let Some((_, status)) = waitpid(Some(job), WaitOptions::UNTRACED)? else { continue };
            let _ = rustix::termios::tcsetpgrp(io::stdin(), getpid());
            if !status.stopped() {
                let line = format!("ended {:?} {:?}", status.exit_status(), status.terminating_signal());
                system::report(report, &line);
                system::exit(0);
            }
            system::report(report, "stopped");
            if continues {
                let _ = rustix::termios::tcsetpgrp(io::stdin(), job);
                kill_process_group(job, Signal::CONT)?;
            }
        }
    }
}
