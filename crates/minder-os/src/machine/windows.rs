//! The name of a Windows machine.

pub(super) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}
