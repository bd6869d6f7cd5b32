//! A thread that polls in the place of a foreign loop, and makes a descriptor readable when there
//! is news.
//!
//! poll(2) keeps nothing in the kernel that another loop could watch. The thread is started by the
//! first wish for such a descriptor, sleeps in the same call over the same list, and ends with its
//! poller. News arrive some microseconds later than with a backend that has a descriptor of its
//! own.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::registry::{Shared, has_news};
use crate::sys::thread::start_small;
use crate::sys::wait::waker::Waker;

#[derive(Debug)]
pub(super) struct Notifier {
    desk: Arc<NotifierShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct NotifierShared {
    sources: Arc<Shared>,
    /// Readable while there is news.
    bell: Waker,
    orders: Mutex<NotifierState>,
    /// Tells the thread that has rung of new orders.
    ordered: Condvar,
}

#[derive(Debug, Default)]
struct NotifierState {
    deadline: Option<Instant>,
    /// The bell was rung, and the thread waits until it is to look again.
    rung: bool,
    again: bool,
    stop: bool,
}

impl Notifier {
    pub(super) fn start(sources: Arc<Shared>) -> io::Result<Self> {
        let orders = Mutex::default();
        let desk = Arc::new(NotifierShared { sources, bell: Waker::new()?, orders, ordered: Condvar::new() });
        let its = Arc::clone(&desk);
        let thread = start_small("minder news", move || its.work())?;
        Ok(Self { desk, thread: Some(thread) })
    }

    pub(super) fn news(&self) -> BorrowedFd<'_> {
        self.desk.bell.poll_handle()
    }

    /// What is ready may have been served, and the deadline may be another one.
    pub(super) fn look_again(&self, deadline: Option<Instant>) -> io::Result<()> {
        let mut orders = self.desk.lock();
        let other = orders.deadline != deadline;
        orders.deadline = deadline;
        if orders.rung {
            self.desk.bell.reset();
            (orders.rung, orders.again) = (false, true);
            self.desk.ordered.notify_one();
        } else if other {
            orders.again = true;
            self.desk.interrupt()?;
        }
        Ok(())
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.desk.lock().stop = true;
        self.desk.ordered.notify_one();
        // A bell that cannot be rung leaves the thread asleep; then it is left alone.
        let awake = self.desk.interrupt().is_ok();
        if let Some(thread) = self.thread.take().filter(|_| awake) {
            let _ = thread.join();
        }
    }
}

impl NotifierShared {
    fn lock(&self) -> MutexGuard<'_, NotifierState> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the call in which the thread may sleep.
    fn interrupt(&self) -> io::Result<()> {
        self.sources.report_ready(&mut self.sources.lock())
    }

    fn work(&self) {
        loop {
            // Orders are read after the list was entered, so that those that come later end the call.
            let (mut polled, generation) = self.sources.enter();
            let mut orders = self.lock();
            if orders.stop {
                return self.sources.leave(generation);
            }
            orders.again = false;
            let deadline = orders.deadline;
            drop(orders);
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // Of an error the owner learns when it waits itself.
            let filled = self.sources.look(&mut polled, generation, left);
            let found = filled.map_or(true, |filled| filled && has_news(&polled));
            let mut orders = self.lock();
            // New orders that came meanwhile want a new look: what was found may have been served.
            if orders.stop || orders.again || !(found || left == Some(Duration::ZERO)) {
                continue;
            }
            orders.rung = true;
            let _ = self.bell.wake();
            while !(orders.again || orders.stop) {
                orders = self.ordered.wait(orders).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
