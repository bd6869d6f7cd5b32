//! What this process was given at its start and changed for itself; children get it back as it was.

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::OnceLock;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    static NOFILE: OnceLock<u64> = OnceLock::new();

    /// No program of ours opens more; an unlimited hard limit would otherwise size tables by it.
    const DESCRIPTORS_MAX: u64 = 1 << 20;

    /// The soft limit of descriptors at the start, if it was raised since: children get this one
    /// back, since programs that use `select`, or close every descriptor up to the limit, go
    /// wrong or go slow with a high one.
    pub(crate) fn inherited_nofile() -> Option<u64> {
        NOFILE.get().copied()
    }

    /// Raises the soft limit of descriptors to the hard one; the limits before and after.
    pub(crate) fn raise_descriptors() -> io::Result<(u64, u64)> {
        let limit = getrlimit(Resource::Nofile);
        let now = limit.current.unwrap_or(u64::MAX);
        // macOS refuses more than OPEN_MAX (10240) although its hard limit says "unlimited".
        let ceiling = if cfg!(target_vendor = "apple") { 10_240 } else { DESCRIPTORS_MAX };
        let new = limit.maximum.unwrap_or(u64::MAX).min(ceiling).max(now);
        if new > now {
            setrlimit(Resource::Nofile, Rlimit { current: Some(new), maximum: limit.maximum })?;
            NOFILE.get_or_init(|| now);
        }
        Ok((NOFILE.get().copied().unwrap_or(now), new))
    }
}

#[cfg(unix)]
pub(crate) use unix::{inherited_nofile, raise_descriptors};

/// There is no such limit here.
#[cfg(not(unix))]
pub(crate) fn raise_descriptors() -> std::io::Result<(u64, u64)> {
    Ok((u64::MAX, u64::MAX))
}
