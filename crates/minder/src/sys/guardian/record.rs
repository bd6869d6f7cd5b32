//! The records between a host and the program of its guardian.
//!
//! Both run on the same machine, so numbers have its byte order. The first record of each side names
//! the version: the program may be older than the library.

/// The version of the records. A change of their meaning or size is a new one.
pub(in crate::sys) const VERSION: u64 = 1;

/// The meaning of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sys) enum Kind {
    /// The host's first record: `pid` is the host, `id` its version, `value` the grace in milliseconds.
    Hello = 1,
    /// The host's second record: `value` is the tag of the children, or 0.
    Tag = 2,
    /// The reply to these two: `id` is the version of the program.
    Ready = 3,
    /// A child that leads a process group registers itself.
    AddGroup = 4,
    /// A child in another group registers itself.
    AddProcess = 5,
    /// The host registers a child that leads a process group.
    AddGroupByHost = 6,
    /// The host registers a child in another group.
    AddProcessByHost = 7,
    /// The child with this `id` is about to be reaped.
    Remove = 8,
    /// The host needs the guardian no longer. All children are released.
    Leave = 9,
}

/// One record. Fields that its kind does not use are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sys) struct Record {
    pub(in crate::sys) kind: u32,
    /// Not used in records of a child: the kernel names the sender.
    pub(in crate::sys) pid: i32,
    /// The number of a child, which no other child of the host has.
    pub(in crate::sys) id: u64,
    pub(in crate::sys) value: u64,
}

impl Record {
    pub(in crate::sys) const SIZE: usize = 24;

    pub(in crate::sys) fn new(kind: Kind) -> Self {
        Self { kind: kind as u32, pid: 0, id: 0, value: 0 }
    }

    pub(in crate::sys) fn is(&self, kind: Kind) -> bool {
        self.kind == kind as u32
    }

    /// Returns the bytes. Allocates nothing: a child calls it before it executes its program.
    pub(in crate::sys) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.kind.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.pid.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.id.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    pub(in crate::sys) fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let long = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(eight)
        };
        Self {
            kind: u32::from_ne_bytes(word(0)),
            pid: i32::from_ne_bytes(word(4)),
            id: long(8),
            value: long(16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_survives_the_way_through_bytes() {
        let record = Record { pid: -7, id: u64::MAX - 1, value: 1 << 40, ..Record::new(Kind::Remove) };
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
        assert!(record.is(Kind::Remove) && !record.is(Kind::Leave));
    }
}
