//! The host that the tests of the guardian kill: a program with threads that starts guarded children.
//! Linux only.
//!
//! `guardian_host REPORT [SETTING…] [JOB…]`: a job is one of `guard_child`; a setting has a `=`.
#![cfg_attr(unix, expect(unsafe_code, reason = "a fork without an exec, as some hosts do"))]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match host::run(&arguments) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            host::report(&arguments[0], &format!("error {error}"));
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
mod host {
    use std::collections::VecDeque;
    use std::ffi::CString;
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::time::{Duration, Instant};

    use minder::guard::{GuardedProcess, Guardian, GuardianOptions};
    use minder::{
        ChildSet, ChildSetOptions, Command, ErrorKind, Event, Group, NextEvent, Result, SpawnOptions, Stdio,
        Termination,
    };

    pub(crate) fn report(path: &str, line: &str) {
        let file = std::fs::File::options().append(true).create(true).open(path);
        // One write, so that lines of several processes do not mix.
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("write report");
    }

    pub(crate) fn run(arguments: &[String]) -> Result<()> {
        let (path, words) = arguments.split_first().expect("split arguments");
        let setting = |key: &str| {
            words.iter().filter_map(|word| word.split_once('=')).find(|pair| pair.0 == key).map(|pair| pair.1)
        };
        if setting("session").is_some() {
            rustix::process::setsid().expect("begin session");
        }
        // A host has threads.
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
        let mut config = GuardianOptions::new();
        if let Some(program) = setting("program") {
            config = config.program(program);
        }
        if let Some(ms) = setting("grace") {
            config = config.grace(Duration::from_millis(ms.parse().expect("parse milliseconds")));
        }
        config = config
            .tag(setting("tag").is_some())
            .inherit_stderr(setting("stderr").is_some())
            .restart(setting("restart").is_some());
        let guardian = Guardian::start(&config)?;
        let mut pid = guardian.pid().unwrap_or(0);
        let mut set = ChildSet::new(ChildSetOptions::new().guardian(&guardian))?;
        let mut forked = Vec::new();
        let guardian = setting("alone").is_none().then_some(guardian);
        let copies: usize = setting("copies").map_or(1, |text| text.parse().expect("parse number"));
        for job in words.iter().filter(|word| !word.contains('=')) {
            for _ in 0..copies {
                match (&guardian, setting("forked")) {
                    (Some(guardian), Some(_)) => forked.push(fork_guarded(guardian, setting("jobs"), job)?),
                    _ => {
                        set.spawn(&child(setting("jobs"), job, setting("late")), SpawnOptions::new())?;
                    }
                }
            }
        }
        if setting("forked") == Some("released") {
            forked.drain(..).for_each(GuardedProcess::release);
        }
        if let (Some(guardian), Some(_)) = (&guardian, setting("restart")) {
            end(pid);
            set.spawn(&child(setting("jobs"), "plain", None), SpawnOptions::new())?;
            pid = guardian.pid().unwrap_or(0);
        }
        if setting("forks").is_some() {
            // SAFETY: the child only sleeps.
            if unsafe { libc::fork() } == 0 {
                loop {
                    // SAFETY: no arguments.
                    unsafe { libc::pause() };
                }
            }
        }
        report(path, &format!("ready {pid} {}", std::process::id()));
        if setting("exit").is_some() {
            return Ok(());
        }
        if setting("churn").is_some() {
            return churn(&mut set, &child(setting("jobs"), "plain", setting("late")));
        }
        loop {
            drop(set.next_event(Some(Duration::from_secs(3600)))?);
        }
    }

    /// Kills the program of the guardian, and waits until it has exited. The guardian reaps it.
    fn end(program: u32) {
        use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
        let pid = Pid::from_raw(program.cast_signed()).expect("valid pid");
        kill_process(pid, Signal::KILL).expect("kill program");
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("wait for program");
    }

    fn child(jobs: Option<&str>, name: &str, late: Option<&str>) -> Command {
        let mut command = Command::new(jobs.expect("find the path of the jobs"));
        command.args(["job", name]).stdin(Stdio::null()).stdout(Stdio::null());
        if !leads_group(name) {
            command.group(Group::Inherit);
        }
        if let Some(us) = late {
            command.fault_late(Duration::from_micros(us.parse().expect("parse microseconds")));
        }
        command
    }

    /// Returns whether a job leads a group. Some processes are in the host's group; and one that leads a
    /// group cannot begin a session.
    fn leads_group(name: &str) -> bool {
        match name {
            "setsid" | "stopped" => false,
            "plain" => !std::process::id().is_multiple_of(2),
            _ => true,
        }
    }

    /// Starts a job as hosts do that know nothing of the library: by a fork. The fork executes the job's
    /// program when it is guarded, and exits if this process is killed before that.
    fn fork_guarded(guardian: &Guardian, jobs: Option<&str>, name: &str) -> Result<GuardedProcess> {
        let program = CString::new(jobs.expect("find the path of the jobs")).expect("path without NUL");
        let name_argument = CString::new(name).expect("name without NUL");
        let argv = [program.as_ptr(), c"job".as_ptr(), name_argument.as_ptr(), std::ptr::null()];
        let (read, write) = io::pipe().expect("create pipe");
        let read_number = read.as_raw_fd();
        let write_number = write.as_raw_fd();
        // SAFETY: the child makes system calls only, as this process has threads.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let mut byte = 0_u8;
            // SAFETY: this process uses the descriptor no more.
            unsafe { libc::close(write_number) };
            // SAFETY: an open descriptor, and room for one byte.
            if unsafe { libc::read(read_number, (&raw mut byte).cast(), 1) } == 1 {
                // SAFETY: strings that end with NUL, and a list that ends with a null.
                unsafe { libc::execv(program.as_ptr(), argv.as_ptr()) };
            }
            // SAFETY: exits without running code of the parent.
            unsafe { libc::_exit(1) };
        }
        assert!(pid > 0, "cannot fork: {}", io::Error::last_os_error());
        if leads_group(name) {
            // SAFETY: two numbers.
            assert_eq!(unsafe { libc::setpgid(pid, pid) }, 0, "cannot set group");
        }
        let guarded = guardian.guard(pid.cast_unsigned())?;
        File::from(std::os::fd::OwnedFd::from(write)).write_all(b"x").expect("write to pipe");
        Ok(guarded)
    }

    /// Starts and kills children all the time, so that a kill of this process comes at any step.
    fn churn(set: &mut ChildSet, command: &Command) -> Result<()> {
        let mut alive = VecDeque::new();
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            match set.spawn(command, SpawnOptions::new()) {
                Ok(id) => alive.push_back(id),
                Err(error) if error.kind() == ErrorKind::Exhausted => (),
                Err(error) => return Err(error),
            }
            if alive.len() > 20 {
                set.kill(alive.pop_front().expect("find child"), Termination::IMMEDIATE)?;
            }
            while let NextEvent::Event(event) = set.next_event(Some(Duration::ZERO))? {
                if let Event::Done { child, .. } = event {
                    alive.retain(|id| *id != child);
                }
            }
        }
        Ok(())
    }
}
