//! Objects on Unix other than Linux: pipes.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

/// Numbers of objects at which the costs of mechanisms change.
pub(crate) const SIZES: &[u64] = &[0, 2, 8, 32, 64, 128, 512, 1024, 2048, 8192, 16384];

/// Objects that a program can signal, wait for and reset.
#[derive(Debug)]
pub(crate) struct Objects(Vec<(PipeReader, PipeWriter)>);

impl Objects {
    /// The number of descriptors of one object.
    pub(crate) const DESCRIPTORS: usize = 2;

    pub(crate) fn open(count: usize) -> io::Result<Self> {
        (0..count).map(|_| io::pipe()).collect::<io::Result<_>>().map(Self)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn signal(&self, index: usize) -> io::Result<()> {
        (&self.0[index].1).write_all(&[1])
    }

    /// Resets a signalled object. Blocks until it is signalled.
    pub(crate) fn reset(&self, index: usize) -> io::Result<()> {
        (&self.0[index].0).read_exact(&mut [0])
    }

    /// Returns the descriptor that is readable while the object is signalled.
    pub(crate) fn source(&self, index: usize) -> &PipeReader {
        &self.0[index].0
    }
}
