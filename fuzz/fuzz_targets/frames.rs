//! Streams of any bytes: a decoder does not panic, and where the chunks end changes nothing.
//!
//! The first byte of an input chooses the format and the options, the second the maximum of a message,
//! and the third how many of the next bytes are lengths of chunks. The others are the stream, in which the
//! highest bytes stand for parts of headers: the fuzzer would hardly find them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use minder::frame::{FrameDecoder, FrameError, FrameFormat};

const FORMATS: [FrameFormat; 5] = [
    FrameFormat::Lines,
    FrameFormat::NulTerminated,
    FrameFormat::ContentLength,
    FrameFormat::LengthBe32,
    FrameFormat::LengthLe32,
];

/// The texts that replace the bytes from `FIRST_PART` on.
const PARTS: [&[u8]; 9] = [
    b"Content-Length: ",
    b"\ncontent-length:",
    b"Content-Type: x\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"Content-Length: 5\r\n\r\n",
    b"\0\0\0\x05",
    b"\x05\0\0\0",
    &[b'x'; 1000],
];

const FIRST_PART: u8 = 0xf0;

/// The result of decoding a stream: frames with their offsets, and errors.
type Outcomes = Vec<Result<(u64, Vec<u8>), FrameError>>;

fuzz_target!(|input: &[u8]| {
    let [choice, max, cuts, rest @ ..] = input else { return };
    let (sizes, stream) = rest.split_at(rest.len().min(usize::from(cuts % 16)));
    let stream = &expand(stream)[..];
    let format = FORMATS[usize::from(choice >> 3) % FORMATS.len()];
    let bit = |nth: u8| choice >> nth & 1 == 1;
    let max = usize::from(*max);
    let decoder = || {
        let decoder = FrameDecoder::new(format).max_frame_bytes(max).label("child 1");
        decoder.strip_cr(bit(0)).allow_unterminated_line(bit(1))
    };
    let outcomes = decode(decoder(), [stream], bit(2));
    assert_eq!(decode(decoder(), stream.chunks(1), bit(2)), outcomes, "byte by byte");
    let mut left = stream;
    let mut chunks: Vec<&[u8]> = Vec::new();
    for size in sizes {
        let (chunk, after) = left.split_at(left.len().min(usize::from(*size)));
        chunks.push(chunk);
        left = after;
    }
    chunks.push(left);
    assert_eq!(decode(decoder(), chunks, bit(2)), outcomes, "in chunks of {sizes:?} bytes");

    // Frames are in order and within the maximum. What was decoded can be encoded again.
    let mut after = 0;
    for outcome in &outcomes {
        let Ok((offset, message)) = outcome else { continue };
        assert!(*offset >= after && message.len() <= max);
        after = offset + message.len() as u64;
        let mut encoded = Vec::new();
        format.encode(message, &mut encoded).expect("a decoded message is valid");
        assert_eq!(decode(decoder().strip_cr(false), [&encoded[..]], false), [Ok((0, message.clone()))]);
    }
});

/// Returns the bytes with the parts that they stand for.
fn expand(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    for byte in bytes {
        let part = byte.checked_sub(FIRST_PART).and_then(|nth| PARTS.get(usize::from(nth)));
        stream.extend_from_slice(part.unwrap_or(&std::slice::from_ref(byte)));
    }
    stream
}

/// Decodes chunks and the end of the stream, with `resync` after each error or up to the first.
fn decode<'a>(
    mut decoder: FrameDecoder,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    resync: bool,
) -> Outcomes {
    let mut outcomes = Vec::new();
    for chunk in chunks {
        let mut rest = chunk;
        loop {
            match decoder.next_frame(&mut rest) {
                Ok(Some(frame)) => outcomes.push(Ok((frame.offset(), frame.to_vec()))),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(&mut rest), Err(error.clone()), "an error stays");
                    outcomes.push(Err(error));
                    if !resync {
                        return outcomes;
                    }
                    decoder.resync();
                }
            }
        }
        assert!(rest.is_empty(), "a decoder that needs more input has taken all");
    }
    match decoder.finish() {
        Ok(Some(line)) => outcomes.push(Ok((line.offset(), line.to_vec()))),
        Ok(None) => {}
        Err(error) => outcomes.push(Err(error)),
    }
    outcomes
}
