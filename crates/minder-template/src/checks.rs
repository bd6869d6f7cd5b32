//! The results of checks that depend on the number of arguments of a job.

use std::sync::{Arc, OnceLock};

use crate::error::Error;
use crate::program_text::ValueCheck;

/// The results of checking a template, by the number of arguments. Clones share them.
///
/// With several arguments, words move: the argument of an option becomes program text if another
/// value comes before it. A fourth equal value changes nothing, since no option takes more than one
/// argument. So four and more arguments share a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckCache(Arc<[OnceLock<CheckResult>; COUNTS]>);

/// The checks of values that each job makes, or the reason why the template is refused.
pub(crate) type CheckResult = Result<Arc<[ValueCheck]>, Error>;

const COUNTS: usize = 5;

impl CheckCache {
    /// Returns the result of `check` for `count` arguments, from an earlier call if there was one.
    pub(crate) fn of(&self, count: usize, check: impl FnOnce(usize) -> CheckResult) -> CheckResult {
        let count = count.min(COUNTS - 1);
        self.0[count].get_or_init(|| check(count)).clone()
    }
}
