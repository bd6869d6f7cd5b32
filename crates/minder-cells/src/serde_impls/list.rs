//! Lists: how many elements they have, and how they end.

use crate::view::{Data, View};

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With the empty list.
    Nil,
    /// With another value.
    Value,
    /// With an earlier pair of the list: only a list of a heap does.
    Never,
}

/// Returns the number of pairs of a list, and its end.
pub(super) fn measure(list: View<'_>) -> (usize, End) {
    let mut rest = list;
    let mut earlier = list;
    let mut pairs = 0_usize;
    while let Data::Pair(_, next) = rest.data() {
        rest = next;
        pairs += 1;
        if rest.word() == earlier.word() {
            return (pairs, End::Never);
        }
        // Brent's algorithm: the pair to compare with is replaced at each power of two.
        if pairs.is_power_of_two() {
            earlier = rest;
        }
    }
    (pairs, if rest.is_nil() { End::Nil } else { End::Value })
}
