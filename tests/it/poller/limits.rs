//! Many sources, fairness among them, and what is refused.

use std::io::Write;
use std::time::{Duration, Instant};

use minder::poll::{Interest, Poller, Token, Waker};
use minder::{Backend, ErrorKind};

use super::{
    CHANGES, Counter, counter, each_exact, each_source, expect, expect_since, is_prompt, lower, names, open,
    pipe, raise, served, soon, tokens, try_counter,
};
use crate::support::{alone, each_backend, patience};

#[test]
fn add_rejects_a_registered_source_and_modify_an_unknown_one() {
    each_backend(|backend| {
        let poller = open(backend);
        let (reader, writer) = pipe().expect("create pipe");
        poller.add(&reader, Token(1), Interest::READABLE).expect("add source");
        let error = poller.add(&reader, Token(2), Interest::READABLE).expect_err("add source again");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let error = poller.modify(&writer, Token(2), Interest::WRITABLE).expect_err("modify unknown source");
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        let error = poller.delete(&writer).expect_err("delete unknown source");
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        poller.delete(&reader).expect("delete source");
        assert_eq!(poller.delete(&reader).expect_err("delete source again").kind(), ErrorKind::Unknown);
        poller.add(&reader, Token(3), Interest::READABLE).expect("add source again");
        let error = poller
            .add(&writer, Token(u64::MAX), Interest::WRITABLE)
            .expect_err("add source with reserved token");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    });
}

#[test]
fn delete_of_one_source_leaves_the_others() {
    each_source(|backend| {
        let poller = open(backend);
        let pipes: Vec<_> = (0..20).map(|_| pipe().expect("create pipe")).collect();
        for (number, (reader, writer)) in pipes.iter().enumerate() {
            poller.add(reader, Token(number as u64), Interest::READABLE).expect("add source");
            (&*writer).write_all(b"x").expect("write bytes");
        }
        let mut left: Vec<u64> = (0..20).collect();
        // From the middle, the end and the start, in turns.
        for number in [10, 19, 0, 11, 18, 1, 5] {
            poller.delete(&pipes[number].0).expect("delete source");
            left.retain(|token| *token != number as u64);
            expect_since(&poller, &left, &format!("after {number}"));
        }
        poller.add(&pipes[19].0, Token(99), Interest::READABLE).expect("add source again");
        left.push(99);
        expect(&poller, &left);
    });
}

/// That many sources, or a word on why there are fewer.
fn sources(count: usize) -> Option<Vec<Counter>> {
    let sources: Vec<_> = (0..count).map_while(|_| try_counter().ok()).collect();
    if sources.len() < count {
        crate::support::skip(format_args!("{count} sources: only {} descriptors are free", sources.len()));
        return None;
    }
    Some(sources)
}

/// Watches the sources, and makes first some and then all of them ready. Each one is reported, and
/// none starves.
fn crowd(backend: Backend, sources: &[Counter]) {
    let poller = open(backend);
    let count = sources.len();
    for (token, source) in (0..).zip(sources) {
        poller.add(source, Token(token), Interest::READABLE).expect("add source");
    }
    expect(&poller, &[]);
    for number in [0, 1, count / 2, count - 2, count - 1] {
        raise(&sources[number]);
        expect(&poller, &[number as u64]);
        lower(&sources[number]);
        served(&poller, "it was served");
    }
    sources.iter().for_each(raise);
    // Every source is reported before any other is reported a third time.
    let mut seen = vec![0u32; count];
    let mut looks = 0;
    while seen.contains(&0) {
        looks += 1;
        assert!(
            looks <= count / 64 + 2 || !is_prompt(),
            "after {looks} waits some of {count} were not reported"
        );
        for token in names(&soon(&poller)) {
            seen[token as usize] += 1;
        }
    }
    // A backend that reports readiness with a delay (see `is_prompt`) does so less evenly.
    let most = seen.iter().max().copied().unwrap_or(0);
    assert!(most <= 2 || !is_prompt(), "one of {count} was reported {most} times before another one");
    // A source that was served is not reported, even if it was reported before or is still queued.
    sources.iter().for_each(lower);
    served(&poller, &format!("all of {count} were served"));
    raise(&sources[count / 2]);
    expect(&poller, &[count as u64 / 2]);
    lower(&sources[count / 2]);
    sources.iter().for_each(|source| poller.delete(source).expect("delete source"));
    sources.iter().for_each(raise);
    expect_since(&poller, &[], &format!("all of {count} were deleted"));
    sources.iter().for_each(lower);
}

#[test]
fn poller_watches_1025_and_4096_sources() {
    alone("poller::limits::poller_watches_1025_and_4096_sources", || {
        raise_limit();
        for count in [1025, 4096] {
            watch(count);
        }
    });
}

// Under Wine, that many handles do not fit into one process.
#[cfg(unix)]
#[test]
fn poller_watches_16384_sources() {
    alone("poller::limits::poller_watches_16384_sources", || {
        raise_limit();
        watch(16_384);
    });
}

/// Without a new set of sources for each backend, where they are of one kind.
#[cfg(unix)]
fn watch(count: usize) {
    if let Some(sources) = sources(count) {
        each_backend(|backend| crowd(backend, &sources));
    }
}

#[cfg(windows)]
fn watch(count: usize) {
    super::each_handle(|backend| crowd(backend, &sources(count).expect("create events")));
    // A connection has two ends, each of which costs much more than an event.
    if count <= 1025 {
        each_exact(|backend| crowd(backend, &sources(count).expect("create connections")));
    }
}

#[cfg(unix)]
fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("set resource limit");
}

/// Windows has no such limit.
#[cfg(windows)]
fn raise_limit() {}

/// A source that is always ready, and never served, hides no other.
#[test]
fn busy_source_does_not_hide_a_quiet_one() {
    each_source(|backend| {
        let poller = open(backend);
        let busy = counter();
        let quiet = counter();
        raise(&busy);
        poller.add(&quiet, Token(1), Interest::READABLE).expect("add source");
        poller.add(&busy, Token(2), Interest::READABLE).expect("add source");
        for _ in 0..50 {
            (0..2).for_each(|_| expect(&poller, &[2]));
            raise(&quiet);
            let mut reported = [tokens(&poller), tokens(&poller)].concat();
            let until = patience();
            while !is_prompt() && !reported.contains(&1) && Instant::now() < until {
                reported.extend(tokens(&poller));
            }
            assert!(reported.contains(&1) && reported.contains(&2), "{reported:?}");
            lower(&quiet);
        }
    });
}

/// More sources are ready than one wait reports, none of them is ever served, and the waker is
/// among them.
#[test]
fn six_hundred_busy_sources_share_turns_with_others_and_wakes() {
    each_exact(|backend| {
        let poller = open(backend);
        let Some(sources) = sources(601) else { return };
        for (token, source) in (0..).zip(&sources) {
            poller.add(source, Token(token), Interest::READABLE).expect("add source");
        }
        let (quiet, busy) = sources.split_last().expect("split last source");
        busy.iter().for_each(raise);
        (0..5).for_each(|_| drop(tokens(&poller)));
        for round in 0..20 {
            // Within that many waits each is reported: the quiet one, too, and each wake.
            raise(quiet);
            poller.notify().expect("wake poller");
            let mut seen = [0; 601];
            let mut woken = false;
            let mut events = minder::poll::Events::new();
            for _ in 0..6 {
                poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
                woken |= events.woken();
                events.iter().for_each(|ready| seen[ready.token.0 as usize] += 1);
            }
            assert!(woken, "the wake was not reported, round {round}");
            assert!(!seen.contains(&0), "round {round}: {seen:?}");
            let least = seen.iter().min();
            let most = seen.iter().max();
            // Six waits report at least six times as many as one of them can.
            let fair = least.zip(most).is_some_and(|(least, most)| most - least <= 2);
            assert!(fair, "round {round}: from {least:?} to {most:?} times");
            lower(quiet);
        }
    });
}

/// Sources added and deleted without a wait leave nothing behind.
#[test]
fn hundred_thousand_changes_without_a_wait_leave_nothing() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        let other = counter();
        raise(&source);
        poller.add(&other, Token(1), Interest::READABLE).expect("add source");
        let before = Instant::now();
        for round in 0..CHANGES {
            poller.add(&source, Token(round), Interest::READABLE).expect("add source");
            poller.delete(&source).expect("delete source");
        }
        expect(&poller, &[]);
        for round in 0..CHANGES {
            poller.modify(&other, Token(round), Interest::READABLE).expect("modify source");
        }
        raise(&other);
        expect(&poller, &[CHANGES - 1]);
        assert!(before.elapsed() < Duration::from_secs(60), "changes became slow: {:?}", before.elapsed());
    });
}

#[test]
fn unknown_backend_is_rejected_by_name() {
    let error = "no-such-backend".parse::<Backend>().expect_err("parse unknown backend");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("no-such-backend"), "{error}");
    let foreign = crate::support::foreign_backend();
    let error = Poller::with_backend(foreign).expect_err("open backend of another system");
    assert_eq!((error.kind(), error.subject()), (ErrorKind::Unsupported, Some(foreign.name())));
}

#[test]
fn highest_sixteen_tokens_are_reserved() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        raise(&source);
        for low in 0..16 {
            let error = poller
                .add(&source, Token(u64::MAX - low), Interest::READABLE)
                .expect_err("add source with reserved token");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        let highest = Token(u64::MAX - 16);
        let error = poller.modify(&source, highest, Interest::READABLE).expect_err("modify unknown source");
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        poller.add(&source, highest, Interest::READABLE).expect("add source with highest token");
        expect(&poller, &[u64::MAX - 16]);
        let error = poller
            .modify(&source, Token(u64::MAX - 15), Interest::READABLE)
            .expect_err("modify to reserved token");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let error = poller
            .add_timer(Token(u64::MAX), Instant::now(), Duration::ZERO)
            .expect_err("add timer with reserved token");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        expect(&poller, &[u64::MAX - 16]);
    });
}

/// A waker may outlive its poller.
#[test]
fn waker_outlives_its_poller() {
    each_backend(|backend| {
        let waker: Waker = open(backend).waker();
        waker.wake().expect("wake dropped poller");
        waker.clone().wake().expect("wake dropped poller");
    });
}

/// Run from `refused`, where the mechanism is missing.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a system that forbids io_uring"]
fn forbidden_backend_reports_why_and_the_default_works() {
    for _ in 0..2 {
        let error = Poller::with_backend(Backend::IoUring).expect_err("open refused backend");
        assert_eq!(error.io_error().raw_os_error(), Some(libc::ENOSYS), "{error:?}");
        let text = error.to_string();
        let why = "failed to open the wait backend `io_uring`: ";
        assert!(text.starts_with(why) && text.len() > why.len(), "{text}");
    }
    let poller = Poller::new().expect("open default backend");
    let source = counter();
    poller.add(&source, Token(1), Interest::READABLE).expect("add source");
    raise(&source);
    expect(&poller, &[1]);
    let limits = minder::ChildSetOptions::default().backend(Some(Backend::IoUring));
    minder::ChildSet::new(limits).expect_err("open refused backend");
    minder::ChildSet::new(minder::ChildSetOptions::default()).expect("create set");
}

#[cfg(unix)] // Elsewhere it takes a poller.
#[test]
fn wait_ready_works_without_a_free_descriptor() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    alone("poller::limits::wait_ready_works_without_a_free_descriptor", || {
        let (reader, mut writer) = pipe().expect("create pipe");
        // One: poll(2) refuses more sources than there may be descriptors.
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(1), ..before }).expect("set resource limit");
        let wait = |deadline| minder::os::wait_ready(&reader, Interest::READABLE, Some(deadline));
        assert!(!wait(Instant::now()).expect("poll(2) alone"));
        writer.write_all(b"x").expect("write bytes");
        assert!(wait(patience()).expect("poll(2) alone"));
    });
}
