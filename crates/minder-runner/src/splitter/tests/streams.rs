//! A fixed number of jobs.

use super::*;

fn by(spread: Distribution, config: SplitterConfig) -> SplitterConfig {
    SplitterConfig { spread, colsep: Some(" ".into()), ..config }
}

#[test]
fn round_robin_alternates_between_streams() {
    let robin = |config| by(Distribution::RoundRobin, config);
    let three =
        |config: SplitterConfig, input: &str| texts(spread(&config, 3, input.as_bytes(), &[]).unwrap());
    let all = three(robin(records(1)), &seq(8));
    assert_eq!(all.len(), 3);
    let mut lines: Vec<_> = all.concat().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    assert_eq!(all.iter().map(|job| &job[..2]).collect::<Vec<_>>(), ["1\n", "2\n", "3\n"]);
    assert_eq!(three(robin(block(4)), &seq(2)), ["1\n2\n"]);
    assert_eq!(three(robin(block(4)), ""), [""; 0]);
    let header = SplitterConfig { header: Some(Header::Lines(1)), ..robin(records(1)) };
    let all = three(header, &seq(8));
    assert!(all.iter().all(|job| job.starts_with("1\n") && job.matches("1\n").count() == 1), "{all:?}");
}

#[test]
fn tee_gives_all_input_to_each_stream() {
    for config in [config(), records(2), SplitterConfig { header: Some(Header::Lines(1)), ..config() }] {
        let all = spread(&by(Distribution::Tee, config), 3, seq(8).as_bytes(), &[3]).unwrap();
        assert_eq!(texts(all), [seq(8), seq(8), seq(8)]);
    }
    assert_eq!(spread(&by(Distribution::Tee, config()), 3, b"", &[]).unwrap(), [b"", b"", b""]);
}

#[test]
fn bin_selects_stream_by_number() {
    let bin = |column, config| by(Distribution::Bin(column), config);
    let three =
        |config: &SplitterConfig, input: &str| texts(spread(config, 3, input.as_bytes(), &[2]).unwrap());
    let input = "a 1\nb 2\na 3\nc 4\nd 0\nx y\nf -1\ng 1.5";
    let expected = ["a 1\nc 4\ng 1.5", "b 2\nf -1\n", "a 3\nd 0\nx y\n"];
    assert_eq!(three(&bin(Column::Number(2), config()), input), expected);
    assert_eq!(three(&bin(Column::Number(7), config()), "a 1\n"), ["", "", "a 1\n"]);
    let named = bin(Column::Name("v".into()), SplitterConfig { header: Some(Header::Lines(1)), ..config() });
    assert_eq!(three(&named, "k v\na 1\nb 2\n"), ["k v\na 1\n", "k v\nb 2\n", "k v\n"]);
    assert_eq!(three(&bin(Column::Name("v".into()), config()), "k v\na 1\n")[1], "k v\n");
    assert_eq!(three(&bin(Column::Number(1), config()), ""), ["", "", ""]);
}

#[test]
fn shard_sends_equal_values_to_same_stream() {
    let config = by(Distribution::Shard(Column::Number(1)), config());
    let input: String = (0..1000).map(|at| format!("{} {at}\n", at % 17)).collect();
    let all = texts(spread(&config, 4, input.as_bytes(), &[100]).unwrap());
    let mut homes = std::collections::BTreeMap::new();
    for (place, job) in all.iter().enumerate() {
        for line in job.lines() {
            let value = line.split(' ').next().unwrap().to_owned();
            assert_eq!(*homes.entry(value).or_insert(place), place);
        }
    }
    assert_eq!((homes.len(), all.concat().lines().count()), (17, 1000));
    assert!(all.iter().filter(|job| !job.is_empty()).count() > 1);
}

#[test]
fn shard_splits_columns_by_colsep() {
    let colsep = |text: &str| SplitterConfig {
        colsep: Some(text.into()),
        ..by(Distribution::Bin(Column::Number(2)), config())
    };
    for config in [colsep(" +"), colsep("[ ,]+")] {
        let config = SplitterConfig {
            colsep: config.colsep,
            ..by(Distribution::Bin(Column::Number(2)), super::config())
        };
        assert_eq!(texts(spread(&config, 2, b"a   1\nb  2\n", &[]).unwrap()), ["a   1\n", "b  2\n"]);
    }
    let config =
        SplitterConfig { colsep: Some("::".into()), ..by(Distribution::Bin(Column::Number(2)), config()) };
    assert_eq!(texts(spread(&config, 2, b"a::1\nb::2\n", &[]).unwrap()), ["a::1\n", "b::2\n"]);
    let config = SplitterConfig { colsep: None, ..config };
    assert_eq!(texts(spread(&config, 2, b"a\t1\nb\t2\n", &[]).unwrap()), ["a\t1\n", "b\t2\n"]);
}

/// Starts three streams. The first gives up after its first chunk; the last never takes anything
/// and then gives up.
fn with_quitters(spread: Distribution) {
    let (reader, queue) = open(by(spread.clone(), block(1 << 12)), 3);
    let input = seq(400_000);
    let (notify, take_wake) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            queue.set_wake(move || notify.send(()).unwrap_or_default());
            queue.finish(reader.read_source(&mut Script::new(input.as_bytes(), &[]), true, 0));
        });
        let mut parts = Vec::new();
        while parts.len() < 3 {
            match queue.next() {
                NextJob::Ready(part) => parts.push(part),
                NextJob::Pending => take_wake.recv().unwrap(),
                NextJob::Exhausted => panic!("three begin"),
            }
        }
        let mut last = parts.pop().unwrap();
        queue.more(&mut parts[0]);
        queue.give_up(&mut parts[0]);
        queue.give_up(&mut last);
        let mut got = 0;
        loop {
            match queue.more(&mut parts[1]) {
                ReadResult::Bytes(segment) => got += segment.len(),
                ReadResult::Pending => take_wake.recv().unwrap(),
                ReadResult::Eof => break,
            }
        }
        match spread {
            Distribution::Tee => assert_eq!(got, input.len()),
            _ => assert!(got > 100_000, "{got}"),
        }
        assert!(!queue.rewind(&mut parts[0]));
    });
    assert_eq!(queue.live(), 0);
}

#[test]
fn streams_that_gave_up_block_no_other() {
    for spread in [
        Distribution::RoundRobin,
        Distribution::Tee,
        Distribution::Shard(Column::Number(1)),
        Distribution::Bin(Column::Number(1)),
    ] {
        with_quitters(spread);
    }
}

#[test]
fn reading_ends_when_all_streams_gave_up() {
    for spread in [Distribution::RoundRobin, Distribution::Tee, Distribution::Shard(Column::Number(1))] {
        for close in [false, true] {
            let (reader, queue) = open(by(spread.clone(), block(1 << 12)), 2);
            let input = seq(400_000);
            thread::scope(|scope| {
                let bytes = input.as_bytes();
                scope.spawn(move || reader.read_source(&mut Script::new(bytes, &[]), true, 0).unwrap());
                let mut started = 0;
                // With and without a stream that never started.
                while started < 2 - usize::from(close) {
                    started += usize::from(matches!(queue.next(), NextJob::Ready(_)));
                    thread::yield_now();
                }
                if close {
                    queue.close();
                }
            });
        }
    }
}

#[test]
fn close_gives_waiting_chunks_to_running_streams() {
    let (reader, queue) = open(by(Distribution::RoundRobin, records(1)), 4);
    reader.read_source(&mut Script::new(b"1\n2\n3\n", &[]), true, 0).unwrap();
    let NextJob::Ready(mut part) = queue.next() else { panic!("no part is ready") };
    assert!(matches!(queue.more(&mut part), ReadResult::Bytes(_)));
    assert!(matches!(queue.more(&mut part), ReadResult::Pending));
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    queue.set_wake(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    queue.close();
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    queue.finish(Ok(()));
    assert_eq!(drain(&queue, &mut part), b"2\n3\n");
}
