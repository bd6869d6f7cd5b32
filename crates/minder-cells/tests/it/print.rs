//! Values as JSON and as Lisp.

use minder_cells::{Heap, HeapConfig, Mutator, RegionPool, Result, Value};

/// Returns a value as JSON and as Lisp.
fn shown(make: impl for<'h> FnOnce(&mut Mutator<'_, 'h>) -> Result<Value<'h>>) -> [String; 2] {
    let mut heap = Heap::new(HeapConfig::new()).expect("reserve a heap");
    heap.mutate(|cells| {
        let value = make(cells).expect("the heap has room");
        let view = cells.view(value);
        assert_eq!(format!("{view:?}"), view.to_lisp());
        [view.to_json(), view.to_lisp()]
    })
}

fn lisp_of_json(text: &str) -> String {
    RegionPool::new().parse_json(text.as_bytes()).expect("it is JSON").view().to_lisp()
}

fn symbol(name: &str) -> String {
    let [_, lisp] = shown(|cells| cells.symbol(name));
    lisp
}

#[test]
fn constants_and_numbers_are_written_plainly() {
    assert_eq!(shown(|cells| Ok(cells.nil())), ["[]", "nil"]);
    assert_eq!(shown(|cells| Ok(cells.null())), ["null", "null"]);
    assert_eq!(shown(|cells| Ok(cells.bool(true))), ["true", "t"]);
    assert_eq!(shown(|cells| Ok(cells.bool(false))), ["false", "false"]);
    for number in [0, -1, 1 << 60, (1 << 60) - 1, -(1 << 60), -(1 << 60) - 1, i64::MAX, i64::MIN] {
        assert_eq!(shown(|cells| cells.int(number)), [number.to_string(), number.to_string()]);
    }
    for number in [0, u64::MAX, 1 << 63, (1 << 63) - 1] {
        assert_eq!(shown(|cells| cells.uint(number)), [number.to_string(), number.to_string()]);
    }
}

#[test]
fn floats_have_a_fraction_or_an_exponent_and_are_exact() {
    let cases = [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e308"),
        (0.1 + 0.2, "0.30000000000000004"),
    ];
    for (number, text) in cases {
        assert_eq!(shown(|cells| cells.float(number)), [text, text]);
    }
    assert_eq!(shown(|cells| cells.float(f64::NAN)), ["null", "0.0e+NaN"]);
    assert_eq!(shown(|cells| cells.float(f64::INFINITY)), ["null", "1.0e+INF"]);
    assert_eq!(shown(|cells| cells.float(f64::NEG_INFINITY)), ["null", "-1.0e+INF"]);
}

#[test]
fn strings_are_escaped_as_each_language_needs() {
    let cases = [
        ("", r#""""#, r#""""#),
        ("plain", r#""plain""#, r#""plain""#),
        ("a\"b", r#""a\"b""#, r#""a\"b""#),
        ("a\\b", r#""a\\b""#, r#""a\\b""#),
        ("a\nb\t", r#""a\nb\t""#, "\"a\nb\t\""),
        ("\r\u{8}\u{c}", r#""\r\b\f""#, "\"\r\u{8}\u{c}\""),
        ("\u{0}\u{1f}", r#""\u0000\u001f""#, "\"\u{0}\u{1f}\""),
        (
            "\u{7f}\u{e9}\u{20ac}\u{1f600}",
            "\"\u{7f}\u{e9}\u{20ac}\u{1f600}\"",
            "\"\u{7f}\u{e9}\u{20ac}\u{1f600}\"",
        ),
        ("/'`?;#", r#""/'`?;#""#, r#""/'`?;#""#),
    ];
    for (text, json, lisp) in cases {
        assert_eq!(shown(|cells| cells.string(text)), [json, lisp]);
    }
}

/// A printed name is one that Emacs 28 reads as the symbol of this name, and as nothing else.
#[test]
fn symbols_have_backslashes_where_lisp_would_read_something_else() {
    for name in
        ["a", "id", "a-b", "nil", "&rest", "a:b", ":k", "$/x", "@x", "{a}", "1+", "+", "-", "a.b", "\u{e9}"]
    {
        assert_eq!(symbol(name), name);
    }
    for name in [".foo", "1e", "e5", "0x10", "1.5.2", "1_000", "inf", "nan", "infinity", "NaN", "+inf"] {
        assert_eq!(symbol(name), name, "it is not a number");
    }
    let cases = [
        ("", "##"),
        (".", "\\."),
        ("?a", "\\?a"),
        (".?a", ".\\?a"),
        ("a?", "a\\?"),
        ("1", "\\1"),
        ("-1", "\\-1"),
        ("+1", "\\+1"),
        ("1.", "\\1."),
        (".5", "\\.5"),
        ("-.5", "\\-.5"),
        ("1.5", "\\1.5"),
        ("1e5", "\\1e5"),
        ("1E5", "\\1E5"),
        ("1.0e+INF", "\\1.0e+INF"),
        ("-1.0e+INF", "\\-1.0e+INF"),
        ("0.0e+NaN", "\\0.0e+NaN"),
        ("a b", "a\\ b"),
        ("a\u{a0}b", "a\\\u{a0}b"),
        ("a\nb\u{0}", "a\\\nb\\\u{0}"),
        ("a\"b", "a\\\"b"),
        ("a\\b", "a\\\\b"),
        ("(a)", "\\(a\\)"),
        ("[a]", "\\[a\\]"),
        ("'a", "\\'a"),
        ("`a,b", "\\`a\\,b"),
        ("a;b", "a\\;b"),
        ("#a", "\\#a"),
    ];
    for (name, lisp) in cases {
        assert_eq!(symbol(name), lisp);
    }
}

#[test]
fn lists_are_arrays_and_other_pairs_have_a_dot() {
    let list = |is_dotted: bool| {
        shown(|cells| {
            let [one, two, three] = [cells.int(1)?, cells.int(2)?, cells.int(3)?];
            let end = if is_dotted { three } else { cells.cons(three, cells.nil())? };
            let rest = cells.cons(two, end)?;
            let whole = cells.cons(one, rest)?;
            let nested = cells.cons(whole, cells.nil())?;
            cells.cons(whole, nested)
        })
    };
    assert_eq!(list(false), ["[[1,2,3],[1,2,3]]", "((1 2 3) (1 2 3))"]);
    assert_eq!(list(true), ["[[1,2,3],[1,2,3]]", "((1 2 . 3) (1 2 . 3))"]);
}

#[test]
fn pairs_in_pairs_and_in_vectors_are_closed_where_they_end() {
    let both = shown(|cells| {
        let [a, b] = [cells.symbol("a")?, cells.string("b")?];
        let inner = cells.cons(a, b)?;
        let first = cells.cons(inner, cells.null())?;
        let second = cells.cons(cells.nil(), inner)?;
        let empty = cells.vector(&[])?;
        let map = cells.map(&[(b, inner), (inner, empty)])?;
        cells.vector(&[first, second, map])
    });
    assert_eq!(both[1], r#"[((a . "b") . null) (nil a . "b") (("b" . (a . "b")) ((a . "b") . []))]"#);
    assert_eq!(both[0], r#"[[["a","b"],null],[[],"a","b"],{"b":["a","b"],"(a . \"b\")":[]}]"#);
}

#[test]
fn messages_are_written_as_vectors_and_association_lists() {
    assert_eq!(lisp_of_json("[]"), "[]");
    assert_eq!(lisp_of_json("{}"), "nil");
    assert_eq!(lisp_of_json("[[], {}, [{}], null, true, false]"), "[[] nil [nil] null t false]");
    assert_eq!(lisp_of_json(r#"{"a": {"b": [1, 2]}, "c d": "x"}"#), r#"((a . ((b . [1 2]))) (c\ d . "x"))"#);
    assert_eq!(lisp_of_json(r#"{"a": null, "": 1, "1": 2}"#), r"((a . null) (## . 1) (\1 . 2))");
}
