//! Counts the system calls of a program and of everything that it starts, by ptrace(2).
//!
//! The tracer stops each task at each system call, so that the counts are exact whatever the load. It
//! also makes each call slower; counts that depend on how many events arrive together are those of a
//! slow machine.

use std::collections::HashMap;

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::invocation::Invocation;

/// The system calls of a run, by process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    /// The process that was started: the outer guardian.
    pub(super) outer: u64,
    /// The processes between it and the runner: the inner guardian.
    pub(super) inner: u64,
    /// The process that starts the jobs, with all of its threads.
    pub(super) runner: u64,
    /// The children of the runner, up to the call that executes their program.
    pub(super) child: u64,
    /// The children of the runner after that call.
    pub(super) program: u64,
    /// All other processes.
    pub(super) other: u64,
}

impl Calls {
    /// Returns the calls of the processes that are minder: all except those of the jobs' programs.
    pub(super) fn total(&self) -> u64 {
        self.outer + self.inner + self.runner + self.child + self.other
    }
}

/// A process with its system calls.
#[derive(Debug, Default)]
struct Process {
    parent: Option<Pid>,
    children: usize,
    has_executed: bool,
    /// The calls before and after it executed a program.
    calls: [u64; 2],
}

/// One task, which is a thread of a process.
#[derive(Debug)]
struct Task {
    process: Pid,
    /// `true` if the next stop at a system call is the return of that call.
    is_in_call: bool,
    /// `true` once the stop with which a new task begins has been seen.
    has_begun: bool,
}

/// Runs a program to its end and counts its system calls, and those of all processes below it. The error
/// states why this system does not permit that.
pub(super) fn count(invocation: &Invocation) -> Result<Calls, String> {
    let mut tracer = Tracer::start(invocation)?;
    while !tracer.tasks.is_empty() {
        tracer.step();
    }
    assert!(tracer.has_succeeded, "failed under the tracer: {invocation:?}: {}", invocation.errors());
    Ok(tracer.calls())
}

struct Tracer {
    root: Pid,
    tasks: HashMap<Pid, Task>,
    processes: HashMap<Pid, Process>,
    has_succeeded: bool,
}

impl Tracer {
    /// Starts the program by test_child, which asks to be traced and then executes it.
    #[expect(
        clippy::disallowed_methods,
        clippy::zombie_processes,
        reason = "only the thread that forks a child may trace it, and `run` waits for all tasks"
    )]
    fn start(invocation: &Invocation) -> Result<Self, String> {
        let mut command = invocation.command(",traced", &[]);
        let child = command.spawn().expect("start test_child");
        let root = Pid::from_raw(child.id().cast_signed());
        match waitpid(root, Some(WaitPidFlag::__WALL)).expect("wait for test_child") {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            other => return Err(format!("ptrace is refused here: {other:?}")),
        }
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(root, options).expect("set options of ptrace");
        let mut tracer = Self {
            root,
            tasks: HashMap::new(),
            processes: HashMap::from([(root, Process { has_executed: true, ..Process::default() })]),
            has_succeeded: false,
        };
        // The stop is after execve: its return is the next stop.
        tracer.tasks.insert(root, Task { process: root, is_in_call: true, has_begun: true });
        proceed(root, None);
        Ok(tracer)
    }

    /// Waits for the next stop or exit of any task, and lets it continue.
    ///
    /// Only tasks of this thread are waited for: other tests have children, too.
    fn step(&mut self) {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        match waitpid(None, Some(flags)).expect("wait for a task") {
            WaitStatus::PtraceSyscall(task) => self.at_system_call(task),
            WaitStatus::PtraceEvent(task, _, event) => self.at_event(task, event),
            WaitStatus::Stopped(task, signal) => self.at_signal(task, signal),
            WaitStatus::Exited(task, code) => self.at_exit(task, code == 0),
            WaitStatus::Signaled(task, ..) => self.at_exit(task, false),
            other => panic!("a stop that is not expected: {other:?}"),
        }
    }

    fn at_system_call(&mut self, pid: Pid) {
        let task = self.tasks.get_mut(&pid).expect("a known task");
        task.is_in_call = !task.is_in_call;
        if task.is_in_call {
            let process = self.processes.get_mut(&task.process).expect("a known process");
            process.calls[usize::from(process.has_executed)] += 1;
        }
        proceed(pid, None);
    }

    fn at_event(&mut self, pid: Pid, event: i32) {
        let process = self.tasks[&pid].process;
        if event == nix::libc::PTRACE_EVENT_EXEC {
            self.processes.get_mut(&process).expect("a known process").has_executed = true;
        } else {
            let new = ptrace::getevent(pid).expect("get pid of the new task");
            let new = Pid::from_raw(i32::try_from(new).expect("a pid"));
            let group = thread_group(new);
            if group == new {
                let child = Process { parent: Some(process), ..Process::default() };
                self.processes.insert(new, child);
                self.processes.get_mut(&process).expect("a known process").children += 1;
            }
            // The first stop of the new task may have come before this event.
            let early = self.tasks.contains_key(&new);
            self.tasks.insert(new, Task { process: group, is_in_call: false, has_begun: early });
            if early {
                proceed(new, None);
            }
        }
        proceed(pid, None);
    }

    fn at_signal(&mut self, pid: Pid, signal: Signal) {
        match self.tasks.get_mut(&pid) {
            // Its event comes next, and tells what it is.
            None => {
                self.tasks.insert(pid, Task { process: pid, is_in_call: false, has_begun: false });
            }
            Some(task) if !task.has_begun => {
                task.has_begun = true;
                proceed(pid, None);
            }
            Some(_) => proceed(pid, Some(signal)),
        }
    }

    fn at_exit(&mut self, pid: Pid, is_success: bool) {
        self.tasks.remove(&pid);
        if pid == self.root {
            self.has_succeeded = is_success;
        }
    }

    /// Sums the calls up. The runner is the process with the most children.
    fn calls(&self) -> Calls {
        let runner = self.processes.iter().max_by_key(|(_, process)| process.children);
        let (runner, _) = runner.expect("at least one process");
        let mut path = vec![*runner];
        while let Some(parent) = self.processes[&path[path.len() - 1]].parent {
            path.push(parent);
        }
        let mut calls = Calls::default();
        for (pid, process) in &self.processes {
            let [before, after] = process.calls;
            let sum = before + after;
            match path.iter().position(|on_path| on_path == pid) {
                Some(0) => calls.runner += sum,
                Some(_) if *pid == self.root => calls.outer += sum,
                Some(_) => calls.inner += sum,
                None if process.parent == Some(*runner) => {
                    calls.child += before;
                    calls.program += after;
                }
                None => calls.other += sum,
            }
        }
        calls
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // After a failure. What it traces is killed by the kernel when this thread exits.
        if !self.tasks.is_empty() {
            let _ = ptrace::kill(self.root);
        }
    }
}

/// Lets a task run to its next system call, or to the return of the present one.
fn proceed(task: Pid, signal: Option<Signal>) {
    match ptrace::syscall(task, signal) {
        // A task that was killed while it was stopped is gone.
        Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
        Err(error) => panic!("continue task {task}: {error}"),
    }
}

/// Returns the process that a new task belongs to.
fn thread_group(task: Pid) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{task}/status")).expect("read status of a task");
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:")).expect("find thread group");
    Pid::from_raw(line.trim().parse().expect("parse pid"))
}
