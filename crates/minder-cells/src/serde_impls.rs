//! Values by the traits of serde: cells from any format, and any type from cells.

mod depth;
mod error;
mod list;
mod view_ser;
mod view_key;
mod view_de;
mod cells_de;

pub use self::{
    depth::SERDE_DEPTH_MAX,
    error::DeserializeError,
    view_de::{ViewDeserializer, from_view},
};
