//! Windows: what every version that Rust supports has.

use super::{Mechanism, limit};

/// Why a wait backend could not be opened.
pub(crate) fn refusal(_backend: &str, error: &std::io::Error) -> String {
    error.to_string()
}

/// What children are started and killed by.
pub(crate) fn children() -> Vec<Mechanism> {
    vec![
        Mechanism::there("children", "CreateProcessW").chosen(true),
        Mechanism::there("children", "job objects"),
        Mechanism::there("children", "terminal").absent("pseudo-consoles are not built in"),
    ]
}

/// How long a command line may be: 32,767 units with its end mark, after quoting.
pub(crate) fn limits() -> Vec<Mechanism> {
    vec![limit(
        "arguments",
        Some(32_766),
        super::grouped(32_766) + " characters of command line, after quoting",
    )]
}
