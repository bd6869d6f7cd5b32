//! Whatever the input and the reads are: nothing is lost, repeated or cut within a record.

use super::files::of_files;
use super::*;

/// Bytes of a small alphabet, so that separators are frequent and overlap; and some long
/// repetitions.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let short = prop::collection::vec(prop::sample::select(b"ab\n\n:>\0\xff".to_vec()), 0..300);
    let long = (0..2000_usize).prop_map(|len| vec![b'r'; len]);
    prop::collection::vec(prop_oneof![4 => short, 1 => long], 0..4).prop_map(|parts| parts.concat())
}

fn separator() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec!["\n", ">", ":>", "aa", "", "\n\n", "b\n"]).prop_map(|text| text.into())
}

fn any_config() -> impl Strategy<Value = SplitterConfig> {
    let records = prop::option::of((1..5_u64).prop_map(|count| NonZeroU64::new(count).unwrap()));
    let ends = (prop::option::of(separator()), prop::option::of(separator()));
    (1..200_u64, records, ends, any::<bool>(), prop::option::of(1..3_u64)).prop_map(
        |(bytes, records, (start, end), regexp, header)| SplitterConfig {
            records,
            start,
            end,
            regexp,
            header: header.map(Header::Lines),
            block_timeout: Some(Duration::from_secs(3600)),
            ..block(bytes)
        },
    )
}

fn header_len(config: &SplitterConfig, input: &[u8]) -> usize {
    let Some(Header::Lines(count)) = config.header else { return 0 };
    memchr::memchr_iter(b'\n', input).nth(count as usize - 1).map_or(0, |at| at + 1)
}

/// Returns `true` if a split is allowed between these two chunks.
fn is_bound(config: &SplitterConfig, before: &[u8], after: &[u8]) -> bool {
    let start = config.start.clone().unwrap_or_default();
    let end = config.end.clone().unwrap_or(if config.start.is_some() { Vec::new() } else { b"\n".to_vec() });
    before.ends_with(&end) && after.starts_with(&start)
}

/// Returns the chunks without their header, after a check that together they are the input.
fn check(config: &SplitterConfig, input: &[u8], all: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TestCaseError> {
    let (header, body) = input.split_at(header_len(config, input));
    let chunks: Vec<_> = all.into_iter().map(|job| job.strip_prefix(header).unwrap().to_vec()).collect();
    prop_assert_eq!(chunks.concat(), body);
    let mut at = 0;
    for chunk in &chunks {
        prop_assert!(!chunk.is_empty());
        prop_assert!(at == 0 || is_bound(config, &body[..at], &body[at..]), "{:?}", chunks);
        at += chunk.len();
    }
    Ok(chunks)
}

proptest! {
    #[test]
    fn parts_are_the_input(
        config in any_config(),
        input in input(),
        sizes in prop::collection::vec(0..50_usize, 0..5),
    ) {
        let all = spread(&config, 1, &input, &sizes).unwrap();
        let chunks = check(&config, &input, all)?;
        if let (Some(records), None, None) = (config.records, &config.start, &config.end) {
            let lines = |chunk: &Vec<u8>| chunk.split_inclusive(|&byte| byte == b'\n').count() as u64;
            let (last, others) = match chunks.split_last() {
                Some((last, others)) => (Some(last), others),
                None => (None, &[][..]),
            };
            prop_assert!(others.iter().all(|chunk| lines(chunk) == records.get()));
            prop_assert!(last.is_none_or(|chunk| lines(chunk) <= records.get()));
        }
    }

    #[test]
    fn result_does_not_depend_on_reads(
        config in any_config(),
        input in input(),
        sizes in prop::collection::vec(1..50_usize, 0..5),
    ) {
        let whole = spread(&config, 1, &input, &[]);
        let segments = spread(&config, 1, &input, &sizes);
        prop_assert_eq!(whole, segments);
    }

    #[test]
    fn parts_of_files_are_the_file(
        config in any_config(),
        input in input(),
        shares in prop::option::of(1..9_u64),
    ) {
        let shares = shares.map(|count| BlockSize::Shares(NonZeroU64::new(count).unwrap()));
        let block = shares.unwrap_or(config.block);
        let config = SplitterConfig { records: None, block, ..config };
        let all = of_files(&config, 2, &[&input]).unwrap();
        check(&config, &input, all)?;
    }

    #[test]
    fn groups_stay_together(
        lines in prop::collection::vec((0..3_u8, 0..40_usize), 0..100),
        bytes in 1..300_u64,
        records in prop::option::of(1..4_u64),
        sizes in prop::collection::vec(1..50_usize, 0..5),
    ) {
        let line = |(value, len): &(u8, usize)| format!("{value}\t{}\n", "x".repeat(*len));
        let text: String = lines.iter().map(line).collect();
        let group = SplitterConfig {
            group_by: Some(Column::Number(1)),
            records: records.and_then(NonZeroU64::new),
            ..block(bytes)
        };
        let mut all = vec![spread(&group, 1, text.as_bytes(), &sizes).unwrap()];
        if records.is_none() {
            all.push(of_files(&group, 1, &[text.as_bytes()]).unwrap());
        }
        for chunks in all {
            prop_assert_eq!(chunks.concat(), text.as_bytes());
            for pair in chunks.windows(2) {
                let before = pair[0].split_inclusive(|&byte| byte == b'\n').next_back().unwrap();
                prop_assert_ne!(before[0], pair[1][0]);
            }
        }
    }

    #[test]
    fn streams_lose_nothing(
        config in any_config(),
        input in input(),
        slots in 1..4_usize,
        sizes in prop::collection::vec(1..50_usize, 0..5),
        which in 0..4_u8,
    ) {
        let spread_by = match which {
            0 => Distribution::RoundRobin,
            1 => Distribution::Tee,
            2 => Distribution::Shard(Column::Number(1)),
            _ => Distribution::Bin(Column::Number(1)),
        };
        let by_line = which > 1;
        let mut config = SplitterConfig { spread: spread_by, ..config };
        if by_line {
            config.records = None;
            config.start = None;
            config.end = None;
        }
        let all = spread(&config, slots, &input, &sizes).unwrap();
        let (header, body) = input.split_at(header_len(&config, &input));
        if which == 1 {
            prop_assert!(all.iter().all(|job| *job == input));
        } else {
            let bodies = all.iter().flat_map(|job| job.strip_prefix(header).unwrap());
            let mut got: Vec<u8> = bodies.copied().collect();
            let mut want = body.to_vec();
            got.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(got, want);
        }
    }
}
