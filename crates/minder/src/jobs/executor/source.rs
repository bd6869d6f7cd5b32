//! The source of tasks: an iterator of the caller, any call of which may panic.

use super::panic::PanicStore;

/// The iterator, until its end or its first panic.
#[derive(Debug)]
pub(super) struct Source<I>(Option<I>);

impl<I: Iterator> Source<I> {
    pub(super) fn new(items: Option<I>) -> Self {
        Self(items)
    }

    /// Asks for the next task.
    pub(super) fn pull(&mut self, panic: &PanicStore) -> Option<I::Item> {
        let items = self.0.as_mut()?;
        let next = panic.catch(|| items.next()).flatten();
        if next.is_none() {
            self.end(panic);
        }
        next
    }

    /// Returns whether there may be one more task, as far as the size hint is right. Use it only to decide
    /// how many threads take tasks.
    pub(super) fn has_more(&mut self, panic: &PanicStore) -> bool {
        let Some(items) = &self.0 else { return false };
        let hint = panic.catch(|| items.size_hint());
        if hint.is_none() {
            self.end(panic);
        }
        hint.is_some_and(|(_, most)| most != Some(0))
    }

    /// Drops the iterator.
    pub(super) fn end(&mut self, panic: &PanicStore) {
        let items = self.0.take();
        let _ = panic.catch(|| drop(items));
    }
}
