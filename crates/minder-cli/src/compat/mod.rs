//! The command lines of GNU parallel and of its `sem`, translated into those of minder.
//!
//! minder accepts them when it is invoked as `parallel` or `sem`: through a link of that name, or
//! with that name as the first argument. The result is an ordinary run; no other module knows about
//! GNU parallel's options. An option without a counterpart is refused by name unless ignoring it
//! changes nothing.

mod invoked_as;
mod parallel;
mod sem;
mod translation;
mod warning;

pub(crate) use self::{
    invoked_as::{InvokedAs, detect},
    translation::{Translation, translate},
};
