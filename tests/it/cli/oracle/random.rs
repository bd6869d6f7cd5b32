//! Random invocations.

/// Whether everything is to be compared, however long that takes.
pub(super) fn is_full() -> bool {
    std::env::var("MINDER_ORACLE").is_ok_and(|value| value == "full")
}

/// What the choice of cases follows from.
pub(super) fn seed() -> u64 {
    let asked = std::env::var("MINDER_SEED").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("a clock after 1970").as_nanos() as u64
    })
}
