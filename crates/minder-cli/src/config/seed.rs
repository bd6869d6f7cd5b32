//! A seed for random orders and unique names.

/// Returns a number that no other run on this machine has.
pub(super) fn new_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id()) << 32
}
