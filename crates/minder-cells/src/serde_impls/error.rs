//! Why a value is not of a type, and which one it is.

use std::fmt::{self, Write};

use serde_core::de;

/// Why [`from_view`](crate::from_view) failed, and the path of the value where it did.
///
/// Arrays and objects that serde keeps aside, for untagged and internally tagged enums and for flattened
/// fields, have no paths within.
///
/// ```
/// use minder_cells::{DeserializeError, RegionPool, from_view};
/// use std::collections::BTreeMap;
///
/// let message = RegionPool::new().parse_json(br#"{"ids": [1, 2, "three"]}"#)?;
/// let error: DeserializeError = from_view::<BTreeMap<String, Vec<u32>>>(message.view()).unwrap_err();
/// assert_eq!(error.path(), "ids[2]");
/// assert_eq!(error.to_string(), r#"cannot deserialize ids[2]: invalid type: string "three", expected u32"#);
/// # Ok::<(), minder_cells::JsonError>(())
/// ```
#[derive(Debug)]
pub struct DeserializeError(Box<Failure>);

#[derive(Debug)]
struct Failure {
    reason: String,
    /// The innermost step first.
    path: Vec<Step>,
}

/// A step from a value to a part of it.
#[derive(Debug)]
enum Step {
    Key(String),
    Index(usize),
}

impl DeserializeError {
    /// Adds the key under which the value is.
    #[cold]
    pub(super) fn under(mut self, key: String) -> Self {
        self.0.path.push(Step::Key(key));
        self
    }

    /// Adds the index at which the value is.
    #[cold]
    pub(super) fn at(mut self, index: usize) -> Self {
        self.0.path.push(Step::Index(index));
        self
    }

    /// Returns the path of the value, as `items[2].label`. It is empty for the value as a whole.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.path.iter().rev() {
            // A write to a string cannot fail.
            let _ = match step {
                Step::Index(index) => write!(path, "[{index}]"),
                Step::Key(key) if !is_name(key) => write!(path, "[{key:?}]"),
                Step::Key(key) if path.is_empty() => path.write_str(key),
                Step::Key(key) => write!(path, ".{key}"),
            };
        }
        path
    }

    /// Returns the reason, as `invalid type: string "three", expected u32`.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }
}

/// Returns whether a key needs no quotes in a path.
fn is_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

impl de::Error for DeserializeError {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self(Box::new(Failure { reason: reason.to_string(), path: Vec::new() }))
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        let what = if path.is_empty() { "the value" } else { &path };
        write!(f, "cannot deserialize {what}: {}", self.0.reason)
    }
}

impl std::error::Error for DeserializeError {}
