//! Interning of the texts of placeholders.

use std::collections::BTreeSet;

use minder_os::sync::Mutex;

/// Returns an equal text that lives until the process exits. Equal texts are stored once.
///
/// This leaks memory, so that placeholders are `Copy`. A run parses few templates, and they contain
/// few different placeholders.
pub(crate) fn intern(text: &[u8]) -> &'static [u8] {
    static INTERNED: Mutex<BTreeSet<&'static [u8]>> = Mutex::new(BTreeSet::new());
    let mut interned = INTERNED.lock();
    if let Some(interned) = interned.get(text) {
        return interned;
    }
    let text: &'static [u8] = Vec::leak(text.to_vec());
    interned.insert(text);
    text
}
