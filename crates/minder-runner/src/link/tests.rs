//! When ranges are claimed.

use minder::{ChildSet, ChildSetOptions};

use super::*;

/// The time in which a thread would wake up that should not.
const MOMENT: Duration = Duration::from_millis(50);

/// Starts a thread that waits for room, and waits until it does.
fn waiting(room: &Arc<Room>, waker: &Waker) -> thread::JoinHandle<bool> {
    let waits = {
        let (room, waker) = (Arc::clone(room), waker.clone());
        thread::spawn(move || room.wait(&waker))
    };
    while !room.state.lock().is_wanted {
        thread::yield_now();
    }
    waits
}

#[test]
fn room_is_given_to_one_claim_when_all_jobs_were_taken() {
    let set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let waker = set.waker();
    let room = Arc::new(Room::default());
    // Not wanted yet, so that it does not count.
    room.offer(0);
    let waits = waiting(&room, &waker);
    minder_os::time::pause(MOMENT, None);
    assert!(!waits.is_finished(), "an earlier offer counts");
    room.offer(0);
    assert!(waits.join().expect("wait"));
    // Two jobs are passed on. While one of them was not taken, there is no need for more.
    room.give();
    room.give();
    let waits = waiting(&room, &waker);
    room.offer(1);
    minder_os::time::pause(MOMENT, None);
    assert!(!waits.is_finished(), "a job was not taken");
    room.offer(2);
    assert!(waits.join().expect("wait"));
    let waits = waiting(&room, &waker);
    minder_os::time::pause(MOMENT, None);
    assert!(!waits.is_finished(), "an offer counts twice");
    room.end();
    assert!(!waits.join().expect("wait"));
    // Later calls return at once.
    assert!(!room.wait(&waker));
}

#[test]
fn end_counts_more_than_an_offer() {
    let set = ChildSet::new(ChildSetOptions::default()).expect("create set");
    let room = Arc::new(Room::default());
    let waits = waiting(&room, &set.waker());
    let mut state = room.state.lock();
    state.is_free = true;
    state.has_ended = true;
    drop(state);
    room.changed.notify_all();
    assert!(!waits.join().expect("wait"));
}
