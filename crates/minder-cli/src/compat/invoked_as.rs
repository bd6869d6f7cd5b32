//! Recognizes the program as which minder is invoked.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The program whose command line minder reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvokedAs {
    Parallel,
    Sem,
    Xargs,
}

impl InvokedAs {
    fn from_name(name: &OsStr) -> Option<Self> {
        match name.as_encoded_bytes() {
            b"parallel" => Some(Self::Parallel),
            b"sem" => Some(Self::Sem),
            b"xargs" => Some(Self::Xargs),
            _ => None,
        }
    }
}

/// Returns the program that `args` address, and how many of them to skip to reach its own
/// arguments. `args` begin with the name by which minder was started.
pub(crate) fn detect(args: &[OsString]) -> Option<(InvokedAs, usize)> {
    let program = args.first().and_then(|name| Path::new(name).file_stem());
    if let Some(invoked_as) = program.and_then(InvokedAs::from_name) {
        return Some((invoked_as, 1));
    }
    let invoked_as = args.get(1).and_then(|name| InvokedAs::from_name(name))?;
    Some((invoked_as, 2))
}
