//! Framer: messages in the output of a child, which arrives in chunks that end anywhere.
//!
//! One framer for each stream of each child takes the chunks, and returns whole messages. A message that
//! lies whole in a chunk is not copied. A framer is for one thread at a time.
//!
//!     const uint8_t *rest = event->bytes;
//!     size_t left = event->len;
//!     for (;;) {
//!         const minder_status status = minder_framer_next(framer, &rest, &left, &frame);
//!         if (status == MINDER_OK) handle_message(frame.bytes, frame.len);
//!         else if (status == MINDER_NONE || minder_framer_resync(framer) != MINDER_OK) break;
//!     }
//!
//! The loop ends when all bytes of the chunk are taken. After a malformed frame it continues with the rest
//! of the chunk, in which the next frame may begin. A program that gives the stream up after an error ends
//! the loop there.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::c_char;
use std::sync::Mutex;

use minder::frame::{Frame, FrameDecoder, FrameError, FrameErrorKind, FrameFormat};

use crate::arg::{
    self, Growing, Opaque, bytes, free, handle, lock, options, required, store, store_structure, text,
};
use crate::status::{Failure, call, minder_status};

/// The separator of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_frame_format {
    /// Lines that end with LF.
    MINDER_FRAME_LINES = 0,
    /// Texts that end with NUL: `find -print0`, `git -z`.
    MINDER_FRAME_NUL = 1,
    /// A header with Content-Length, as language servers (LSP) and debug adapters (DAP) write it.
    MINDER_FRAME_CONTENT_LENGTH = 2,
    /// A length of four bytes, the highest first.
    MINDER_FRAME_LENGTH_BE32 = 3,
    /// A length of four bytes, the lowest first.
    MINDER_FRAME_LENGTH_LE32 = 4,
}

/// The options of a framer. Zero is the default of each.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_framer_options {
    /// The size of this structure.
    pub size: u32,
    /// One of minder_frame_format.
    pub format: i32,
    /// Not 0: CR before LF does not count as part of a line.
    pub strip_cr: i32,
    /// Not 0: the last line may lack its LF.
    pub allow_unterminated_line: i32,
    /// The most bytes of a message. Default: 16 MiB.
    pub max_frame_bytes: usize,
    /// The name of the stream in errors; NULL: they do not name it.
    pub label: *const c_char,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_framer_options {}

/// A message.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_frame {
    /// The size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// The message without header and terminator. Valid until the next call with the framer, and only as
    /// long as the bytes that were passed.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
    /// The position in the stream at which the frame begins.
    pub offset: u64,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_frame {}

/// Makes messages of one stream. Freed by minder_framer_free().
#[derive(Debug)]
pub struct minder_framer(());

/// The state of a framer.
#[derive(Debug)]
pub(crate) struct Reader {
    decoder: FrameDecoder,
    /// `true` if each call returns an error until `minder_framer_resync`.
    has_failed: bool,
}

impl Opaque for minder_framer {
    type Inner = Mutex<Reader>;
    const TAG: [u8; 8] = *b"mnd_frm\0";
}

impl From<FrameError> for Failure {
    fn from(error: FrameError) -> Self {
        let status = match error.kind() {
            FrameErrorKind::Oversized => minder_status::MINDER_LIMIT,
            FrameErrorKind::MalformedHeader => minder_status::MINDER_INVALID,
            _ => minder_status::MINDER_FAILED,
        };
        Self::new(status, error.to_string())
    }
}

fn format_of(number: i32) -> Result<FrameFormat, Failure> {
    Ok(match number {
        0 => FrameFormat::Lines,
        1 => FrameFormat::NulTerminated,
        2 => FrameFormat::ContentLength,
        3 => FrameFormat::LengthBe32,
        4 => FrameFormat::LengthLe32,
        _ => {
            let text = format!("option `format` is {number}, which the library does not know");
            return Err(Failure::invalid(text));
        }
    })
}

fn described(frame: Frame<'_>) -> minder_frame {
    let bytes = frame.bytes();
    minder_frame { size: 0, reserved: 0, bytes: bytes.as_ptr(), len: bytes.len(), offset: frame.offset() }
}

/// Creates a framer. The options may be NULL: lines.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_framer_new(
    options: *const minder_framer_options,
    framer: *mut *mut minder_framer,
) -> minder_status {
    call(|| {
        required!(framer);
        store!(framer, std::ptr::null_mut());
        let given: minder_framer_options = options!(options);
        let mut decoder = FrameDecoder::new(format_of(given.format)?)
            .strip_cr(given.strip_cr != 0)
            .allow_unterminated_line(given.allow_unterminated_line != 0);
        if given.max_frame_bytes != 0 {
            decoder = decoder.max_frame_bytes(given.max_frame_bytes);
        }
        let label = given.label;
        if !label.is_null() {
            decoder = decoder.label(text!(label).to_string_lossy());
        }
        store!(framer, arg::new_handle(Mutex::new(Reader { decoder, has_failed: false })));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees a framer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_framer_free(framer: *mut minder_framer) {
    free!(framer);
}

/// Takes bytes from `*bytes`, which has `*len`, until a message is whole, and stores that. Moves both
/// behind what it took.
///
/// Returns MINDER_NONE when all bytes are taken and no message is whole. A message that is too long is
/// MINDER_LIMIT, and a malformed header is MINDER_INVALID: then each further call returns the same error and
/// takes nothing, until minder_framer_resync(). `*bytes` points to where the error was found: after
/// minder_framer_resync(), pass this rest of the chunk again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_framer_next(
    framer: *mut minder_framer,
    bytes: *mut *const u8,
    len: *mut usize,
    frame: *mut minder_frame,
) -> minder_status {
    call(|| {
        required!(bytes);
        required!(len);
        required!(frame);
        let mut reader = lock(handle!(framer));
        // SAFETY: the caller passes a pointer to its pointer.
        let start = unsafe { bytes.read() };
        // SAFETY: the caller passes a pointer to its length.
        let count = unsafe { len.read() };
        let mut rest = bytes!(start, count);
        let next = reader.decoder.next_frame(&mut rest);
        let found = next.map(|frame| frame.map(described));
        reader.has_failed = found.is_err();
        store!(len, rest.len());
        // SAFETY: `rest` is the end of the range, or empty.
        store!(bytes, unsafe { start.add(count - rest.len()) });
        let Some(found) = found? else { return Ok(minder_status::MINDER_NONE) };
        store_structure!(frame, found);
        Ok(minder_status::MINDER_OK)
    })
}

/// Ends the stream. Stores the last line if it may lack its LF. Returns MINDER_NONE if there is none, and
/// MINDER_FAILED if the stream ended within a message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_framer_finish(
    framer: *mut minder_framer,
    frame: *mut minder_frame,
) -> minder_status {
    call(|| {
        let mut reader = lock(handle!(framer));
        let found = reader.decoder.finish().map(|frame| frame.map(described));
        reader.has_failed = found.is_err();
        let Some(found) = found? else { return Ok(minder_status::MINDER_NONE) };
        store_structure!(frame, found);
        Ok(minder_status::MINDER_OK)
    })
}

/// Skips the frame that caused an error: the next call of minder_framer_next() looks for the one after it,
/// in the rest of the same chunk and in those that follow.
///
/// Returns MINDER_NONE if there was no such error, and does nothing then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_framer_resync(framer: *mut minder_framer) -> minder_status {
    call(|| {
        let mut reader = lock(handle!(framer));
        if !std::mem::take(&mut reader.has_failed) {
            return Ok(minder_status::MINDER_NONE);
        }
        reader.decoder.resync();
        Ok(minder_status::MINDER_OK)
    })
}

/// Writes a message in a format, for the input of a child. Stores how many bytes that takes. Writes
/// nothing, and returns MINDER_LIMIT, if the buffer has less room; it may be NULL if `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_frame_encode(
    format: i32,
    message: *const u8,
    len: usize,
    buffer: *mut u8,
    capacity: usize,
    needed: *mut usize,
) -> minder_status {
    call(|| {
        let mut encoded = Vec::new();
        format_of(format)?.encode(bytes!(message, len), &mut encoded)?;
        store!(needed, encoded.len());
        // SAFETY: the caller's buffer has `capacity` bytes; it is not ours.
        unsafe { arg::copy_out(&encoded, buffer, capacity, "message") }?;
        Ok(minder_status::MINDER_OK)
    })
}
