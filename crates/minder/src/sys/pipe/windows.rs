//! Pipes on Windows: overlapped named pipes with private names, because anonymous pipes do not
//! support completion.
//!
//! A reader submits a read of zero bytes. That read completes as soon as there are bytes or the
//! end, and consumes none. The reader then reads the available bytes straight into the caller's
//! buffer and submits the next one. So a completion reports readiness, a paused reader consumes
//! nothing, and an idle child costs no buffer. (libuv listens to its pipes on Windows in this way:
//! `uv__pipe_queue_read` in its `src/win/pipe.c`.)
//!
//! A writer cannot wait for room. It hands the kernel one chunk at a time, from its own memory.
//! While the kernel holds a chunk there is no room.

#![expect(unsafe_code, reason = "named pipes, overlapped reads and writes")]

use std::cell::OnceCell;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BROKEN_PIPE, ERROR_HANDLE_EOF, ERROR_IO_PENDING, ERROR_NO_DATA,
    ERROR_PIPE_BUSY, ERROR_PIPE_NOT_CONNECTED, GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE,
    STATUS_PENDING,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, FILE_READ_ATTRIBUTES, OPEN_EXISTING,
    PIPE_ACCESS_INBOUND, PIPE_ACCESS_OUTBOUND, ReadFile, SetFileCompletionNotificationModes, WriteFile,
};
use windows_sys::Win32::System::IO::{GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE, PIPE_WAIT,
    PeekNamedPipe,
};

use super::ReadOutcome;
use crate::group::Size;
use crate::sys::event::event as new_event;
use crate::sys::reactor::Reactor;
use crate::sys::wait::{CompletionPort, Operation, Report, Submission};

/// The size of a pipe, and of one written chunk.
const PIPE_BYTES: u32 = 64 << 10;
/// Number of names that are tried if another program uses the first.
const NAMES_MAX: u32 = 8;
/// `FILE_SKIP_COMPLETION_PORT_ON_SUCCESS`: an operation that completes immediately queues no
/// packet.
const SKIP_ON_SUCCESS: u8 = 1;

/// The reading end of one stream of a child.
#[derive(Debug)]
pub(crate) struct Reader {
    handle: OwnedHandle,
    line: Option<Line>,
    listening: bool,
}

/// The connection of an endpoint to its port.
#[derive(Debug)]
struct Line {
    port: Arc<CompletionPort>,
    packet: Arc<Operation>,
}

impl Line {
    fn open(reactor: &Reactor, handle: &OwnedHandle) -> io::Result<Self> {
        reactor.port().associate(handle.as_handle())?;
        Ok(Self { port: Arc::clone(reactor.port()), packet: Operation::new() })
    }
}

impl Reader {
    /// Returns `false`: there are no terminals here.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn is_terminal(&self) -> bool {
        false
    }

    /// Creates a pipe: this side's end, which is not inheritable, and the writing end, which a
    /// child may inherit.
    pub(crate) fn pair() -> io::Result<(Self, OwnedHandle)> {
        let (handle, theirs) = pair(PIPE_ACCESS_INBOUND, GENERIC_WRITE | FILE_READ_ATTRIBUTES)?;
        Ok((Self { handle, line: None, listening: false }, theirs))
    }

    /// Registers the pipe for reports with `token`.
    pub(crate) fn register(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<()> {
        let line = match self.line.take() {
            Some(line) => line,
            None => Line::open(reactor, &self.handle)?,
        };
        line.packet.set_token(token);
        // A read of zero bytes from before a pause may still be pending. It serves the purpose.
        let open = line.packet.is_in_flight();
        self.line = Some(line);
        self.listening = true;
        if open { Ok(()) } else { self.ask() }
    }

    /// Stops the reports. The child blocks when the pipe is full. A pending read stays pending: its
    /// completion consumes no bytes and is not reported.
    pub(crate) fn pause(&mut self, _reactor: &mut Reactor) -> io::Result<()> {
        self.listening = false;
        if let Some(line) = &self.line {
            line.packet.suppress();
        }
        Ok(())
    }

    /// Handles `report` by one read into the spare capacity of `buffer`.
    pub(crate) fn read(
        &mut self,
        _reactor: &mut Reactor,
        _report: &Report,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadOutcome> {
        let progress = self.drain(buffer)?;
        let open = self.line.as_ref().is_none_or(|line| line.packet.is_in_flight());
        if progress != ReadOutcome::Eof && self.listening && !open {
            self.ask()?;
        }
        Ok(progress)
    }

    /// Returns false: Windows cannot move bytes without a copy.
    pub(crate) fn can_forward(&self, _to: &File) -> bool {
        false
    }

    /// See [`Reader::can_forward`].
    pub(crate) fn enlarge(&self, _to: Option<&File>) {}

    /// See [`Reader::can_forward`].
    pub(crate) fn wait_for_room(&self, _to: &File, _patience: std::time::Duration) {}

    /// See [`Reader::can_forward`].
    pub(crate) fn forward(&mut self, _to: &File) -> io::Result<ReadOutcome> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// See [`Reader::can_forward`].
    pub(crate) fn store(&mut self, _to: &File, _at: u64) -> io::Result<ReadOutcome> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns `false`: there are no terminals here.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn is_hung_up(&self) -> bool {
        false
    }

    /// Fails: there are no terminals here.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn resize_terminal(&self, _size: Size) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads the available bytes, without a report.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        let room = u32::try_from(buffer.capacity() - buffer.len()).unwrap_or(u32::MAX);
        let read = match available(&self.handle) {
            // The pipe is empty. A write of zero bytes by the child also completes the pending
            // read.
            Ok(0) => return Ok(ReadOutcome::WouldBlock),
            Ok(count) => read_now(&self.handle, buffer, count.min(room)),
            Err(error) => Err(error),
        };
        match read {
            Ok(count) => Ok(ReadOutcome::Data(count)),
            Err(error) if is_end(&error) => Ok(ReadOutcome::Eof),
            Err(error) => Err(error),
        }
    }

    /// Closes the stream. A packet that completes later is not reported.
    pub(crate) fn close(self, _reactor: &mut Reactor) -> io::Result<()> {
        drop(self);
        Ok(())
    }

    /// Returns the handle, for readers that block. Fails after the first report was requested. The
    /// handle is overlapped; [`std::fs::File`] waits for its operations.
    pub(crate) fn into_fd(self) -> io::Result<OwnedHandle> {
        bare(&self.handle, self.line.as_ref())
    }

    /// Requests a report of bytes or the end of the pipe.
    fn ask(&self) -> io::Result<()> {
        /// The target of the read of zero bytes: the kernel requires an address.
        static NOWHERE: AtomicU8 = AtomicU8::new(0);
        let Some(line) = &self.line else { return Ok(()) };
        let handle = self.handle.as_raw_handle();
        // SAFETY: the handle is open, `overlapped` comes from `submit`, and no byte is written to
        // the address.
        let start = |overlapped| unsafe { ReadFile(handle, NOWHERE.as_ptr(), 0, null_mut(), overlapped) };
        // SAFETY: `start` is one call, on the handle that was associated when the line was opened
        // and that queues a packet for every completion. It uses no memory except the packet's.
        match unsafe { line.port.submit(&line.packet, false, start) } {
            Ok(_) => Ok(()),
            // The end is reported like everything else, by a packet.
            Err(error) if is_end(&error) => line.port.post(&line.packet),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.packet.suppress();
            if line.packet.is_in_flight() {
                line.packet.cancel(&self.handle);
            }
        }
    }
}

/// The writing end of a child's standard input.
#[derive(Debug)]
pub(crate) struct Writer {
    handle: Arc<OwnedHandle>,
    line: Option<Line>,
    /// `true` if the caller waits for room.
    armed: bool,
    /// `true` if the result of the last operation has not been read yet.
    sent: bool,
}

impl Writer {
    /// Creates a pipe: this side's end, which is not inheritable, and the reading end, which a
    /// child may inherit.
    pub(crate) fn pair() -> io::Result<(Self, OwnedHandle)> {
        let (handle, theirs) = pair(PIPE_ACCESS_OUTBOUND, GENERIC_READ)?;
        Ok((Self { handle: Arc::new(handle), line: None, armed: false, sent: false }, theirs))
    }

    /// Writes as much as there is room for. If that is not all, a report with `token` follows when
    /// there is room again. Written bytes reach the child even if the writer is closed at once, as
    /// long as the port exists.
    pub(crate) fn write(&mut self, reactor: &mut Reactor, token: u64, bytes: &[u8]) -> io::Result<usize> {
        let line = match self.line.take() {
            Some(line) => line,
            None => self.open(reactor)?,
        };
        let result = self.push(&line, bytes);
        // Only this thread can take the packet out of the port in the meantime.
        if let Ok(written) = result
            && written < bytes.len()
        {
            line.packet.set_token(token);
            self.armed = true;
        }
        self.line = Some(line);
        result
    }

    /// Returns `false`: a completion port has room for every pipe.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn is_unwatched(&self) -> bool {
        false
    }

    /// Is not called: no pipe is unwatched.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn poll(&mut self, _reactor: &mut Reactor, _token: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Handles the report. Returns whether the caller can write now.
    pub(crate) fn ready(&mut self, _reactor: &mut Reactor, _report: &Report) -> io::Result<bool> {
        let Some(line) = self.line.as_ref().filter(|line| !line.packet.is_in_flight()) else {
            return Ok(false);
        };
        line.packet.suppress();
        Ok(std::mem::take(&mut self.armed))
    }

    /// Closes the stream. The child reads the written bytes, and then the end of file.
    pub(crate) fn close(self, _reactor: &mut Reactor) -> io::Result<()> {
        drop(self);
        Ok(())
    }

    /// Is not called: there are no terminals here.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn end_terminal(&mut self, _reactor: &mut Reactor, _token: u64) -> io::Result<bool> {
        Ok(true)
    }

    /// Returns `false`: there are no terminals here.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn is_ending(&self) -> bool {
        false
    }

    /// Fails: there are no terminals here.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn resize_terminal(&self, _size: Size) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the handle, for writers that block. Fails after the first write. The handle is
    /// overlapped; [`std::fs::File`] waits for its operations.
    pub(crate) fn into_fd(self) -> io::Result<OwnedHandle> {
        bare(&self.handle, self.line.as_ref())
    }

    fn open(&self, reactor: &Reactor) -> io::Result<Line> {
        let line = Line::open(reactor, &self.handle)?;
        // SAFETY: the handle is open; the call takes a number besides.
        let answer =
            unsafe { SetFileCompletionNotificationModes(self.handle.as_raw_handle(), SKIP_ON_SUCCESS) };
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(line) }
    }

    /// Writes chunk after chunk, until one does not fit. The kernel keeps that chunk until it fits.
    fn push(&mut self, line: &Line, bytes: &[u8]) -> io::Result<usize> {
        if line.packet.is_in_flight() {
            return Ok(0);
        }
        if std::mem::take(&mut self.sent) {
            line.packet.result(&self.handle)?;
        }
        let mut written = 0;
        // `chunks` yields no empty chunk: many programs read a write of zero bytes as the end of
        // file.
        for chunk in bytes.chunks(PIPE_BYTES as usize) {
            line.packet.suppress();
            let submission = self.send(line, chunk)?;
            written += chunk.len();
            if submission == Submission::Pending {
                self.sent = true;
                break;
            }
        }
        Ok(written)
    }

    fn send(&self, line: &Line, chunk: &[u8]) -> io::Result<Submission> {
        let mut data = line.packet.data();
        data.bytes.clear();
        data.bytes.extend_from_slice(chunk);
        let bytes = data.bytes.as_ptr();
        let count = PIPE_BYTES.min(chunk.len() as u32);
        drop(data);
        let handle = self.handle.as_raw_handle();
        // SAFETY: the handle is open, `overlapped` comes from `submit`, and at least `count` bytes
        // begin at `bytes`.
        let start = |overlapped| unsafe { WriteFile(handle, bytes, count, null_mut(), overlapped) };
        // SAFETY: `start` is one call, on the handle that was associated and set to skip packets
        // when the line was opened. The bytes belong to the packet. Only this function changes
        // them, and it has checked that the packet is not in flight.
        unsafe { line.port.submit(&line.packet, true, start) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Some(line) = &self.line else { return };
        line.packet.suppress();
        if line.packet.is_in_flight() {
            // Closing the handle now would lose bytes that the child has not read yet.
            line.port.keep_alive(&line.packet, Arc::clone(&self.handle));
        }
    }
}

/// Fails: there are no terminals here.
pub(crate) fn write(mut pipe: &std::fs::File, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
    io::Write::write_vectored(&mut pipe, slices)
}

pub(crate) fn resize_terminal(_side: &std::fs::File, _size: Size) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Signals the foreground processes of a terminal: there are no terminals so far.
pub(crate) fn signal_foreground(_side: &std::fs::File, _signal: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns false: there are no terminals so far.
pub(crate) fn is_hung_up(_error: &io::Error) -> bool {
    false
}

/// Returns the character that ends the input of a terminal: there are no terminals so far.
pub(crate) fn eof_byte(_side: &std::fs::File) -> io::Result<u8> {
    Err(io::ErrorKind::Unsupported.into())
}

/// `false`, as [`poll_outputs`] does not work: no call waits for two pipes without a port.
pub(crate) const CAN_POLL_OUTPUTS: bool = false;

/// See [`CAN_POLL_OUTPUTS`].
pub(crate) fn poll_outputs(_outputs: [&Reader; 2]) -> io::Result<[bool; 2]> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns a copy of the handle of an endpoint without a port. A handle with a port is never
/// returned: operations of other code would complete into the port, and be taken for packets.
fn bare(handle: &OwnedHandle, line: Option<&Line>) -> io::Result<OwnedHandle> {
    match line {
        None => handle.try_clone(),
        Some(_) => Err(io::Error::from(io::ErrorKind::ResourceBusy)),
    }
}

/// Returns whether the error means that the other end is closed.
fn is_end(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_BROKEN_PIPE | ERROR_PIPE_NOT_CONNECTED | ERROR_NO_DATA | ERROR_HANDLE_EOF))
}

/// Returns the number of bytes that can be read now.
fn available(handle: &OwnedHandle) -> io::Result<u32> {
    let mut count = 0;
    // SAFETY: the handle is open, no bytes are asked for, and `count` outlives the call.
    let answer =
        unsafe { PeekNamedPipe(handle.as_raw_handle(), null_mut(), 0, null_mut(), &mut count, null_mut()) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(count) }
}

/// Reads `count` bytes, which the pipe holds, into the spare capacity of `buffer`, which is at
/// least as large.
fn read_now(handle: &OwnedHandle, buffer: &mut Vec<u8>, count: u32) -> io::Result<usize> {
    let spare = &mut buffer.spare_capacity_mut()[..count as usize];
    const { assert!(std::mem::offset_of!(OVERLAPPED, Internal) == 0) };
    let mut overlapped = OVERLAPPED { hEvent: unqueued_event()?, ..OVERLAPPED::default() };
    let raw = handle.as_raw_handle();
    let start = spare.as_mut_ptr().cast();
    let state = &raw mut overlapped;
    // SAFETY: the handle is open; `start` has room for `count` bytes; both it and `state` stay in
    // place until the read has finished, which is waited for below.
    let answer = unsafe { ReadFile(raw, start, count, null_mut(), state) };
    if answer == 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(ERROR_IO_PENDING.cast_signed()) {
            return Err(error);
        }
    }
    let mut read = 0;
    // SAFETY: the handle is open, `state` is that of the read above.
    let answer = unsafe { GetOverlappedResult(raw, state, &mut read, 1) };
    if answer == 0 {
        let error = io::Error::last_os_error();
        // SAFETY: the status is the first field of the local above, to which the kernel may be writing.
        let status = unsafe { state.cast::<usize>().read_volatile() };
        if status == STATUS_PENDING as usize {
            // The wait itself failed, and the kernel may still write to memory of the caller.
            std::process::abort();
        }
        return Err(error);
    }
    // SAFETY: the kernel has filled in `read` bytes of the spare capacity, which are at most
    // `count`.
    unsafe { buffer.set_len(buffer.len() + read as usize) };
    Ok(read as usize)
}

/// Returns this thread's event for operations that the caller waits for at once. Its lowest bit is
/// set, which keeps them out of the completion port (documented with `GetQueuedCompletionStatus`).
#[allow(
    clippy::missing_const_for_thread_local,
    reason = "it is const; seen from Windows the lint is mistaken"
)]
fn unqueued_event() -> io::Result<HANDLE> {
    thread_local! {
        static EVENT: OnceCell<OwnedHandle> = const { OnceCell::new() };
    }
    EVENT.with(|event| {
        if event.get().is_none() {
            // A manual-reset event, as overlapped operations require.
            drop(event.set(new_event(true)?));
        }
        let raw = event.get().map_or(null_mut(), AsRawHandle::as_raw_handle);
        Ok(raw.map_addr(|address| address | 1))
    })
}

/// Makes a pipe. Its server end has this access, is overlapped, and is not inheritable. Its client
/// end is inheritable.
fn pair(open_mode: u32, client_access: u32) -> io::Result<(OwnedHandle, OwnedHandle)> {
    let mut tries = 0;
    loop {
        let result = try_pair(&unused_name(), open_mode, client_access);
        let taken = |error: &io::Error| {
            // The name exists, or another process connected first: this pipe is not shared.
            let code = error.raw_os_error().map(i32::cast_unsigned);
            matches!(code, Some(ERROR_ACCESS_DENIED | ERROR_PIPE_BUSY))
        };
        tries += 1;
        match result {
            Err(error) if taken(&error) && tries < NAMES_MAX => (),
            result => return result,
        }
    }
}

fn try_pair(name: &[u16], open_mode: u32, client_access: u32) -> io::Result<(OwnedHandle, OwnedHandle)> {
    let open_mode = open_mode | FILE_FLAG_FIRST_PIPE_INSTANCE | FILE_FLAG_OVERLAPPED;
    let mode = PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS;
    // SAFETY: the name ends with a zero; no attributes, so the handle is not inheritable.
    let raw =
        unsafe { CreateNamedPipeW(name.as_ptr(), open_mode, mode, 1, PIPE_BYTES, PIPE_BYTES, 0, null()) };
    let server = own(raw)?;
    let inheritable = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: null_mut(),
        bInheritHandle: 1,
    };
    // Not overlapped: the child's runtime reads and writes as with any file.
    // SAFETY: the name ends with a zero; the attributes outlive the call.
    let raw =
        unsafe { CreateFileW(name.as_ptr(), client_access, 0, &inheritable, OPEN_EXISTING, 0, null_mut()) };
    Ok((server, own(raw)?))
}

fn own(raw: HANDLE) -> io::Result<OwnedHandle> {
    if raw == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: one of the two calls above created the handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}

/// Returns an unused name that cannot be guessed, ended by a zero.
fn unused_name() -> Vec<u16> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The keys of this hash are random numbers of the operating system's.
    let mut guess = RandomState::new().build_hasher();
    guess.write_u64(count);
    let name = format!(r"\\.\pipe\minder-{}-{count}-{:016x}", std::process::id(), guess.finish());
    name.encode_utf16().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};

    use super::*;

    const TOKEN: u64 = 42;

    /// Returns the reports that are available now.
    fn reports(reactor: &mut Reactor) -> Vec<Report> {
        let mut reports = Vec::new();
        reactor.wait(&mut reports, Some(Instant::now() + Duration::from_millis(50))).unwrap();
        reports
    }

    fn registered_reader() -> (Reactor, Reader, File) {
        let (reader, theirs) = Reader::pair().unwrap();
        (Reactor::open(None).unwrap(), reader, File::from(theirs))
    }

    #[test]
    fn reader_reports_bytes_and_eof() {
        let (mut reactor, mut reader, mut child) = registered_reader();
        let mut buffer = Vec::with_capacity(4);
        reader.register(&mut reactor, TOKEN).unwrap();
        assert!(reports(&mut reactor).is_empty(), "nothing was written");
        child.write_all(b"words").unwrap();
        for (expected, text) in [(ReadOutcome::Data(4), "word"), (ReadOutcome::Data(1), "s")] {
            let found = reports(&mut reactor);
            assert_eq!(found.iter().map(|report| report.token).collect::<Vec<_>>(), [TOKEN]);
            assert_eq!(reader.read(&mut reactor, &found[0], &mut buffer).unwrap(), expected);
            assert_eq!(buffer, text.as_bytes());
            buffer.clear();
        }
        drop(child);
        let found = reports(&mut reactor);
        assert_eq!(reader.read(&mut reactor, &found[0], &mut buffer).unwrap(), ReadOutcome::Eof);
        assert!(reports(&mut reactor).is_empty());
    }

    #[test]
    fn reader_reports_eof_from_before_registration() {
        let (mut reactor, mut reader, child) = registered_reader();
        drop(child);
        reader.register(&mut reactor, TOKEN).unwrap();
        let found = reports(&mut reactor);
        assert_eq!(
            reader.read(&mut reactor, &found[0], &mut Vec::with_capacity(9)).unwrap(),
            ReadOutcome::Eof
        );
    }

    #[test]
    fn paused_reader_reports_nothing_and_loses_nothing() {
        let (mut reactor, mut reader, mut child) = registered_reader();
        let mut buffer = Vec::with_capacity(99);
        reader.register(&mut reactor, TOKEN).unwrap();
        reader.pause(&mut reactor).unwrap();
        child.write_all(b"one").unwrap();
        assert!(reports(&mut reactor).is_empty(), "held");
        reader.register(&mut reactor, TOKEN + 1).unwrap();
        let found = reports(&mut reactor);
        assert_eq!((found.len(), found[0].token), (1, TOKEN + 1));
        assert_eq!(reader.read(&mut reactor, &found[0], &mut buffer).unwrap(), ReadOutcome::Data(3));
        // Paused while the read is pending, and registered again before it completes.
        reader.pause(&mut reactor).unwrap();
        reader.register(&mut reactor, TOKEN).unwrap();
        child.write_all(b"two").unwrap();
        assert_eq!(reports(&mut reactor).len(), 1);
    }

    #[test]
    fn dropped_reader_frees_packet_and_reports_nothing() {
        let (mut reactor, mut reader, mut child) = registered_reader();
        reader.register(&mut reactor, TOKEN).unwrap();
        let packet = Arc::downgrade(&reader.line.as_ref().unwrap().packet);
        reader.close(&mut reactor).unwrap();
        assert!(child.write_all(b"too late").is_err());
        assert!(reports(&mut reactor).is_empty());
        assert_eq!(packet.strong_count(), 0, "the packet has landed and is freed");
    }

    #[test]
    fn writer_waits_for_room_and_finishes_after_close() {
        let (mut writer, theirs) = Writer::pair().unwrap();
        let mut reactor = Reactor::open(None).unwrap();
        let mut child = File::from(theirs);
        let bytes = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect::<Vec<_>>();
        let mut written = writer.write(&mut reactor, TOKEN, &bytes).unwrap();
        assert!((1..1_000_000).contains(&written), "{written}");
        assert_eq!(writer.write(&mut reactor, TOKEN, &bytes[written..]).unwrap(), 0, "there is no room");
        assert!(reports(&mut reactor).is_empty());
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            child.read_to_end(&mut all).map(|_| all)
        });
        while written < bytes.len() {
            for report in reports(&mut reactor) {
                assert!(writer.ready(&mut reactor, &report).unwrap());
                written += writer.write(&mut reactor, TOKEN, &bytes[written..]).unwrap();
            }
        }
        writer.close(&mut reactor).unwrap();
        while !reader.is_finished() {
            assert!(reports(&mut reactor).is_empty());
        }
        assert!(reader.join().unwrap().unwrap() == bytes);
    }

    #[test]
    fn write_fails_without_reader() {
        let (mut writer, theirs) = Writer::pair().unwrap();
        let mut reactor = Reactor::open(None).unwrap();
        drop(theirs);
        let error = writer.write(&mut reactor, TOKEN, b"hello").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn dropped_port_cancels_lingering_writes() {
        let (mut writer, theirs) = Writer::pair().unwrap();
        let mut reactor = Reactor::open(None).unwrap();
        let bytes = vec![0; 4 * PIPE_BYTES as usize];
        writer.write(&mut reactor, TOKEN, &bytes).unwrap();
        let packet = Arc::downgrade(&writer.line.as_ref().unwrap().packet);
        drop(writer);
        drop(reactor);
        assert_eq!(packet.strong_count(), 0);
        drop(theirs);
    }

    #[test]
    fn into_fd_returns_blocking_handles() {
        let (reader, theirs) = Reader::pair().unwrap();
        let mut ours = File::from(reader.into_fd().unwrap());
        let mut child = File::from(theirs);
        let writer = std::thread::spawn(move || child.write_all(b"plain"));
        let mut text = String::new();
        ours.read_to_string(&mut text).unwrap();
        assert_eq!(text, "plain");
        writer.join().unwrap().unwrap();
    }
}
