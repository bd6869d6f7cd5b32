//! JSON: what is read and refused is what serde_json reads and refuses, and the values are the same.

mod offsets;
mod texts;

use minder_cells::{Data, Heap, HeapConfig, JsonErrorKind, RegionPool, View};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use crate::random::Random;

/// Returns the value that serde_json has for what a view shows.
fn value(view: View<'_>) -> Value {
    match view.data() {
        Data::Null => Value::Null,
        Data::Bool(is_true) => is_true.into(),
        Data::Int(number) => number.into(),
        Data::UInt(number) => number.into(),
        Data::Float(number) => Value::Number(Number::from_f64(number).expect("JSON has finite numbers")),
        Data::Str(text) => text.into(),
        Data::Vector(elements) => Value::Array(elements.map(value).collect()),
        Data::Map(entries) => Value::Object(entries.map(entry).collect()),
        other => panic!("JSON has no {other:?}"),
    }
}

fn entry((key, inner): (View<'_>, View<'_>)) -> (String, Value) {
    assert!(matches!(key.data(), Data::Symbol(_)), "{key:?} is a symbol");
    (key.as_str().expect("a symbol has a text").to_owned(), value(inner))
}

/// Panics if two values differ, where zeros of different signs do.
fn assert_same(ours: &Value, other: &Value) {
    match (ours, other) {
        (Value::Number(one), Value::Number(two)) if one.is_f64() && two.is_f64() => {
            assert_eq!(one.as_f64().map(f64::to_bits), two.as_f64().map(f64::to_bits), "{one} {two}");
        }
        (Value::Array(one), Value::Array(two)) => {
            assert_eq!(one.len(), two.len(), "{ours} {other}");
            one.iter().zip(two).for_each(|(one, two)| assert_same(one, two));
        }
        (Value::Object(one), Value::Object(two)) => {
            assert!(one.keys().eq(two.keys()), "{ours} {other}");
            one.values().zip(two.values()).for_each(|(one, two)| assert_same(one, two));
        }
        _ => assert_eq!(ours, other),
    }
}

/// Reads a message with both parsers, into a region and into a heap, and compares all that they say.
/// Returns the value, if it is JSON.
fn read(message: &[u8]) -> Option<Value> {
    let shown = message[..message.len().min(200)].escape_ascii();
    let theirs = serde_json::from_slice::<Value>(message);
    let pool = RegionPool::new();
    let region = pool.parse_json(message);
    let mut heap =
        Heap::new(HeapConfig::new().limit_bytes(if cfg!(miri) { 1 << 17 } else { 4 << 20 }).verify(true))
            .expect("reserve a heap");
    let in_heap = heap.mutate(|cells| cells.parse_json(message).map(|parsed| cells.view(parsed).to_json()));
    match (&region, &theirs) {
        (Ok(region), Ok(theirs)) => {
            let ours = value(region.view());
            assert_same(&ours, theirs);
            // What is printed is read as the same value.
            let printed = region.view().to_json();
            let again = pool.parse_json(printed.as_bytes()).expect("what was printed is JSON");
            assert_same(&value(again.view()), theirs);
            assert_same(&serde_json::from_str(&printed).expect("what was printed is JSON"), theirs);
            assert_eq!(in_heap.expect("a heap reads the same"), printed);
            Some(ours)
        }
        (Err(ours), Err(_)) => {
            let in_heap = in_heap.expect_err("a heap refuses the same");
            assert_eq!((in_heap.kind(), in_heap.offset()), (ours.kind(), ours.offset()), "{shown}");
            assert!(ours.offset() <= message.len(), "{shown}: {ours}");
            assert_is_first(message, ours.kind(), ours.offset());
            None
        }
        _ => {
            panic!("{shown}: {:?}, but serde_json: {theirs:?}", region.map(|region| region.view().to_json()))
        }
    }
}

/// Panics if the bytes before an error cannot be the start of JSON. That all is UTF-8 is checked first, but
/// a message may end within a character.
fn assert_is_first(message: &[u8], kind: JsonErrorKind, offset: usize) {
    if let Err(error) = std::str::from_utf8(message) {
        let valid = error.valid_up_to();
        let before = || RegionPool::new().parse_json(&message[..valid]).map_err(|error| error.kind());
        match kind {
            _ if error.error_len().is_some() => assert_eq!((kind, offset), (JsonErrorKind::Text, valid)),
            JsonErrorKind::Incomplete => {
                assert_eq!((before().err(), offset), (Some(JsonErrorKind::Incomplete), message.len()));
            }
            JsonErrorKind::Text if before().is_ok() => assert_eq!(offset, valid),
            _ => assert_eq!(before().err(), Some(kind)),
        }
        return;
    }
    let before = RegionPool::new().parse_json(&message[..offset]);
    let is_start = match &before {
        Ok(_) => true,
        Err(error) => error.kind() == JsonErrorKind::Incomplete && error.offset() == offset,
    };
    let shown = message.escape_ascii();
    assert!(is_start, "{shown}: {kind:?} at {offset}, but the text before is {before:?}");
    match kind {
        JsonErrorKind::Incomplete => assert_eq!(offset, message.len(), "{shown}"),
        _ => assert!(offset < message.len(), "{shown}: {kind:?} at the end"),
    }
}

#[test]
fn valid_texts_are_read_as_serde_json_reads_them() {
    for text in texts::VALID.iter().step_by(if cfg!(miri) { 10 } else { 1 }) {
        assert!(read(text.as_bytes()).is_some(), "{text:?} is JSON");
    }
}

#[test]
fn invalid_texts_are_refused() {
    for text in texts::INVALID.iter().step_by(if cfg!(miri) { 20 } else { 1 }) {
        assert!(read(text.as_bytes()).is_none(), "{text:?} is not JSON");
    }
    for bytes in texts::INVALID_BYTES {
        assert!(read(bytes).is_none(), "{} is not JSON", bytes.escape_ascii());
    }
}

#[test]
fn every_byte_in_every_place_of_a_text_is_judged_as_by_serde_json() {
    let bases: [&[u8]; 8] =
        [b"[  ]", b"{\"a\":1}", b"[1,-2]", b"[1.5e+3]", b"\"ab\\n\"", b"\"\\u00e9\"", b"[true]", b"  0  "];
    for base in bases {
        for place in 0..base.len() {
            let step = if cfg!(miri) { 127 } else { 1 };
            for byte in (0..=255).step_by(step) {
                let mut message = base.to_vec();
                message[place] = byte;
                read(&message);
                message.insert(place, base[place]);
                read(&message);
            }
        }
    }
}

/// Strings of many lengths: the scanner looks at eight bytes at once.
#[test]
fn special_bytes_are_found_at_every_offset_of_a_string() {
    for before in if cfg!(miri) { 7..9 } else { 0..20 } {
        for after in if cfg!(miri) { 8..9 } else { 0..9 } {
            let specials = ["\"", "\\", "\\\"", "\\u0041", "\u{1f}", "\u{0}", " ", "!", "\u{7f}", "\u{e9}"];
            for special in
                specials.iter().chain(&["\u{80}", "\u{ff}", "\u{20ac}", "\u{10ffff}", "\\ud83d\\ude00"])
            {
                let text = format!("[\"{}{special}{}\"]", "a".repeat(before), "b".repeat(after));
                read(text.as_bytes());
                let key = format!("{{\"{}{special}{}\":1}}", "a".repeat(before), "b".repeat(after));
                read(key.as_bytes());
            }
        }
    }
}

#[test]
fn a_message_that_is_cut_is_incomplete_at_its_end() {
    let message =
        r#" {"a": [1.5e-3, -2, true, false, null, "x\n\u00e9\ud83d\ude00y"], "b": {"c": {}, "d": []}} "#;
    let end = message.trim_end().len();
    let pool = RegionPool::new();
    for cut in 0..end {
        let error = pool.parse_json(&message.as_bytes()[..cut]).expect_err("a part is not JSON");
        assert_eq!((error.kind(), error.offset()), (JsonErrorKind::Incomplete, cut), "{}", &message[..cut]);
    }
    assert!(pool.parse_json(&message.as_bytes()[..end]).is_ok());
}

/// The parser expects the key that came after the last one before. Keys that resemble it are others.
#[test]
fn keys_that_resemble_the_expected_one_are_told_apart() {
    let keys = [
        "a",
        "ab",
        "abc",
        "",
        "a\\\"",
        "a\\u0062",
        "ab\\u0063",
        "\\u0061b",
        "abcdefgh",
        "abcdefghi",
        "\u{e9}",
    ];
    let mut random = Random::of(7);
    for _ in 0..if cfg!(miri) { 2 } else { 500 } {
        let mut objects = Vec::new();
        for _ in 0..8 {
            let entries: Vec<String> = (0..random.below(5))
                .map(|number| format!("\"{}\":{number}", keys[random.below(keys.len())]))
                .collect();
            objects.push(format!("{{{}}}", entries.join(",")));
        }
        assert!(read(format!("[{}]", objects.join(",")).as_bytes()).is_some());
    }
}

#[test]
fn the_last_of_equal_keys_counts_and_all_are_kept_in_order() {
    let region = RegionPool::new().parse_json(br#"{"a":1,"b":2,"a":3}"#).expect("it is JSON");
    assert_eq!(region.view().get("a").and_then(View::as_i64), Some(3));
    assert_eq!(region.view().to_json(), r#"{"a":1,"b":2,"a":3}"#);
    assert!(region.view().get("c").is_none());
}

/// serde_json refuses more than 128 levels, which `depth` tests.
#[test]
fn bytes_at_random_in_messages_are_judged_as_by_serde_json() {
    let mut random = Random::of(11);
    let base = texts::VALID;
    let noise = b"[]{},:\"\\/ueE+-.0123456789 \t\n\r\x00\x1f\x7f\xc3\xa9\xf0\x9f\x98\x80truefalsn";
    for _ in 0..if cfg!(miri) { 5 } else { 20_000 } {
        let mut message = base[random.below(base.len())].as_bytes().to_vec();
        message.truncate(300);
        for _ in 0..=random.below(3) {
            let place = random.below(message.len() + 1);
            let byte = noise[random.below(noise.len())];
            match random.below(3) {
                0 => message.insert(place, byte),
                1 if place < message.len() => message[place] = byte,
                _ => message.truncate(place),
            }
        }
        read(&message);
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-10_i64..10).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Value::from(number * 1e-300)),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 64, 8, |inner| {
        let key = prop_oneof![any::<String>(), "[a-c]{0,2}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

const NUMBER: &str = "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?";

/// Plain bytes, escapes, and halves of surrogate pairs alone and together.
const ESCAPES: &str = "[a-z\"]|\\\\[bfnrtu/\\\\\"x]|\\\\u[0-9a-fA-F]{4}|\
    \\\\ud[89abAB][0-9]{2}(\\\\ud[c-fC-F][0-9]{2})?";

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 500 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_serde_json_prints_is_read_as_the_same_value(wanted in values()) {
        for text in [serde_json::to_string(&wanted), serde_json::to_string_pretty(&wanted)] {
            let ours = read(text.expect("a value has a text").as_bytes()).expect("it is JSON");
            assert_same(&ours, &wanted);
        }
    }

    #[test]
    fn numbers_are_read_as_serde_json_reads_them(text in NUMBER) {
        read(text.as_bytes());
    }

    #[test]
    fn strings_of_escapes_are_judged_as_by_serde_json(parts in prop::collection::vec(ESCAPES, 0..6)) {
        read(format!("\"{}\"", parts.concat()).as_bytes());
    }
}
