//! Writing a value in any format of serde.

use serde_core::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::depth::SERDE_DEPTH_MAX;
use super::list::{self, End};
use crate::view::{Data, View};

/// Writes the value as [`View::to_json`] does: a symbol is a string, and a list a sequence. A key that is not
/// a text is written as what it is.
///
/// ```
/// use minder_cells::RegionPool;
///
/// let message = RegionPool::new().parse_json(br#"{"id": 7, "items": [1.5, "two", null]}"#)?;
/// let value = serde_json::to_value(message.view())?;
/// assert_eq!(value, serde_json::json!({"id": 7, "items": [1.5, "two", null]}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of the serializer, and more than [`SERDE_DEPTH_MAX`] levels.
impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { view: *self, levels: SERDE_DEPTH_MAX }.serialize(serializer)
    }
}

/// A value, and how many levels it may have.
struct Nested<'a> {
    view: View<'a>,
    levels: usize,
}

impl Nested<'_> {
    /// Writes elements one after another.
    fn sequence<'a, S: Serializer>(
        elements: impl Iterator<Item = View<'a>>,
        len: usize,
        levels: usize,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(len))?;
        for view in elements {
            sequence.serialize_element(&Nested { view, levels })?;
        }
        sequence.end()
    }
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = self.view.data();
        let levels = match data {
            Data::Pair(..) | Data::Vector(_) | Data::Map(_) => self.levels.checked_sub(1),
            _ => Some(self.levels),
        };
        let Some(levels) = levels else {
            return Err(S::Error::custom(format_args!(
                "cannot serialize the value: more than {SERDE_DEPTH_MAX} levels of arrays and objects"
            )));
        };
        match data {
            Data::Nil => serializer.serialize_seq(Some(0))?.end(),
            Data::Null => serializer.serialize_unit(),
            Data::Bool(is_true) => serializer.serialize_bool(is_true),
            Data::Int(number) => serializer.serialize_i64(number),
            Data::UInt(number) => serializer.serialize_u64(number),
            Data::Float(number) => serializer.serialize_f64(number),
            Data::Str(text) | Data::Symbol(text) => serializer.serialize_str(text),
            Data::Vector(elements) => {
                let len = elements.len();
                Self::sequence(elements, len, levels, serializer)
            }
            Data::Pair(..) => {
                let len = match list::measure(self.view) {
                    (pairs, End::Nil) => pairs,
                    (pairs, End::Value) => pairs + 1,
                    (_, End::Never) => {
                        return Err(S::Error::custom("cannot serialize the value: a list has no end"));
                    }
                };
                Self::sequence(Parts { rest: Some(self.view) }, len, levels, serializer)
            }
            Data::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, view) in entries {
                    let value = Nested { view, levels };
                    match key.as_str() {
                        Some(text) => map.serialize_entry(text, &value)?,
                        None => map.serialize_entry(&Nested { view: key, levels }, &value)?,
                    }
                }
                map.end()
            }
        }
    }
}

/// The elements of a list, and what its last pair has instead of the empty list.
struct Parts<'a> {
    rest: Option<View<'a>>,
}

impl<'a> Iterator for Parts<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        let view = self.rest.take()?;
        match view.data() {
            Data::Pair(first, rest) => {
                self.rest = Some(rest);
                Some(first)
            }
            Data::Nil => None,
            _ => Some(view),
        }
    }
}
