//! Settings that this process inherited and changed for itself. Children get the inherited values.

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::OnceLock;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    static NOFILE: OnceLock<u64> = OnceLock::new();

    /// The highest limit that is set. Programs size tables by the limit, and the hard limit may be
    /// infinite.
    const DESCRIPTORS_MAX: u64 = 1 << 20;

    /// Returns the inherited soft limit of descriptors, if it was raised since. Children get this one
    /// back: programs that use `select` fail with a high limit, and programs that close every
    /// descriptor up to the limit are slow.
    pub(crate) fn inherited_nofile() -> Option<u64> {
        NOFILE.get().copied()
    }

    /// Raises the soft limit of descriptors to the hard one. Returns the inherited and the new limit.
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

/// Returns the highest numbers: this operating system has no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_descriptors() -> std::io::Result<(u64, u64)> {
    Ok((u64::MAX, u64::MAX))
}
