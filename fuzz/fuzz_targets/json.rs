//! JSON of any bytes: a region and a heap read what serde_json reads, and refuse what it refuses.
//!
//! The highest bytes, which no text contains, stand for parts of JSON: the fuzzer would hardly find them.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use minder_cells::{Data, Heap, HeapConfig, JsonErrorKind, RegionPool, Step, View};
use serde_json::Value;

/// The texts that replace the bytes from `FIRST_PART` on.
const PARTS: [&[u8]; 10] = [
    b"\"key\":",
    b"{\"key\":1,\"key2\":[",
    b"\\ud83d\\ude00",
    b"\\u00e9",
    b"true",
    b"null",
    b"1.5e-3",
    b"18446744073709551615",
    b"abcdefgh",
    &[b'['; 40],
];

const FIRST_PART: u8 = 0xf6;

/// serde_json refuses more levels than this.
const LEVELS_MAX: usize = 127;

fuzz_target!(|input: &[u8]| {
    let message = &expand(input)[..];
    let pool = RegionPool::new();
    let region = pool.parse_json(message);

    // A heap reads the same while it collects, and the next collection keeps it.
    let mut heap = Heap::new(HeapConfig::new().limit_bytes(1 << 20).verify(true)).expect("reserve a heap");
    let _ = heap.mutate(|cells| cells.parse_json(message).map(drop));
    let step = heap.step(Duration::ZERO).expect("a step of a collection");
    let parsed = heap.mutate(|cells| cells.parse_json(message).map(|value| cells.root(value)));
    while step == Step::Unfinished && heap.step(Duration::ZERO).expect("a step") == Step::Unfinished {}

    match (&region, parsed) {
        (Ok(region), Ok(root)) => {
            let root = root.expect("memory for a root");
            let printed = region.view().to_json();
            for _ in 0..2 {
                assert_eq!(heap.get(root).expect("it is a root").to_json(), printed);
                heap.collect().expect("collect");
            }
            let copy = heap.mutate(|cells| cells.copy(region.view()).map(|copy| cells.view(copy).to_json()));
            assert_eq!(copy.expect("the heap has room"), printed);
            let again = pool.parse_json(printed.as_bytes()).expect("what was printed is JSON");
            assert_eq!(again.view().to_json(), printed);
            let _ = region.view().to_lisp();
        }
        (Err(error), Err(in_heap)) => {
            assert_eq!((error.kind(), error.offset()), (in_heap.kind(), in_heap.offset()));
            check_offset(&pool, message, error.kind(), error.offset());
        }
        (region, parsed) => panic!("the region says {region:?}, the heap {parsed:?}"),
    }

    if message.iter().filter(|byte| b"[{".contains(byte)).count() <= LEVELS_MAX {
        match (region, serde_json::from_slice::<Value>(message)) {
            (Ok(region), Ok(theirs)) => assert_eq!(bits(value(region.view())), bits(theirs)),
            (Err(_), Err(_)) => {}
            (region, theirs) => panic!("{region:?}, but serde_json: {theirs:?}"),
        }
    }
});

/// Panics if the bytes before an error cannot be the start of JSON.
fn check_offset(pool: &RegionPool, message: &[u8], kind: JsonErrorKind, offset: usize) {
    if let Err(error) = std::str::from_utf8(message) {
        assert_eq!((kind, offset), (JsonErrorKind::Text, error.valid_up_to()));
        return;
    }
    assert_eq!(kind == JsonErrorKind::Incomplete, offset == message.len(), "{kind:?} at {offset}");
    if let Err(error) = pool.parse_json(&message[..offset]) {
        assert_eq!((error.kind(), error.offset()), (JsonErrorKind::Incomplete, offset));
    }
}

/// Returns the bytes with the parts that they stand for.
fn expand(bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    for byte in bytes {
        let part = byte.checked_sub(FIRST_PART).and_then(|nth| PARTS.get(usize::from(nth)));
        message.extend_from_slice(part.unwrap_or(&std::slice::from_ref(byte)));
    }
    message
}

/// Returns the value that serde_json has for what a view shows.
fn value(view: View<'_>) -> Value {
    match view.data() {
        Data::Null => Value::Null,
        Data::Bool(is_true) => is_true.into(),
        Data::Int(number) => number.into(),
        Data::UInt(number) => number.into(),
        Data::Float(number) => number.into(),
        Data::Str(text) => text.into(),
        Data::Vector(elements) => Value::Array(elements.map(value).collect()),
        Data::Map(entries) => Value::Object(entries.map(entry).collect()),
        other => panic!("JSON has no {other:?}"),
    }
}

fn entry((key, inner): (View<'_>, View<'_>)) -> (String, Value) {
    (key.as_str().expect("a key is a text").to_owned(), value(inner))
}

/// Replaces floats by their bits: zeros of different signs differ.
fn bits(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            format!("float {:x}", number.as_f64().unwrap_or_default().to_bits()).into()
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(bits).collect()),
        Value::Object(entries) => {
            Value::Object(entries.into_iter().map(|(key, value)| (key, bits(value))).collect())
        }
        other => other,
    }
}
