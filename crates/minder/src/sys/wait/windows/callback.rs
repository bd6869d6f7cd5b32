//! Who is meant by a callback of the system: a number, and not a pointer, so that one that comes
//! late finds nobody.
//!
//! To end a wait for good, one would have to wait for its callback. That takes time on every
//! system, and Wine 8 lets one begin even afterwards.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::completion_port::{KEY_TIMER, PortSender};
use super::{CompletionPort, Operation};

/// What a callback is to do.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// A handle was signalled: the packet flies.
    Land(Arc<CompletionPort>, Arc<Operation>),
    /// A timer has come to its end: a wait looks at the clock.
    Strike(Arc<PortSender>),
}

/// A callback that may come until this is dropped.
#[derive(Debug)]
pub(super) struct Callback {
    number: usize,
    /// How many waits were to end with it.
    waits: usize,
}

#[derive(Debug, Default)]
struct Table {
    /// What each is to do, and how often it did.
    calls: HashMap<usize, (Call, usize)>,
    last: usize,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Callback {
    pub(super) fn new(call: Call) -> Self {
        let mut table = table();
        table.last += 1;
        let number = table.last;
        table.calls.insert(number, (call, 0));
        Self { number, waits: 0 }
    }

    /// What the system hands to the callback: it points to nothing.
    pub(super) fn context(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.number)
    }

    /// Counts a wait that ends with it.
    pub(super) fn expect(&mut self) {
        self.waits += 1;
    }

    /// Whether it ran less often than there were waits: one goes on, or was ended by us.
    pub(super) fn is_due(&self) -> bool {
        table().calls.get(&self.number).is_none_or(|&(_, runs)| runs < self.waits)
    }

    /// Does what the callback with this context is for, if it is still wanted.
    pub(super) fn run(context: *mut c_void) {
        let call = table().calls.get_mut(&context.addr()).map(|(call, runs)| {
            *runs += 1;
            call.clone()
        });
        match call {
            Some(Call::Land(queue, packet)) => queue.post_soon(&packet),
            // When it fails, the time-out of the wait is there.
            Some(Call::Strike(post)) => drop(post.send(KEY_TIMER, std::ptr::null())),
            None => (),
        }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // What it holds is let go outside of the lock.
        let call = table().calls.remove(&self.number);
        drop(call);
    }
}
