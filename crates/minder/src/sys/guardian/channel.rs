//! The socket pair between a host and the program of its guardian.

#![expect(unsafe_code, reason = "socketpair, send and recvmsg with a control message")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use super::record::Record;
use crate::sys::time::timespec;

/// Linux 6.5 (asm-generic/socket.h): each message carries a pidfd of the process that sent it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SO_PASSPIDFD: libc::c_int = 76;
#[cfg(any(target_os = "linux", target_os = "android"))]
const SCM_PIDFD: libc::c_int = 4;
/// Darwin has no sockets of this type for AF_UNIX. A record is not split there either: a send without
/// waiting needs room for SO_SNDLOWAT bytes, 2048 by default.
#[cfg(target_vendor = "apple")]
const TYPE: libc::c_int = libc::SOCK_STREAM;
#[cfg(not(target_vendor = "apple"))]
const TYPE: libc::c_int = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
/// Darwin has SO_NOSIGPIPE instead.
#[cfg(target_vendor = "apple")]
const FLAGS: libc::c_int = libc::MSG_DONTWAIT;
#[cfg(not(target_vendor = "apple"))]
const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// The host's end.
#[derive(Debug)]
pub(in crate::sys) struct Channel(OwnedFd);

/// Returns the ends of the host and of the program. No child inherits them by accident.
pub(in crate::sys) fn socket_pair() -> io::Result<(Channel, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the array has room for both numbers.
    if unsafe { libc::socketpair(libc::AF_UNIX, TYPE, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created it, and nothing else owns it.
    let host = unsafe { OwnedFd::from_raw_fd(ends[0]) };
    // SAFETY: as above.
    let program = unsafe { OwnedFd::from_raw_fd(ends[1]) };
    #[cfg(target_vendor = "apple")]
    for end in [&host, &program] {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        set_option(end, libc::SO_NOSIGPIPE)?;
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        set_option(&program, libc::SO_PASSCRED)?;
        // Older kernels refuse it. The program then opens a pidfd itself.
        let _ = set_option(&program, SO_PASSPIDFD);
    }
    Ok((Channel(host), program))
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn set_option(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of_val(&on) as libc::socklen_t;
    // SAFETY: an open socket, and a number of that size which outlives the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const on).cast(), size)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Channel {
    /// Sends a record, or fails at once: `WouldBlock` if the program does not read, `BrokenPipe` if it
    /// has exited.
    pub(in crate::sys) fn send(&self, record: Record) -> io::Result<()> {
        match send(self.as_fd(), record) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Sends a record with the pidfd of the process that it names. A pid that the program opens may be
    /// that of another process by then.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(in crate::sys) fn send_with_pidfd(&self, record: Record, pidfd: &OwnedFd) -> io::Result<()> {
        match send_with_pidfd(self.as_fd(), record, pidfd.as_fd()) {
            0 => Ok(()),
            // The user has as many descriptors under way in sockets as a process may open (unix(7)).
            libc::ETOOMANYREFS => self.send(record),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Sends a record: no process has a pidfd here.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(in crate::sys) fn send_with_pidfd(&self, record: Record, _pidfd: &OwnedFd) -> io::Result<()> {
        self.send(record)
    }

    /// Sends a record with one system call and nothing else. Returns 0 or the error number.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "only clone has a step in the child")
    )]
    pub(in crate::sys) fn send_from_child(&self, record: Record) -> i32 {
        send(self.as_fd(), record)
    }

    /// Waits until the socket has room for records, or the program has closed its end. Fails with
    /// `TimedOut`.
    pub(in crate::sys) fn wait_for_room(&self, deadline: Option<Instant>) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let time = left.map(timespec);
            // An error, such as an interrupt, is ignored: the next round looks again.
            if poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], time.as_ref()) == Ok(1) {
                return Ok(());
            }
            if left == Some(Duration::ZERO) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Returns whether the program has closed its end.
    pub(in crate::sys) fn is_closed(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut ends = [PollFd::new(&self.0, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut ends, Some(&at_once)).is_ok() && ends[0].revents().contains(PollFlags::HUP)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn send(socket: BorrowedFd<'_>, record: Record) -> i32 {
    let bytes = record.to_bytes();
    // SAFETY: an open socket, and bytes that outlive the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), FLAGS) };
    error_of(sent)
}

/// Returns 0 or the error number of a send.
fn error_of(sent: isize) -> i32 {
    if sent >= 0 {
        return 0;
    }
    match io::Error::last_os_error().raw_os_error() {
        // The program has exited, in the case of ECONNRESET before it had read everything.
        Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN) => libc::EPIPE,
        error => error.unwrap_or(libc::EIO),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn send_with_pidfd(socket: BorrowedFd<'_>, record: Record, pidfd: BorrowedFd<'_>) -> i32 {
    const SIZE: libc::c_uint = size_of::<RawFd>() as libc::c_uint;
    let mut bytes = record.to_bytes();
    let mut control = ControlBuffer([0; 128]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all zero is a message without a name, a buffer or a control message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: computes a number, which is smaller than the buffer.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(SIZE) } as _;
    // SAFETY: all zero is a value of it.
    let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: computes a number.
    header.cmsg_len = unsafe { libc::CMSG_LEN(SIZE) } as _;
    // SAFETY: the message points to a buffer with room for a header.
    let place = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: the buffer is aligned for a header.
    unsafe { place.write(header) };
    // SAFETY: the data follows the header.
    let data = unsafe { libc::CMSG_DATA(place) };
    // SAFETY: the buffer has room for one descriptor after the header. It need not be aligned.
    unsafe { data.cast::<RawFd>().write_unaligned(pidfd.as_raw_fd()) };
    // SAFETY: the header points to buffers of the sizes that it names, which outlive the call.
    error_of(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, FLAGS) })
}

/// The data that the kernel adds to a record.
#[derive(Debug, Default)]
pub(in crate::sys) struct Sender {
    /// The pid of the process that sent the record, in the receiver's PID namespace.
    pub(in crate::sys) pid: Option<libc::pid_t>,
    /// A pidfd of that process.
    pub(in crate::sys) pidfd: Option<OwnedFd>,
    /// The descriptor that was sent with the record: a pidfd of the process that the record names.
    pub(in crate::sys) named: Option<OwnedFd>,
}

/// The result of [`receive`].
pub(in crate::sys) enum Received {
    Record(Record, Sender),
    /// Nothing for now.
    Nothing,
    /// The other side closed its end, or sent something else than a record.
    End,
}

/// A buffer for the control messages of one record, aligned as the kernel needs it.
#[repr(C, align(8))]
struct ControlBuffer([u8; 128]);

/// Receives the next record without waiting.
pub(in crate::sys) fn receive(socket: BorrowedFd<'_>) -> Received {
    let mut bytes = [0; Record::SIZE];
    let mut control = ControlBuffer([0; 128]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all zero is a message without a name, a buffer or a control message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let flags = libc::MSG_DONTWAIT;
    let count = loop {
        // SAFETY: the header points to buffers of the sizes that it names, which outlive the call.
        let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
        if count >= 0 {
            break count.unsigned_abs();
        }
        match io::Error::last_os_error().kind() {
            io::ErrorKind::Interrupted => (),
            io::ErrorKind::WouldBlock => return Received::Nothing,
            _ => return Received::End,
        }
    };
    let sender = sender_of(&message);
    if count == Record::SIZE { Received::Record(Record::from_bytes(&bytes), sender) } else { Received::End }
}

/// Takes the control messages out of a message.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn sender_of(message: &libc::msghdr) -> Sender {
    let mut sender = Sender::default();
    // SAFETY: recvmsg has filled in the header, and its buffer is still there.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: null, or the address of a complete header in that buffer.
    while let Some(header) = unsafe { next.as_ref() } {
        // SAFETY: the data follows the header.
        let data = unsafe { libc::CMSG_DATA(header) };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                // SAFETY: the data of this type. It need not be aligned.
                let credentials = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                sender.pid = Some(credentials.pid);
            }
            (libc::SOL_SOCKET, SCM_PIDFD) => {
                // SAFETY: as above.
                let number = unsafe { data.cast::<RawFd>().read_unaligned() };
                // Negative if no descriptor was free, or the process was reaped before Linux 6.16.
                // SAFETY: the kernel created this descriptor for this message, and nothing else owns it.
                sender.pidfd = (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) });
            }
            // Without a free descriptor the kernel leaves this message out.
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                // SAFETY: as above.
                let number = unsafe { data.cast::<RawFd>().read_unaligned() };
                // SAFETY: as above. The host sends one descriptor with a record, and no more.
                sender.named = Some(unsafe { OwnedFd::from_raw_fd(number) });
            }
            _ => (),
        }
        // SAFETY: a header of this message.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    sender
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn sender_of(_message: &libc::msghdr) -> Sender {
    Sender::default()
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;
    use crate::sys::guardian::record::Kind;
    use crate::sys::pid::open_pidfd;

    #[test]
    fn pidfd_of_a_named_process_arrives_with_that_of_the_sender() {
        let Ok(Some(pidfd)) = open_pidfd(1) else { return };
        let (host, program) = socket_pair().expect("create sockets");
        let record = Record { pid: 1, ..Record::new(Kind::AddGroupByHost) };
        host.send_with_pidfd(record, &pidfd).expect("send record");
        host.send(record).expect("send record");
        let named = |received| match received {
            Received::Record(record, sender) => {
                assert_eq!((record.pid, sender.pid), (1, Some(std::process::id().cast_signed())));
                sender.named
            }
            _ => panic!("no record came"),
        };
        let fd = named(receive(program.as_fd())).expect("find pidfd");
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
        assert!(info.expect("read fdinfo").lines().any(|line| line == "Pid:\t1"));
        assert!(named(receive(program.as_fd())).is_none());
    }
}
