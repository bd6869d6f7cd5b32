//! `FrameDecoder`: chunks of a stream become messages.

use std::fmt;
use std::ops::Deref;

use memchr::memchr;

use super::error::{FrameError, Reason, excerpt};
use super::format::FrameFormat;
use super::header::{FIELD_START, HeaderLine, MAX_HEADER_BYTES, Search, parse_line};
use crate::error::escape;

/// The maximum of a message if the caller sets none.
const DEFAULT_MAX_FRAME_BYTES: usize = 16 << 20;

/// The smallest buffer, so that a frame that arrives byte by byte is not moved at each of the first.
const MIN_BUFFER_BYTES: usize = 4 << 10;

/// A larger buffer is freed as soon as its message has been used. A chunk of a set has this size.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Reads the messages of one stream from its chunks.
///
/// [`next_frame`](Self::next_frame) takes one frame at a time from the chunk that it is given. A message
/// that lies whole in the chunk is a part of the chunk: it is not copied. A message that spans chunks is
/// copied once, into a buffer.
///
/// The buffer grows with the bytes that arrive, whatever length a header promises. It never exceeds
/// [`max_frame_bytes`](Self::max_frame_bytes), or [`MAX_HEADER_BYTES`] if that is more. Above 64 KiB it is
/// freed by the call after the one that returned its message, or by an error.
///
/// ```
/// use minder::frame::{FrameDecoder, FrameFormat};
///
/// let mut decoder = FrameDecoder::new(FrameFormat::Lines).strip_cr(true);
/// let mut lines = Vec::new();
/// for chunk in ["one\r\ntw", "o\nthree\nfo", "ur"] {
///     let mut rest = chunk.as_bytes();
///     while let Some(line) = decoder.next_frame(&mut rest)? {
///         lines.push((line.offset(), String::from_utf8_lossy(&line).into_owned()));
///     }
/// }
/// if let Some(line) = decoder.finish()? {
///     lines.push((line.offset(), String::from_utf8_lossy(&line).into_owned()));
/// }
/// let expected = [(0, "one"), (5, "two"), (9, "three"), (15, "four")];
/// assert_eq!(lines, expected.map(|(offset, line)| (offset, line.to_owned())));
/// # Ok::<(), minder::frame::FrameError>(())
/// ```
#[must_use]
pub struct FrameDecoder {
    format: FrameFormat,
    max_frame_bytes: usize,
    strip_cr: bool,
    allow_unterminated_line: bool,
    label: Option<String>,
    state: State,
    /// The number of bytes of the stream that were taken from the chunks.
    position: u64,
    /// The position at which the frame begins that is being read.
    frame_start: u64,
    /// The part so far of a message, of a header line, or of a 4-byte length.
    buffer: Vec<u8>,
    /// `true` if `buffer` is the message that the last call returned.
    is_returned: bool,
    /// The error that each call returns until `resync`. `state` then skips the frame.
    failed: Option<FrameError>,
}

/// The part that comes next in the stream.
#[derive(Clone, Copy, Debug)]
enum State {
    /// A message, and the byte that ends it.
    Terminated(u8),
    /// A line of a header. `length` is the value of `Content-Length`, if that line has been read.
    Header { length: Option<u64> },
    /// Four bytes that make the length.
    Length32,
    /// A message of this length.
    Message { length: usize },
    /// Bytes of a message that is skipped.
    SkipBytes { left: u64 },
    /// The rest of a message that is skipped, and the byte that ends it.
    SkipTerminated(u8),
    /// Anything before the next header.
    SkipToHeader(Search),
}

/// The result of one step of the decoder.
enum Step<'i> {
    /// The state has changed.
    Continue,
    /// All input has been taken.
    NeedInput,
    /// A message lies whole in the input.
    Whole(&'i [u8]),
    /// A message is in the buffer.
    Buffered,
}

/// A message, and where its frame begins in the stream.
///
/// It dereferences to its bytes: without the header, the length, or the byte that ends it.
///
/// ```
/// use minder::frame::{Frame, FrameDecoder, FrameFormat};
///
/// let mut decoder = FrameDecoder::new(FrameFormat::LengthBe32);
/// let mut bytes: &[u8] = b"\0\0\0\x02{}\0\0\0\x04null";
/// let first: Frame<'_> = decoder.next_frame(&mut bytes)?.expect("the bytes contain two");
/// assert!(*first == *b"{}" && first.offset() == 0);
/// let second = decoder.next_frame(&mut bytes)?.expect("the bytes contain two");
/// assert!(second.bytes() == b"null" && second.offset() == 6);
/// # Ok::<(), minder::frame::FrameError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Frame<'a> {
    /// Returns the message as one slice.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of bytes of the stream before the frame, whose header is part of it.
    pub fn offset(self) -> u64 {
        self.offset
    }
}

impl Deref for Frame<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl AsRef<[u8]> for Frame<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes at {})", self.bytes.len(), self.offset)
    }
}

impl FrameDecoder {
    /// Creates a decoder at the start of a stream.
    pub fn new(format: FrameFormat) -> Self {
        Self {
            format,
            max_frame_bytes: DEFAULT_MAX_FRAME_BYTES,
            strip_cr: false,
            allow_unterminated_line: true,
            label: None,
            state: State::start(format),
            position: 0,
            frame_start: 0,
            buffer: Vec::new(),
            is_returned: false,
            failed: None,
        }
    }

    /// Sets the maximum length of a message. Default: 16 MiB.
    ///
    /// The length, a header and the byte that ends a message do not count. The CR of a line does.
    pub fn max_frame_bytes(mut self, max: usize) -> Self {
        self.max_frame_bytes = max;
        self
    }

    /// Sets whether a CR before the LF of a line is removed. Default: no. It has no effect on other
    /// formats.
    pub fn strip_cr(mut self, yes: bool) -> Self {
        self.strip_cr = yes;
        self
    }

    /// Sets whether a last line without LF is a message, as for `BufRead::lines`, and a last text without
    /// NUL, as for `xargs -0`. Default: yes. If not, [`finish`](Self::finish) fails: the program may have
    /// been killed while it wrote. It has no effect on other formats.
    ///
    /// ```
    /// use minder::frame::{FrameDecoder, FrameErrorKind, FrameFormat};
    ///
    /// let mut decoder = FrameDecoder::new(FrameFormat::Lines).allow_unterminated_line(false);
    /// assert!(decoder.next_frame(&mut &b"[1, 2"[..])?.is_none());
    /// assert_eq!(decoder.finish().unwrap_err().kind(), FrameErrorKind::Truncated);
    /// # Ok::<(), minder::frame::FrameError>(())
    /// ```
    pub fn allow_unterminated_line(mut self, yes: bool) -> Self {
        self.allow_unterminated_line = yes;
        self
    }

    /// Sets the name of the stream for errors, such as that of the program, or a
    /// [`ChildId`](crate::ChildId).
    ///
    /// ```
    /// use minder::ChildId;
    /// use minder::frame::{FrameDecoder, FrameFormat};
    ///
    /// let child = ChildId::from_u64(7); // from `ChildSet::spawn`
    /// let mut decoder = FrameDecoder::new(FrameFormat::LengthBe32).label(format_args!("child {child}"));
    /// decoder.next_frame(&mut &b"\0\0\0\x05text"[..])?;
    /// let error = decoder.finish().unwrap_err();
    /// assert_eq!(error.label(), Some("child 7"));
    /// # Ok::<(), minder::frame::FrameError>(())
    /// ```
    pub fn label(mut self, label: impl fmt::Display) -> Self {
        self.label = Some(escape(&label.to_string()));
        self
    }

    /// Takes the next frame from the input, which then begins after it. Returns `None` if the input, all
    /// of which has been taken, ends before the frame.
    ///
    /// The message is valid until the next call. It is in the input, or in the buffer of the decoder.
    ///
    /// # Errors
    ///
    /// Fails if the frame is malformed or too long. Each further call returns the same error and takes no
    /// input, until [`resync`](Self::resync) is called.
    pub fn next_frame<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Frame<'a>>, FrameError> {
        self.check()?;
        let whole = loop {
            match self.step(input)? {
                Step::Continue => {}
                Step::NeedInput => return Ok(None),
                Step::Whole(bytes) => break Some(bytes),
                Step::Buffered => break None,
            }
        };
        let offset = self.frame_start;
        self.start_frame();
        self.is_returned = whole.is_none();
        let bytes = whole.unwrap_or(&self.buffer);
        let bytes = match bytes {
            [line @ .., b'\r'] if self.strip_cr && self.format == FrameFormat::Lines => line,
            bytes => bytes,
        };
        Ok(Some(Frame { bytes, offset }))
    }

    /// Ends the stream. Returns the last line if it has no LF, and the last NUL-terminated text if it has no
    /// NUL, unless [`allow_unterminated_line`](Self::allow_unterminated_line) forbids it.
    ///
    /// The output of a child that is started again is another stream, for which a new decoder is made.
    ///
    /// ```
    /// use minder::frame::{FrameDecoder, FrameErrorKind, FrameFormat};
    ///
    /// let mut decoder = FrameDecoder::new(FrameFormat::ContentLength);
    /// assert!(decoder.next_frame(&mut &b"Content-Length: 5\r\n\r\nnul"[..])?.is_none());
    /// let error = decoder.finish().unwrap_err();
    /// assert_eq!(error.kind(), FrameErrorKind::Truncated);
    /// assert_eq!(error.reason(), "the stream ended after 24 bytes of the frame");
    /// # Ok::<(), minder::frame::FrameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with [`Truncated`](super::FrameErrorKind::Truncated) if the stream ends within a frame, and
    /// with the error of `next_frame` if it failed. The end of the stream within a frame that `resync` skips
    /// is not another error.
    pub fn finish(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        self.check()?;
        let received = self.position - self.frame_start;
        let is_skipping =
            matches!(self.state, State::SkipBytes { .. } | State::SkipTerminated(_) | State::SkipToHeader(_));
        if received == 0 || is_skipping {
            return Ok(None);
        }
        if !matches!(self.state, State::Terminated(_)) || !self.allow_unterminated_line {
            return Err(self.fail(Reason::Truncated { received }, State::start(self.format)));
        }
        let offset = self.frame_start;
        self.start_frame();
        self.is_returned = true;
        Ok(Some(Frame { bytes: &self.buffer, offset }))
    }

    /// Continues after an error: skips the frame that failed. Without an error the call has no effect.
    ///
    /// | the frame | skipped are |
    /// | --- | --- |
    /// | a line or a NUL-terminated message that is too long | all bytes up to the next LF or NUL |
    /// | a message that is too long, and whose length is known | exactly its bytes |
    /// | a malformed header | all bytes up to the next line that begins with `Content-Length:` |
    ///
    /// The bytes are skipped as they arrive, and not kept. The caller passes the rest of the chunk again,
    /// which begins where the error was found:
    ///
    /// ```
    /// use minder::frame::{FrameDecoder, FrameFormat};
    ///
    /// let mut decoder = FrameDecoder::new(FrameFormat::ContentLength).max_frame_bytes(10);
    /// let mut bytes: &[u8] = b"Warning!\nContent-Length: 12\r\n\r\n[1,2,3,4,56]Content-Length: 2\r\n\r\n[]";
    /// let mut errors = Vec::new();
    /// let message = loop {
    ///     match decoder.next_frame(&mut bytes) {
    ///         Ok(message) => break message.map(|message| message.to_vec()),
    ///         Err(error) => errors.push(error.offset()),
    ///     }
    ///     decoder.resync();
    /// };
    /// assert_eq!(message.as_deref(), Some(&b"[]"[..]));
    /// assert_eq!(errors, [0, 9]);
    /// ```
    pub fn resync(&mut self) {
        self.failed = None;
    }

    /// Returns the error of an earlier call. Frees the message that the last call returned.
    fn check(&mut self) -> Result<(), FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.is_returned {
            self.is_returned = false;
            self.clear_buffer();
        }
        Ok(())
    }

    /// Takes a part of the input, as far as it is of one kind.
    fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<Step<'i>, FrameError> {
        match self.state {
            State::Terminated(terminator) => self.read_terminated(terminator, input),
            State::Header { length } => self.read_header_line(length, input),
            State::Length32 => self.read_length(input),
            State::Message { length } => Ok(self.read_message(length, input)),
            State::SkipBytes { left } => Ok(self.skip_bytes(left, input)),
            State::SkipTerminated(terminator) => Ok(self.skip_terminated(terminator, input)),
            State::SkipToHeader(search) => Ok(self.skip_to_header(search, input)),
        }
    }

    fn read_terminated<'i>(&mut self, terminator: u8, input: &mut &'i [u8]) -> Result<Step<'i>, FrameError> {
        let max = self.max_frame_bytes;
        let room = max.saturating_sub(self.buffer.len());
        // The message and its terminator. An error is found at the same byte, however the stream is cut.
        let window = &input[..input.len().min(room.saturating_add(1))];
        if let Some(length) = memchr(terminator, window) {
            let bytes = self.take(length + 1, input);
            return Ok(self.complete(&bytes[..length], max));
        }
        let bytes = self.take(window.len(), input);
        if bytes.len() > room {
            return Err(self.fail(Reason::Unterminated { max }, State::SkipTerminated(terminator)));
        }
        self.append(bytes, max);
        Ok(Step::NeedInput)
    }

    fn read_header_line<'i>(
        &mut self,
        length: Option<u64>,
        input: &mut &'i [u8],
    ) -> Result<Step<'i>, FrameError> {
        let used = usize::try_from(self.position - self.frame_start).unwrap_or(usize::MAX);
        let room = MAX_HEADER_BYTES.saturating_sub(used);
        let window = &input[..input.len().min(room)];
        let Some(end) = memchr(b'\n', window) else {
            let bytes = self.take(window.len(), input);
            if bytes.len() < room {
                self.append(bytes, MAX_HEADER_BYTES);
                return Ok(Step::NeedInput);
            }
            let at_line_start = self.buffer.is_empty() && bytes.is_empty();
            return Err(self.fail(Reason::LongHeader, State::SkipToHeader(Search::new(at_line_start))));
        };
        let mut line = &self.take(end + 1, input)[..end];
        if !self.buffer.is_empty() {
            self.append(line, MAX_HEADER_BYTES);
            line = &self.buffer;
        }
        let parsed = parse_line(line).map_err(|problem| (problem, Some(excerpt(without_cr(line)))));
        self.buffer.clear();
        let (problem, line) = match (parsed, length) {
            (Ok(HeaderLine::End), Some(length)) => return self.start_message(length),
            (Ok(HeaderLine::End), None) => ("the header has no field `Content-Length`", None),
            (Ok(HeaderLine::Length(length)), None) => {
                self.state = State::Header { length: Some(length) };
                return Ok(Step::Continue);
            }
            (Ok(HeaderLine::Length(_)), Some(_)) => ("the header has two fields `Content-Length`", None),
            (Ok(HeaderLine::Other), _) => return Ok(Step::Continue),
            (Err(malformed), _) => malformed,
        };
        Err(self.fail(Reason::Header { problem, line }, State::SkipToHeader(Search::new(true))))
    }

    fn read_length<'i>(&mut self, input: &mut &'i [u8]) -> Result<Step<'i>, FrameError> {
        let missing = size_of::<u32>() - self.buffer.len();
        let mut bytes = self.take(missing.min(input.len()), input);
        if bytes.len() < size_of::<u32>() {
            self.append(bytes, MAX_HEADER_BYTES);
            bytes = &self.buffer;
        }
        let Ok(bytes) = <[u8; 4]>::try_from(bytes) else { return Ok(Step::NeedInput) };
        self.buffer.clear();
        let is_big_endian = self.format == FrameFormat::LengthBe32;
        let length = if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        self.start_message(length.into())
    }

    /// Begins to read a message of a known length, unless it is too long.
    fn start_message<'i>(&mut self, length: u64) -> Result<Step<'i>, FrameError> {
        let max = self.max_frame_bytes;
        match usize::try_from(length) {
            Ok(length) if length <= max => {
                self.state = State::Message { length };
                Ok(Step::Continue)
            }
            _ => Err(self.fail(Reason::Length { length, max }, State::SkipBytes { left: length })),
        }
    }

    fn read_message<'i>(&mut self, length: usize, input: &mut &'i [u8]) -> Step<'i> {
        let missing = length - self.buffer.len();
        let bytes = self.take(missing.min(input.len()), input);
        if bytes.len() == missing {
            return self.complete(bytes, length);
        }
        self.append(bytes, length);
        Step::NeedInput
    }

    fn skip_bytes<'i>(&mut self, left: u64, input: &mut &'i [u8]) -> Step<'i> {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        self.take(count, input);
        self.state = State::SkipBytes { left: left - count as u64 };
        if count as u64 == left {
            self.start_frame();
            return Step::Continue;
        }
        Step::NeedInput
    }

    fn skip_terminated<'i>(&mut self, terminator: u8, input: &mut &'i [u8]) -> Step<'i> {
        let Some(at) = memchr(terminator, input) else {
            self.take(input.len(), input);
            return Step::NeedInput;
        };
        self.take(at + 1, input);
        self.start_frame();
        Step::Continue
    }

    fn skip_to_header<'i>(&mut self, mut search: Search, input: &mut &'i [u8]) -> Step<'i> {
        let Some(end) = search.find(input) else {
            self.take(input.len(), input);
            self.state = State::SkipToHeader(search);
            return Step::NeedInput;
        };
        self.take(end, input);
        self.start_frame();
        // The search has read the start of the line, perhaps in earlier chunks.
        self.frame_start = self.position - FIELD_START.len() as u64;
        self.append(FIELD_START, MAX_HEADER_BYTES);
        Step::Continue
    }

    /// Takes the last bytes of a message.
    fn complete<'i>(&mut self, bytes: &'i [u8], max: usize) -> Step<'i> {
        if self.buffer.is_empty() {
            return Step::Whole(bytes);
        }
        self.append(bytes, max);
        Step::Buffered
    }

    fn take<'i>(&mut self, count: usize, input: &mut &'i [u8]) -> &'i [u8] {
        let (taken, rest) = input.split_at(count);
        *input = rest;
        self.position += count as u64;
        taken
    }

    /// Appends to the buffer, whose capacity at least doubles where it grows: each byte is moved a constant
    /// number of times. It does not exceed `max`.
    fn append(&mut self, bytes: &[u8], max: usize) {
        let needed = self.buffer.len() + bytes.len();
        let capacity = self.buffer.capacity();
        if needed > capacity {
            let target = capacity.saturating_mul(2).max(MIN_BUFFER_BYTES).min(max).max(needed);
            self.buffer.reserve_exact(target - self.buffer.len());
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn start_frame(&mut self) {
        self.state = State::start(self.format);
        self.frame_start = self.position;
    }

    /// Makes the error of the present frame, which all calls return until `resync`.
    fn fail(&mut self, reason: Reason, skip: State) -> FrameError {
        let error = FrameError::new(self.label.clone(), self.frame_start, reason);
        self.clear_buffer();
        self.state = skip;
        self.frame_start = self.position;
        self.failed = Some(error.clone());
        error
    }

    fn clear_buffer(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > MAX_KEPT_BYTES {
            self.buffer = Vec::new();
        }
    }
}

impl State {
    /// Returns the state at the start of a frame.
    fn start(format: FrameFormat) -> Self {
        match format {
            FrameFormat::Lines => Self::Terminated(b'\n'),
            FrameFormat::NulTerminated => Self::Terminated(0),
            FrameFormat::ContentLength => Self::Header { length: None },
            FrameFormat::LengthBe32 | FrameFormat::LengthLe32 => Self::Length32,
        }
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl fmt::Debug for FrameDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameDecoder")
            .field("format", &self.format)
            .field("label", &self.label)
            .field("position", &self.position)
            .field("state", &self.state)
            .field("buffered", &self.buffer.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
