//! Make's jobserver, for programs that take part in a build.

use crate::error::{Error, Result};
use crate::guard::GuardOptions;
use crate::poll::Source;
use crate::sys::jobserver::Client;

/// A connection to the jobserver of a build. A program that runs more than one job takes a token
/// for each further job, and returns it when that job has finished.
///
/// - Unix: `3,4` (descriptors inherited from make) and `fifo:PATH`. Inherited descriptors are
///   neither closed nor changed. Except on Linux: `3,4` only if make reads from it without
///   blocking. Windows: the name of a semaphore.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use minder::os::Jobserver;
/// use minder::guard::GuardOptions;
/// use minder::poll::Interest;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("tokens");
/// # let mkfifo = minder::Command::new("mkfifo").arg(&path).status()?;
/// # assert!(mkfifo.success());
/// # let fifo = std::fs::File::options().read(true).write(true).open(&path)?;
/// # std::io::Write::write_all(&mut &fifo, b"+")?;
/// # let auth = format!("fifo:{}", path.display());
/// // `auth` is the value of `--jobserver-auth=` in `MAKEFLAGS`.
/// let jobserver = Jobserver::connect(&auth)?;
/// let options = jobserver.guarded_by(GuardOptions::new()); // for `ProcessGuard::install`
/// # let _ = options;
/// if let Some(source) = jobserver.source() {
///     minder::os::wait_ready(source, Interest::READABLE, None)?;
/// }
/// if let Some(token) = jobserver.try_acquire()? {
///     // … run one more job …
///     jobserver.release(token)?;
/// }
/// assert!(jobserver.try_acquire()?.is_some_and(|token| jobserver.release(token).is_ok()));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Jobserver(Client);

/// A token, which allows one more job. The caller has to release it: dropping it does not.
///
/// ```
/// use minder::os::{JobToken, Jobserver};
///
/// // `None`: the one job that every program may run needs no token.
/// fn end_job(jobserver: &Jobserver, token: Option<JobToken>) -> minder::Result<()> {
///     token.map_or(Ok(()), |token| jobserver.release(token))
/// }
/// # let _ = end_job;
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "others wait for it: release it"]
pub struct JobToken(u8);

impl Jobserver {
    /// Connects to the value of `--jobserver-auth=` in `MAKEFLAGS`.
    ///
    /// Descriptors that are not open, that are not pipes, or that this process itself opened are
    /// refused.
    ///
    /// # Errors
    /// The named object does not exist or is not a jobserver; `Unsupported` if it cannot be used.
    pub fn connect(auth: &str) -> Result<Self> {
        let client = Client::connect(auth);
        client.map(Self).map_err(|error| Error::new("connect to the jobserver", error).with_subject(auth))
    }

    /// Takes a token, if one is free now. Never blocks.
    ///
    /// # Errors
    /// The jobserver is gone.
    pub fn try_acquire(&self) -> Result<Option<JobToken>> {
        let token =
            self.0.try_acquire().map_err(|error| Error::new("take a token of the jobserver", error))?;
        Ok(token.map(JobToken))
    }

    /// Releases a token.
    ///
    /// # Errors
    /// The jobserver is gone.
    pub fn release(&self, token: JobToken) -> Result<()> {
        self.0.release(token.0).map_err(|error| Error::new("return a token to the jobserver", error))
    }

    /// Makes the guardians of the run that is entered with these options return the tokens of this
    /// connection if the run is killed. Call it before
    /// [`ProcessGuard::install`](crate::guard::ProcessGuard::install).
    ///
    /// - If all three processes of a run are killed at once, nothing is returned. The same holds if
    ///   the run is killed between taking a token and recording it.
    /// - Linux only. No effect on other systems, which have no guardians.
    pub fn guarded_by(&self, options: GuardOptions) -> GuardOptions {
        options.held_tokens(self.0.held_tokens())
    }

    /// Returns the source that is readable when a token may be free, for a [`Poller`](crate::poll::Poller).
    ///
    /// - Windows: `None`; try again after a while.
    pub fn source(&self) -> Option<Source<'_>> {
        self.0.source().map(Source)
    }
}
