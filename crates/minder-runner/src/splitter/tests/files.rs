//! Ranges of files.

use std::path::PathBuf;

use super::*;

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

pub(crate) fn of_files(
    config: &SplitterConfig,
    slots: usize,
    inputs: &[&[u8]],
) -> Result<Vec<Vec<u8>>, String> {
    let files: Vec<_> = inputs.iter().map(|bytes| file(bytes)).collect();
    let paths = files.iter().map(|file| file.path().to_owned()).collect();
    let (reader, queue) = open_source(config.clone(), SplitterSource::Files(paths), slots)?;
    let all = run(&queue, slots, |notify| reader.read(move || notify.send(()).unwrap_or_default()));
    queue.error().map_or(Ok(all), Err)
}

fn parts(config: &SplitterConfig, input: &str) -> Vec<String> {
    texts(of_files(config, 2, &[input.as_bytes()]).unwrap())
}

#[test]
fn several_files_are_one_input() {
    let files = [file(b"h\na\nb\n"), file(b"h\nc\n")];
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
    let config = SplitterConfig { header: Some(Header::Lines(1)), ..block(2) };
    let streams = paths.iter().cloned().map(StreamSource::Path).collect();
    let cut = [vec![2..4, 4..6, 8..10], vec![2..6, 8..10]];
    let texts = [vec!["h\na\n", "h\nb\n", "h\nc\n"], vec!["h\na\nb\n", "h\nc\n"]];
    let sources = [SplitterSource::Streams(streams), SplitterSource::Files(paths)];
    for ((source, ranges), texts) in sources.into_iter().zip(cut).zip(texts) {
        let (reader, queue) = open_source(config.clone(), source, 4).unwrap();
        let (found, all) = thread::scope(|scope| {
            let (sender, wake) = mpsc::channel();
            scope.spawn(move || reader.read(move || sender.send(()).unwrap_or_default()));
            let mut found = Vec::new();
            let mut all = Vec::new();
            loop {
                match queue.next() {
                    NextJob::Ready(mut part) => {
                        found.extend(part.block.clone().map(|block| block.range));
                        all.push(String::from_utf8(drain(&queue, &mut part)).unwrap());
                    }
                    NextJob::Pending => wake.recv().expect("receive wake of reader"),
                    NextJob::Exhausted => return (found, all),
                }
            }
        });
        assert_eq!(found, ranges);
        assert_eq!(all, texts);
    }
}

const LINES: &str = "a 1\na 2\nb 3\nb 4\nb 5\nc 6\n";

#[test]
fn file_range_ends_with_record_at_end_of_block() {
    assert_eq!(parts(&block(9), LINES), ["a 1\na 2\nb 3\n", "b 4\nb 5\nc 6\n"]);
    assert_eq!(parts(&block(3), LINES), ["a 1\n", "a 2\n", "b 3\n", "b 4\n", "b 5\n", "c 6\n"]);
    assert_eq!(parts(&block(4), LINES), ["a 1\na 2\n", "b 3\nb 4\n", "b 5\nc 6\n"]);
    assert_eq!(parts(&block(8), LINES), ["a 1\na 2\nb 3\n", "b 4\nb 5\nc 6\n"]);
    let hundred = seq(100);
    let lines = |from: usize, to: usize| (from..=to).map(|at| format!("{at}\n")).collect::<String>();
    assert_eq!(parts(&block(100), &hundred), [lines(1, 37), lines(38, 71), lines(72, 100)]);
    assert_eq!(parts(&config(), ""), [""; 0]);
    assert_eq!(parts(&config(), "no end"), ["no end"]);
}

#[test]
fn file_ranges_respect_separators() {
    let with = |start: Option<&str>, end: Option<&str>, bytes| SplitterConfig {
        start: start.and_then(some),
        end: end.and_then(some),
        ..block(bytes)
    };
    assert_eq!(parts(&with(None, Some(""), 9), LINES), ["a 1\na 2\nb", " 3\nb 4\nb ", "5\nc 6\n"]);
    assert_eq!(parts(&with(Some("b"), None, 9), LINES), ["a 1\na 2\nb 3\n", "b 4\nb 5\nc 6\n"]);
    assert_eq!(parts(&with(Some("b"), None, 12), LINES), ["a 1\na 2\nb 3\n", "b 4\nb 5\nc 6\n"]);
    assert_eq!(parts(&with(Some("b"), None, 2), LINES), ["a 1\na 2\n", "b 3\n", "b 4\n", "b 5\nc 6\n"]);
    assert_eq!(parts(&with(None, Some("\nb"), 9), LINES), ["a 1\na 2\nb 3\nb", " 4\nb 5\nc 6\n"]);
    let regexp = SplitterConfig { regexp: true, ..with(None, Some("3\n|5\n"), 9) };
    assert_eq!(parts(&regexp, LINES), ["a 1\na 2\nb 3\n", "b 4\nb 5\nc 6\n"]);
    // A line does not start where a block ends.
    let regexp = SplitterConfig { regexp: true, ..with(Some("^."), None, 2) };
    assert_eq!(parts(&regexp, "abcd\nef\n"), ["abcd\n", "ef\n"]);
}

#[test]
fn file_is_cut_into_shares_per_slot() {
    let shares =
        |count| SplitterConfig { block: BlockSize::Shares(NonZeroU64::new(count).unwrap()), ..config() };
    assert_eq!(parts(&shares(1), LINES), ["a 1\na 2\nb 3\nb 4\n", "b 5\nc 6\n"]);
    assert_eq!(parts(&shares(2), LINES), ["a 1\na 2\n", "b 3\nb 4\n", "b 5\nc 6\n"]);
    assert_eq!(parts(&shares(50), LINES).concat(), LINES);
}

#[test]
fn file_header_is_repeated_for_each_range() {
    let config = SplitterConfig { header: Some(Header::Lines(1)), ..block(9) };
    assert_eq!(parts(&config, LINES), ["a 1\na 2\nb 3\nb 4\n", "a 1\nb 5\nc 6\n"]);
    let two = of_files(&config, 2, &[b"h\n1\n", b"k\n2\n"]).unwrap();
    assert_eq!(texts(two), ["h\n1\n", "k\n2\n"]);
}

#[test]
fn file_ranges_keep_groups_together() {
    let group =
        |column, bytes| SplitterConfig { group_by: Some(column), colsep: Some(" ".into()), ..block(bytes) };
    let first = || Column::Number(1);
    assert_eq!(parts(&group(first(), 9), LINES), ["a 1\na 2\nb 3\nb 4\nb 5\n", "c 6\n"]);
    assert_eq!(parts(&group(first(), 3), LINES), ["a 1\na 2\n", "b 3\nb 4\nb 5\n", "c 6\n"]);
    let table = format!("k v\n{LINES}");
    let named = group(Column::Name("k".into()), 3);
    assert_eq!(parts(&named, &table), ["k v\na 1\na 2\n", "k v\nb 3\nb 4\nb 5\n", "k v\nc 6\n"]);
}

#[test]
fn file_range_grows_for_long_record() {
    let long = "x".repeat(300_000);
    let input = format!("{long}\na\n{long}\nb\n");
    assert_eq!(parts(&block(10), &input), [format!("{long}\n"), format!("a\n{long}\n"), "b\n".to_owned()]);
    let end = SplitterConfig { end: some("x\nb"), ..block(10) };
    assert_eq!(parts(&end, &input), [format!("{long}\na\n{long}\nb"), "\n".to_owned()]);
    let group = SplitterConfig { group_by: Some(Column::Number(1)), ..block(10) };
    let input = "g\t1\n".repeat(100_000) + "h\t2\n";
    assert_eq!(parts(&group, &input)[1..], ["h\t2\n"]);
}

#[test]
fn files_are_distributed_to_streams() {
    let config = SplitterConfig { spread: Distribution::Tee, ..config() };
    assert_eq!(texts(of_files(&config, 2, &[b"1\n", b"2\n"]).unwrap()), ["1\n2\n", "1\n2\n"]);
    let robin =
        SplitterConfig { spread: Distribution::RoundRobin, header: Some(Header::Lines(1)), ..records(1) };
    let all = texts(of_files(&robin, 2, &[b"h\n1\n", b"h\n2\n"]).unwrap());
    assert_eq!(all, ["h\n1\n", "h\n2\n"]);
}

#[test]
fn open_rejects_directories_and_missing_files() {
    let open = |path: PathBuf| InputReader::open(config(), SplitterSource::Files(vec![path]), 1).unwrap_err();
    let dir = tempfile::tempdir().unwrap();
    let why = open(dir.path().to_owned()).to_string();
    assert!(why.contains("is not a regular file"), "{why}");
    let why = open(dir.path().join("none")).to_string();
    assert!(why.starts_with("cannot read `"), "{why}");
}

#[test]
fn shrinking_file_is_an_error() {
    let file = file(seq(100).as_bytes());
    let source = SplitterSource::Files(vec![file.path().to_owned()]);
    let (reader, queue) = open_source(config(), source, 1).unwrap();
    reader.read(|| ());
    let NextJob::Ready(mut part) = queue.next() else { panic!("no part is ready") };
    file.as_file().set_len(0).unwrap();
    assert!(matches!(queue.more(&mut part), ReadResult::Eof));
    assert!(queue.error().unwrap().ends_with("became shorter while it was read"));
}
