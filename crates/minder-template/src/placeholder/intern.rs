//! Interned texts of placeholders.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Returns an equal text that lives until the end of the process. Equal texts are stored once.
///
/// Placeholders are copied into words and messages. A template is parsed once in a run and has few
/// different ones.
pub(crate) fn intern(text: &[u8]) -> &'static [u8] {
    static INTERNED: Mutex<BTreeSet<&'static [u8]>> = Mutex::new(BTreeSet::new());
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(interned) = interned.get(text) {
        return interned;
    }
    let text: &'static [u8] = Vec::leak(text.to_vec());
    interned.insert(text);
    text
}
