//! The results of checks that depend on the number of arguments of a job.

use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// The results of checking a template, by the number of arguments. Clones share them.
///
/// With several arguments, words move: the argument of an option becomes program text if another
/// value comes before it. A fourth equal value changes nothing, since no option takes more than one
/// argument. So four and more arguments share a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckCache(Arc<[OnceLock<Result<(), Error>>; COUNTS]>);

const COUNTS: usize = 5;

impl CheckCache {
    /// Returns the result of `check` for `count` arguments, from an earlier call if there was one.
    /// Templates are checked for one argument when they are parsed, so that result is `Ok`.
    pub(crate) fn of(
        &self,
        count: usize,
        check: impl FnOnce(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if count == 1 {
            return Ok(());
        }
        let count = count.min(COUNTS - 1);
        self.0[count].get_or_init(|| check(count)).clone()
    }
}
