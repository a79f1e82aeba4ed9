//! The key–value section: what a model says about itself.

use super::cursor::Cursor;
use super::error::{Fault, GgufError, Problem};
use super::value::{ArrayView, Value, ValueType};
use crate::index::NameIndex;
use crate::mmap::FileBytes;
use std::ops::Range;
use std::sync::Arc;

/// The longest key that GGUF allows, in bytes. Tensor names get the same limit.
pub(crate) const MAX_NAME_BYTES: usize = 65_535;

/// An entry takes at least this many bytes: key length, one character, value type, one byte.
const MIN_ENTRY_BYTES: usize = 8 + 1 + 4 + 1;

/// The metadata of a GGUF file. Values stay in the file; a look-up reads them there.
///
/// The typed look-ups return `Ok(None)` if the key is absent, and an error that names the file, the
/// key and both types if the value has another type. Integers of any width are accepted where an
/// integer is expected, as long as the value fits.
#[derive(Debug)]
pub struct Metadata {
    file: Arc<FileBytes>,
    entries: Vec<Entry>,
    index: NameIndex,
}

#[derive(Debug)]
struct Entry {
    key: Box<str>,
    /// Where type and value lie in the file.
    value: Range<usize>,
}

/// The result of a typed look-up.
pub type Lookup<T> = Result<Option<T>, GgufError>;

impl Metadata {
    /// Reads `count` entries. Each value is walked to its last byte, and none is kept.
    pub(crate) fn read(
        file: &Arc<FileBytes>,
        cursor: &mut Cursor<'_>,
        count: usize,
    ) -> Result<Metadata, Problem> {
        let mut entries = Vec::with_capacity(count);
        for index in 0..count {
            let fail = |key: Option<&str>, fault| Problem::Metadata {
                index,
                key: key.map(str::to_string),
                fault,
            };
            let key = read_name(cursor).map_err(|fault| fail(None, fault))?;
            let start = cursor.position();
            Value::read_typed(cursor).map_err(|fault| fail(Some(key), fault))?;
            entries.push(Entry {
                key: key.into(),
                value: start..cursor.position(),
            });
        }
        let index = NameIndex::build(&entries, |entry| &entry.key)
            .map_err(|key| Problem::DuplicateKey { key })?;
        Ok(Metadata {
            file: Arc::clone(file),
            entries,
            index,
        })
    }

    /// How many entries the file says it has; an error when it is too short for them.
    pub(crate) fn read_count(cursor: &mut Cursor<'_>) -> Result<usize, Fault> {
        cursor.count(MIN_ENTRY_BYTES)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        let at = self.index.find(&self.entries, |entry| &entry.key, key)?;
        self.value_of(&self.entries[at])
    }

    /// All entries in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.entries
            .iter()
            .filter_map(|entry| Some((&*entry.key, self.value_of(entry)?)))
    }

    /// All entries as they lie in the file: key, then type and value as bytes.
    pub(crate) fn iter_raw(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries
            .iter()
            .filter_map(|entry| Some((&*entry.key, self.file.get(entry.value.clone())?)))
    }

    fn value_of(&self, entry: &Entry) -> Option<Value<'_>> {
        Value::of_checked(self.file.get(entry.value.clone())?).ok()
    }

    /// The text of this key: `None` if the key is missing, an error if it is of another type.
    pub fn string(&self, key: &str) -> Lookup<&str> {
        self.typed(key, "string", |value| match value {
            Value::Str(text) => Some(text),
            _ => None,
        })
    }

    /// The bool of this key: `None` if the key is missing, an error if it is of another type.
    pub fn bool(&self, key: &str) -> Lookup<bool> {
        self.typed(key, "bool", |value| match value {
            Value::Bool(on) => Some(on),
            _ => None,
        })
    }

    /// An integer that fits 32 bits, without a sign.
    pub fn u32(&self, key: &str) -> Lookup<u32> {
        self.typed(key, "an integer from 0 to 2^32 - 1", |value| {
            u32::try_from(value.as_integer()?).ok()
        })
    }

    /// An integer that fits 64 bits, without a sign.
    pub fn u64(&self, key: &str) -> Lookup<u64> {
        self.typed(key, "an integer from 0 to 2^64 - 1", |value| {
            u64::try_from(value.as_integer()?).ok()
        })
    }

    /// A number with a fraction; 64-bit ones are rounded.
    pub fn f32(&self, key: &str) -> Lookup<f32> {
        self.typed(key, "f32", |value| match value {
            Value::F32(number) => Some(number),
            Value::F64(number) => Some(number as f32),
            _ => None,
        })
    }

    /// An array of any type.
    pub fn array(&self, key: &str) -> Lookup<ArrayView<'_>> {
        self.typed(key, "array", |value| match value {
            Value::Array(array) => Some(array),
            _ => None,
        })
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Lookup<impl ExactSizeIterator<Item = &str> + Clone> {
        let texts = self.byte_strings(key)?;
        Ok(texts.map(|texts| texts.map(|text| std::str::from_utf8(text).unwrap_or_default())))
    }

    /// An array of strings as bytes. They were checked to be UTF-8 when the file was opened, and are so
    /// unless it changed since; strings are not checked again.
    pub fn byte_strings(&self, key: &str) -> Lookup<impl ExactSizeIterator<Item = &[u8]> + Clone> {
        let array = self.array_of(key, "array of string", |t| t == ValueType::String)?;
        Ok(array.map(|array| array.strings()))
    }

    /// An array of `f32`.
    pub fn f32s(&self, key: &str) -> Lookup<impl ExactSizeIterator<Item = f32> + Clone + '_> {
        let array = self.array_of(key, "array of f32", |t| t == ValueType::F32)?;
        Ok(array.map(|array| words(array).map(f32::from_le_bytes)))
    }

    /// An array of 32-bit integers, signed or not; an unsigned one keeps its bits.
    pub fn i32s(&self, key: &str) -> Lookup<impl ExactSizeIterator<Item = i32> + Clone + '_> {
        let array = self.array_of(key, "array of i32", |t| {
            matches!(t, ValueType::I32 | ValueType::U32)
        })?;
        Ok(array.map(|array| words(array).map(i32::from_le_bytes)))
    }

    /// An array of bytes, signed or not.
    pub fn bytes(&self, key: &str) -> Lookup<&[u8]> {
        let array = self.array_of(key, "array of u8", |t| {
            matches!(t, ValueType::U8 | ValueType::I8)
        })?;
        Ok(array.map(|array| array.bytes()))
    }

    /// An array of bools.
    pub fn bools(&self, key: &str) -> Lookup<impl ExactSizeIterator<Item = bool> + Clone + '_> {
        let array = self.array_of(key, "array of bool", |t| t == ValueType::Bool)?;
        Ok(array.map(|array| array.iter().map(|value| value == Value::Bool(true))))
    }

    /// The error for a key that its reader cannot do without.
    pub fn missing(&self, key: &str) -> GgufError {
        let key = key.to_string();
        Problem::MissingKey { key }.in_file(self.file.path())
    }

    fn array_of(
        &self,
        key: &str,
        wanted: &'static str,
        accepts: impl Fn(ValueType) -> bool,
    ) -> Lookup<ArrayView<'_>> {
        self.typed(key, wanted, |value| match value {
            Value::Array(array) if accepts(array.element_type()) => Some(array),
            _ => None,
        })
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        wanted: &'static str,
        convert: impl Fn(Value<'a>) -> Option<T>,
    ) -> Lookup<T> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => {
                Err(Problem::wrong_type(key, found_text(&value), wanted).in_file(self.file.path()))
            }
        }
    }
}

/// The elements of an array of 32-bit numbers.
fn words(array: ArrayView<'_>) -> impl ExactSizeIterator<Item = [u8; 4]> + Clone {
    let (words, _) = array.bytes().as_chunks();
    words.iter().copied()
}

/// What a look-up found, with the value where it is an integer that did not fit.
fn found_text(value: &Value<'_>) -> String {
    match value.as_integer() {
        Some(number) => format!("{} {number}", value.describe()),
        None => value.describe(),
    }
}

/// Reads the key of an entry or the name of a tensor.
pub(crate) fn read_name<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Fault> {
    let name = cursor.string()?;
    check_name(name).map(|()| name)
}

/// Refuses names without characters or longer than the format allows.
pub(crate) fn check_name(name: &str) -> Result<(), Fault> {
    match name.len() {
        1..=MAX_NAME_BYTES => Ok(()),
        length => Err(Fault::NameLength {
            length,
            limit: MAX_NAME_BYTES,
        }),
    }
}
