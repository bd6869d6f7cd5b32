//! Make's jobserver, for programs that take part in a build.

use std::io;

use crate::Source;
use crate::guard::GuardOptions;
use crate::sys::jobserver::Client;

/// A connection to the jobserver of a build: whoever runs more than one job takes a token for each
/// further one, and gives it back when that job is over.
///
/// - Unix: `3,4` (descriptors that make let us inherit) and `fifo:PATH`. Descriptors that were
///   inherited are neither closed nor changed. Not on Linux: `3,4` only if make reads from it
///   without blocking. Windows: the name of a semaphore.
#[derive(Debug)]
pub struct Jobserver(Client);

/// What allows one more job. It has to be given back: dropping it does not.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "others wait for it: give it back"]
pub struct JobToken(u8);

impl Jobserver {
    /// Connects to what stands behind `--jobserver-auth=` in `MAKEFLAGS`.
    ///
    /// Descriptors that are not there, that are no pipes, or that were opened by this process
    /// itself are refused.
    ///
    /// # Errors
    /// What is named is not there, or is no jobserver; `Unsupported` where it cannot be used.
    pub fn connect(auth: &str) -> io::Result<Self> {
        Client::connect(auth).map(Self)
    }

    /// A token, if one is free now. Never blocks.
    ///
    /// # Errors
    /// When the jobserver is gone.
    pub fn try_acquire(&self) -> io::Result<Option<JobToken>> {
        Ok(self.0.try_acquire()?.map(JobToken))
    }

    /// Gives a token back.
    ///
    /// # Errors
    /// When the jobserver is gone.
    pub fn release(&self, token: JobToken) -> io::Result<()> {
        self.0.release(token.0)
    }

    /// Has the guardians of the run that is entered with these options give back the tokens that
    /// this connection holds when the run is killed. Call it before
    /// [`ProcessGuard::install`](crate::ProcessGuard::install).
    ///
    /// - A run whose three processes are all killed at once gives nothing back, nor does one that
    ///   is killed in the moment between a token's taking and its note.
    /// - Linux only; without effect on others, where there are no guardians.
    pub fn guarded_by(&self, options: GuardOptions) -> GuardOptions {
        options.owing(self.0.debt())
    }

    /// What becomes readable when a token may be free, for a [`Poller`](crate::Poller).
    ///
    /// - Windows: `None`; ask again after a while.
    pub fn source(&self) -> Option<Source<'_>> {
        self.0.source().map(Source)
    }
}
