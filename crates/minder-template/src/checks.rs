//! The results of checks that depend on the number of a job's arguments.

use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// What a template's look at itself gave, by the number of arguments.
///
/// With several arguments, words move: what was an option's argument with one may be a program's
/// text with two. Equal words that follow each other mean nothing new from the fourth on: no option
/// takes more than one.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckCache(Arc<[OnceLock<Result<(), Error>>; COUNTS]>);

const COUNTS: usize = 5;

impl CheckCache {
    /// What `check` says for so many arguments. One argument was checked when the template was
    /// parsed.
    pub(crate) fn of(
        &self,
        count: usize,
        check: impl FnOnce(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match count {
            1 => Ok(()),
            _ => {
                let count = count.min(COUNTS - 1);
                self.0[count].get_or_init(|| check(count)).clone()
            }
        }
    }
}
