//! Cells from any format of serde.

use std::fmt;

use serde_core::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::depth::{SERDE_DEPTH_MAX, too_deep};
use crate::build;
use crate::json::Sink;
use crate::mutator::{Mutator, Value};
use crate::region::{Region, RegionPool};
use crate::word::{Kind, Word};

impl RegionPool {
    /// Reads a value of any format into a region: see [`Mutator::deserialize`].
    ///
    /// ```
    /// use minder_cells::RegionPool;
    ///
    /// let value = serde_json::json!({"id": 7, "items": [1.5, "two", null]});
    /// let region = RegionPool::new().deserialize(&value)?;
    /// assert_eq!(region.view().to_json(), r#"{"id":7,"items":[1.5,"two",null]}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Mutator::deserialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(&self, deserializer: D) -> Result<Region, D::Error> {
        let mut memory = self.take();
        match deserialize(deserializer, &mut memory) {
            Ok(word) => Ok(self.region(memory, word)),
            Err(error) => {
                self.keep(memory);
                Err(error)
            }
        }
    }
}

impl<'h> Mutator<'_, 'h> {
    /// Reads a value of any format that describes itself into the heap.
    ///
    /// Sequences become vectors, and maps maps. A key that is a text becomes a symbol; any other one stays
    /// what it is. Bytes become a vector of integers. An integer that does not fit into 64 bits becomes a
    /// float, as in [`parse_json`](Self::parse_json), which is several times as fast for JSON.
    ///
    /// ```
    /// use minder_cells::{Heap, HeapConfig};
    ///
    /// let mut heap = Heap::new(HeapConfig::new())?;
    /// let root = heap.mutate(|cells| {
    ///     let value = cells.deserialize(&mut serde_json::Deserializer::from_str("[true, {\"a\": 1}]"))?;
    ///     Ok::<_, Box<dyn std::error::Error>>(cells.root(value)?)
    /// })?;
    /// assert_eq!(heap.get(root).expect("it is a root").to_lisp(), "[t ((a . 1))]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of the deserializer; more than [`SERDE_DEPTH_MAX`] levels; no room for the value, as an error of
    /// the deserializer with the text of [`Error`](crate::Error).
    pub fn deserialize<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<Value<'h>, D::Error> {
        deserialize(deserializer, self.heap()).map(|word| self.value(word))
    }
}

fn deserialize<'de, D: Deserializer<'de>>(deserializer: D, sink: &mut impl Sink) -> Result<Word, D::Error> {
    let mut words = Vec::new();
    Part { sink, words: &mut words, levels: SERDE_DEPTH_MAX, is_key: false }.deserialize(deserializer)
}

/// A value, or a part of one, that is read next.
struct Part<'a, S> {
    sink: &'a mut S,
    /// The words of what has begun around it.
    words: &'a mut Vec<u64>,
    /// The levels that it may have.
    levels: usize,
    /// `true` if it is the key of a map, so that a text becomes a symbol.
    is_key: bool,
}

impl<S: Sink> Part<'_, S> {
    /// Returns a part of this one.
    fn part(&mut self, levels: usize, is_key: bool) -> Part<'_, S> {
        Part { sink: self.sink, words: self.words, levels, is_key }
    }

    /// Returns the levels of the parts.
    fn inner<E: Error>(&self) -> Result<usize, E> {
        self.levels.checked_sub(1).ok_or_else(too_deep)
    }
}

impl<'de, S: Sink> DeserializeSeed<'de> for Part<'_, S> {
    type Value = Word;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Word, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Sink> Visitor<'de> for Part<'_, S> {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that cells have")
    }

    fn visit_bool<E: Error>(self, is_true: bool) -> Result<Word, E> {
        Ok(if is_true { Word::TRUE } else { Word::FALSE })
    }

    #[inline]
    fn visit_i64<E: Error>(self, number: i64) -> Result<Word, E> {
        build::signed(self.sink, number).map_err(E::custom)
    }

    #[inline]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Word, E> {
        build::unsigned(self.sink, number).map_err(E::custom)
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Word, E> {
        match (i64::try_from(number), u64::try_from(number)) {
            (Ok(number), _) => self.visit_i64(number),
            (_, Ok(number)) => self.visit_u64(number),
            _ => self.visit_f64(number as f64),
        }
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Word, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => self.visit_f64(number as f64),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Word, E> {
        build::float(self.sink, number).map_err(E::custom)
    }

    #[inline]
    fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
        let word = if self.is_key { self.sink.intern(text) } else { build::text(self.sink, Kind::Str, text) };
        word.map_err(E::custom)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Word, E> {
        let words: Vec<Word> = bytes.iter().filter_map(|byte| Word::integer(i64::from(*byte))).collect();
        build::vector(self.sink, &words).map_err(E::custom)
    }

    fn visit_none<E: Error>(self) -> Result<Word, E> {
        Ok(Word::NULL)
    }

    fn visit_unit<E: Error>(self) -> Result<Word, E> {
        Ok(Word::NULL)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Word, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Word, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<Word, A::Error> {
        let levels = self.inner()?;
        let from = self.words.len();
        let made = (|| {
            while let Some(word) = sequence.next_element_seed(self.part(levels, false))? {
                self.words.push(word.0);
            }
            build::vector_of(self.sink, &self.words[from..]).map_err(A::Error::custom)
        })();
        // After an error, too: the format may continue.
        self.words.truncate(from);
        made
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Word, A::Error> {
        let levels = self.inner()?;
        let from = self.words.len();
        let made = (|| {
            while let Some(key) = map.next_key_seed(self.part(levels, true))? {
                self.words.push(key.0);
                let value = map.next_value_seed(self.part(levels, false))?;
                self.words.push(value.0);
            }
            let entries = self.words[from..].as_chunks::<2>().0;
            build::map_of(self.sink, entries).map_err(A::Error::custom)
        })();
        self.words.truncate(from);
        made
    }
}
