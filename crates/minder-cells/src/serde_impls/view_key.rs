//! Reading a key of a map, whose text may be a number.

use serde_core::de::value::BorrowedStrDeserializer;
use serde_core::de::{Deserializer, EnumAccess, Visitor};
use serde_core::forward_to_deserialize_any;

use super::error::DeserializeError;

/// The text of a key. Types of numbers and `bool` are read from it, as serde_json does.
pub(super) struct KeyDeserializer<'de>(pub(super) &'de str);

impl<'de> KeyDeserializer<'de> {
    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        let digits = self.0.strip_prefix('-').unwrap_or(self.0).as_bytes();
        // `parse` takes a plus and leading zeros, which numbers of JSON do not have.
        let is_number = matches!(digits, [b'0'] | [b'1'..=b'9', ..]);
        match (self.0.parse::<u64>(), self.0.parse::<i64>(), self.0.parse::<i128>()) {
            (Ok(number), ..) if is_number => visitor.visit_u64(number),
            (_, Ok(number), _) if is_number => visitor.visit_i64(number),
            (.., Ok(number)) if is_number => visitor.visit_i128(number),
            _ => visitor.visit_borrowed_str(self.0),
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        // `parse` takes names of infinity as well.
        let is_number =
            self.0.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        match self.0.parse::<f64>() {
            Ok(number) if is_number => visitor.visit_f64(number),
            _ => visitor.visit_borrowed_str(self.0),
        }
    }
}

/// Methods that call one of the two above.
macro_rules! numbers {
    ($($method:ident: $by:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.$by(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for KeyDeserializer<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_borrowed_str(self.0)
    }

    numbers! {
        deserialize_i8: integer,
        deserialize_i16: integer,
        deserialize_i32: integer,
        deserialize_i64: integer,
        deserialize_i128: integer,
        deserialize_u8: integer,
        deserialize_u16: integer,
        deserialize_u32: integer,
        deserialize_u64: integer,
        deserialize_u128: integer,
        deserialize_f32: float,
        deserialize_f64: float,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            other => visitor.visit_borrowed_str(other),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_borrowed_bytes(self.0.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for KeyDeserializer<'de> {
    type Error = DeserializeError;
    type Variant = <BorrowedStrDeserializer<'de, DeserializeError> as EnumAccess<'de>>::Variant;

    fn variant_seed<T: serde_core::de::DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), Self::Error> {
        BorrowedStrDeserializer::new(self.0).variant_seed(seed)
    }
}
