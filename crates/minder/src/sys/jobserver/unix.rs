//! The jobserver on Unix: tokens are bytes in an inherited pipe (`3,4`) or a named pipe
//! (`fifo:PATH`, make 4.4).
//!
//! All users of an open pipe share its flags. To read without blocking, and without making the
//! reads of others fail, the pipe is opened once more, which Linux allows for a pipe without a
//! name. Where that is impossible, the pipe is used only if its creator already reads without
//! blocking.

#![expect(unsafe_code, reason = "descriptors that are known by their number only")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, open};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, read, write};

use crate::sys::wait::Source;

/// A connection. It has separate descriptors: the inherited ones stay unchanged.
#[derive(Debug)]
pub(crate) struct Client {
    reads: OwnedFd,
    writes: OwnedFd,
    /// The record of held tokens, if there was memory for it.
    #[cfg(target_os = "linux")]
    record: Option<&'static super::token_record::TokenRecord>,
}

impl Client {
    pub(crate) fn connect(auth: &str) -> io::Result<Self> {
        if let Some(path) = auth.strip_prefix("fifo:") {
            return Self::named(Path::new(path));
        }
        let (reads, writes) =
            auth.split_once(',').ok_or_else(|| invalid("it is named in a way that is not known"))?;
        let number = |text: &str| text.parse().map_err(|_| invalid("it is named in a way that is not known"));
        Ok(Self::new(inherited(number(reads)?, OFlags::RDONLY)?, inherited(number(writes)?, OFlags::WRONLY)?))
    }

    fn new(reads: OwnedFd, writes: OwnedFd) -> Self {
        Self {
            reads,
            writes,
            #[cfg(target_os = "linux")]
            record: super::token_record::TokenRecord::new().ok(),
        }
    }

    fn named(path: &Path) -> io::Result<Self> {
        // Opened for both directions, so that opening does not wait for a peer and reads never
        // return the end of file.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let writes = open(path, flags, Mode::empty())?;
        pipe(writes.as_fd())?;
        Ok(Self::new(writes.try_clone()?, writes))
    }

    /// Takes a token, if one is free now.
    pub(crate) fn try_acquire(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        loop {
            match read(&self.reads, &mut byte) {
                Ok(1..) => {
                    #[cfg(target_os = "linux")]
                    self.record.inspect(|record| record.add(byte[0]));
                    return Ok(Some(byte[0]));
                }
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn release(&self, token: u8) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.record.is_some_and(|record| !record.remove(token)) {
            return Ok(());
        }
        loop {
            match write(&self.writes, &[token]) {
                Err(Errno::INTR) => {}
                result => return result.map(drop).map_err(io::Error::from),
            }
        }
    }

    /// Returns the held tokens, for another process to release if this one is killed.
    #[cfg(target_os = "linux")]
    pub(crate) fn held_tokens(&self) -> Option<super::held_tokens::HeldTokens> {
        Some(super::held_tokens::HeldTokens::new(self.writes.try_clone().ok()?, self.record?))
    }

    /// Returns `None`, because there are no guardians.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn held_tokens(&self) -> Option<super::held_tokens::HeldTokens> {
        None
    }

    /// Returns the descriptor that is readable when a token is free.
    pub(crate) fn source(&self) -> Option<Source<'_>> {
        Some(Source::descriptor(&self.reads))
    }
}

/// Returns a non-blocking descriptor for an inherited end of a pipe.
fn inherited(number: RawFd, way: OFlags) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(invalid("it is not for this process"));
    }
    // SAFETY: the number is not -1. The borrow ends in this function, during which no descriptor is
    // closed. If the number is not an open descriptor, every call returns an error.
    let end = unsafe { BorrowedFd::borrow_raw(number) };
    // A descriptor that is closed on exec was opened by this process. The one that make meant was
    // closed before this process started.
    if fcntl_getfd(end)?.contains(FdFlags::CLOEXEC) {
        return Err(Errno::BADF.into());
    }
    pipe(end)?;
    let flags = way | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if cfg!(any(target_os = "linux", target_os = "android"))
        && let Ok(own) = open(format!("/proc/self/fd/{number}"), flags, Mode::empty())
    {
        return Ok(own);
    }
    // A write never blocks: the pipe has room for all tokens of the build.
    if way == OFlags::WRONLY || fcntl_getfl(end)?.contains(OFlags::NONBLOCK) {
        return Ok(fcntl_dupfd_cloexec(end, 3)?);
    }
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "its pipe blocks, and this system cannot open it once more",
    ))
}

/// Returns an error unless the descriptor is an end of a pipe.
fn pipe(end: BorrowedFd<'_>) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(end)?.st_mode) {
        FileType::Fifo => Ok(()),
        _ => Err(invalid("it does not name a pipe")),
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    /// Returns a pipe that children inherit, like the one that make creates.
    fn pair() -> (OwnedFd, OwnedFd) {
        rustix::pipe::pipe().expect("create pipe")
    }

    fn auth(reads: &OwnedFd, writes: &OwnedFd) -> String {
        format!("{},{}", reads.as_raw_fd(), writes.as_raw_fd())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn acquire_and_release_leave_the_pipe_unchanged() {
        let (reads, writes) = pair();
        write(&writes, b"ab").expect("write tokens");
        let client = Client::connect(&auth(&reads, &writes)).expect("connect to jobserver");
        assert_eq!(client.try_acquire().expect("read from pipe"), Some(b'a'));
        assert_eq!(client.try_acquire().expect("read from pipe"), Some(b'b'));
        assert_eq!(client.try_acquire().expect("read from pipe"), None);
        client.release(b'b').expect("release token");
        assert!(!fcntl_getfl(&reads).expect("get status flags").contains(OFlags::NONBLOCK));
        drop(client);
        drop(writes);
        let mut rest = Vec::new();
        File::from(reads).read_to_end(&mut rest).expect("read remaining tokens");
        assert_eq!(rest, b"b");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn held_tokens_are_released_once() {
        let (reads, writes) = pair();
        write(&writes, b"abb").expect("write tokens");
        let client = Client::connect(&auth(&reads, &writes)).expect("connect to jobserver");
        let held_tokens = client.held_tokens().expect("share memory");
        for _ in 0..3 {
            client.try_acquire().expect("read from pipe").expect("acquire token");
        }
        client.release(b'b').expect("release token");
        held_tokens.release_all();
        held_tokens.release_all();
        for token in [b'a', b'b'] {
            client.release(token).expect("release token again");
        }
        drop((client, held_tokens, writes));
        let mut rest = Vec::new();
        File::from(reads).read_to_end(&mut rest).expect("read remaining tokens");
        rest.sort_unstable();
        assert_eq!(rest, b"abb");
    }

    #[test]
    fn connect_refuses_other_descriptors() {
        let (reads, writes) = pair();
        for odd in ["-2,-2", "3", "x,y", "", "fifo:/nowhere", "fifo:/dev/null", "1000000,1000001"] {
            assert!(Client::connect(odd).is_err(), "{odd}");
        }
        // A pipe that is closed on exec cannot have been inherited.
        let (own_reads, own_writes) = io::pipe().expect("create pipe");
        let own = format!("{},{}", own_reads.as_raw_fd(), own_writes.as_raw_fd());
        assert!(Client::connect(&own).is_err());
        let plain = File::open("/dev/null").expect("open /dev/null");
        rustix::io::fcntl_setfd(&plain, FdFlags::empty()).expect("clear close-on-exec");
        assert!(Client::connect(&format!("{},{}", plain.as_raw_fd(), plain.as_raw_fd())).is_err());
        drop((reads, writes));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn connect_opens_named_pipe() {
        let dir = tempfile::tempdir().expect("create temporary directory");
        let path = dir.path().join("tokens");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .expect("create fifo");
        let client = Client::connect(&format!("fifo:{}", path.display())).expect("connect to jobserver");
        assert_eq!(client.try_acquire().expect("read from fifo"), None);
        let mut fifo = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("open fifo");
        fifo.write_all(b"+").expect("write token");
        assert_eq!(client.try_acquire().expect("read from fifo"), Some(b'+'));
    }
}
