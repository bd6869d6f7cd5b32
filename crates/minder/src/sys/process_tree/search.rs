//! The search for the processes of a tree on Linux.
//!
//! A search for one tree goes from parents to children. For many trees one look at the process table is
//! cheaper: the kernel makes several entries in `/proc` for each process that is searched for its children.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use super::proc::{each, each_pid, entry, is_alive, why_no_table};
use crate::sys::pid::group_now;

/// A process and its start time, which distinguish a reused pid.
pub(super) type Found = (libc::pid_t, u64);

/// The processes of a tree that were in its group when they were found, and when that was, in the unit of a
/// start time. They may leave it. A later process with one of these pids has started after that: within one
/// unit the two cannot be distinguished, as two start times cannot.
#[derive(Debug, Default)]
pub(super) struct Members(HashMap<libc::pid_t, u64>);

impl Members {
    /// Adds a process if it is in this group. Returns whether it was added.
    fn insert(&mut self, pid: libc::pid_t, group: libc::pid_t) -> bool {
        group_now(pid) == Some(group) && self.0.insert(pid, ticks_since_boot()).is_none()
    }

    /// Returns the living members that have left this group.
    pub(super) fn leavers(&self, group: Option<libc::pid_t>) -> impl Iterator<Item = Found> {
        self.living(move |pid| group_now(pid).is_some_and(|now| Some(now) != group))
    }

    /// Returns the living members.
    pub(super) fn all(&self) -> impl Iterator<Item = Found> {
        self.living(|_| true)
    }

    fn living(&self, is_chosen: impl Fn(libc::pid_t) -> bool) -> impl Iterator<Item = Found> {
        let chosen = self.0.iter().filter(move |(pid, _)| is_chosen(**pid));
        chosen.filter_map(|(pid, found_at)| {
            let process = entry(*pid).ok().flatten()?;
            (process.started <= *found_at).then_some((process.pid, process.started))
        })
    }
}

/// Returns the time since boot in the unit of a start time: proc_pid_stat(5), field 22.
fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    now.tv_sec.unsigned_abs() * per_second + now.tv_nsec.unsigned_abs() * per_second / 1_000_000_000
}

#[cfg(test)]
thread_local! {
    /// The number of tables that this thread has read.
    pub(super) static TABLES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The processes of several trees, and those that may belong to them, from one look at the process table.
#[derive(Debug)]
pub(crate) struct TreeTable {
    /// The processes of the groups of the trees, and when they were found.
    members: HashMap<libc::pid_t, Vec<(libc::pid_t, u64)>>,
    /// All other processes, by their parents.
    children: HashMap<libc::pid_t, Vec<libc::pid_t>>,
}

impl TreeTable {
    /// The fewest trees for which it is read.
    pub(crate) const TREES_MIN: usize = 16;

    /// Returns whether the table can be read.
    pub(super) fn is_readable() -> bool {
        why_no_table().is_none()
    }

    /// Reads the table for trees that were stopped. Returns `None` if there are more than `others_max`
    /// processes in other groups than these, or if some cannot be read.
    ///
    /// A process that starts from here on has a parent that was not stopped yet. Such a parent is outside the
    /// groups. It is in the table, and its tree is searched once more when that process has stopped.
    pub(super) fn read(groups: impl Iterator<Item = libc::pid_t>, others_max: usize) -> Option<Self> {
        let mut members = groups.map(|group| (group, Vec::new())).collect();
        let others = Self::read_groups(&mut members, others_max)?;
        let mut children: HashMap<_, Vec<_>> = HashMap::new();
        for pid in others {
            if let Some(process) = entry(pid).ok()? {
                children.entry(process.parent).or_default().push(pid);
            }
        }
        #[cfg(test)]
        TABLES.with(|tables| tables.set(tables.get() + 1));
        Some(Self { members, children })
    }

    /// Adds the processes of these groups to them, and returns all others, unless there are too many.
    fn read_groups(
        members: &mut HashMap<libc::pid_t, Vec<(libc::pid_t, u64)>>,
        others_max: usize,
    ) -> Option<Vec<libc::pid_t>> {
        let own = std::process::id().cast_signed();
        let own_group = group_now(own);
        let mut others = Vec::new();
        let mut has_own = false;
        each_pid(|pid| {
            has_own |= pid == own;
            let group = group_now(pid);
            match group.and_then(|group| members.get_mut(&group)) {
                Some(members) => members.push((pid, ticks_since_boot())),
                // The kernel's own, unless groups of another PID namespace have this number too.
                None if group == Some(0) && own_group != Some(0) => (),
                None => others.push(pid),
            }
            if others.len() <= others_max { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
        })
        .ok()?;
        has_own.then_some(others)
    }
}

/// Adds all living descendants of `root`, and of those found before, that are outside `group` and can be
/// read, without `root` itself, and returns those inside it. Removes those that have exited: their pids may
/// belong to unrelated processes by now.
pub(super) fn descendants(
    root: Option<libc::pid_t>,
    group: Option<libc::pid_t>,
    detached: &mut HashSet<Found>,
    table: Option<&TreeTable>,
) -> Members {
    let mut members = Members::default();
    if table.is_none() && why_no_table().is_some() {
        detached.clear();
        return members;
    }
    detached.retain(|process| is_alive(*process).unwrap_or(true));
    let mut parents = Vec::from_iter(root);
    parents.extend(detached.iter().map(|&(pid, _)| pid));
    if let (Some(table), Some(group)) = (table, group) {
        // One that has left the group since then is among them, too. All of the group are searched for
        // children, also those whose parents have exited and those that joined it from elsewhere.
        let listed = table.members.get(&group).into_iter().flatten().copied();
        members.0.extend(listed.filter(|(pid, _)| Some(*pid) != root));
        parents.extend(members.0.keys());
        detached.retain(|(pid, _)| !members.0.contains_key(pid));
    }
    while let Some(parent) = parents.pop() {
        let children = match table {
            Some(table) => table.children.get(&parent).cloned().unwrap_or_default(),
            None => children(parent),
        };
        for pid in children {
            if group.is_some_and(|group| members.insert(pid, group)) {
                detached.retain(|process| process.0 != pid);
                parents.push(pid);
                continue;
            }
            // The entry is read after the pid was listed as a child. Only if it is still a child of this
            // parent, the start time is that of the descendant.
            let process = entry(pid).ok().flatten().filter(|process| process.parent == parent);
            if let Some(process) = process
                && Some(process.group) != group
                && detached.insert((pid, process.started))
            {
                parents.push(pid);
            }
        }
    }
    members
}

/// Returns the children of every thread of `pid`. Where the kernel has no `children` file
/// (CONFIG_PROC_CHILDREN), it searches the whole table.
fn children(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let mut found = Vec::new();
    let tasks = format!("/proc/{pid}/task");
    // The links of the directory are `.`, `..` and one for each thread. Nearly every process has one thread.
    let has_one_thread = rustix::fs::stat(&tasks).is_ok_and(|stat| stat.st_nlink == 3);
    if has_one_thread && thread_children(format!("{tasks}/{pid}/children"), &mut found).is_ok() {
        return found;
    }
    let Ok(threads) = fs::read_dir(&tasks) else { return found };
    for thread in threads.flatten() {
        if thread_children(thread.path().join("children"), &mut found).is_err() {
            let _ = each(|process| {
                if process.parent == pid {
                    found.push(process.pid);
                }
            });
            break;
        }
    }
    found
}

/// Appends the pids in a `children` file.
fn thread_children(file: impl rustix::path::Arg, found: &mut Vec<libc::pid_t>) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut list = Vec::with_capacity(64);
    while rustix::io::read(&file, rustix::buffer::spare_capacity(&mut list))? > 0 {
        list.reserve(list.len().max(64));
    }
    let list = String::from_utf8_lossy(&list);
    found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<libc::pid_t>().ok()));
    Ok(())
}
