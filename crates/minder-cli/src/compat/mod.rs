//! The command lines of GNU parallel, of its `sem` and of xargs, translated into those of minder.
//!
//! minder accepts them when it is invoked as `parallel`, `sem` or `xargs`: through a link of that
//! name, or with that name as the first argument. For `parallel` the result is an ordinary run. No
//! other module knows about the options of these programs. An option of GNU parallel without a
//! counterpart is refused by name unless ignoring it changes nothing.

mod invoked_as;
mod warning;
mod parallel;
mod sem;
mod xargs;
mod translation;

/// The command lines of other tools, and the text of their `--help`.
pub(crate) const HELP: [(&str, &str); 3] =
    [("parallel", parallel::HELP), ("sem", parallel::HELP), ("xargs", xargs::HELP)];

pub(crate) use self::{
    invoked_as::{InvokedAs, detect},
    translation::{Translation, translate},
};
