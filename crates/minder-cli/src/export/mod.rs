//! Data for programs: the rows of a record, and tables in SQLite.

pub(crate) mod rows;
#[cfg(feature = "sql")]
pub(crate) mod sql;
