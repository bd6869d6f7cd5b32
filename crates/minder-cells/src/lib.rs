//! A heap of small cells for parsed messages.
//!
//! Language servers, debuggers and other children that speak JSON send messages of many small values. Here a
//! value is in a *cell* of 16 bytes, or in several with successive numbers. There are two places for cells:
//!
//! - A [`Region`] has the cells of one message. Dropping it frees them at once.
//! - A [`Heap`] has values that live longer and refer to each other. A collection frees what no [`Root`]
//!   reaches. Its sweep touches no cell, so its pause depends on what lives, and hardly on what died.
//!
//! A [`View`] reads a value of either.
//!
//! ```
//! use minder_cells::{Heap, HeapConfig, RegionPool};
//!
//! let pool = RegionPool::new();
//! let mut heap = Heap::new(HeapConfig::new())?;
//! let answer = pool.parse_json(br#"{"id": 1, "result": {"items": ["push", "pop"]}}"#)?;
//! // Most of a message is read once. What is kept goes into the heap.
//! let items = answer.view().get("result").and_then(|result| result.get("items")).expect("it has items");
//! let kept = heap.mutate(|cells| {
//!     let items = cells.copy(items)?;
//!     cells.root(items)
//! })?;
//! drop(answer);
//! assert_eq!(heap.get(kept).expect("it is a root").to_json(), r#"["push","pop"]"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod space;
mod word;
mod bitmap;
mod error;
mod blocks;
mod mark;
mod verify;
mod build;
mod symbols;
mod view;
mod print;
mod roots;
mod stats;
mod heap;
mod mutator;
mod region;
mod json;
mod copy;

pub use crate::{
    error::{Error, Result},
    heap::{Heap, HeapConfig, LIMIT_BYTES_MAX, Step},
    json::{JsonError, JsonErrorKind},
    mutator::{Mutator, Value},
    region::{Region, RegionPool},
    roots::Root,
    stats::{HeapStats, PauseHistogram},
    view::{Data, Elements, Entries, List, View},
};
