//! Data for programs: rows as JSON lines or CSV, and tables in SQLite.

pub(crate) mod rows;
#[cfg(feature = "sql")]
pub(crate) mod sql;
