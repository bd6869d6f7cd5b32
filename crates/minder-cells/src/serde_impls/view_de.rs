//! Reading a value as any type.

use serde_core::de::value::BorrowedStrDeserializer;
use serde_core::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde_core::forward_to_deserialize_any;

use super::depth::{SERDE_DEPTH_MAX, too_deep};
use super::error::DeserializeError;
use super::list::{self, End};
use super::view_key::KeyDeserializer;
use crate::view::{Data, Elements, Entries, List, View};

type Result<T> = std::result::Result<T, DeserializeError>;

/// Reads a value as a type. Its texts can be borrowed from the cells: see [`ViewDeserializer`].
///
/// ```
/// use minder_cells::{RegionPool, from_view};
///
/// #[derive(serde::Deserialize)]
/// struct Message<'a> {
///     id: u32,
///     #[serde(borrow)]
///     result: Vec<&'a str>,
/// }
///
/// let region = RegionPool::new().parse_json(br#"{"id": 1, "result": ["push", "pop"]}"#)?;
/// let message: Message<'_> = from_view(region.view())?;
/// assert_eq!((message.id, message.result), (1, vec!["push", "pop"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The value is not of this type, or it has more than [`SERDE_DEPTH_MAX`] levels.
pub fn from_view<'de, T: Deserialize<'de>>(view: View<'de>) -> Result<T> {
    T::deserialize(ViewDeserializer::new(view))
}

/// Reads a value by the traits of serde.
///
/// - A text, or the name of a symbol, is borrowed by `&str` and `Cow<str>` with `#[serde(borrow)]`.
/// - A vector and a list are sequences. The empty list is one, too.
/// - `null` and the empty list are `None` and `()`.
/// - A key that is a text is also read as a number, a `bool`, or a variant without a value.
/// - A variant is a text, or a map with one entry.
/// - Bytes are a text, or a sequence of integers.
///
/// ```
/// use minder_cells::{RegionPool, ViewDeserializer};
/// use serde::Deserialize;
/// use std::collections::BTreeMap;
///
/// let region = RegionPool::new().parse_json(br#"{"1": null, "-2": 0.5}"#)?;
/// let numbers = BTreeMap::<i32, Option<f64>>::deserialize(ViewDeserializer::new(region.view()))?;
/// assert_eq!(numbers, BTreeMap::from([(-2, Some(0.5)), (1, None)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ViewDeserializer<'de> {
    view: View<'de>,
    /// The levels that the value may have.
    levels: usize,
}

impl<'de> ViewDeserializer<'de> {
    /// Begins to read a value.
    #[must_use]
    pub fn new(view: View<'de>) -> Self {
        Self { view, levels: SERDE_DEPTH_MAX }
    }

    /// Returns the error of a value of another type.
    #[cold]
    fn invalid(self, expected: &dyn Expected) -> DeserializeError {
        let found = match self.view.data() {
            Data::Nil => Unexpected::Other("the empty list"),
            Data::Null => Unexpected::Other("null"),
            Data::Bool(is_true) => Unexpected::Bool(is_true),
            Data::Int(number) => Unexpected::Signed(number),
            Data::UInt(number) => Unexpected::Unsigned(number),
            Data::Float(number) => Unexpected::Float(number),
            Data::Str(text) => Unexpected::Str(text),
            Data::Symbol(_) => Unexpected::Other("a symbol"),
            Data::Pair(..) => Unexpected::Other("a list"),
            Data::Vector(_) => Unexpected::Seq,
            Data::Map(_) => Unexpected::Map,
        };
        DeserializeError::invalid_type(found, expected)
    }

    /// Returns the levels of the parts.
    #[inline]
    fn inner(self) -> Result<usize> {
        self.levels.checked_sub(1).ok_or_else(too_deep)
    }

    fn vector<V: Visitor<'de>>(self, elements: Elements<'de>, visitor: V) -> Result<V::Value> {
        let all = elements.len();
        let mut sequence = Sequence { elements, levels: self.inner()?, next: 0 };
        let value = visitor.visit_seq(&mut sequence)?;
        if sequence.next < all {
            return Err(DeserializeError::invalid_length(all, &"fewer elements"));
        }
        Ok(value)
    }

    /// Reads a list: pairs, each of which has an element and the rest.
    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let (all, end) = list::measure(self.view);
        if end != End::Nil {
            return Err(self.invalid(&"a list that ends with the empty list"));
        }
        let mut sequence = Sequence { elements: self.view.list(), levels: self.inner()?, next: 0 };
        let value = visitor.visit_seq(&mut sequence)?;
        if sequence.next < all {
            return Err(DeserializeError::invalid_length(all, &"fewer elements"));
        }
        Ok(value)
    }

    fn map<V: Visitor<'de>>(self, entries: Entries<'de>, visitor: V) -> Result<V::Value> {
        let all = entries.len();
        let mut map = Map { entries, levels: self.inner()?, entry: None };
        let value = visitor.visit_map(&mut map)?;
        if map.entries.len() > 0 || map.entry.is_some() {
            return Err(DeserializeError::invalid_length(all, &"fewer entries"));
        }
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for ViewDeserializer<'de> {
    type Error = DeserializeError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.view.data() {
            Data::Null => visitor.visit_unit(),
            Data::Bool(is_true) => visitor.visit_bool(is_true),
            // Visitors for unsigned integers may have this method alone.
            Data::Int(number) => match u64::try_from(number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(number),
            },
            Data::UInt(number) => visitor.visit_u64(number),
            Data::Float(number) => visitor.visit_f64(number),
            Data::Str(text) | Data::Symbol(text) => visitor.visit_borrowed_str(text),
            Data::Vector(elements) => self.vector(elements, visitor),
            Data::Nil | Data::Pair(..) => self.list(visitor),
            Data::Map(entries) => self.map(entries, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.view.data() {
            Data::Null | Data::Nil => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.view.data() {
            Data::Null | Data::Nil => visitor.visit_unit(),
            _ => Err(self.invalid(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.view.as_str() {
            Some(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let Some(text) = self.view.as_str() {
            return visitor.visit_enum(BorrowedStrDeserializer::new(text));
        }
        let mut entries = self.view.entries();
        match (entries.next(), entries.next()) {
            (Some((name, view)), None) => {
                let content = Self { view, levels: self.inner()? };
                visitor.visit_enum(Variant { name, content })
            }
            _ => Err(self.invalid(&"a text, or a map with one entry")),
        }
    }

    /// Skips the value without a look at it.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string seq tuple tuple_struct map struct
        identifier
    }
}

impl<'de> IntoDeserializer<'de, DeserializeError> for ViewDeserializer<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The elements of a vector or a list that are still to be read.
struct Sequence<I> {
    elements: I,
    levels: usize,
    next: usize,
}

impl<'de> SeqAccess<'de> for Sequence<Elements<'de>> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        next_element(self, seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}

impl<'de> SeqAccess<'de> for Sequence<List<'de>> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        next_element(self, seed)
    }
}

fn next_element<'de, T: DeserializeSeed<'de>>(
    sequence: &mut Sequence<impl Iterator<Item = View<'de>>>,
    seed: T,
) -> Result<Option<T::Value>> {
    let Some(view) = sequence.elements.next() else { return Ok(None) };
    let index = sequence.next;
    sequence.next += 1;
    let element = ViewDeserializer { view, levels: sequence.levels };
    seed.deserialize(element).map(Some).map_err(|error| error.at(index))
}

/// The entries of a map that are still to be read.
struct Map<'de> {
    entries: Entries<'de>,
    levels: usize,
    /// The entry whose value comes next.
    entry: Option<(View<'de>, View<'de>)>,
}

impl<'de> MapAccess<'de> for Map<'de> {
    type Error = DeserializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.entry = self.entries.next();
        let Some((key, _)) = self.entry else { return Ok(None) };
        let value = match key.as_str() {
            Some(text) => seed.deserialize(KeyDeserializer(text)),
            None => seed.deserialize(ViewDeserializer { view: key, levels: self.levels }),
        };
        value.map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let Some((key, view)) = self.entry.take() else {
            return Err(DeserializeError::custom("a value was asked for before its key"));
        };
        seed.deserialize(ViewDeserializer { view, levels: self.levels })
            .map_err(|error| error.under(name_of(key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// Returns a key for a path.
#[cold]
fn name_of(key: View<'_>) -> String {
    key.as_str().map_or_else(|| key.to_lisp(), str::to_owned)
}

/// A variant with a value: a map with one entry.
struct Variant<'de> {
    name: View<'de>,
    content: ViewDeserializer<'de>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = DeserializeError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self)> {
        let name = ViewDeserializer { view: self.name, levels: self.content.levels };
        Ok((seed.deserialize(name)?, self))
    }
}

impl Variant<'_> {
    /// Adds the name of the variant to the path of an error.
    fn place<T>(name: View<'_>, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.under(name_of(name)))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<()> {
        Self::place(self.name, Deserialize::deserialize(self.content))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        Self::place(self.name, seed.deserialize(self.content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        Self::place(self.name, self.content.deserialize_tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        Self::place(self.name, self.content.deserialize_any(visitor))
    }
}
