//! Operating system helpers for the crates of minder: files, terminals, standard streams, names, signals,
//! host statistics, error texts and locks.
//!
//! Each module has one interface for all systems and one file for each system. Its documentation
//! lists the differences. Nothing here starts, waits for or signals a process; the crate `minder`
//! does that.
//!
//! This crate is internal: it is released together with the other crates of minder, and its
//! interface may change with every release.

#![cfg_attr(docsrs, feature(doc_cfg))] // docs.rs shows on which systems an item exists.

pub mod encoding;
mod error_text;
mod shown_text;
pub mod files;
pub mod host_stats;
pub mod cgroup;
pub mod limits;
pub mod machine;
pub mod processes;
pub mod signals;
pub mod stdio;
pub mod sync;
pub mod system_paths;
pub mod terminal;
pub mod time;

pub use self::error_text::error_text;
pub use self::shown_text::{escape, grouped, is_invisible};
