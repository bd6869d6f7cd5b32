//! Jobs with several arguments, jobs without arguments, and other options.

use super::*;

fn options(repeat: Repeat) -> Options {
    Options { repeat, ..posix() }
}

fn parse_as(words: &[&str], options: &Options) -> Result<Template, Error> {
    Template::parse(&words.iter().map(OsString::from).collect::<Vec<_>>(), options)
}

/// Returns what `words` become for `columns`: the line and its parameters, or the arguments.
fn becomes(words: &[&str], options: &Options, columns: &[&str]) -> Vec<String> {
    let template = parse_as(words, options).unwrap_or_else(|e| panic!("{words:?}: {e}"));
    let argv = argv(&template, columns).unwrap_or_else(|e| panic!("{words:?}: {e}"));
    if !template.is_shell() {
        return argv;
    }
    assert_eq!([&argv[0], &argv[1], &argv[3]], ["/bin/sh", "-c", "/bin/sh"]);
    [&argv[2..3], &argv[4..]].concat()
}

#[test]
fn several_values_are_separate_words_outside_of_quotes() {
    for (template, line, parameters) in [
        ("a {}", r#"a "$@""#, &["x.c", "y z"][..]),
        ("a x{}y", r#"a x"$1" "$2"y"#, &["x.c", "y z"]),
        ("a {}-{.}", r#"a "$1" "$2"-"$3" "$4""#, &["x.c", "y z", "x", "y z"]),
        ("a {1}-{}{2}", r#"a "$1"-"$2" "$3""$4""#, &["x.c", "x.c", "y z", "y z"]),
        ("a \"p {} q\"", r#"a "p ${1} ${2} q""#, &["x.c", "y z"]),
        ("a 'p {} q'", r#"a 'p '"$1 $2"' q'"#, &["x.c", "y z"]),
        ("a \"{}\" {} '{}' '{#}'", r#"a "${1} ${2}" "$1" "$2" ''"$1 $2"'' ''"$3"''"#, &["x.c", "y z", "7"]),
        ("a {-1} {-2.}", r#"a "$1" "$2""#, &["y z", "x"]),
        ("for f in {}; do a; done", r#"for f in "$@"; do a; done"#, &["x.c", "y z"]),
        ("a $(b {})", r#"a $(b "$@")"#, &["x.c", "y z"]),
        ("a | b -x", r#"a | b -x "$@""#, &["x.c", "y z"]),
        ("v=\"{}\"; a \"$v\"", r#"v="${1} ${2}"; a "$v""#, &["x.c", "y z"]),
    ] {
        let became = becomes(&[template], &posix(), &["x.c", "y z"]);
        assert_eq!(became[0], line, "{template}");
        assert_eq!(became[1..], *parameters, "{template}");
    }
    let many: Vec<String> = (1..=11).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let line = &becomes(&["a '{}' {}"], &posix(), &many)[0];
    assert!(line.ends_with(r#" "$9" "${10}" "${11}""#), "{line}");
    assert!(line.contains(r#"$9 ${10} ${11}"'"#), "{line}");
    for (words, expected) in [
        (&["a", "x{}y"][..], &["a", "xx.c", "y zy"][..]),
        (&["a", "{}", "b"], &["a", "x.c", "y z", "b"]),
        (&["a", "{}-{.}"], &["a", "x.c", "y z-x", "y z"]),
        (&["a"], &["a", "x.c", "y z"]),
        (&["{}"], &["x.c", "y z"]),
    ] {
        assert_eq!(becomes(words, &posix(), &["x.c", "y z"]), expected);
    }
}

#[test]
fn context_repeats_word_around_placeholder() {
    for (template, line, parameters) in [
        ("a x{}y {#} b", r#"a x"$1"y x"$2"y "$3" b"#, &["x.c", "y z", "7"][..]),
        ("a \"p {} q\"", r#"a "p ${1} q" "p ${2} q""#, &["x.c", "y z"]),
        ("a 'p {} q'z", r#"a 'p '"$1"' q'z 'p '"$2"' q'z"#, &["x.c", "y z"]),
        ("a {1}-{}{#}", r#"a "$1"-"$2""$3" "$1"-"$4""$3""#, &["x.c", "x.c", "7", "y z"]),
        ("a {1} {.}", r#"a "$1" "$2" "$3""#, &["x.c", "x", "y z"]),
        ("a $(b x{})y", r#"a $(b x"$1" x"$2")y"#, &["x.c", "y z"]),
        ("a {}$(b x{})", r#"a "$1"$(b x"$1") "$2"$(b x"$2")"#, &["x.c", "y z"]),
        ("a;b", r#"a;b "$@""#, &["x.c", "y z"]),
    ] {
        let became = becomes(&[template], &options(Repeat::Context), &["x.c", "y z"]);
        assert_eq!(became[0], line, "{template}");
        assert_eq!(became[1..], *parameters, "{template}");
    }
    let words = &["a", "x{}y", "{#}", "{}{/}"];
    let expected = ["a", "xp/qy", "xry", "7", "p/qq", "rr"];
    assert_eq!(becomes(words, &options(Repeat::Context), &["p/q", "r"]), expected);
}

#[test]
fn placeholder_disappears_without_arguments() {
    for repeat in [Repeat::Joined, Repeat::Context] {
        for (template, line) in [
            ("a {} >x", "a  >x"),
            ("a x{}y;", "a x\"\"y;"),
            ("a \"$HOME{}x\"", "a \"$HOME\"\"x\""),
            ("a 'p {}'", "a 'p '''"),
            ("a {} b; c {};", "a  b; c ;"),
        ] {
            assert_eq!(becomes(&[template], &options(repeat), &[]), [line], "{template}");
        }
        assert_eq!(becomes(&["a", "{}", "x{}y"], &options(repeat), &[]), ["a", "xy"]);
        assert!(argv(&parse_as(&["{}"], &options(repeat)).unwrap(), &[]).is_err());
    }
    let lenient = Options { missing_is_empty: true, ..posix() };
    assert_eq!(becomes(&["a", "{1}y"], &lenient, &[]), ["a", "y"]);
}

#[test]
fn several_values_are_refused_where_one_is_required() {
    for line in [
        "v={}; a",
        "v=x{} a",
        "a > {}",
        "a < x{}",
        "case {} in x) ;; esac",
        "case x in *{}) ;; esac",
        "ssh {} uptime",
        "awk -v x={} f",
        "export x={}",
        "[ {} = a ]",
        "[ -{} -a x ]",
    ] {
        for repeat in [Repeat::Joined, Repeat::Context] {
            let template =
                Template::parse(&[line.into()], &options(repeat)).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert!(argv(&template, &["a"]).is_ok());
            for values in [&["a", "b"][..], &["a", "b", "c", "d", "e", "f"]] {
                match argv(&template, values) {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Refused),
                    // With `Repeat::Context`, each value is in a separate assignment or option argument.
                    Ok(argv) => {
                        assert!(
                            repeat == Repeat::Context && argv[2].contains("x=\"$1\" x=\"$2\""),
                            "{argv:?}"
                        );
                    }
                }
            }
            assert!(argv(&template, &["a"]).is_ok());
        }
    }
    for words in [&["ssh", "{}", "ls"][..], &["awk", "-v", "x={}", "f"]] {
        let template = parse_as(words, &posix()).unwrap();
        assert!(argv(&template, &["a"]).is_ok());
        for values in [&["a", "b"][..], &["a", "b", "c", "d", "e", "f"]] {
            assert_eq!(argv(&template, values).unwrap_err().kind(), ErrorKind::Refused);
        }
    }
}

#[test]
fn several_values_are_refused_before_command_of_wrapper() {
    for (line, joined, context) in [
        ("env V={} cmd", false, true),
        ("env V={}", false, true),
        ("env -i V={} cmd", false, true),
        ("timeout {} cmd", false, false),
        ("nice -n {} cmd", false, false),
        ("nice -n{} cmd", false, true),
        ("sudo -u {} cmd", false, false),
        ("chroot {} ls", false, false),
        ("sudo rm {}", true, true),
        ("sudo rm -f -- {} x", true, true),
        ("timeout 5 gzip {}", true, true),
        ("env A=1 gzip -9 {}", true, true),
        ("find {} -name x", true, true),
        ("nice {}", true, true),
        ("xargs rm {}", true, true),
    ] {
        for (repeat, accepted) in [(Repeat::Joined, joined), (Repeat::Context, context)] {
            let line = OsString::from(line);
            let words: Vec<OsString> = line.to_str().unwrap().split(' ').map(OsString::from).collect();
            for words in [&[line.clone()][..], &words] {
                let template = Template::parse(words, &options(repeat)).unwrap();
                assert!(argv(&template, &["a"]).is_ok());
                assert_eq!(argv(&template, &["a", "b"]).is_ok(), accepted, "{words:?} {repeat:?}");
                assert_eq!(
                    argv(&template, &["a", "b", "c", "d", "e"]).is_ok(),
                    accepted,
                    "{words:?} {repeat:?}"
                );
            }
        }
    }
}

#[test]
fn size_is_upper_bound_of_argv() {
    let placeholders = PlaceholderSet::default().plus(true).define("{own}", "{/.}-{#}{1}").unwrap();
    for repeat in [Repeat::Joined, Repeat::Context] {
        let options =
            Options { placeholders: placeholders.clone(), repeat, missing_is_empty: true, ..posix() };
        for words in [
            &["a"][..],
            &["a", "x{}y", "{1}", "{-1}"],
            &["a", "{own}-{#}{.}", "{2:-default}", "{//}"],
            &["a {}"],
            &["a 'x{}y' \"{.} {1}\" {own} {#} | b '{}' {%}"],
            &["a 'p'{}{1}{2/a/bbbb}'{#}' {-1}"],
        ] {
            let template = parse_as(words, &options).unwrap();
            for count in [0, 1, 2, 3, 10, 100, 1000] {
                let columns: Vec<OsString> = (0..count).map(|n| format!("dir/value {n}.c").into()).collect();
                let job =
                    Job { columns: &columns, number: u64::MAX, slot: u32::MAX, total: None, slots: None };
                let argv = template.argv(&job).unwrap();
                let size: usize = argv.iter().map(|word| word.len() + 1).sum();
                let bound = template.size_of(&columns);
                assert!(size <= bound, "{words:?} {repeat:?} {count}: {size} > {bound}");
                let has_numbers = repeat == Repeat::Context && words.concat().contains("own");
                let plain = template.base() + columns.iter().map(|c| template.cost(c)).sum::<usize>();
                assert!(has_numbers || bound <= plain, "{words:?} {repeat:?} {count}: {bound} > {plain}");
                // A bound that is much too high would waste the limits that use it.
                assert!(bound <= 3 * size + 400, "{words:?} {repeat:?} {count}: {size}, not {bound}");
            }
        }
    }
    assert_eq!(parse_as(&["a", "{3}", "{2.}{-7}"], &posix()).unwrap().max_column(), 3);
}

#[test]
fn options_select_form_and_appending() {
    let line = Options { form: Form::Line, ..posix() };
    assert_eq!(becomes(&["a", "b", "c|d"], &line, &["v"]), ["a b c|d \"$1\"", "v"]);
    assert_eq!(becomes(&["a"], &line, &["v"]), ["a \"$1\"", "v"]);
    let quoted = Options { form: Form::Line, quote: true, ..posix() };
    assert_eq!(becomes(&["a", "$x|{}"], &quoted, &["v"]), ["a", "$x|v"]);
    assert_eq!(becomes(&["a b"], &quoted, &["v"]), ["a b", "v"]);
    let bare = Options { append: false, ..posix() };
    assert_eq!(becomes(&["a", "b"], &bare, &["v"]), ["a", "b"]);
    assert_eq!(becomes(&["a | (b)"], &bare, &["v"]), ["a | (b)"]);
    let lenient = Options { missing_is_empty: true, ..posix() };
    assert_eq!(becomes(&["a", "{2}", "{-3}", "x{9}"], &lenient, &["v"]), ["a", "", "", "x"]);
    assert_eq!(becomes(&["a {2}x"], &lenient, &["v"]), ["a \"$1\"x", ""]);
}

#[test]
fn text_expands_to_one_argument() {
    let text = Template::text(&"{}: {1} {.}".into(), &posix());
    assert_eq!(argv(&text, &["a.b", "c"]).unwrap(), ["a.b c: a.b a c"]);
    assert_eq!(argv(&text, &["a.b"]).unwrap(), ["a.b: a.b a"]);
    assert_eq!(argv(&Template::text(&"{}".into(), &posix()), &[]).unwrap(), [""]);
}

#[test]
fn display_separates_several_values() {
    let columns = ["a b", "c"].map(OsString::from);
    let job = Job { columns: &columns, ..Job::default() };
    for (template, repeat, shown) in [
        ("x {}y", Repeat::Joined, "x 'a b' cy"),
        ("x \"p {}\" '{}'", Repeat::Joined, "x \"p a b c\" 'a b c'"),
        ("x {}y", Repeat::Context, "x 'a b'y cy"),
        ("x \"p {}\"", Repeat::Context, "x \"p a b\" \"p c\""),
    ] {
        assert_eq!(parse_as(&[template], &options(repeat)).unwrap().display(&job), shown);
    }
    assert_eq!(parse_as(&["x", "{}y"], &posix()).unwrap().display(&job), "x 'a b' cy");
}

#[test]
fn word_of_missing_columns_disappears_on_request() {
    let omitting = Options { missing_is_empty: true, missing_is_omitted: true, ..posix() };
    assert_eq!(becomes(&["a {2} {1}"], &omitting, &["v"]), ["a  \"$1\"", "v"]);
    assert_eq!(becomes(&["a {2} {1}"], &omitting, &["v", "w"]), ["a \"$1\" \"$2\"", "w", "v"]);
    assert_eq!(becomes(&["a {2}{3} x{2} {1}"], &omitting, &["v"]), ["a  x\"$1\" \"$2\"", "", "v"]);
    assert_eq!(becomes(&["a {-2} \"{2}\""], &omitting, &["v"]), ["a  \"${1}\"", ""]);
    assert_eq!(becomes(&["case {2} in x) ;; esac"], &omitting, &["v"]), ["case \"$1\" in x) ;; esac", ""]);
    let columns = ["v".into()];
    let job = Job { columns: &columns, ..Job::default() };
    assert_eq!(parse_as(&["a {2} {1}"], &omitting).unwrap().display(&job), "a  v");
    // The next word would be the program text.
    let template = parse_as(&["awk -F {2} '{print}' {1}"], &omitting).unwrap();
    assert!(argv(&template, &["v", "w"]).is_ok());
    assert!(argv(&template, &["v"]).is_err());
}
