//! Values of cells by the traits of serde.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use minder_cells::{Heap, HeapConfig, Mutator, RegionPool, SERDE_DEPTH_MAX, Value, View, from_view};
use proptest::prelude::*;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor, value};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The stack of the threads that are nested as deep as the limit: a quarter of what threads have.
const SMALL_STACK: usize = 512 << 10;

/// Reads JSON by way of a region.
fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    let region = RegionPool::new().parse_json(json.as_bytes()).expect("it is JSON");
    read_view(region.view())
}

/// Reads JSON by way of a region, and checks that serde_json reads the same.
#[track_caller]
fn read_as_json<T: DeserializeOwned + PartialEq + fmt::Debug>(json: &str) -> T {
    let value = read::<T>(json);
    assert_eq!(value.as_ref().ok(), serde_json::from_str(json).ok().as_ref(), "{json}: {value:?}");
    value.unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// Checks that serde_json reads this JSON as this type neither.
#[track_caller]
fn refused<T: DeserializeOwned + PartialEq + fmt::Debug>(json: &str) -> String {
    assert!(serde_json::from_str::<T>(json).is_err(), "{json}");
    read::<T>(json).expect_err(json)
}

/// Makes a value of a heap, and passes it on.
fn with_value<R>(
    make: impl for<'h> FnOnce(&mut Mutator<'_, 'h>) -> minder_cells::Result<Value<'h>>,
    then: impl for<'v> FnOnce(View<'v>) -> R,
) -> R {
    let mut heap = Heap::new(HeapConfig::new().limit_bytes(1 << 22)).expect("reserve a heap");
    heap.mutate(|cells| {
        let value = make(cells).expect("make a value");
        then(cells.view(value))
    })
}

/// Reads a value as a type without borrowed parts.
fn read_view<T: DeserializeOwned>(view: View<'_>) -> Result<T, String> {
    from_view(view).map_err(|error| error.to_string())
}

fn list<'h>(cells: &mut Mutator<'_, 'h>, numbers: &[i64]) -> minder_cells::Result<Value<'h>> {
    let mut list = cells.nil();
    for number in numbers.iter().rev() {
        let number = cells.int(*number)?;
        list = cells.cons(number, list)?;
    }
    Ok(list)
}

mod into_types {
    use super::*;

    #[test]
    fn integers_of_all_widths_are_read_and_checked() {
        assert_eq!(read_as_json::<u8>("255"), 255);
        assert_eq!(read_as_json::<i8>("-128"), -128);
        assert_eq!(read_as_json::<u16>("65535"), u16::MAX);
        assert_eq!(read_as_json::<i32>("-2147483648"), i32::MIN);
        assert_eq!(read_as_json::<u64>("18446744073709551615"), u64::MAX);
        assert_eq!(read_as_json::<i64>("-9223372036854775808"), i64::MIN);
        assert_eq!(read_as_json::<i128>("-9223372036854775808"), i64::MIN.into());
        assert_eq!(read_as_json::<u128>("18446744073709551615"), u64::MAX.into());
        assert_eq!(
            refused::<u8>("256"),
            "cannot deserialize the value: invalid value: integer `256`, expected u8"
        );
        refused::<u64>("-1");
        refused::<i64>("9223372036854775808");
        refused::<i32>("1.0");
        refused::<i32>("\"1\"");
    }

    #[test]
    fn floats_are_read_from_integers_as_well() {
        assert_eq!(read_as_json::<f64>("-1.5e3"), -1500.0);
        assert_eq!(read_as_json::<f32>("0.25"), 0.25);
        assert_eq!(read_as_json::<f64>("7"), 7.0);
        refused::<f64>("null");
    }

    #[test]
    fn texts_are_borrowed_from_the_cells() {
        #[derive(Deserialize)]
        struct Texts<'a> {
            plain: &'a str,
            #[serde(borrow)]
            perhaps: Cow<'a, str>,
            bytes: &'a [u8],
        }
        let json = br#"{"plain": "a \"b\"", "perhaps": "c", "bytes": "d"}"#;
        let region = RegionPool::new().parse_json(json).expect("it is JSON");
        let texts: Texts<'_> = from_view(region.view()).expect("it has texts");
        assert_eq!((texts.plain, texts.bytes), ("a \"b\"", &b"d"[..]));
        assert!(matches!(texts.perhaps, Cow::Borrowed("c")));
        let cells = region.view().get("plain").and_then(View::as_str).expect("it is a text");
        assert_eq!(texts.plain.as_ptr(), cells.as_ptr());
    }

    #[test]
    fn null_and_the_empty_list_are_none_and_unit() {
        assert_eq!(read_as_json::<Option<i32>>("null"), None);
        assert_eq!(read_as_json::<Vec<Option<i32>>>("[1, null]"), [Some(1), None]);
        read_as_json::<()>("null");
        refused::<()>("[]");
        with_value(
            |cells| Ok(cells.nil()),
            |nil| {
                assert_eq!(from_view::<Option<i32>>(nil).expect("none"), None);
                from_view::<()>(nil).expect("unit");
                assert!(from_view::<Vec<i32>>(nil).expect("an empty list").is_empty());
                assert_eq!(from_view::<serde_json::Value>(nil).expect("any value"), json!([]));
            },
        );
    }

    #[test]
    fn sequences_have_the_length_of_their_type() {
        assert_eq!(read_as_json::<(u8, String)>("[1, \"a\"]"), (1, "a".to_owned()));
        assert_eq!(read_as_json::<[u8; 2]>("[1, 2]"), [1, 2]);
        let error = refused::<(u8, u8)>("[1, 2, 3]");
        assert_eq!(error, "cannot deserialize the value: invalid length 3, expected fewer elements");
        refused::<(u8, u8)>("[1]");
    }

    #[test]
    fn lists_are_sequences_if_they_end() {
        let numbers = with_value(|cells| list(cells, &[1, 2, 3]), read_view::<Vec<i32>>);
        assert_eq!(numbers.expect("a list"), [1, 2, 3]);
        let three = with_value(|cells| list(cells, &[1, 2, 3]), read_view::<(i32, i32)>);
        assert!(three.is_err());
        let error = with_value(
            |cells| {
                let one = cells.int(1)?;
                cells.cons(one, one)
            },
            read_view::<Vec<i32>>,
        );
        assert_eq!(
            error.expect_err("it does not end with nil"),
            "cannot deserialize the value: invalid type: a list, \
             expected a list that ends with the empty list"
        );
        let error = with_value(endless, read_view::<Vec<i32>>);
        assert!(error.is_err());
    }

    #[test]
    fn keys_are_read_as_numbers_as_serde_json_does() {
        read_as_json::<BTreeMap<u8, bool>>(r#"{"1": true, "255": false}"#);
        read_as_json::<BTreeMap<i64, bool>>(r#"{"-9223372036854775808": true}"#);
        read_as_json::<BTreeMap<i128, ()>>(r#"{"-170141183460469231731687303715884105728": null}"#);
        read_as_json::<BTreeMap<bool, u8>>(r#"{"true": 1, "false": 0}"#);
        read_as_json::<BTreeMap<char, u8>>(r#"{"x": 1}"#);
        read_as_json::<BTreeMap<Option<u8>, u8>>(r#"{"7": 1}"#);
        for key in ["256", "-1", "+1", "01", "1.0", "", "x", " 1", "1 "] {
            refused::<BTreeMap<u8, u8>>(&format!("{{\"{key}\": 1}}"));
        }
        #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Key {
            Left,
            Right,
        }
        #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        struct Id(u32);
        read_as_json::<BTreeMap<Key, u8>>(r#"{"left": 1, "right": 2}"#);
        read_as_json::<BTreeMap<Id, u8>>(r#"{"4": 1}"#);
        refused::<BTreeMap<Key, u8>>(r#"{"up": 1}"#);
    }

    #[test]
    fn keys_that_are_no_texts_are_read_as_what_they_are() {
        let map = with_value(
            |cells| {
                let key = cells.int(-3)?;
                let value = cells.string("x")?;
                cells.map(&[(key, value)])
            },
            read_view::<BTreeMap<i8, String>>,
        );
        assert_eq!(map.expect("a map"), BTreeMap::from([(-3, "x".to_owned())]));
    }

    #[test]
    fn enums_are_read_in_each_representation() {
        #[derive(Debug, PartialEq, Deserialize)]
        enum External {
            Unit,
            Newtype(u8),
            Tuple(u8, String),
            Struct { a: Option<u8> },
        }
        read_as_json::<Vec<External>>(
            r#"["Unit", {"Unit": null}, {"Newtype": 1}, {"Tuple": [1, "b"]}, {"Struct": {"a": 2}},
                {"Struct": {}}, {"Struct": [null]}]"#,
        );
        for json in ["\"Newtype\"", "\"Other\"", "{}", "{\"Unit\": 1}", "{\"Newtype\": 1, \"Unit\": 2}", "1"]
        {
            refused::<External>(json);
        }
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind")]
        enum Internal {
            Unit,
            Struct { a: i64, b: f32 },
        }
        read_as_json::<Vec<Internal>>(r#"[{"kind": "Unit"}, {"a": -1, "kind": "Struct", "b": 0.5}]"#);
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(tag = "t", content = "c")]
        enum Adjacent {
            Unit,
            Newtype(Vec<u8>),
            Struct { a: String },
        }
        read_as_json::<Vec<Adjacent>>(
            r#"[{"t": "Unit"}, {"c": [1], "t": "Newtype"}, {"t": "Struct", "c": {"a": "x"}}]"#,
        );
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(untagged)]
        enum Untagged {
            Number(u64),
            Negative(i8),
            Float(f64),
            Text(String),
            Both(u8, u8),
            Map { a: Box<Untagged> },
            Null,
        }
        read_as_json::<Vec<Untagged>>(
            r#"[18446744073709551615, -1, 0.5, "x", [1, 2], {"a": {"a": 1}}, null]"#,
        );
        refused::<Untagged>("true");
    }

    #[test]
    fn structs_take_maps_and_sequences_and_skip_what_they_do_not_know() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Point {
            x: i32,
            #[serde(default)]
            y: i32,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Flat {
            name: String,
            #[serde(flatten)]
            point: Point,
            #[serde(flatten)]
            rest: BTreeMap<String, serde_json::Value>,
        }
        read_as_json::<Point>(r#"{"x": 1, "other": {"deep": [[]]}, "y": 2}"#);
        read_as_json::<Point>("[1, 2]");
        read_as_json::<Flat>(r#"{"x": 1, "name": "n", "more": [1.5]}"#);
        refused::<Point>(r#"{"x": 1, "x": 2}"#);
        assert!(refused::<Point>("{}").ends_with("missing field `x`"));
    }

    #[test]
    fn bytes_are_texts_or_integers() {
        struct Bytes(Vec<u8>);
        impl<'de> Deserialize<'de> for Bytes {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Read;
                impl<'de> Visitor<'de> for Read {
                    type Value = Vec<u8>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("bytes")
                    }
                    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                        Ok(bytes.to_vec())
                    }
                    fn visit_seq<A: serde::de::SeqAccess<'de>>(
                        self,
                        mut all: A,
                    ) -> Result<Vec<u8>, A::Error> {
                        let mut bytes = Vec::new();
                        while let Some(byte) = all.next_element()? {
                            bytes.push(byte);
                        }
                        Ok(bytes)
                    }
                }
                deserializer.deserialize_bytes(Read).map(Bytes)
            }
        }
        assert_eq!(read::<Bytes>("\"ab\"").expect("a text").0, b"ab");
        assert_eq!(read::<Bytes>("[97, 98]").expect("a sequence").0, b"ab");
        assert!(read::<Bytes>("1").is_err());
    }

    #[test]
    fn errors_name_the_path() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Item {
            #[serde(rename = "odd name")]
            _kind: BTreeMap<String, Vec<Choice>>,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        enum Choice {
            A(u8),
        }
        let error = refused::<Vec<Item>>(r#"[{"odd name": {"x": [{"A": 1}, {"A": 999}]}}]"#);
        let expected =
            "cannot deserialize [0][\"odd name\"].x[1].A: invalid value: integer `999`, expected u8";
        assert_eq!(error, expected);
    }
}

mod from_types {
    use super::*;

    #[test]
    fn values_of_other_formats_become_cells() {
        let pool = RegionPool::new();
        let json = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x"],"b":{"a":{}}}"#;
        let region = pool.deserialize(&mut serde_json::Deserializer::from_str(json)).expect("it is JSON");
        assert_eq!(region.view().to_json(), json);
        let parsed = pool.parse_json(json.as_bytes()).expect("it is JSON");
        assert_eq!(region.view().to_lisp(), parsed.view().to_lisp());
        assert_eq!(region.bytes(), parsed.bytes());
    }

    #[test]
    fn a_key_that_is_no_text_stays_what_it_is() {
        let entries: Vec<(i32, &str)> = vec![(1, "one"), (-2, "two")];
        let entries = value::MapDeserializer::<_, value::Error>::new(entries.into_iter());
        let region = RegionPool::new().deserialize(entries).expect("a map");
        assert_eq!(region.view().to_lisp(), r#"((1 . "one") (-2 . "two"))"#);
        assert_eq!(serde_json::to_value(region.view()).expect("JSON"), json!({"1": "one", "-2": "two"}));
    }

    #[test]
    fn integers_beyond_64_bits_become_floats() {
        let number: value::U128Deserializer<value::Error> = u128::MAX.into_deserializer();
        let region = RegionPool::new().deserialize(number).expect("a number");
        assert_eq!(region.view().as_f64(), Some(u128::MAX as f64));
        let number: value::I128Deserializer<value::Error> = i128::from(u64::MAX).into_deserializer();
        let region = RegionPool::new().deserialize(number).expect("a number");
        assert_eq!(region.view().to_json(), u64::MAX.to_string());
    }

    #[test]
    fn bytes_become_a_vector() {
        let bytes = value::BytesDeserializer::<value::Error>::new(b"a\xff");
        let region = RegionPool::new().deserialize(bytes).expect("bytes");
        assert_eq!(region.view().to_json(), "[97,255]");
    }

    #[test]
    fn a_heap_that_is_full_is_an_error_of_the_format() {
        let mut heap = Heap::new(HeapConfig::new().limit_bytes(64 << 10)).expect("reserve a heap");
        let text = json!("x".repeat(1 << 17));
        let error = heap.mutate(|cells| cells.deserialize(&text).map(|_| ())).expect_err("it is too long");
        assert!(error.to_string().starts_with("the heap is full"), "{error}");
    }

    #[test]
    fn regions_that_failed_leave_no_trace() {
        let pool = RegionPool::new();
        assert!(pool.deserialize(&mut serde_json::Deserializer::from_str("[\"secret\", }")).is_err());
        let region = pool.deserialize(&json!([1])).expect("a value");
        assert_eq!(region.view().to_json(), "[1]");
    }

    #[test]
    fn lists_and_symbols_are_written_as_json_has_them() {
        let text = with_value(
            |cells| {
                let list = list(cells, &[1, 2])?;
                let symbol = cells.symbol("name")?;
                let pair = cells.cons(symbol, symbol)?;
                let nil = cells.nil();
                cells.vector(&[list, symbol, pair, nil])
            },
            |view| (serde_json::to_string(&view).expect("JSON"), view.to_json()),
        );
        assert_eq!(text.0, r#"[[1,2],"name",["name","name"],[]]"#);
        assert_eq!(text.0, text.1);
        let error =
            with_value(endless, |view| serde_json::to_string(&view).map_err(|error| error.to_string()));
        assert_eq!(error, Err("cannot serialize the value: a list has no end".to_owned()));
    }

    #[test]
    fn a_completion_list_makes_the_round_trip() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CompletionList {
            is_incomplete: bool,
            items: Vec<Item>,
        }
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Item {
            label: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            kind: Option<u8>,
            score: f64,
            text_edit: TextEdit,
        }
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TextEdit {
            new_text: String,
            range: [u32; 2],
        }
        let json = r#"{"isIncomplete":false,"items":[
            {"label":"push \"back\"","kind":3,"score":0.25,"textEdit":{"newText":"push","range":[1,2]}},
            {"label":"\u00e4\n","score":1e300,"textEdit":{"newText":"","range":[3,4294967295]}}]}"#;
        let typed: CompletionList = read_as_json(json);
        let text = serde_json::to_string(&typed).expect("JSON");
        let again = RegionPool::new().parse_json(text.as_bytes()).expect("it is JSON");
        assert_eq!(from_view::<CompletionList>(again.view()).expect("the same type"), typed);
        assert_eq!(serde_json::to_string(&again.view()).expect("JSON"), text);
    }
}

/// A list whose last pair refers to its second one.
fn endless<'h>(cells: &mut Mutator<'_, 'h>) -> minder_cells::Result<Value<'h>> {
    let one = cells.int(1)?;
    let nil = cells.nil();
    let last = cells.cons(one, nil)?;
    let middle = cells.cons(one, last)?;
    cells.set_second(last, middle)?;
    cells.cons(one, middle)
}

mod depth {
    use super::*;

    /// A type that is as deep as its value.
    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "it is only read")]
    enum Nested {
        Deeper(Vec<Nested>),
        Object(BTreeMap<String, Nested>),
        Number(u8),
    }

    /// Calls a function in a thread with a small stack.
    fn with_small_stack<R: Send>(call: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(SMALL_STACK).spawn_scoped(scope, call);
            thread.expect("start a thread").join().expect("the stack suffices")
        })
    }

    /// Arrays and objects in turn.
    fn nested(levels: usize) -> String {
        let open: String = (0..levels).map(|level| if level % 2 == 0 { "[" } else { "{\"a\":" }).collect();
        let close: String = (0..levels).rev().map(|level| if level % 2 == 0 { "]" } else { "}" }).collect();
        format!("{open}1{close}")
    }

    #[test]
    fn values_are_read_up_to_the_limit() {
        let region = |levels| RegionPool::new().parse_json(nested(levels).as_bytes()).expect("it is JSON");
        let [most, more, many] = [SERDE_DEPTH_MAX, SERDE_DEPTH_MAX + 1, 1_000_000].map(region);
        with_small_stack(|| {
            from_view::<serde_json::Value>(most.view()).expect("it is not too deep");
            from_view::<Nested>(most.view()).expect("it is not too deep");
            for region in [&more, &many] {
                let error = from_view::<serde_json::Value>(region.view()).expect_err("it is too deep");
                assert_eq!(error.reason(), "more than 128 levels of arrays and objects");
            }
            // What is ignored needs no stack.
            from_view::<serde::de::IgnoredAny>(many.view()).expect("it is ignored");
        });
    }

    #[test]
    fn values_are_written_up_to_the_limit() {
        let region = |levels| RegionPool::new().parse_json(nested(levels).as_bytes()).expect("it is JSON");
        let [most, more, many] = [SERDE_DEPTH_MAX, SERDE_DEPTH_MAX + 1, 1_000_000].map(region);
        with_small_stack(|| {
            assert_eq!(
                serde_json::to_string(&most.view()).expect("it is not too deep"),
                most.view().to_json()
            );
            for region in [&more, &many] {
                let error = serde_json::to_string(&region.view()).expect_err("it is too deep").to_string();
                assert!(error.ends_with("more than 128 levels of arrays and objects"), "{error}");
            }
        });
    }

    #[test]
    fn cells_are_made_up_to_the_limit() {
        /// A format without a limit.
        struct Levels(usize);
        impl<'de> Deserializer<'de> for Levels {
            type Error = value::Error;
            fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
                match self.0.checked_sub(1) {
                    None => visitor.visit_u8(1),
                    Some(rest) => {
                        visitor.visit_seq(value::SeqDeserializer::new(std::iter::once(Levels(rest))))
                    }
                }
            }
            serde::forward_to_deserialize_any! {
                bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
                unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
            }
        }
        impl IntoDeserializer<'_, value::Error> for Levels {
            type Deserializer = Self;
            fn into_deserializer(self) -> Self {
                self
            }
        }
        with_small_stack(|| {
            let pool = RegionPool::new();
            let region = pool.deserialize(Levels(SERDE_DEPTH_MAX)).expect("it is not too deep");
            assert_eq!(region.view().to_json().len(), 2 * SERDE_DEPTH_MAX + 1);
            for levels in [SERDE_DEPTH_MAX + 1, 1_000_000] {
                let error = pool.deserialize(Levels(levels)).expect_err("it is too deep").to_string();
                assert_eq!(error, "more than 128 levels of arrays and objects");
            }
            let mut heap = Heap::new(HeapConfig::new().limit_bytes(1 << 22)).expect("reserve a heap");
            heap.mutate(|cells| {
                assert!(cells.deserialize(Levels(SERDE_DEPTH_MAX)).is_ok());
                assert!(cells.deserialize(Levels(SERDE_DEPTH_MAX + 1)).is_err());
            });
        });
    }
}

/// Any value of JSON.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_makes_the_round_trip(value in any_json()) {
        let region = RegionPool::new().deserialize(&value).expect("cells have it");
        prop_assert_eq!(&from_view::<serde_json::Value>(region.view()).expect("a value"), &value);
        prop_assert_eq!(&serde_json::to_value(region.view()).expect("a value"), &value);
        let text = serde_json::to_string(&value).expect("it is a value");
        let parsed = RegionPool::new().parse_json(text.as_bytes()).expect("it is JSON");
        prop_assert_eq!(&serde_json::to_value(parsed.view()).expect("a value"), &value);
    }
}
