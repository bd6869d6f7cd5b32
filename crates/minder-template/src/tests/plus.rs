//! The placeholders of `--plus`, compared with the output of GNU parallel 20221122.

use super::*;

#[track_caller]
fn assert_rows(table: &[&str]) {
    let options = Options { placeholders: PlaceholderSet::default().plus(true), ..posix() };
    let placeholders: Vec<OsString> = table[0].split(' ').map(OsString::from).collect();
    let words = [&["a".into()], &placeholders[..]].concat();
    let template = Template::parse(&words, &options).unwrap();
    for row in &table[1..] {
        let mut cells = row.split('|');
        let value = cells.next().unwrap();
        let seen = argv(&template, &[value]).unwrap();
        for ((seen, expected), placeholder) in seen[1..].iter().zip(cells).zip(&placeholders) {
            assert_eq!(seen, expected, "{} of {value}", placeholder.display());
        }
    }
}

#[test]
fn path_placeholders_match_parallel() {
    assert_rows(&[
        "{+/} {+.} {+..} {+...} {..} {...} {/..} {/...}",
        "foo.jpg||jpg|||foo.jpg|foo.jpg|foo.jpg|foo.jpg",
        "sub.dir/foo.jpg|sub.dir|jpg|||sub.dir/foo.jpg|sub.dir/foo.jpg|foo.jpg|foo.jpg",
        "sub.dir/bar|sub.dir|dir/bar|||sub.dir/bar|sub.dir/bar|bar|bar",
        "a.tar.gz||gz|tar.gz||a|a.tar.gz|a|a.tar.gz",
        "a.b.tar.gz||gz|tar.gz|b.tar.gz|a.b|a|a.b|a",
        "d/a.b.tar.gz|d|gz|tar.gz|b.tar.gz|d/a.b|d/a|a.b|a",
        ".bashrc||bashrc|||.bashrc|.bashrc|.bashrc|.bashrc",
        "x.|||||x.|x.|x.|x.",
        "a/b/|a/b||||a/b/|a/b/||",
        "/a|||||/a|/a|a|a",
        "a//b|a/||||a//b|a//b|b|b",
        "/|||||/|/||",
        "//|/||||//|//||",
        "a.b.c/d|a.b.c|c/d|||a.b.c/d|a.b.c/d|d|d",
        ".a.b||b|a.b|||.a.b||.a.b",
        ".a.b.c||c|b.c|a.b.c|.a||.a|",
        "a..b||b|.b||a|a..b|a|a..b",
        "a...b||b|.b|..b|a.|a|a.|a",
        "d/.a.b|d|b|a.b||d/|d/.a.b||.a.b",
        "x.y.|||y.||x|x.y.|x|x.y.",
        "/.b/c.d.|/.b||d.||/.b/c|/.b/c.d.|c|c.d.",
        "abc|||||abc|abc|abc|abc",
        ".|||||.|.|.|.",
        "..|||.|||..||..",
        "../x|..|/x|||../x|../x|x|x",
        "./x.y.z|.|z|y.z||./x|./x.y.z|x|x.y.z",
        "||||||||",
    ]);
}

#[test]
fn text_placeholders_match_parallel() {
    assert_rows(&[
        "{:-d} {:2} {:1:2} {:0:1} {#ab} {##ab} {%ab} {%%ab} {/b/X} {//b/X} {/ab/} {//ab/} {^a} {^^b} {^ab} \
         {^^ab} {,A} {,,B}",
        "ab|ab||b|a|||||aX|aX|||Ab|aB|AB|AB|ab|ab",
        "abab|abab|ab|ba|a|ab|ab|ab|ab|aXab|aXaX|ab||Abab|aBaB|ABab|ABAB|abab|abab",
        "bab|bab|b|ab|b|bab|bab|b|b|Xab|XaX|b|b|bab|BaB|bab|bAB|bab|bab",
        "b|b|||b|b|b|b|b|X|X|b|b|b|B|b|b|b|b",
        "ABAB|ABAB|AB|BA|A|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|ABAB|aBAB|AbAb",
        "BA|BA||A|B|BA|BA|BA|BA|BA|BA|BA|BA|BA|BA|BA|BA|BA|bA",
        "|d|||||||||||||||||",
        "xabyab|xabyab|byab|ab|x|xabyab|xabyab|xaby|xaby|xaXyab|xaXyaX|xyab|xy|xabyab\
         |xaByaB|xabyab|xAByAB|xabyab|xabyab",
        "aab|aab|b|ab|a|aab|aab|a|a|aaX|aaX|a|a|Aab|aaB|aab|aAB|aab|aab",
    ]);
}

#[test]
fn column_placeholders_match_parallel() {
    let options = Options { placeholders: PlaceholderSet::default().plus(true), ..posix() };
    let words =
        ["{1..}", "{2+.}", "{-1+/}", "{3:2}", "{-2:-e}", "{2#b}", "{1%.gz}", "{3/c/Z}", "{-3^^a}", "{1,Q}"];
    let template = Template::parse(&words.map(OsString::from), &options).unwrap();
    let expected = ["q/a", "c", "cc", "/d", "b.c", ".c", "q/a.tar", "Zc/d", "q/A.tAr.gz", "q/a.tar.gz"];
    assert_eq!(argv(&template, &["q/a.tar.gz", "b.c", "cc/d"]).unwrap(), expected);
}

#[test]
fn totals_need_the_number_of_jobs() {
    let options = Options { placeholders: PlaceholderSet::default().plus(true), ..posix() };
    let columns = [OsString::from("v")];
    let template = Template::parse(&["a {##} {0#} {0%}".into()], &options).unwrap();
    assert!(template.needs_total());
    for (number, total, slot, slots, expected) in [
        (1, 9, 1, 9, ["9", "1", "1"]),
        (1, 10, 1, 10, ["10", "01", "01"]),
        (12, 1000, 7, 128, ["1000", "0012", "007"]),
    ] {
        let job = Job { columns: &columns, number, slot, total: Some(total), slots: Some(slots) };
        assert_eq!(template.argv(&job).unwrap()[4..], expected);
    }
    let error = template.argv(&Job { columns: &columns, ..Job::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Total);
    for plain in ["a {#} {%} {0%}", "a {}"] {
        assert!(!Template::parse(&[plain.into()], &options).unwrap().needs_total(), "{plain}");
    }
    let custom = PlaceholderSet::default().plus(true).define("{x}", "{0#}-{}").unwrap();
    let options = Options { placeholders: custom, ..posix() };
    assert!(Template::parse(&["a".into(), "{x}".into()], &options).unwrap().needs_total());
}

#[test]
fn character_ranges_keep_utf8() {
    let options = Options { placeholders: PlaceholderSet::default().plus(true), ..posix() };
    let template = Template::parse(&["a", "{:1}", "{:1:2}", "{^^é}"].map(OsString::from), &options).unwrap();
    assert_eq!(argv(&template, &["éaöü"]).unwrap(), ["a", "aöü", "aö", "éaöü"]);
}

#[test]
fn chosen_placeholders_stand_for_values() {
    let placeholders = PlaceholderSet::default()
        .replace(PlaceholderKind::Value, "FILE")
        .and_then(|placeholders| placeholders.replace(PlaceholderKind::Number, "@"))
        .and_then(|placeholders| placeholders.define("{thumb}", "{/}-{1}-@.png"))
        .unwrap()
        .column_names(&["first".into(), "second".into()]);
    let options = Options { placeholders, ..posix() };
    for (line, became, parameters) in [
        ("a FILE", r#"a "$@""#, &["p/q.r", "s t"][..]),
        ("a xFILEy {}", r#"a x"$1" "$2"y {}"#, &["p/q.r", "s t"]),
        ("a 'FILE' \"FILE\"", r#"a ''"$1 $2"'' "${1} ${2}""#, &["p/q.r", "s t"]),
        ("a {thumb}", r#"a "$@""#, &["q.r-p/q.r-7.png", "s t-p/q.r-7.png"]),
        ("a {2thumb}", r#"a "$1""#, &["s t-p/q.r-7.png"]),
        ("a {second} {first/.}@", r#"a "$1" "$2""$3""#, &["s t", "q", "7"]),
        ("a -x", r#"a -x "$@""#, &["p/q.r", "s t"]),
        ("a # FILE", "a \"$@\" # FILE", &["p/q.r", "s t"]),
    ] {
        let template = Template::parse(&[line.into()], &options).unwrap_or_else(|e| panic!("{line}: {e}"));
        let argv = argv(&template, &["p/q.r", "s t"]).unwrap();
        assert_eq!(argv[2], became, "{line}");
        assert_eq!(argv[4..], *parameters, "{line}");
    }
    for (line, part) in [
        ("FILE=1 a FILE", ""),
        ("echo $FILE", "expansion"),
        ("echo ${FILE}", "`${…}`"),
        ("echo \"$@x\"", "expansion"),
        ("echo $MYFILE FILE", "reads as its own"),
        ("for FILE in a; do b; done", "reads as its own"),
        ("cat <<FILE\nFILE\n", "reads as its own"),
        ("cat <<E\nFILE\nE\n", "here-document"),
        ("echo \\FILE", "backslash"),
        ("echo $((FILE))", ""),
        ("sh -c 'echo FILE'", "program text"),
        ("echo `echo FILE`", "backticks"),
        ("f() { echo FILE; }; f", "in a function"),
        ("xFILE=1; echo $xFILE", "reads as its own"),
    ] {
        match Template::parse(&[line.into()], &options) {
            Err(error) => assert!(!part.is_empty() && error.to_string().contains(part), "{line}: {error}"),
            Ok(_) => assert!(part.is_empty(), "{line}"),
        }
    }
}
