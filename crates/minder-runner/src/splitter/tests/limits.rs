//! Tests of limits, and of options that are rejected.

use super::*;

#[test]
fn reader_stays_little_ahead() {
    let (reader, queue) = open(records(1), 2);
    thread::scope(|scope| {
        let input = vec![b'\n'; 1 << 20];
        scope.spawn(move || reader.read_source(&mut Script::new(&input, &[1000]), true, 0).unwrap());
        // The reads bring many records each, and no job takes them.
        while queue.ready() < READY_MAX {
            thread::yield_now();
        }
        let mut parts = Vec::new();
        for _ in 0..10_000 {
            match queue.next() {
                NextJob::Ready(part) => parts.push(part),
                _ => thread::yield_now(),
            }
            assert!(queue.ready() <= READY_MAX);
            assert!(queue.live() <= 2 + BLOCKS_OWN);
            if parts.len() > 2 {
                parts.remove(0);
            }
        }
        queue.close();
        assert!(matches!(queue.next(), NextJob::Exhausted));
    });
}

#[test]
fn reader_waits_while_retries_hold_blocks() {
    let (reader, queue) = open(block(2), 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            queue.finish(reader.read_source(&mut Script::new(seq(9).as_bytes(), &[]), true, 0));
        });
        let mut parts = Vec::new();
        while parts.len() < 1 + BLOCKS_OWN {
            match queue.next() {
                NextJob::Ready(part) => parts.push(part),
                _ => thread::yield_now(),
            }
        }
        assert!(matches!(queue.next(), NextJob::Pending));
        assert_eq!(queue.live(), 1 + BLOCKS_OWN);
        let mut rest = Vec::new();
        parts.clear();
        loop {
            match queue.next() {
                NextJob::Ready(mut part) => rest.extend(drain(&queue, &mut part)),
                NextJob::Pending => thread::yield_now(),
                NextJob::Exhausted => break,
            }
        }
        assert_eq!(rest, b"5\n6\n7\n8\n9\n");
    });
}

#[test]
fn failed_read_is_reported_after_complete_records() {
    struct Fails(bool);
    impl TimedRead for Fails {
        fn read(&mut self, buffer: &mut [u8], _: Option<Instant>) -> io::Result<Option<usize>> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("the disk is gone"));
            }
            buffer[..4].copy_from_slice(b"a\nb\n");
            Ok(Some(4))
        }
    }
    let (reader, queue) = open(records(1), 1);
    queue.finish(reader.read_source(&mut Fails(false), true, 0));
    assert!(matches!(queue.next(), NextJob::Ready(_)));
    assert!(matches!(queue.next(), NextJob::Ready(_)));
    assert!(matches!(queue.next(), NextJob::Exhausted));
    assert_eq!(queue.error().as_deref(), Some("cannot read the input: the disk is gone"));
}

#[test]
fn contradicting_options_are_rejected() {
    let why = |config: SplitterConfig| InputReader::open(config, nothing(), 1).unwrap_err().to_string();
    let shard = SplitterConfig { spread: Distribution::Shard(Column::Number(1)), ..records(1) };
    assert_eq!(why(shard), "`--shard` distributes lines: it cannot be used with `-N`");
    assert!(why(block(0)).contains("`--block`"));
    assert!(
        why(SplitterConfig { block: BlockSize::Shares(NonZeroU64::MIN), ..config() })
            .contains("`--pipe-part`")
    );
    assert!(why(SplitterConfig { group_by: Some(Column::Number(0)), ..config() }).contains("column 0"));
    let group = SplitterConfig { group_by: Some(Column::Number(1)), ..config() };
    assert!(why(SplitterConfig { start: some("a"), ..group.clone() }).contains("`--group-by`"));
    assert!(
        why(SplitterConfig { colsep: Some("(".into()), ..group })
            .starts_with("--colsep: invalid regular expression: ")
    );
    let regexp = SplitterConfig { regexp: true, end: some("(?=x)"), ..config() };
    let text = why(regexp);
    assert!(text.starts_with("--recend: invalid regular expression: ") && !text.contains('\n'), "{text}");
    let header = SplitterConfig { header: Some(Header::Pattern(b"[".to_vec())), ..config() };
    assert!(why(header).starts_with("--header: invalid regular expression: "));
    let why =
        |config| InputReader::open(config, SplitterSource::Files(Vec::new()), 1).unwrap_err().to_string();
    assert!(why(records(1)).contains("`--pipe-part` does not count records"));
    assert!(why(SplitterConfig { remove_separator: true, ..config() }).contains("`--remove-rec-sep`"));
}
