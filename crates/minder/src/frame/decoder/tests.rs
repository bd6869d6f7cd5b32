//! The decoder, frame by frame and with random streams that are cut anywhere.

use proptest::prelude::*;

use super::super::error::FrameErrorKind;
use super::*;

const FORMATS: [FrameFormat; 5] = [
    FrameFormat::Lines,
    FrameFormat::NulTerminated,
    FrameFormat::ContentLength,
    FrameFormat::LengthBe32,
    FrameFormat::LengthLe32,
];

/// One result of decoding a stream.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Frame(u64, Vec<u8>),
    Error(FrameError),
}

/// Decodes all chunks and the end of the stream, with `resync` after each error. Checks on the way that
/// the buffer keeps its bound, and that a message is copied only if its frame spans chunks.
fn decode<'a>(mut decoder: FrameDecoder, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Outcome> {
    let bound = decoder.max_frame_bytes.max(MAX_HEADER_BYTES);
    let mut outcomes = Vec::new();
    let mut chunk_start = 0;
    for chunk in chunks {
        let mut rest = chunk;
        loop {
            match decoder.next_frame(&mut rest) {
                Ok(Some(frame)) => {
                    if frame.offset() >= chunk_start && !frame.is_empty() {
                        assert!(chunk.as_ptr_range().contains(&frame.as_ptr()), "{frame:?} was copied");
                    }
                    outcomes.push(Outcome::Frame(frame.offset(), frame.to_vec()));
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(&mut rest), Err(error.clone()), "an error stays");
                    outcomes.push(Outcome::Error(error));
                    decoder.resync();
                }
            }
            assert!(decoder.buffer.capacity() <= bound, "{decoder:?}");
        }
        assert!(rest.is_empty(), "all input is taken: {decoder:?}");
        assert!(decoder.buffer.capacity() <= bound, "{decoder:?}");
        chunk_start += chunk.len() as u64;
    }
    match decoder.finish() {
        Ok(Some(frame)) => outcomes.push(Outcome::Frame(frame.offset(), frame.to_vec())),
        Ok(None) => {}
        Err(error) => outcomes.push(Outcome::Error(error)),
    }
    outcomes
}

/// Decodes the stream in one chunk, cut once at each place, byte by byte, and at the given places.
/// Returns the outcomes, which are the same each time.
fn decode_all_ways(
    decoder: impl Fn() -> FrameDecoder,
    stream: &[u8],
    cuts: &[prop::sample::Index],
) -> Vec<Outcome> {
    let outcomes = decode(decoder(), [stream]);
    for cut in 0..=stream.len() {
        assert_eq!(decode(decoder(), [&stream[..cut], &stream[cut..]]), outcomes, "cut at {cut}");
    }
    assert_eq!(decode(decoder(), stream.chunks(1)), outcomes, "byte by byte");
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    ends.push(stream.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let chunks = starts.zip(&ends).map(|(start, &end)| &stream[start..end]);
    assert_eq!(decode(decoder(), chunks), outcomes, "cut at {ends:?}");
    outcomes
}

fn encoded(format: FrameFormat, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    format.encode(message, &mut out).expect("the message is valid in its format");
    out
}

fn frame(offset: usize, message: &[u8]) -> Outcome {
    Outcome::Frame(offset as u64, message.to_vec())
}

/// Returns the error that is the only outcome.
fn only_error(decoder: FrameDecoder, stream: &[u8]) -> FrameError {
    match &decode(decoder, [stream])[..] {
        [Outcome::Error(error)] => error.clone(),
        outcomes => panic!("not one error: {outcomes:?}"),
    }
}

#[test]
fn message_that_lies_whole_in_a_chunk_is_borrowed_from_it() {
    for format in FORMATS {
        let mut chunk = encoded(format, b"first");
        let end = chunk.len();
        chunk.extend(encoded(format, b"second"));
        let mut decoder = FrameDecoder::new(format);
        let mut rest = &chunk[..];
        for message in ["first", "second"] {
            let frame = decoder.next_frame(&mut rest).unwrap().unwrap();
            assert_eq!(frame.bytes(), message.as_bytes());
            assert!(chunk.as_ptr_range().contains(&frame.as_ptr()), "{format:?}");
        }
        assert_eq!(decoder.buffer.capacity(), 0, "{format:?}: nothing was copied");
        // After a frame that spans chunks, too; and after a header in an earlier chunk.
        let cut = end - "first".len() - 1;
        assert_eq!(decoder.next_frame(&mut &chunk[..cut]), Ok(None));
        let mut rest = &chunk[cut..];
        decoder.next_frame(&mut rest).unwrap().unwrap();
        let frame = decoder.next_frame(&mut rest).unwrap().unwrap();
        assert!(chunk.as_ptr_range().contains(&frame.as_ptr()), "{format:?}");
    }
}

#[test]
fn message_is_borrowed_if_only_its_header_was_in_an_earlier_chunk() {
    for format in [FrameFormat::ContentLength, FrameFormat::LengthBe32, FrameFormat::LengthLe32] {
        let stream = encoded(format, b"text");
        let (header, body) = stream.split_at(stream.len() - 4);
        let mut decoder = FrameDecoder::new(format);
        for byte in header.chunks(1) {
            assert_eq!(decoder.next_frame(&mut &*byte), Ok(None));
        }
        let mut rest = body;
        let frame = decoder.next_frame(&mut rest).unwrap().unwrap();
        assert_eq!((frame.as_ptr(), frame.bytes()), (body.as_ptr(), &b"text"[..]));
    }
}

#[test]
fn maximum_is_accepted_and_one_more_byte_is_not() {
    for format in FORMATS {
        for max in [0, 1, 4095, 4096, 4097, 100_000] {
            let mut stream = encoded(format, &vec![b'x'; max]);
            let start = stream.len();
            stream.extend(encoded(format, &vec![b'x'; max + 1]));
            let end = stream.len();
            stream.extend(encoded(format, b""));
            for chunk_size in [1000, 1 << 20] {
                let decoder = FrameDecoder::new(format).max_frame_bytes(max).label("x");
                let outcomes = decode(decoder, stream.chunks(chunk_size));
                let [first, Outcome::Error(error), last] = &outcomes[..] else {
                    panic!("{format:?}: {outcomes:?}")
                };
                assert_eq!([first, last], [&frame(0, &vec![b'x'; max]), &frame(end, b"")]);
                assert_eq!((error.kind(), error.offset()), (FrameErrorKind::Oversized, start as u64));
                assert!(
                    error
                        .to_string()
                        .starts_with(&format!("failed to read a frame of `x` at byte {start}: "))
                );
            }
        }
    }
}

#[test]
fn failed_decoder_takes_no_input_and_returns_the_same_error() {
    let mut decoder = FrameDecoder::new(FrameFormat::Lines).max_frame_bytes(2);
    let mut rest: &[u8] = b"long line\nx\n";
    let error = decoder.next_frame(&mut rest).unwrap_err();
    let left = rest;
    for _ in 0..3 {
        assert_eq!(decoder.next_frame(&mut rest), Err(error.clone()));
        assert_eq!(decoder.next_frame(&mut &b"other\n"[..]), Err(error.clone()));
        assert_eq!(decoder.finish(), Err(error.clone()));
    }
    assert_eq!(rest, left);
    decoder.resync();
    assert_eq!(decoder.next_frame(&mut rest).unwrap().unwrap().offset(), 10);
}

#[test]
fn resync_without_an_error_has_no_effect() {
    let mut decoder = FrameDecoder::new(FrameFormat::Lines);
    assert_eq!(decoder.next_frame(&mut &b"on"[..]), Ok(None));
    decoder.resync();
    assert_eq!(decoder.next_frame(&mut &b"e\n"[..]).unwrap().unwrap().bytes(), b"one");
}

#[test]
fn buffer_grows_with_the_bytes_that_arrive_and_is_freed_after_a_large_message() {
    let message = vec![b'x'; 1 << 20];
    for format in FORMATS {
        let stream = encoded(format, &message);
        let mut decoder = FrameDecoder::new(format);
        let mut capacities = Vec::new();
        for (at, byte) in stream.chunks(1).enumerate() {
            let mut rest = byte;
            let is_last = decoder.next_frame(&mut rest).unwrap().is_some();
            assert_eq!(is_last, at + 1 == stream.len());
            let capacity = decoder.buffer.capacity();
            assert!(capacity <= (2 * at).max(MIN_BUFFER_BYTES), "{format:?}: {capacity} bytes after {at}");
            if capacities.last() != Some(&capacity) {
                capacities.push(capacity);
            }
        }
        // Doubling from 4 KiB to 1 MiB: each byte is moved a constant number of times.
        assert!(capacities.len() <= 10, "{format:?}: {capacities:?}");
        assert!(decoder.buffer.capacity() >= message.len());
        assert_eq!(decoder.next_frame(&mut &b""[..]), Ok(None));
        assert_eq!(decoder.buffer.capacity(), 0, "{format:?}");
        // An error frees it, too.
        let mut decoder = FrameDecoder::new(format).max_frame_bytes(1 << 20).allow_unterminated_line(false);
        assert_eq!(decoder.next_frame(&mut &stream[..stream.len() - 1]), Ok(None));
        assert!(decoder.buffer.capacity() >= message.len() - 1);
        assert_eq!(decoder.finish().unwrap_err().kind(), FrameErrorKind::Truncated);
        assert_eq!(decoder.buffer.capacity(), 0, "{format:?}");
    }
}

#[test]
fn small_buffer_is_kept() {
    let mut decoder = FrameDecoder::new(FrameFormat::Lines);
    assert_eq!(decoder.next_frame(&mut &b"on"[..]), Ok(None));
    let mut rest: &[u8] = b"e\ntw";
    assert!(decoder.next_frame(&mut rest).unwrap().is_some());
    let start = decoder.buffer.as_ptr();
    assert_eq!(decoder.next_frame(&mut rest), Ok(None));
    assert_eq!((decoder.buffer.as_ptr(), decoder.buffer.capacity()), (start, MIN_BUFFER_BYTES));
}

#[test]
fn header_has_a_maximum() {
    let header = |length: usize| {
        let rest = "\r\nContent-Length: 1\r\n\r\n!";
        "X-Long: ".to_owned() + &"x".repeat(length - "X-Long: ".len() - rest.len() + 1) + rest
    };
    let stream = header(MAX_HEADER_BYTES);
    assert_eq!(stream.len(), MAX_HEADER_BYTES + 1);
    for chunk_size in [1, 100, 10_000] {
        let outcomes =
            decode(FrameDecoder::new(FrameFormat::ContentLength), stream.as_bytes().chunks(chunk_size));
        assert_eq!(outcomes, [frame(0, b"!")]);
    }
    let stream = header(MAX_HEADER_BYTES + 1);
    for chunk_size in [1, 100, 10_000] {
        let outcomes =
            decode(FrameDecoder::new(FrameFormat::ContentLength), stream.as_bytes().chunks(chunk_size));
        let [Outcome::Error(error)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!((error.kind(), error.offset()), (FrameErrorKind::MalformedHeader, 0));
        assert_eq!(error.reason(), "no end of the header within 4096 bytes, the maximum");
    }
}

#[test]
fn resync_after_a_header_that_is_too_long_accepts_the_line_after_it() {
    // The maximum ends with a line, or within one.
    for (padding, is_line_end) in [(MAX_HEADER_BYTES, true), (MAX_HEADER_BYTES + 1, false)] {
        let line = "X: ".to_owned() + &"x".repeat(padding - 5) + "\r\n";
        let stream = line.clone() + "Content-Length: 2\r\n\r\n[]";
        let decoder = || FrameDecoder::new(FrameFormat::ContentLength);
        for chunk_size in [1, 7, 10_000] {
            let outcomes = decode(decoder(), stream.as_bytes().chunks(chunk_size));
            let [Outcome::Error(_), last] = &outcomes[..] else { panic!("{is_line_end}: {outcomes:?}") };
            assert_eq!(*last, frame(line.len(), b"[]"), "{is_line_end}");
        }
    }
}

#[test]
fn malformed_header_is_named() {
    let cases = [
        ("\r\n", "the header has no field `Content-Length`"),
        ("Content-Type: text\r\n\r\n", "the header has no field `Content-Length`"),
        ("Content-Length: 1\r\ncontent-length: 1\r\n", "the header has two fields `Content-Length`"),
        ("Content-Length: 1\n", "a line of the header does not end with CR LF: `Content-Length: 1`"),
        ("panicked at 'x'\r\n", "a line of the header has no colon: `panicked at 'x'`"),
        ("two words: 1\r\n", "the name of a header field is invalid: `two words: 1`"),
        (
            "Content-Length: -1\r\n",
            "`Content-Length` is not a decimal number below 2^64: `Content-Length: -1`",
        ),
    ];
    for (stream, reason) in cases {
        let outcomes =
            decode_all_ways(|| FrameDecoder::new(FrameFormat::ContentLength), stream.as_bytes(), &[]);
        let [Outcome::Error(error)] = &outcomes[..] else { panic!("{stream:?}: {outcomes:?}") };
        assert_eq!((error.kind(), error.offset()), (FrameErrorKind::MalformedHeader, 0), "{stream:?}");
        assert_eq!(error.reason(), reason, "{stream:?}");
    }
}

#[test]
fn header_fields_have_any_order_and_case() {
    let stream =
        "CONTENT-TYPE: application/vscode-jsonrpc; charset=utf-8\r\nX-Other:\r\ncontent-length:  2\r\n\r\n[]";
    let outcomes = decode_all_ways(|| FrameDecoder::new(FrameFormat::ContentLength), stream.as_bytes(), &[]);
    assert_eq!(outcomes, [frame(0, b"[]")]);
}

#[test]
fn length_of_64_bits_is_skipped_and_not_waited_for() {
    let mut decoder = FrameDecoder::new(FrameFormat::ContentLength).max_frame_bytes(usize::MAX - 1);
    let mut rest: &[u8] = b"Content-Length: 18446744073709551615\r\n\r\n[]";
    assert_eq!(decoder.next_frame(&mut rest).unwrap_err().kind(), FrameErrorKind::Oversized);
    decoder.resync();
    assert_eq!(decoder.next_frame(&mut rest), Ok(None));
    assert_eq!((decoder.finish(), rest), (Ok(None), &b""[..]));
}

#[test]
fn largest_maximum_is_no_overflow() {
    for format in FORMATS {
        let stream = encoded(format, b"text");
        let decoder = || FrameDecoder::new(format).max_frame_bytes(usize::MAX);
        assert_eq!(decode_all_ways(decoder, &stream, &[]), [frame(0, b"text")]);
    }
}

#[test]
fn unterminated_rest_is_the_last_line_or_an_error() {
    for format in FORMATS {
        let decoder = || FrameDecoder::new(format).strip_cr(true);
        assert_eq!(decode_all_ways(decoder, b"", &[]), []);
        let stream = encoded(format, b"text");
        for end in 1..stream.len() {
            let outcomes = decode_all_ways(decoder, &stream[..end], &[]);
            if let FrameFormat::Lines | FrameFormat::NulTerminated = format {
                assert_eq!(outcomes, [frame(0, &stream[..end])]);
                continue;
            }
            let error = only_error(decoder(), &stream[..end]);
            assert_eq!(outcomes, [Outcome::Error(error.clone())]);
            assert_eq!((error.kind(), error.offset()), (FrameErrorKind::Truncated, 0));
        }
    }
    let strict = FrameDecoder::new(FrameFormat::Lines).allow_unterminated_line(false);
    let error = only_error(strict, b"text");
    assert_eq!(
        error.to_string(),
        "failed to read a frame at byte 0: the stream ended after 4 bytes of the frame"
    );
}

#[test]
fn strip_cr_removes_one_cr_before_each_lf() {
    let stream = b"a\r\n\r\nb\r\r\nc\rd\ne\r";
    let decoder = || FrameDecoder::new(FrameFormat::Lines).strip_cr(true);
    let expected = [frame(0, b"a"), frame(3, b""), frame(5, b"b\r"), frame(9, b"c\rd"), frame(13, b"e\r")];
    assert_eq!(decode_all_ways(decoder, stream, &[]), expected);
    let outcomes = decode(FrameDecoder::new(FrameFormat::Lines), [&b"a\r\n"[..]]);
    assert_eq!(outcomes, [frame(0, b"a\r")]);
    let outcomes = decode(FrameDecoder::new(FrameFormat::NulTerminated).strip_cr(true), [&b"a\r\0"[..]]);
    assert_eq!(outcomes, [frame(0, b"a\r")]);
}

#[test]
fn label_of_an_error_is_one_line() {
    let decoder = FrameDecoder::new(FrameFormat::LengthBe32).label("a\nb");
    let error = only_error(decoder, b"x");
    assert_eq!(error.label(), Some("a\\nb"));
    assert_eq!(error.to_string().lines().count(), 1);
}

fn format() -> impl Strategy<Value = FrameFormat> {
    prop::sample::select(FORMATS.to_vec())
}

/// Returns messages whose bytes often look like headers and terminators, as far as the format allows.
fn messages(format: FrameFormat) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = prop_oneof![Just(b'\n'), Just(b'\r'), Just(0), Just(b':'), any::<u8>()];
    let text = prop_oneof![
        prop::collection::vec(byte, 0..30),
        Just(b"\nContent-Length: 1\r\n\r\n".to_vec()),
        Just(Vec::new()),
    ];
    let forbidden = match format {
        FrameFormat::Lines => Some(b'\n'),
        FrameFormat::NulTerminated => Some(0),
        _ => None,
    };
    let text = text.prop_map(move |mut message| {
        message.retain(|byte| Some(*byte) != forbidden);
        message
    });
    prop::collection::vec(text, 0..6)
}

/// Returns bytes of all formats, valid or not.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        Just(b"\0".to_vec()),
        Just(b"Content-Length: ".to_vec()),
        Just(b"\ncontent-LENGTH:".to_vec()),
        Just(b"Content-Length: 3\r\n\r\nabc".to_vec()),
        Just(b"Content-Type: x\r\n".to_vec()),
        (0_u32..60).prop_map(|number| number.to_string().into_bytes()),
        (0_u32..60).prop_map(|number| number.to_be_bytes().to_vec()),
        (0_u32..60).prop_map(|number| number.to_le_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
        Just(vec![b'x'; 40]),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..8)
}

proptest! {
    #[test]
    fn encoded_messages_are_decoded_with_their_offsets_wherever_the_stream_is_cut(
        (format, messages) in format().prop_flat_map(|format| (Just(format), messages(format))),
        cuts in cuts(),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for message in &messages {
            expected.push(frame(stream.len(), message));
            format.encode(message, &mut stream).unwrap();
        }
        prop_assert_eq!(decode_all_ways(|| FrameDecoder::new(format), &stream, &cuts), expected);
    }

    #[test]
    fn garbage_results_in_the_same_frames_and_errors_wherever_it_is_cut(
        format in format(),
        stream in garbage(),
        cuts in cuts(),
        max in 0_usize..50,
        strip_cr: bool,
        last_line: bool,
    ) {
        let decoder = || {
            let decoder = FrameDecoder::new(format).max_frame_bytes(max).label("x");
            decoder.strip_cr(strip_cr).allow_unterminated_line(last_line)
        };
        let outcomes = decode_all_ways(decoder, &stream, &cuts);
        // Offsets increase, and a frame is not longer than the maximum.
        let mut after = 0;
        for outcome in outcomes {
            let (offset, length) = match &outcome {
                Outcome::Frame(offset, message) => (*offset, message.len()),
                Outcome::Error(error) => (error.offset(), 0),
            };
            prop_assert!(offset >= after && length <= max, "{outcome:?}");
            after = offset + 1;
        }
    }

    #[test]
    fn resync_reaches_the_next_good_frame_wherever_the_stream_is_cut(
        (format, messages) in format().prop_flat_map(|format| (Just(format), messages(format))),
        excess in 1_usize..100,
        kind in 0..3,
        cuts in cuts(),
    ) {
        const MAX: usize = 40;
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for message in &messages {
            let start = stream.len();
            // A message that is too long contains what looks like frames, where its length is known.
            let mut long = b"\nContent-Length: 1\r\n\r\n!".repeat(MAX);
            long.truncate(MAX + excess);
            match (format, kind) {
                (FrameFormat::Lines | FrameFormat::NulTerminated, _) => long.fill(b'x'),
                (FrameFormat::ContentLength, 1) => stream.extend(b"not a header\nat all:Content-Length: 1\n"),
                (FrameFormat::ContentLength, 2) => stream.extend(b"Content-Type: x\r\n\r\n"),
                _ => {}
            }
            if stream.len() == start {
                format.encode(&long, &mut stream).unwrap();
            }
            expected.push((start as u64, None));
            expected.push((stream.len() as u64, Some(message.clone())));
            format.encode(message, &mut stream).unwrap();
        }
        let decoder = || FrameDecoder::new(format).max_frame_bytes(MAX);
        let outcomes: Vec<_> = decode_all_ways(decoder, &stream, &cuts)
            .into_iter()
            .map(|outcome| match outcome {
                Outcome::Frame(offset, message) => (offset, Some(message)),
                Outcome::Error(error) => (error.offset(), None),
            })
            .collect();
        prop_assert_eq!(outcomes, expected);
    }
}
