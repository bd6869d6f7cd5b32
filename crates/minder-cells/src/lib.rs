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
//! The feature `serde`, which is off by default, adds `from_view`, `RegionPool::deserialize`,
//! `Mutator::deserialize`, and `Serialize` for [`View`].
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
//!
//! # Messages of children
//!
//! A message of a child goes from the chunk that was read into cells, without a copy in between. A decoder of
//! frames returns it as a part of the chunk, and the parser reads it there. Only a message that spans chunks
//! is copied first, once.
//!
//! ```
//! # #[cfg(all(unix, not(miri)))] {
//! use minder::frame::{FrameDecoder, FrameFormat};
//! use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};
//! use minder_cells::RegionPool;
//!
//! let mut set = ChildSet::new(ChildSetOptions::new())?;
//! let mut command = Command::new("printf");
//! command.arg(r#"Content-Length: 27\r\n\r\n{"id": 1, "result": [2, 3]}"#).stdout(Stdio::piped());
//! set.spawn(&command, SpawnOptions::new())?;
//! let mut decoder = FrameDecoder::new(FrameFormat::ContentLength);
//! let pool = RegionPool::new();
//! let mut sum = 0;
//! while let NextEvent::Event(event) = set.next_event(None)? {
//!     let Event::Output { chunk, .. } = event else { continue };
//!     let mut rest: &[u8] = &chunk;
//!     while let Some(frame) = decoder.next_frame(&mut rest)? {
//!         assert!(chunk.as_ptr_range().contains(&frame.as_ptr()), "it is a part of the chunk");
//!         let message = pool.parse_json(&frame)?;
//!         let result = message.view().get("result").expect("it has a result");
//!         sum += result.elements().filter_map(|number| number.as_i64()).sum::<i64>();
//!     }
//! }
//! assert_eq!(sum, 5);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `language_servers` does this with the messages of many servers at the same time.

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
#[cfg(feature = "serde")]
mod serde_impls;

#[cfg(feature = "serde")]
pub use crate::serde_impls::{DeserializeError, SERDE_DEPTH_MAX, ViewDeserializer, from_view};
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
