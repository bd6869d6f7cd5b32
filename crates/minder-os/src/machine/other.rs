//! Systems without an id of a boot.

pub(super) fn boot_id() -> Option<String> {
    None
}
