//! One job for each chunk of a stream of bytes.

use super::*;

#[test]
fn block_ends_with_last_complete_record() {
    let twelve = seq(12);
    assert_eq!(jobs(&block(10), &twelve), ["1\n2\n3\n4\n5\n", "6\n7\n8\n9\n", "10\n11\n12\n"]);
    assert_eq!(
        jobs(&block(4), &twelve),
        ["1\n2\n", "3\n4\n", "5\n6\n", "7\n8\n", "9\n", "10\n", "11\n", "12\n"]
    );
    assert_eq!(jobs(&block(5), &twelve), ["1\n2\n", "3\n4\n", "5\n6\n", "7\n8\n", "9\n10\n", "11\n", "12\n"]);
    assert_eq!(jobs(&config(), ""), [""; 0]);
    assert_eq!(jobs(&config(), "no end"), ["no end"]);
}

#[test]
fn block_grows_until_it_contains_a_record() {
    let input = "aaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\nc\nd";
    assert_eq!(jobs(&block(5), input), ["aaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\nc\n", "d"]);
}

#[test]
fn blocks_have_requested_number_of_records() {
    assert_eq!(jobs(&records(2), "a\nb\nc\nd"), ["a\nb\n", "c\nd"]);
    assert_eq!(jobs(&records(3), "a\nb\nc\nd"), ["a\nb\nc\n", "d"]);
    assert_eq!(jobs(&records(4), &seq(6)), ["1\n2\n3\n4\n", "5\n6\n"]);
    // An empty line is a record as well; GNU parallel does not count it at the beginning of a
    // chunk.
    assert_eq!(jobs(&records(1), "a\n\n\nb\n"), ["a\n", "\n", "\n", "b\n"]);
    let small = SplitterConfig { block: BlockSize::Bytes(3), ..records(4) };
    assert_eq!(jobs(&small, &seq(7)), ["1\n2\n3\n4\n", "5\n6\n7\n"]);
}

#[test]
fn each_byte_is_a_record_without_separator() {
    let config = SplitterConfig { end: some(""), ..block(5) };
    assert_eq!(jobs(&config, &seq(12)), ["1\n2\n3", "\n4\n5\n", "6\n7\n8", "\n9\n10", "\n11\n1", "2\n"]);
    let config = SplitterConfig { records: NonZeroU64::new(2), ..config };
    assert_eq!(jobs(&config, "abcde"), ["ab", "cd", "e"]);
}

#[test]
fn record_start_splits_before_it() {
    let input = ">a\nx\n>b\ny\nz\n>c\n";
    let config = SplitterConfig { start: some(">"), ..records(1) };
    assert_eq!(jobs(&config, input), [">a\nx\n", ">b\ny\nz\n", ">c\n"]);
    assert_eq!(jobs(&config, "junk\n>a\n>b\n"), ["junk\n", ">a\n", ">b\n"]);
    let two = SplitterConfig { records: NonZeroU64::new(2), ..config };
    assert_eq!(jobs(&two, input), [">a\nx\n>b\ny\nz\n", ">c\n"]);
    let blocks = SplitterConfig { start: some(">"), ..block(6) };
    assert_eq!(jobs(&blocks, input), [">a\nx\n", ">b\ny\nz\n", ">c\n"]);
    let both = SplitterConfig { start: some(">"), end: some("\n"), ..records(1) };
    assert_eq!(jobs(&both, ">a>b\n>c\n"), [">a>b\n", ">c\n"]);
    let ones = SplitterConfig { start: some("1"), end: some(""), ..block(4) };
    assert_eq!(jobs(&ones, &seq(12)), ["1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "11\n12\n"]);
    let ends = SplitterConfig { end: some("1\n"), ..block(4) };
    assert_eq!(jobs(&ends, &seq(12)), ["1\n", "2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "12\n"]);
}

#[test]
fn overlapping_separators_split_like_gnu_parallel() {
    let input = "aXXXbXXcXX";
    let ends = |config| SplitterConfig { end: some("XX"), ..config };
    assert_eq!(jobs(&ends(records(1)), input), ["aXX", "XbXX", "cXX"]);
    assert_eq!(jobs(&ends(block(3)), input), ["aXX", "XbXX", "cXX"]);
    assert_eq!(jobs(&ends(block(4)), input), ["aXXX", "bXX", "cXX"]);
    let both = SplitterConfig { start: some("X"), ..ends(records(1)) };
    assert_eq!(jobs(&both, input), ["aXX", "XbXXcXX"]);
}

#[test]
fn remove_separator_strips_separators() {
    let rrs = |config| SplitterConfig { remove_separator: true, ..config };
    assert_eq!(jobs(&rrs(block(4)), &seq(12)), ["12", "34", "56", "78", "9", "10", "11", "12"]);
    assert_eq!(jobs(&rrs(records(2)), &seq(5)), ["12", "34", "5"]);
    let input = ">a\nx\n>b\ny\nz\n>c\n";
    let start = SplitterConfig { start: some(">"), ..records(1) };
    assert_eq!(jobs(&rrs(start.clone()), input), ["a\nx\n", "b\ny\nz\n", "c\n"]);
    assert_eq!(jobs(&rrs(SplitterConfig { end: some("\n"), ..start }), input), ["a\nx", "b\ny\nz", "c"]);
    let both = rrs(SplitterConfig { end: some("--"), start: some("+"), ..config() });
    assert_eq!(jobs(&both, "+a--+b--+c--"), ["abc"]);
    assert_eq!(jobs(&both, "+a--+b--c--"), ["ab--c"]);
    assert_eq!(jobs(&rrs(SplitterConfig { end: some(">>"), ..config() }), "a>>b>>>c"), ["ab>c"]);
    assert_eq!(jobs(&rrs(SplitterConfig { start: some(">>"), ..config() }), ">>a>>b>>>c"), ["ab>c"]);
    // An empty chunk starts no job.
    assert_eq!(jobs(&rrs(records(1)), "\n\na\n\n"), ["a"]);
}

#[test]
fn regexp_separators_split_like_gnu_parallel() {
    let regexp = |config| SplitterConfig { regexp: true, ..config };
    let ends = |text: &str, config| regexp(SplitterConfig { end: some(text), ..config });
    let starts = |text: &str, config| regexp(SplitterConfig { start: some(text), ..config });
    let input = "aXbYcXdYe";
    assert_eq!(jobs(&ends("[XY]", records(1)), input), ["aX", "bY", "cX", "dY", "e"]);
    assert_eq!(jobs(&ends("[XY]", block(5)), input), ["aXbY", "cXdY", "e"]);
    assert_eq!(jobs(&starts("[XY]", block(5)), input), ["aXb", "YcXd", "Ye"]);
    assert_eq!(jobs(&starts("[XY]", records(1)), input), ["a", "Xb", "Yc", "Xd", "Ye"]);
    let both = SplitterConfig { start: some("[a-c]"), ..ends("X", records(1)) };
    assert_eq!(jobs(&both, input), ["aX", "bYcXdYe"]);
    assert_eq!(jobs(&ends("X+", records(1)), "aXXXbXXcXX"), ["aXXX", "bXX", "cXX"]);
    // A match is never cut, wherever a block ends.
    assert_eq!(jobs(&ends("X+", block(3)), "aXXXbXXcXX"), ["aXXX", "bXX", "cXX"]);
    for (text, input, expected) in [
        ("[0-9]+y", "x12y\nx34y\n", vec!["x", "12y\nx", "34y\n"]),
        (".*, B", "A2, B, 5\nA3, B, 6\n", vec!["A2, B, 5\n", "A3, B, 6\n"]),
        ("a+b", "aabab aaab", vec!["aab", "ab ", "aaab"]),
        ("aa", "aaaaa", vec!["aa", "aaa"]),
    ] {
        assert_eq!(jobs(&starts(text, records(1)), input), expected, "{text}");
        // Blocks start where records do.
        let mut ends = vec![0];
        ends.extend(expected.iter().map(|record| record.len()));
        (1..ends.len()).for_each(|at| ends[at] += ends[at - 1]);
        for size in [1, 2, 5] {
            let mut at = 0;
            for job in jobs(&starts(text, block(size)), input) {
                assert!(ends.contains(&at), "{text} in blocks of {size}: {job:?}");
                at += job.len();
            }
            assert_eq!(at, input.len());
        }
    }
    assert_eq!(jobs(&starts("^>", records(1)), ">a\n>b\n>c>\n"), [">a\n", ">b\n", ">c>\n"]);
    assert_eq!(jobs(&starts("^>", block(4)), ">a\n>b\n>c>\n"), [">a\n", ">b\n", ">c>\n"]);
    assert_eq!(jobs(&ends(".*\n", records(1)), "a\nb\nc\n"), ["a\n", "b\n", "c\n"]);
    let rrs = SplitterConfig { remove_separator: true, ..ends("[XY]", block(5)) };
    assert_eq!(jobs(&rrs, input), ["ab", "cd", "e"]);
    let rrs = SplitterConfig { remove_separator: true, ..starts("[XY]", records(1)) };
    assert_eq!(jobs(&rrs, input), ["a", "b", "c", "d", "e"]);
}

#[test]
fn header_is_repeated_for_each_job() {
    let lines = |count, config| SplitterConfig { header: Some(Header::Lines(count)), ..config };
    let matched =
        |text: &str, config| SplitterConfig { header: Some(Header::Pattern(text.into())), ..config };
    let twelve = seq(12);
    let expected = ["1\n2\n3\n", "1\n4\n5\n", "1\n6\n7\n", "1\n8\n9\n", "1\n10\n", "1\n11\n", "1\n12\n"];
    assert_eq!(jobs(&lines(1, block(4)), &twelve), expected);
    assert_eq!(jobs(&matched(".*\n", block(4)), &twelve), expected);
    let expected = [
        "1\n2\n3\n4\n",
        "1\n2\n5\n6\n",
        "1\n2\n7\n8\n",
        "1\n2\n9\n",
        "1\n2\n10\n",
        "1\n2\n11\n",
        "1\n2\n12\n",
    ];
    assert_eq!(jobs(&lines(2, block(4)), &twelve), expected);
    assert_eq!(jobs(&matched(".*\n.*\n", block(4)), &twelve), expected);
    let table = "h1 h2\na 1\nb 2\n";
    assert_eq!(jobs(&lines(1, records(1)), table), ["h1 h2\na 1\n", "h1 h2\nb 2\n"]);
    for none in [matched("nope", records(1)), matched("h2", records(1)), lines(9, records(1))] {
        assert_eq!(jobs(&none, table), ["h1 h2\n", "a 1\n", "b 2\n"]);
    }
    assert_eq!(jobs(&lines(1, config()), "h1 h2\n"), [""; 0]);
    assert_eq!(jobs(&lines(1, config()), "h1 h2"), ["h1 h2"]);
    let rrs = SplitterConfig { remove_separator: true, ..lines(1, config()) };
    assert_eq!(jobs(&rrs, &seq(5)), ["1\n2345"]);
}

#[test]
fn header_is_found_for_any_reads() {
    let header = "#c\n".repeat(1000);
    let config = SplitterConfig { header: Some(Header::Pattern(b"(#.*\n)*".to_vec())), ..block(10) };
    let input = format!("{header}a\nb\n");
    for size in [1, 7, 4096] {
        let got = texts(spread(&config, 1, input.as_bytes(), &[size]).unwrap());
        assert_eq!(got.concat().replace(&header, ""), "a\nb\n");
        assert!(got.iter().all(|job| job.starts_with(&header)));
    }
}

#[test]
fn group_by_keeps_equal_values_together() {
    let input = "a 1\na 2\nb 3\nb 4\nb 5\nc 6\n";
    let group =
        |column, config| SplitterConfig { group_by: Some(column), colsep: Some(" ".into()), ..config };
    let first = || Column::Number(1);
    assert_eq!(jobs(&group(first(), records(1)), input), ["a 1\na 2\n", "b 3\nb 4\nb 5\n", "c 6\n"]);
    assert_eq!(jobs(&group(first(), records(2)), input), ["a 1\na 2\nb 3\nb 4\nb 5\n", "c 6\n"]);
    assert_eq!(jobs(&group(first(), config()), input), [input]);
    let cut = jobs(&group(first(), block(13)), input);
    assert_eq!(cut, ["a 1\na 2\n", "b 3\nb 4\nb 5\nc 6\n"]);
    let last = format!("{input}c 7");
    assert_eq!(jobs(&group(first(), records(1)), &last)[2], "c 6\nc 7");
    let last = format!("{input}d");
    assert_eq!(jobs(&group(Column::Number(2), records(1)), &last)[5..], ["c 6\n", "d"]);
    let named = group(Column::Name("k".into()), records(1));
    let table = format!("k v\n{input}");
    assert_eq!(jobs(&named, &table), ["k v\na 1\na 2\n", "k v\nb 3\nb 4\nb 5\n", "k v\nc 6\n"]);
    let why = spread(&group(Column::Name("x".into()), config()), 1, table.as_bytes(), &[]).unwrap_err();
    assert_eq!(why, "no column is named `x`: the header is `k v`");
}

#[test]
fn block_timeout_yields_incomplete_block() {
    let config = SplitterConfig { block_timeout: Some(Duration::from_secs(3600)), ..config() };
    let mut sizes = vec![3, 0];
    sizes.extend([1000; 9]);
    assert_eq!(texts(spread(&config, 1, b"a\nbc\nd\n", &sizes).unwrap()), ["a\n", "bc\nd\n"]);
    // No complete record arrived.
    sizes[0] = 1;
    assert_eq!(texts(spread(&config, 1, b"bc\nd\n", &sizes).unwrap()), ["bc\nd\n"]);
}

#[test]
fn blocks_have_ranges_of_the_input() {
    let config = SplitterConfig {
        skip_first: true,
        header: Some(Header::Lines(1)),
        remove_separator: true,
        ..records(2)
    };
    let (reader, queue) = open(config, 1);
    reader.read_source(&mut Script::new(b"skip\nh\na\nbc\nd\ne\nf\n", &[]), true, 100).unwrap();
    queue.finish(Ok(()));
    let ranges = std::iter::from_fn(|| match queue.next() {
        NextJob::Ready(part) => part.block.clone().map(|block| block.range),
        _ => None,
    });
    // The removed separators do not count.
    assert_eq!(ranges.collect::<Vec<_>>(), [107..110, 112..114, 116..117]);
}

#[test]
fn retry_reads_same_bytes() {
    let (reader, queue) = open(SplitterConfig { header: Some(Header::Lines(1)), ..block(4) }, 1);
    reader.read_source(&mut Script::new(b"h\na\nb\n", &[]), true, 0).unwrap();
    let NextJob::Ready(mut part) = queue.next() else { panic!("no part is ready") };
    assert_eq!(drain(&queue, &mut part), b"h\na\nb\n");
    assert!(queue.rewind(&mut part));
    assert_eq!(drain(&queue, &mut part), b"h\na\nb\n");
    assert!(queue.rewind(&mut part));
    queue.give_up(&mut part);
    assert_eq!(drain(&queue, &mut part), b"");
    assert!(queue.rewind(&mut part));
    assert_eq!(drain(&queue, &mut part), b"h\na\nb\n");
}
