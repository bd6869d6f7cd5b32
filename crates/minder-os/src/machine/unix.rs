//! The name of a Unix machine.

pub(super) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
