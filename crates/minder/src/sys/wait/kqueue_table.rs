//! The registrations of a kqueue, and the meaning of its events. This module makes no system calls,
//! so it is tested everywhere.
//!
//! The kernel keeps a *note* for each direction of a source, and one for a process. A source is
//! reported once for both of its notes. The kernel reports the exit of a process once; this table
//! repeats it until the process is deleted.

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;

use super::Ready;
use crate::interest::Interest;

/// The key of a registration. Descriptors and pids may be equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ident {
    Source(RawFd),
    Process(u32),
}

/// The note that an event is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Read(RawFd),
    Write(RawFd),
    Exit(u32),
}

/// The parts of a kernel event that this table uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelEvent {
    pub(super) note: Filter,
    /// The generation that [`RegistrationTable::insert`] or [`RegistrationTable::renew`] returned
    /// for the note. Events with an older generation are stale.
    pub(super) generation: usize,
    /// This direction has ended.
    pub(super) ended: bool,
    /// The source is in error, or both of its directions have ended.
    pub(super) failed: bool,
}

#[derive(Debug, Default)]
pub(super) struct RegistrationTable {
    entries: HashMap<Ident, Entry>,
    /// Counts registrations and their changes.
    generation: usize,
    /// The processes in the phase `Ending`.
    ending: Vec<u32>,
    /// The registrations in the phase `Standing`.
    standing: Vec<Ident>,
    /// The number of events that must be reported before standing registrations are reported again.
    events_first: usize,
}

#[derive(Debug)]
struct Entry {
    token: u64,
    interest: Interest,
    generation: usize,
    /// A direction of a socket may end while the other is open.
    socket: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The kernel reports it.
    Noted,
    /// The kernel has reported the exit of a process, which cannot be reaped yet.
    Ending,
    /// The kernel no longer reports it. The table reports it until it is deleted.
    Standing,
    /// One-shot, and already reported.
    Silent,
}

impl RegistrationTable {
    /// Adds an entry. Returns the generation of its notes.
    pub(super) fn insert(&mut self, ident: Ident, token: u64, interest: Interest) -> io::Result<usize> {
        if self.entries.contains_key(&ident) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        self.entries.insert(ident, Entry { token, interest, generation, socket: false, phase: Phase::Noted });
        Ok(generation)
    }

    /// Changes an entry, whose notes are about to be replaced. Returns the generation of the new
    /// ones.
    pub(super) fn renew(&mut self, ident: Ident, token: u64, interest: Interest) -> io::Result<usize> {
        self.remove(ident)?;
        self.insert(ident, token, interest)
    }

    /// Marks a source as a socket, which is closed when both directions have ended.
    pub(super) fn mark_socket(&mut self, fd: RawFd) {
        if let Some(entry) = self.entries.get_mut(&Ident::Source(fd)) {
            entry.socket = true;
        }
    }

    pub(super) fn remove(&mut self, ident: Ident) -> io::Result<()> {
        let entry = self.entries.remove(&ident).ok_or(io::ErrorKind::NotFound)?;
        match entry.phase {
            Phase::Ending => self.ending.retain(|&pid| Ident::Process(pid) != ident),
            Phase::Standing => self.standing.retain(|&standing| standing != ident),
            Phase::Noted | Phase::Silent => (),
        }
        Ok(())
    }

    /// Marks a source that the kernel no longer reports, since its other end is closed.
    pub(super) fn mark_standing(&mut self, ident: Ident) {
        if let Some(entry) = self.entries.get_mut(&ident) {
            entry.phase = Phase::Standing;
            self.standing.push(ident);
        }
    }

    /// Marks a process that has exited or is exiting.
    pub(super) fn end(&mut self, pid: u32) {
        let entry = self.entries.get_mut(&Ident::Process(pid));
        if let Some(entry) = entry.filter(|entry| entry.phase == Phase::Noted) {
            entry.phase = Phase::Ending;
            self.ending.push(pid);
        }
    }

    /// Checks whether the exiting processes have exited. Returns whether one of them has not.
    pub(super) fn resolve_exits(&mut self, has_ended: impl Fn(u32) -> bool) -> bool {
        let entries = &mut self.entries;
        let standing = &mut self.standing;
        self.ending.retain(|&pid| {
            if !has_ended(pid) {
                return true;
            }
            let ident = Ident::Process(pid);
            if let Some(entry) = entries.get_mut(&ident) {
                entry.phase = Phase::Standing;
                standing.push(ident);
            }
            false
        });
        !self.ending.is_empty()
    }

    /// Returns whether a registration has to be reported that the kernel no longer reports.
    pub(super) fn has_standing(&self) -> bool {
        !self.standing.is_empty()
    }

    /// Moves the events of one call of kevent(2) into `ready`, except those of registrations that
    /// were deleted, changed or silenced since.
    pub(super) fn take(&mut self, fired: impl Iterator<Item = KernelEvent>, ready: &mut Vec<Ready>) {
        // For sources that may have two events: the index in `ready`, and whether the direction of the
        // first event has ended.
        let mut indexes = HashMap::new();
        for KernelEvent { note, generation, ended, failed } in fired {
            let (Filter::Read(fd) | Filter::Write(fd)) = note else {
                if let Filter::Exit(pid) = note
                    && self.is_current(Ident::Process(pid), generation)
                {
                    self.end(pid);
                }
                continue;
            };
            let entry = self.entries.get_mut(&Ident::Source(fd));
            let Some(entry) = entry.filter(|entry| entry.generation == generation) else { continue };
            let (index, both_ended) = match indexes.get(&fd) {
                Some(&(index, other_ended)) => (index, ended && other_ended),
                None if entry.phase != Phase::Noted => continue,
                None => {
                    if entry.interest.is_oneshot() {
                        entry.phase = Phase::Silent;
                    }
                    if entry.interest.is_readable() && entry.interest.is_writable() {
                        indexes.insert(fd, (ready.len(), ended));
                    }
                    ready.push(Ready::none(entry.token));
                    (ready.len() - 1, false)
                }
            };
            let reported = &mut ready[index];
            reported.readable |= matches!(note, Filter::Read(_));
            reported.writable |= matches!(note, Filter::Write(_));
            if failed || both_ended || ended && !entry.socket {
                (reported.readable, reported.writable, reported.closed) = (true, true, true);
            }
        }
    }

    /// Reports the standing registrations. `taken` is the number of events of the previous call. If
    /// that call was `crowded`, with more events left in the kernel, those events come first.
    pub(super) fn report(&mut self, taken: usize, crowded: bool, ready: &mut Vec<Ready>) {
        self.events_first = if crowded { self.events_first.saturating_sub(taken) } else { 0 };
        if self.events_first > 0 {
            return;
        }
        let entries = &mut self.entries;
        self.standing.retain(|ident| {
            let Some(entry) = entries.get_mut(ident) else { return false };
            let closed = matches!(ident, Ident::Source(_));
            ready.push(Ready { readable: true, writable: closed, closed, ..Ready::none(entry.token) });
            if entry.interest.is_oneshot() || entry.interest.is_edge() {
                entry.phase = Phase::Silent;
            }
            entry.phase == Phase::Standing
        });
        if crowded {
            // Two notes for each source.
            self.events_first = 2 * self.entries.len();
        }
    }

    fn is_current(&self, ident: Ident, generation: usize) -> bool {
        self.entries.get(&ident).is_some_and(|entry| entry.generation == generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FD: RawFd = 4;
    const PID: u32 = 4;

    fn event(note: Filter, generation: usize) -> KernelEvent {
        KernelEvent { note, generation, ended: false, failed: false }
    }

    fn taken<const N: usize>(table: &mut RegistrationTable, fired: [KernelEvent; N]) -> Vec<Ready> {
        let mut ready = Vec::new();
        table.take(fired.into_iter(), &mut ready);
        ready
    }

    fn reported(table: &mut RegistrationTable) -> Vec<u64> {
        let mut ready = Vec::new();
        table.report(0, false, &mut ready);
        ready.iter().map(|ready| ready.token).collect()
    }

    #[test]
    fn source_with_two_notes_is_reported_once() {
        let mut table = RegistrationTable::default();
        let both = table.insert(Ident::Source(FD), 7, Interest::READABLE | Interest::WRITABLE).unwrap();
        let other = table.insert(Ident::Source(5), 8, Interest::READABLE).unwrap();
        let hung = KernelEvent { ended: true, ..event(Filter::Write(FD), both) };
        let ready = taken(&mut table, [event(Filter::Read(FD), both), event(Filter::Read(5), other), hung]);
        let first = Ready { readable: true, writable: true, closed: true, ..Ready::none(7) };
        assert_eq!(ready, [first, Ready { readable: true, ..Ready::none(8) }]);
    }

    #[test]
    fn socket_is_closed_after_both_directions_end_or_error() {
        let mut table = RegistrationTable::default();
        let generation = table.insert(Ident::Source(FD), 7, Interest::READABLE | Interest::WRITABLE).unwrap();
        table.mark_socket(FD);
        let read = event(Filter::Read(FD), generation);
        let write = event(Filter::Write(FD), generation);
        let read_ended = KernelEvent { ended: true, ..read };
        let write_ended = KernelEvent { ended: true, ..write };
        let failed = KernelEvent { failed: true, ..write };
        let mut closed = |fired: [KernelEvent; 2]| taken(&mut table, fired)[0].closed;
        assert!(!closed([read_ended, write]) && !closed([write_ended, read]));
        assert!(closed([read_ended, write_ended]) && closed([read, failed]));
        let half = taken(&mut table, [read_ended]);
        assert_eq!(half, [Ready { readable: true, ..Ready::none(7) }]);
    }

    #[test]
    fn one_shot_source_is_reported_once_for_both_notes() {
        let mut table = RegistrationTable::default();
        let ident = Ident::Source(FD);
        let generation = table.insert(ident, 7, (Interest::READABLE | Interest::WRITABLE).oneshot()).unwrap();
        let read = event(Filter::Read(FD), generation);
        let write = event(Filter::Write(FD), generation);
        let ready = taken(&mut table, [read, write]);
        assert_eq!(ready, [Ready { readable: true, writable: true, ..Ready::none(7) }]);
        assert!(taken(&mut table, [write]).is_empty());
        let generation = table.renew(ident, 9, Interest::READABLE.oneshot()).unwrap();
        assert!(taken(&mut table, [read]).is_empty(), "its note was replaced");
        assert_eq!(taken(&mut table, [event(Filter::Read(FD), generation)])[0].token, 9);
    }

    #[test]
    fn deleted_source_is_not_reported() {
        let mut table = RegistrationTable::default();
        let ident = Ident::Source(FD);
        let old = table.insert(ident, 7, Interest::READABLE).unwrap();
        assert_eq!(
            table.insert(ident, 8, Interest::READABLE).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        table.remove(ident).unwrap();
        assert!(taken(&mut table, [event(Filter::Read(FD), old)]).is_empty());
        table.insert(ident, 8, Interest::READABLE).unwrap();
        assert!(taken(&mut table, [event(Filter::Read(FD), old)]).is_empty());
        table.mark_standing(ident);
        table.remove(ident).unwrap();
        assert!(!table.has_standing());
        assert_eq!(table.remove(ident).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(table.renew(ident, 8, Interest::READABLE).is_err());
    }

    #[test]
    fn exit_is_reported_from_reapable_until_deleted() {
        let mut table = RegistrationTable::default();
        let source = table.insert(Ident::Source(FD), 7, Interest::READABLE).unwrap();
        let generation = table.insert(Ident::Process(PID), 8, Interest::READABLE).unwrap();
        let ready =
            taken(&mut table, [event(Filter::Exit(PID), generation), event(Filter::Read(FD), source)]);
        assert_eq!(ready.len(), 1, "of the descriptor of the same number");
        assert!(table.resolve_exits(|_| false) && reported(&mut table).is_empty());
        assert!(!table.resolve_exits(|_| true) && table.has_standing());
        // The check after the registration found it as well.
        table.end(PID);
        assert!(!table.resolve_exits(|_| true));
        assert_eq!([reported(&mut table), reported(&mut table)], [[8], [8]]);
        table.remove(Ident::Process(PID)).unwrap();
        assert!(reported(&mut table).is_empty());
        let once = table.insert(Ident::Process(PID), 9, Interest::READABLE.oneshot()).unwrap();
        assert!(taken(&mut table, [event(Filter::Exit(PID), generation)]).is_empty());
        assert!(!table.resolve_exits(|_| true) && !table.has_standing(), "of the process before");
        taken(&mut table, [event(Filter::Exit(PID), once)]);
        table.resolve_exits(|_| true);
        assert_eq!([reported(&mut table), reported(&mut table)], [vec![9], vec![]]);
    }

    #[test]
    fn standing_sources_wait_behind_crowded_kernel_events() {
        let mut table = RegistrationTable::default();
        for fd in 0..99 {
            table.insert(Ident::Source(fd), 1, Interest::READABLE).unwrap();
        }
        table.insert(Ident::Source(99), 2, Interest::WRITABLE).unwrap();
        table.mark_standing(Ident::Source(99));
        let mut rounds = Vec::new();
        for _ in 0..9 {
            let mut ready = Vec::new();
            table.report(50, true, &mut ready);
            rounds.push(ready.len());
        }
        assert_eq!(rounds, [1, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(reported(&mut table), [2]);
    }
}
