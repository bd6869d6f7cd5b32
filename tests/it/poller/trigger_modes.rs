//! The number of times that a source is reported: one-shot and edge.

use std::io::{Read, Write};

use minder::ErrorKind;
use minder::poll::{Interest, Poller, Token};

use super::{
    await_hang_up, counter, each_source, expect, expect_since, has_edge, lower, names, open, pair, pipe,
    raise, settle, tokens, wait_events,
};
use crate::support::{each_backend, patience};

const ONCE: Interest = Interest::READABLE.oneshot();

#[test]
fn oneshot_is_reported_once_until_modified() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut reader, mut writer) = pipe().expect("create pipe");
        poller.add(&reader, Token(1), ONCE).expect("add source");
        expect(&poller, &[]);
        writer.write_all(b"a").expect("write bytes");
        expect(&poller, &[1]);
        for _ in 0..3 {
            expect_since(&poller, &[], "reported twice");
        }
        writer.write_all(b"b").expect("write bytes");
        expect_since(&poller, &[], "more bytes do not matter");
        // Still ready: reported again at once, by its new token.
        poller.modify(&reader, Token(2), ONCE).expect("modify source");
        expect(&poller, &[2]);
        expect_since(&poller, &[], "reported twice");
        // Served, and changed: silent until there is more.
        reader.read_exact(&mut [0; 2]).expect("read two bytes");
        poller.modify(&reader, Token(3), ONCE).expect("modify source");
        expect_since(&poller, &[], "an empty pipe");
        writer.write_all(b"c").expect("write bytes");
        expect(&poller, &[3]);
        // Another interest makes it level-triggered.
        poller.modify(&reader, Token(4), Interest::READABLE).expect("modify source");
        expect(&poller, &[4]);
        expect(&poller, &[4]);
    });
}

#[test]
fn disarmed_source_can_be_deleted_and_added_again() {
    each_source(|backend| {
        let poller = open(backend);
        let other = counter();
        let source = counter();
        poller.add(&other, Token(9), Interest::READABLE).expect("add source");
        poller.add(&source, Token(1), ONCE).expect("add source");
        raise(&source);
        expect(&poller, &[1]);
        let error = poller.add(&source, Token(2), ONCE).expect_err("add disarmed source again");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        poller.delete(&source).expect("delete source");
        assert_eq!(poller.delete(&source).expect_err("delete source again").kind(), ErrorKind::Unknown);
        expect(&poller, &[]);
        poller.add(&source, Token(3), ONCE).expect("add source");
        expect(&poller, &[3]);
        raise(&other);
        expect_since(&poller, &[9], "its neighbour is reported as before");
    });
}

/// Hang-ups cannot be left out of what poll(2) and epoll(7) report; a disarmed source can be
/// ignored.
#[test]
fn hangup_of_a_disarmed_source_is_not_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let (ours, theirs) = pair().expect("create socket pair");
        poller.add(&ours, Token(1), ONCE).expect("add source");
        (&theirs).write_all(b"x").expect("write bytes");
        expect(&poller, &[1]);
        (&ours).read_exact(&mut [0]).expect("read bytes");
        drop(theirs);
        await_hang_up(&ours);
        for _ in 0..3 {
            expect_since(&poller, &[], "the hang-up of a silent source");
        }
        poller.modify(&ours, Token(2), ONCE).expect("modify source");
        let ready = wait_events(&poller, patience());
        assert!(names(&ready) == [2] && ready[0].closed, "{ready:?}");
        expect_since(&poller, &[], "a hang-up, too, is reported once");
    });
}

/// While three threads wait, a one-shot source is reported to one of them.
#[test]
fn oneshot_is_reported_to_one_of_many_threads() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        let end = counter();
        for round in 0..30 {
            poller.add(&source, Token(1), ONCE).expect("add source");
            poller.add(&end, Token(2), Interest::READABLE).expect("add source");
            let reported: usize = std::thread::scope(|scope| {
                let wait = || {
                    let mut reported = 0;
                    loop {
                        let ready = names(&wait_events(&poller, patience()));
                        reported += ready.iter().filter(|&&token| token == 1).count();
                        if ready.contains(&2) {
                            return reported;
                        }
                        assert!(!ready.is_empty(), "the end was not reported");
                    }
                };
                let waiting: Vec<_> = (0..3).map(|_| scope.spawn(wait)).collect();
                if round % 2 == 0 {
                    std::thread::yield_now();
                }
                raise(&source);
                raise(&end);
                waiting.into_iter().map(|thread| thread.join().expect("join waiter")).sum()
            });
            // The end may have been reported before.
            let mut rest = 0;
            let until = patience();
            while reported + rest == 0 && std::time::Instant::now() < until {
                rest += tokens(&poller).iter().filter(|&&token| token == 1).count();
                assert!(rest > 0 || !super::is_prompt(), "the source was not reported, round {round}");
            }
            rest += tokens(&poller).iter().filter(|&&token| token == 1).count();
            assert_eq!(reported + rest, 1, "round {round}");
            lower(&source);
            lower(&end);
            poller.delete(&source).expect("delete source");
            poller.delete(&end).expect("delete source");
        }
    });
}

/// Returns whether the backend supports edge-triggered sources. If it does not, checks that it
/// returns an error and registers nothing.
fn has_edges(poller: &Poller) -> bool {
    let source = counter();
    let result = poller.add(&source, Token(1), Interest::READABLE.edge());
    if has_edge(poller.backend()) {
        result.expect("add edge-triggered source");
        poller.delete(&source).expect("delete source");
        return true;
    }
    let error = result.expect_err("add edge-triggered source");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    raise(&source);
    expect_since(poller, &[], "the rejected source is watched");
    assert_eq!(poller.delete(&source).expect_err("delete rejected source").kind(), ErrorKind::Unknown);
    // A rejected `modify` leaves the source as it was.
    poller.add(&source, Token(2), Interest::READABLE).expect("add source");
    let error = poller.modify(&source, Token(3), Interest::READABLE.edge()).expect_err("modify to edge");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    expect(poller, &[2]);
    poller.delete(&source).expect("delete source");
    false
}

#[test]
fn edge_is_reported_only_with_new_readiness() {
    each_backend(|backend| {
        let poller = open(backend);
        if !has_edges(&poller) {
            return;
        }
        let (mut reader, mut writer) = pipe().expect("create pipe");
        poller.add(&reader, Token(1), Interest::READABLE.edge()).expect("add source");
        expect(&poller, &[]);
        for round in 0..20 {
            writer.write_all(b"a").expect("write bytes");
            expect_since(&poller, &[1], &format!("it became ready, round {round}"));
            expect_since(&poller, &[], &format!("nothing changed, round {round}"));
            writer.write_all(b"b").expect("write bytes");
            expect_since(&poller, &[1], &format!("more came, round {round}"));
            expect_since(&poller, &[], &format!("nothing changed, round {round}"));
            reader.read_exact(&mut [0]).expect("read bytes");
            expect_since(&poller, &[], "a read that leaves a byte adds no readiness");
            reader.read_exact(&mut [0]).expect("read bytes");
            expect_since(&poller, &[], "a read that empties the pipe adds no readiness");
        }
        drop(writer);
        let ready = wait_events(&poller, patience());
        assert!(names(&ready) == [1] && ready[0].closed, "the hang-up was not reported: {ready:?}");
    });
}

#[test]
fn edge_is_reported_at_once_and_after_modify() {
    each_source(|backend| {
        let poller = open(backend);
        if !has_edges(&poller) {
            return;
        }
        let source = counter();
        raise(&source);
        poller.add(&source, Token(1), Interest::READABLE.edge()).expect("add source");
        assert_eq!([tokens(&poller), tokens(&poller)], [vec![1], vec![]], "ready when it was added");
        poller.modify(&source, Token(2), Interest::READABLE.edge()).expect("modify source");
        assert_eq!([tokens(&poller), tokens(&poller)], [vec![2], vec![]], "ready when it was changed");
        poller.modify(&source, Token(3), Interest::READABLE).expect("modify source");
        assert_eq!([tokens(&poller), tokens(&poller)], [vec![3], vec![3]], "level-triggered from now on");
        poller.modify(&source, Token(4), Interest::READABLE.edge()).expect("modify source");
        assert_eq!([tokens(&poller), tokens(&poller)], [vec![4], vec![]]);
        poller.delete(&source).expect("delete source");
        raise(&source);
        expect(&poller, &[]);
    });
}

/// A source becomes ready during a wait, and between two waits.
#[test]
fn edge_is_never_lost() {
    each_source(|backend| {
        let poller = open(backend);
        if !has_edges(&poller) {
            return;
        }
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE.edge()).expect("add source");
        for round in 0..150 {
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| names(&wait_events(&poller, patience())));
                if round % 10 == 0 {
                    settle();
                }
                raise(&source);
                let reported = waiting.join().expect("join waiter");
                assert!(
                    !reported.is_empty() && reported.iter().all(|&token| token == 1),
                    "round {round}: {reported:?}"
                );
            });
            lower(&source);
        }
    });
}
