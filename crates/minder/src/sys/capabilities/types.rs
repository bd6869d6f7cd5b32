//! The result of a probe: a mechanism or a limit, and whether it is available.

/// A mechanism or a limit of this machine, and whether it is available.
///
/// ```
/// use minder::{Availability, Capability};
///
/// for Capability { area, name, state, .. } in minder::capabilities() {
///     match state {
///         Availability::Available => println!("{area}: {name}"),
///         Availability::Refused(why) => println!("{area}: {name} is refused: {why}"),
///         _ => (),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The area: `waiting`, `children` or `limits`.
    pub area: &'static str,
    /// The name, in lower case.
    pub name: &'static str,
    /// Its availability.
    pub state: Availability,
    /// `true` if it is the one that is used, of several that do the same.
    pub chosen: bool,
    /// The value of a limit; `None` for an unlimited one, and for a mechanism.
    pub value: Option<u64>,
    /// Details for people. The note of a limit is its whole description.
    pub note: String,
}

/// The availability of a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Availability {
    /// Yes.
    Available,
    /// No: it is forbidden or not set up. The text gives the reason.
    Refused(String),
    /// No: this system does not have it.
    Absent,
}

impl Capability {
    pub(crate) fn available(area: &'static str, name: &'static str) -> Self {
        Self { area, name, state: Availability::Available, chosen: false, value: None, note: String::new() }
    }

    pub(crate) fn refused(self, why: impl Into<String>) -> Self {
        Self { state: Availability::Refused(why.into()), ..self }
    }

    pub(super) fn absent(self, note: &str) -> Self {
        Self { state: Availability::Absent, ..self }.note(note)
    }

    pub(super) fn chosen(self, chosen: bool) -> Self {
        Self { chosen, ..self }
    }

    pub(super) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// Returns a limit, which `text` describes.
pub(super) fn limit(name: &'static str, value: Option<u64>, text: String) -> Capability {
    Capability { value, ..Capability::available("limits", name).note(text) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_048_576].map(minder_os::grouped), ["0", "999", "1,000", "1,048,576"]);
    }
}
