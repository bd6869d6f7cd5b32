//! Random children against a model of their events.

use minder::{Backend, ChildSet, ExitStatus, OutputMode, OverflowPolicy, SpawnOptions};
use proptest::prelude::*;

use crate::support::{EventLog, limits, patience, patterned, test_child};

/// The verb of one child, and its options.
#[derive(Clone, Debug)]
struct Script {
    sizes: [usize; 2],
    pause_ms: u64,
    code: u8,
    when_full: OverflowPolicy,
    delivery: OutputMode,
    /// The number of events that are taken before it is started.
    after: usize,
}

fn script() -> impl Strategy<Value = Script> {
    let size = prop_oneof![Just(0usize), 1usize..100, 4_000usize..4_200, 60_000usize..140_000];
    let when_full = prop_oneof![
        Just(OverflowPolicy::Block),
        Just(OverflowPolicy::Spill),
        Just(OverflowPolicy::DropOldest)
    ];
    let at_end = any::<bool>();
    ([size.clone(), size], 0u64..8, any::<u8>(), when_full, at_end, 0usize..20).prop_map(
        |(sizes, pause_ms, code, when_full, at_end, after)| {
            let at_end = at_end && when_full != OverflowPolicy::Block;
            let delivery = if at_end { OutputMode::AtExit } else { OutputMode::Stream };
            Script { sizes, pause_ms, code, when_full, delivery, after }
        },
    )
}

/// Returns how many events the caller keeps, and the limits in bytes of a read, of a child, and of
/// the set.
fn habits() -> impl Strategy<Value = (usize, usize, usize, usize)> {
    (0usize..40, prop_oneof![Just(512usize), Just(4096), Just(65_536)], 1usize..40_000, 1usize..200_000)
}

fn run(backend: Backend, scripts: &[Script], habits: (usize, usize, usize, usize)) {
    let (hands, buffer_bytes, child_bytes_max, bytes_max) = habits;
    let limits = limits(backend)
        .read_buffer_bytes(buffer_bytes)
        .max_child_bytes(child_bytes_max)
        .max_buffered_bytes(bytes_max);
    let mut set = ChildSet::new(limits).expect("create set");
    let mut event_log = EventLog::default();
    let mut held = std::collections::VecDeque::new();
    let until = patience();
    let mut take = |set: &mut ChildSet, hands: usize| {
        // A child may wait for chunks that we hold: they are dropped before a wait that nothing else would
        // end.
        let soon = std::time::Instant::now() + std::time::Duration::from_millis(20);
        match set
            .next_event_deadline(Some(if held.is_empty() { until } else { soon }))
            .expect("wait for event")
            .into_event()
        {
            Some(event) => held.push_back(event),
            None => assert!(!held.is_empty(), "nothing came, and nothing was in our hands"),
        }
        while held.len() > hands {
            event_log.record(held.pop_front().expect("wait for event"));
        }
        if set.is_empty() || std::time::Instant::now() >= soon {
            held.drain(..).for_each(|event| event_log.record(event));
        }
    };
    let mut ids = Vec::new();
    for script in scripts {
        for _ in 0..script.after {
            if !set.is_empty() {
                take(&mut set, hands);
            }
        }
        let [out, err] = script.sizes;
        let command = test_child(&format!("script {out} {err} {} {}", script.pause_ms, script.code));
        let options = SpawnOptions::default().overflow(script.when_full).output_mode(script.delivery);
        ids.push(set.spawn(&command, options).expect("spawn test child"));
    }
    while !set.is_empty() {
        take(&mut set, hands);
    }
    for event in held {
        event_log.record(event);
    }
    for (id, script) in ids.into_iter().zip(scripts) {
        let record = event_log.child(id);
        let outcome = event_log.outcome(id);
        assert_eq!(
            (record.exit, record.eofs),
            (Some(ExitStatus::Exited(script.code.into())), [1, 1]),
            "{script:?}"
        );
        assert!(!outcome.leaked && !outcome.left_running, "{script:?}: {outcome:?}");
        let received = record.outs.iter().map(Vec::len).sum::<usize>() as u64;
        let written = script.sizes.iter().sum::<usize>() as u64;
        assert_eq!(received + outcome.dropped, written, "{script:?}: {outcome:?}");
        if script.when_full != OverflowPolicy::DropOldest {
            assert_eq!(outcome.dropped, 0);
            for (out, size) in record.outs.iter().zip(script.sizes) {
                assert!(*out == patterned(size), "{script:?}: {} bytes", out.len());
            }
        }
    }
    assert_eq!(set.buffered_bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(windows) { 5 } else { 16 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_children_match_a_model(scripts in prop::collection::vec(script(), 1..12), habits in habits()) {
        for backend in crate::support::backends() {
            run(backend, &scripts, habits);
        }
    }
}
