//! Asking the system what it has, without using it.
//!
//! Each system supplies `refusal` (why a wait backend could not be opened), `children` and
//! `limits`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod cgroup;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod other;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
use self::linux as system;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use self::other as system;
#[cfg(windows)]
use self::windows as system;

pub(crate) use self::system::{children, limits, refusal};

/// What is to be known of a wait backend beside whether it is there.
pub(crate) fn remark(backend: &str) -> &'static str {
    match backend {
        "wait_packets" => "undocumented, untried so far: by name only",
        _ => "",
    }
}

/// Something that this machine has, or has not: a mechanism, or a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// What it is for: `waiting`, `children` or `limits`.
    pub area: &'static str,
    /// Its name: one lower-case word or two.
    pub name: &'static str,
    /// Whether it can be used.
    pub state: Availability,
    /// Whether it is the one that is used, of several that do the same.
    pub chosen: bool,
    /// A limit's value; `None` for one that is not limited, and for what is no limit.
    pub value: Option<u64>,
    /// What else there is to say. A limit's note says everything.
    pub note: String,
}

/// Whether a mechanism can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Availability {
    /// Yes.
    Available,
    /// No: somebody forbids it, or it is not set up. The text says why.
    Refused(String),
    /// No: this system has no such thing.
    Absent,
}

impl Capability {
    pub(crate) fn there(area: &'static str, name: &'static str) -> Self {
        Self { area, name, state: Availability::Available, chosen: false, value: None, note: String::new() }
    }

    pub(crate) fn refused(self, why: impl Into<String>) -> Self {
        Self { state: Availability::Refused(why.into()), ..self }
    }

    fn absent(self, note: &str) -> Self {
        Self { state: Availability::Absent, ..self }.note(note)
    }

    fn chosen(self, chosen: bool) -> Self {
        Self { chosen, ..self }
    }

    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// A limit; its text says everything.
fn limit(name: &'static str, value: Option<u64>, text: String) -> Capability {
    Capability { value, ..Capability::there("limits", name).note(text) }
}

/// A number as people write it: `20,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_048_576].map(super::grouped), ["0", "999", "1,000", "1,048,576"]);
    }
}
