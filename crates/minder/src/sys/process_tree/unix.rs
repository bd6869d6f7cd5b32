//! A child's tree on Unix: its process group, and the descendants that left the group.

#![expect(unsafe_code, reason = "kill of a group")]

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

#[cfg(not(any(target_os = "linux", target_os = "android")))]
use super::no_table::{
    Found, Members, descendants, each_of, has_exited, signal as signal_found, wait_stopped,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::proc::{each_of, signal as signal_found, wait_stopped};
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::search::{Found, Members, descendants};
use super::{TreeSignal, TreeTable};
use crate::sys::pid::group_now;
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::sys::pid::has_exited;
use crate::sys::reactor::Reactor;
use crate::sys::reap::Process;

/// The highest number of a signal: with the real-time signals where there are any
/// (asm-generic/signal.h), else those that every system has.
pub(crate) const SIGNAL_MAX: i32 =
    if cfg!(any(target_os = "linux", target_os = "android")) { 64 } else { 31 };
/// `true` if it is cheap to check whether a process of a tree is left. With `/proc` the check reads
/// the whole process table.
pub(crate) const CHECK_IS_CHEAP: bool = false;
/// The number of times that descendants are looked for that started while others were stopped.
const PASSES_MAX: usize = 8;
/// The number of processes in a table that cost as much as the search for one tree.
const OTHERS_PER_TREE: usize = 8;
/// The longest wait for processes to stop that need a processor for that: on a busy machine, each may get one
/// only after a tenth of a second.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The processes that came from one child, as far as they can be found: its group, and on Linux the
/// descendants that were seen while their parents lived. A descendant whose parents are all gone
/// and that left the group is found only by a subreaper, which a library must not be.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    /// The process group of the child, if it leads one. Its id is the child's pid.
    group: Option<libc::pid_t>,
    leader: libc::pid_t,
    /// Descendants outside the group that were seen, with their start times, which distinguish a
    /// reused pid.
    detached: HashSet<Found>,
    /// `true` once a search after the exit of the leader found no process. None can follow.
    is_gone: bool,
}

impl ProcessTree {
    pub(crate) fn new(process: &Process, own_group: bool) -> Self {
        let leader = process.pid().cast_signed();
        Self { group: own_group.then_some(leader), leader, detached: HashSet::new(), is_gone: false }
    }

    /// Requests a report when no process is left: not available on Unix.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn watch(&mut self, _reactor: &Reactor, _token: u64) {}

    /// Returns whether processes of the tree can be signalled. If the leader was reaped, its group can
    /// only be named by the pidfd.
    pub(crate) fn can_signal(&self, process: &Process) -> bool {
        !process.reaped() || self.group.is_some() && process.signal_left_group(0).is_ok()
    }

    /// Sends the signal to every process. If other code reaped the leader, `process` must know that.
    pub(crate) fn signal_all(&mut self, process: &Process, signal: TreeSignal) -> io::Result<()> {
        self.signal_all_by(process, signal, None)
    }

    /// The same, for a tree that was stopped when the table was made.
    pub(crate) fn signal_all_by(
        &mut self,
        process: &Process,
        signal: TreeSignal,
        table: Option<&TreeTable>,
    ) -> io::Result<()> {
        match signal {
            // After a stop signal the tree stays stopped.
            TreeSignal::Signal(number) if signal.is_stop() => {
                let members = self.refresh(process, None);
                self.send(process, number)?;
                self.signal_leavers(&members, number);
                Ok(())
            }
            TreeSignal::Signal(signal) => {
                let members = self.stop(process, table)?;
                let sent = self.send(process, signal);
                self.signal_leavers(&members, signal);
                // Whatever came of the signal, the tree must not stay stopped.
                sent.and(self.send(process, libc::SIGCONT))
            }
            TreeSignal::Kill => {
                let members = self.stop(process, table)?;
                let sent = self.send(process, libc::SIGKILL);
                self.signal_leavers(&members, libc::SIGKILL);
                sent
            }
            TreeSignal::Continue => {
                self.refresh(process, None);
                self.send(process, libc::SIGCONT)
            }
            TreeSignal::Stop => {
                let members = self.stop(process, table)?;
                self.signal_leavers(&members, libc::SIGSTOP);
                // They are continued one by one if the leader is reaped meanwhile.
                self.detached.extend(members.all());
                Ok(())
            }
        }
    }

    /// Stops many trees, and looks for their processes in one table. Each tree must get this signal by
    /// [`signal_all_by`](Self::signal_all_by) afterwards. Returns `None` if a search for each tree is
    /// cheaper, or the table cannot be read: the trees may be stopped then.
    pub(crate) fn stop_all(trees: &mut [(&mut Self, &Process)], signal: TreeSignal) -> Option<TreeTable> {
        if trees.len() < TreeTable::TREES_MIN || signal.is_stop() || !TreeTable::is_readable() {
            return None;
        }
        for (tree, process) in &mut *trees {
            // An error comes again with the signal that follows.
            let _ = tree.begin_stop(process);
        }
        let groups = trees.iter().filter_map(|(tree, process)| tree.named_group(process));
        TreeTable::read(groups, trees.len() * OTHERS_PER_TREE)
    }

    /// Stops every process, so that each is found: a stopped shell does not start its next command when the
    /// present one ends, and a process that leaves the group is found as long as its parent lives.
    /// Returns the members of the group.
    ///
    /// A stopped process starts no other, so fewer are new in each round. A fork that is under way completes
    /// before its process stops: the kernel hands the signal to a group on to the new process (since Linux
    /// 4.19, `copy_process`), but not the signal to one process.
    fn stop(&mut self, process: &Process, mut table: Option<&TreeTable>) -> io::Result<Members> {
        if table.is_none() {
            self.begin_stop(process)?;
        }
        let mut members = Members::default();
        let until = Instant::now() + STOP_MAX;
        let mut busy = HashSet::new();
        for _ in 0..PASSES_MAX {
            let known = self.detached.clone();
            self.wait_stopped(until, &mut busy);
            // What was stopped by itself may have started a process after the table was read.
            let is_late = table.is_some() && !(known.is_empty() && self.is_stopped_by_group(process));
            members = self.refresh(process, table.take());
            if !is_late && self.detached.is_subset(&known) {
                break;
            }
            self.signal_detached(libc::SIGSTOP);
        }
        Ok(members)
    }

    /// Stops the processes that are known, unless the group refuses.
    fn begin_stop(&mut self, process: &Process) -> io::Result<()> {
        self.signal_group(process, libc::SIGSTOP)?;
        self.signal_detached(libc::SIGSTOP);
        Ok(())
    }

    /// Returns whether a signal to the group reaches the leader, if that lives.
    fn is_stopped_by_group(&self, process: &Process) -> bool {
        self.group.is_some_and(|group| process.reaped() || group_now(group) == Some(group))
    }

    /// Returns the process group, if its id still names it.
    fn named_group(&self, process: &Process) -> Option<libc::pid_t> {
        if process.reaped() { None } else { self.group }
    }

    /// Sends the signal to the group and to those outside it, also if the group refuses it.
    fn send(&mut self, process: &Process, signal: i32) -> io::Result<()> {
        let sent = self.signal_group(process, signal);
        self.signal_detached(signal);
        sent
    }

    /// Sends the signal to the group, or to the leader alone if the group is not its own.
    pub(crate) fn signal_group(&self, process: &Process, signal: i32) -> io::Result<()> {
        match self.group {
            Some(group) if !process.reaped() => {
                kill_group(group, signal)?;
                // A leader that moved to another group of its session is not reached by its pid.
                // Its own number stays taken while it is not reaped, so the signal goes to no other
                // process.
                if group_now(group) != Some(group) {
                    process.signal(signal)?;
                }
            }
            // An error means that the group is gone, or that the kernel cannot name it.
            Some(_) => drop(process.signal_left_group(signal)),
            None => process.signal(signal)?,
        }
        Ok(())
    }

    /// Returns whether any process except zombies is left in the group or among the detached
    /// processes. The leader must have exited before the snapshot.
    pub(crate) fn is_alive(&mut self, snapshot: &ProcessSnapshot) -> bool {
        self.is_gone = !self.group.is_some_and(|group| snapshot.has_group(group))
            && !self.detached.iter().any(|process| snapshot.has(*process));
        !self.is_gone
    }

    /// Returns whether the leader, which exited before the snapshot and is not reaped, left a process.
    /// Without a process table, it may have.
    pub(crate) fn has_leftovers(&self, snapshot: &ProcessSnapshot) -> bool {
        self.group.is_some_and(|group| snapshot.has_running_group(group))
            || self.detached.iter().any(|process| snapshot.has(*process))
    }

    /// Returns whether members of the group outlived the leader, which must be reaped by now.
    /// Nothing is sent, so that a number that was re-used in this moment does no harm.
    ///
    /// A group of zombies exists until their new parent reaps them. `snapshot`, which was taken after the
    /// exit of the leader, distinguishes it: a group without a running process gets none any more. Otherwise
    /// this takes a new one.
    pub(crate) fn left_running(&self, snapshot: &mut Option<ProcessSnapshot>) -> bool {
        let Some(group) = self.group else { return false };
        if self.is_gone {
            return false;
        }
        // SAFETY: kill takes two numbers; signal 0 only asks.
        let answered = unsafe { libc::kill(-group, 0) } == 0;
        let had_running = |snapshot: &ProcessSnapshot| snapshot.has_running_group(group);
        answered
            && snapshot.as_ref().is_none_or(had_running)
            && had_running(snapshot.insert(ProcessSnapshot::now()))
    }

    /// Looks for the descendants. Returns those that are in the group; the others are the detached ones.
    /// The numbers of a leader that was reaped may belong to other processes. All that are known count as
    /// detached then.
    fn refresh(&mut self, process: &Process, table: Option<&TreeTable>) -> Members {
        let root = (!process.reaped()).then_some(self.leader);
        descendants(root, self.named_group(process), &mut self.detached, table)
    }

    /// Signals the processes that were in the group and left it before the group got the signal. If that
    /// ended their parents, they would not be found any more.
    fn signal_leavers(&mut self, members: &Members, signal: i32) {
        for process in members.leavers(self.group) {
            if signal_found(process, signal) {
                self.detached.insert(process);
            }
        }
    }

    fn signal_detached(&mut self, signal: i32) {
        self.detached.retain(|process| signal_found(*process, signal));
    }

    /// Waits for the processes that were stopped one by one, except for `busy` ones.
    fn wait_stopped(&self, until: Instant, busy: &mut HashSet<libc::pid_t>) {
        let leader = self.group.is_none().then_some(self.leader);
        let processes = leader.into_iter().chain(self.detached.iter().map(|found| found.0));
        wait_stopped(processes, until, busy);
    }
}

/// A snapshot of all processes of the machine: which are running, and in which group.
#[derive(Debug, Default)]
pub(crate) struct ProcessSnapshot {
    /// Some processes could not be read: any process may be running.
    partial: bool,
    /// The groups, and whether one of their processes is not about to become a zombie.
    groups: HashMap<libc::pid_t, bool>,
    processes: HashSet<Found>,
}

impl ProcessSnapshot {
    /// Takes the look. It costs about 10 us a process of the machine, so it is for trees that are
    /// being killed. Without a process table nothing is known but the groups, which are asked for one by
    /// one.
    pub(crate) fn now() -> Self {
        Self::of(|_| true)
    }

    /// The same. It costs less if many processes are zombies, as after a kill of many trees, and more
    /// otherwise.
    pub(crate) fn among_zombies() -> Self {
        Self::of(|pid| !has_exited(pid))
    }

    fn of(is_wanted: impl Fn(libc::pid_t) -> bool) -> Self {
        let mut snapshot = Self::default();
        let read = each_of(is_wanted, |process| {
            *snapshot.groups.entry(process.group).or_default() |= !process.exiting;
            snapshot.processes.insert((process.pid, process.started));
        });
        snapshot.partial = read.is_err();
        snapshot
    }

    fn has_group(&self, group: libc::pid_t) -> bool {
        self.partial || self.groups.contains_key(&group)
    }

    /// Returns whether a process of this group is neither a zombie nor about to become one. The group
    /// exists. Without a process table, zombies cannot be distinguished.
    fn has_running_group(&self, group: libc::pid_t) -> bool {
        let has_table = cfg!(any(target_os = "linux", target_os = "android")) && !self.groups.is_empty();
        self.partial || !has_table || self.groups.get(&group) == Some(&true)
    }

    fn has(&self, process: Found) -> bool {
        self.partial || self.processes.contains(&process)
    }
}

fn kill_group(group: libc::pid_t, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes two numbers.
    match unsafe { libc::kill(-group, signal) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            // Darwin answers so for a group in which only zombies are left.
            error if cfg!(target_vendor = "apple") && error.raw_os_error() == Some(libc::EPERM) => Ok(()),
            error => Err(error),
        },
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::proc::{SCANS, entry};
    use super::super::search::TABLES;
    use super::OTHERS_PER_TREE;
    use crate::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Termination};
    use std::time::{Duration, Instant};

    const TREES: usize = 60;

    /// Starts shells whose orphans become zombies of this process, as where PID 1 does not reap.
    fn start(script: &str) -> (ChildSet, Vec<u32>) {
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own)).expect("become a subreaper");
        let mut set = ChildSet::new(ChildSetOptions::new()).expect("create set");
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let pids = (0..TREES).map(|_| {
            let id = set.spawn(&command, SpawnOptions::new()).expect("start a shell");
            set.pid(id).expect("the child runs")
        });
        let pids = pids.collect();
        (set, pids)
    }

    /// Waits for all children. Returns how many times the process table was read.
    fn wait_all(set: &mut ChildSet) -> usize {
        let timeout = Some(Duration::from_secs(60));
        let all = set.wait_all(timeout, |event| {
            if let Event::Done { outcome, .. } = event {
                assert!(!outcome.left_running, "{outcome:?}");
            }
        });
        assert!(all.expect("wait for the children"), "in time");
        SCANS.take()
    }

    #[test]
    fn killed_trees_share_searches_of_the_process_table() {
        let (mut set, _) = start("sleep 60 & sleep 60; true");
        SCANS.take();
        TABLES.take();
        let has_table = std::fs::read_dir("/proc").expect("list processes").count() < OTHERS_PER_TREE * TREES;
        set.kill_all(Termination::IMMEDIATE).expect("kill the trees");
        assert!(TABLES.take() == usize::from(has_table) || !has_table);
        let scans = wait_all(&mut set);
        assert!(scans <= TREES / 3, "{scans} searches for {TREES} trees");
    }

    #[test]
    fn groups_of_zombies_share_searches_of_the_process_table() {
        let (mut set, pids) = start("sleep 60 & kill -9 $!; exit 0");
        let deadline = Instant::now() + Duration::from_secs(60);
        let lives = |pid: &u32| entry(pid.cast_signed()).is_ok_and(|process| process.is_some());
        while pids.iter().any(lives) {
            assert!(Instant::now() < deadline, "in time");
            std::thread::yield_now();
        }
        SCANS.take();
        let scans = wait_all(&mut set);
        assert!((1..=TREES / 3).contains(&scans), "{scans} searches for {TREES} groups");
    }
}
