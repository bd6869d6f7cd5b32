//! The limit on the nesting of values.

/// The most levels of arrays and objects that serde reads or writes here, in both directions.
///
/// The traits of serde are recursive, so that each level takes some of the thread's stack. serde_json has
/// the same limit. Use [`RegionPool::parse_json`](crate::RegionPool::parse_json) and
/// [`View::to_json`](crate::View::to_json) for JSON of any depth.
///
/// ```
/// use minder_cells::{RegionPool, SERDE_DEPTH_MAX, from_view};
///
/// let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
/// let pool = RegionPool::new();
/// let message = pool.parse_json(deep(SERDE_DEPTH_MAX).as_bytes())?;
/// assert!(from_view::<serde_json::Value>(message.view()).is_ok());
/// let message = pool.parse_json(deep(SERDE_DEPTH_MAX + 1).as_bytes())?;
/// assert!(from_view::<serde_json::Value>(message.view()).is_err());
/// # Ok::<(), minder_cells::JsonError>(())
/// ```
pub const SERDE_DEPTH_MAX: usize = 128;

/// Returns the error of a value with more levels.
pub(super) fn too_deep<E: serde_core::de::Error>() -> E {
    E::custom(format_args!("more than {SERDE_DEPTH_MAX} levels of arrays and objects"))
}
