//! The position and the kind of each error in a message.

use minder_cells::{JsonErrorKind as Kind, RegionPool};

#[test]
fn errors_are_at_the_first_byte_that_cannot_be_there() {
    let cases: &[(&[u8], Kind, usize)] = &[
        (b"", Kind::Incomplete, 0),
        (b"   ", Kind::Incomplete, 3),
        (b"[", Kind::Incomplete, 1),
        (b"[\"a\xc3", Kind::Incomplete, 4),
        (b"[x\xc3", Kind::Syntax, 1),
        (b"1\xc3", Kind::Text, 1),
        (b"[1", Kind::Incomplete, 2),
        (b"[1,", Kind::Incomplete, 3),
        (b"{\"a", Kind::Incomplete, 3),
        (b"{\"a\"", Kind::Incomplete, 4),
        (b"{\"a\":", Kind::Incomplete, 5),
        (b"-", Kind::Incomplete, 1),
        (b"1.", Kind::Incomplete, 2),
        (b"1e", Kind::Incomplete, 2),
        (b"1e+", Kind::Incomplete, 3),
        (b"tru", Kind::Incomplete, 3),
        (b"\"\\", Kind::Incomplete, 2),
        (b"\"\\u12", Kind::Incomplete, 5),
        (b"x", Kind::Syntax, 0),
        (b"[1 2]", Kind::Syntax, 3),
        (b"[1,]", Kind::Syntax, 3),
        (b"[,1]", Kind::Syntax, 1),
        (b"[1}", Kind::Syntax, 2),
        (b"{1:2}", Kind::Syntax, 1),
        (b"{\"a\" 1}", Kind::Syntax, 5),
        (b"{\"a\":1,}", Kind::Syntax, 7),
        (b"trux", Kind::Syntax, 3),
        (b"\0", Kind::Syntax, 0),
        (b"1\0", Kind::Trailing, 1),
        (b"[1]\0", Kind::Trailing, 3),
        (b"\"a\tb\"", Kind::Syntax, 2),
        (b"\"12345678\n\"", Kind::Syntax, 9),
        (b"\"\\x\"", Kind::Syntax, 2),
        (b"\"\\u12g4\"", Kind::Syntax, 5),
        (b"1 1", Kind::Trailing, 2),
        (b"{} x", Kind::Trailing, 3),
        (b"truex", Kind::Trailing, 4),
        (b"01", Kind::Number, 1),
        (b"[-012]", Kind::Number, 3),
        (b"-x", Kind::Number, 1),
        (b"1.x", Kind::Number, 2),
        (b"[1.]", Kind::Number, 3),
        (b"[1e]", Kind::Number, 3),
        (b"[1, 1e999]", Kind::Number, 4),
        (b"-1e999", Kind::Number, 0),
        (b"\"ab\\ud800x\"", Kind::Text, 3),
        (b"\"\\ud800\\u0041\"", Kind::Text, 1),
        (b"\"\\udc00\"", Kind::Text, 1),
        (b"\"a\xff\"", Kind::Text, 2),
        (b"\"\xc3\"", Kind::Text, 1),
        (b"\xef\xbb\xbf1", Kind::Syntax, 0),
    ];
    let pool = RegionPool::new();
    for (message, kind, offset) in cases {
        let error = pool.parse_json(message).expect_err("it is not JSON");
        assert_eq!((error.kind(), error.offset()), (*kind, *offset), "{}", message.escape_ascii());
    }
}

#[test]
fn errors_name_the_byte_and_what_is_wrong() {
    let shown =
        |message: &str| RegionPool::new().parse_json(message.as_bytes()).expect_err("it fails").to_string();
    assert_eq!(shown("[1 2]"), "invalid JSON at byte 3: an unexpected character");
    assert_eq!(shown("1 2"), "invalid JSON at byte 2: something follows the value");
    assert_eq!(shown("\"\\ud800\""), "invalid JSON at byte 1: the text is not valid Unicode");
    assert_eq!(shown("01"), "invalid JSON at byte 1: an invalid number");
}
