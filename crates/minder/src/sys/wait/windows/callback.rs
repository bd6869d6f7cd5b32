//! The context of operating system callbacks: a number instead of a pointer, so that a late
//! callback finds no entry and does nothing.
//!
//! To end a wait reliably, a thread would have to wait for its callback. That takes time on every
//! version of Windows, and Wine 8 lets a callback begin even afterwards.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock};

use minder_os::sync::Mutex;

/// The function that a callback calls.
type Action = Arc<dyn Fn() + Send + Sync>;

/// A callback that may run until this is dropped.
#[derive(Debug)]
pub(super) struct Callback {
    number: usize,
    /// The number of waits that were started, each of which runs it once.
    waits: usize,
}

#[derive(Default)]
struct Table {
    /// The action of each callback, and how often it ran.
    actions: HashMap<usize, (Action, usize)>,
    last_number: usize,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

impl Callback {
    pub(super) fn new(action: impl Fn() + Send + Sync + 'static) -> Self {
        let mut table = TABLE.lock();
        table.last_number += 1;
        let number = table.last_number;
        table.actions.insert(number, (Arc::new(action), 0));
        Self { number, waits: 0 }
    }

    /// Returns the context that the operating system passes to the callback: a number, not a pointer.
    pub(super) fn context(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.number)
    }

    /// Counts a wait that was started, and that runs the callback.
    pub(super) fn count_wait(&mut self) {
        self.waits += 1;
    }

    /// Returns whether it ran less often than waits were started: a wait is running, or was
    /// cancelled.
    pub(super) fn is_pending(&self) -> bool {
        TABLE.lock().actions.get(&self.number).is_none_or(|&(_, runs)| runs < self.waits)
    }

    /// Runs the action of the callback with this context, unless it was dropped.
    pub(super) fn run(context: *mut c_void) {
        // The lock is released before the action runs, because the action may wait for memory.
        let action = TABLE.lock().actions.get_mut(&context.addr()).map(|(action, runs)| {
            *runs += 1;
            Arc::clone(action)
        });
        if let Some(action) = action {
            action();
        }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // The action is dropped after the lock is released.
        let action = TABLE.lock().actions.remove(&self.number);
        drop(action);
    }
}
