//! Messages in the output of a child: lines, and other frames.
//!
//! A child writes messages, but its output arrives in chunks that end anywhere. A [`FrameDecoder`] takes
//! the chunks of one stream and returns its messages, each as one slice. A message that lies whole in a
//! chunk is not copied.
//!
//! | [`FrameFormat`] | spoken by |
//! | --- | --- |
//! | [`Lines`](FrameFormat::Lines) | most tools, JSON lines |
//! | [`NulTerminated`](FrameFormat::NulTerminated) | `find -print0`, `git -z` |
//! | [`ContentLength`](FrameFormat::ContentLength) | language servers (LSP), debug adapters (DAP) |
//! | [`LengthBe32`](FrameFormat::LengthBe32) | many binary protocols |
//! | [`LengthLe32`](FrameFormat::LengthLe32) | browsers and their native messaging hosts, on most machines |
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::frame::{FrameDecoder, FrameFormat};
//! use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};
//!
//! let mut set = ChildSet::new(ChildSetOptions::new())?;
//! let mut command = Command::new("printf");
//! command.arg("one\ntwo\nthree").stdout(Stdio::piped());
//! let child = set.spawn(&command, SpawnOptions::new())?;
//! // One decoder for each stream of each child.
//! let mut decoder = FrameDecoder::new(FrameFormat::Lines).label(format_args!("child {child}"));
//! let mut lines = Vec::new();
//! while let NextEvent::Event(event) = set.next_event(None)? {
//!     if let Event::Output { chunk, .. } = event {
//!         let mut rest: &[u8] = &chunk;
//!         while let Some(line) = decoder.next_frame(&mut rest)? {
//!             lines.push(line.to_vec());
//!         }
//!     }
//! }
//! // The last line may have no line end.
//! lines.extend(decoder.finish()?.map(|line| line.to_vec()));
//! assert_eq!(lines, [&b"one"[..], b"two", b"three"]);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Formats
//!
//! Each format has the same calls. [`FrameFormat::encode`] writes what a decoder reads:
//!
//! ```
//! use minder::frame::{FrameDecoder, FrameFormat};
//!
//! let formats = [
//!     (FrameFormat::Lines, "[1]\n[2]\n"),
//!     (FrameFormat::NulTerminated, "[1]\0[2]\0"),
//!     (FrameFormat::ContentLength, "Content-Length: 3\r\n\r\n[1]Content-Length: 3\r\n\r\n[2]"),
//!     (FrameFormat::LengthBe32, "\0\0\0\x03[1]\0\0\0\x03[2]"),
//!     (FrameFormat::LengthLe32, "\x03\0\0\0[1]\x03\0\0\0[2]"),
//! ];
//! for (format, text) in formats {
//!     let mut encoded = Vec::new();
//!     format.encode(b"[1]", &mut encoded)?;
//!     format.encode(b"[2]", &mut encoded)?;
//!     assert_eq!(encoded, text.as_bytes());
//!
//!     let mut decoder = FrameDecoder::new(format);
//!     let mut messages = Vec::new();
//!     let mut rest = &encoded[..];
//!     while let Some(message) = decoder.next_frame(&mut rest)? {
//!         messages.push(message.to_vec());
//!     }
//!     assert!(decoder.finish()?.is_none(), "the stream ends after a frame");
//!     assert_eq!(messages, [b"[1]", b"[2]"]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Errors
//!
//! A message that is longer than [`FrameDecoder::max_frame_bytes`], or that has a malformed header, is a
//! [`FrameError`]. It says where in the stream the frame begins. The caller closes the stream, or calls
//! [`FrameDecoder::resync`] to skip the frame. Without that call, each further call returns the same error.
//! A stream that ends within a message whose length is known is an error, too; a last line without LF is a
//! message.
//!
//! Which frames and errors a stream results in does not depend on where its chunks end.

mod format;
mod header;
mod error;
mod decoder;

pub use self::{
    decoder::{Frame, FrameDecoder},
    error::{FrameError, FrameErrorKind},
    format::FrameFormat,
    header::MAX_HEADER_BYTES,
};
