//! Metadata values, read in place.
//!
//! ```text
//! scalar   little-endian number; bool is one byte, 0 or 1
//! string   u64 length, then that many bytes of UTF-8
//! array    u32 element type, u64 length, then the elements without gaps (arrays may nest)
//! ```

use super::cursor::Cursor;
use super::error::Fault;

/// Arrays may contain arrays, this deep. Files in use have one level.
pub(crate) const MAX_ARRAY_DEPTH: usize = 8;

/// The type of a metadata value, with GGUF's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[allow(missing_docs, reason = "each variant is GGUF's own name for the type")]
pub enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

/// Every type, its name and the least bytes that a value takes: all of them for a number, the length
/// for a string, element type and length for an array. Row n is the type with id n.
const TYPES: [(ValueType, &str, usize); 13] = [
    (ValueType::U8, "u8", 1),
    (ValueType::I8, "i8", 1),
    (ValueType::U16, "u16", 2),
    (ValueType::I16, "i16", 2),
    (ValueType::U32, "u32", 4),
    (ValueType::I32, "i32", 4),
    (ValueType::F32, "f32", 4),
    (ValueType::Bool, "bool", 1),
    (ValueType::String, "string", 8),
    (ValueType::Array, "array", 12),
    (ValueType::U64, "u64", 8),
    (ValueType::I64, "i64", 8),
    (ValueType::F64, "f64", 8),
];

impl ValueType {
    /// The type with this id.
    pub fn from_id(id: u32) -> Option<ValueType> {
        TYPES.get(id as usize).map(|row| row.0)
    }

    /// The number that stands for this type in a file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name: `u32`, `string`.
    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    pub(crate) fn min_bytes(self) -> usize {
        TYPES[self as usize].2
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<ValueType, Fault> {
        let id = cursor.u32()?;
        ValueType::from_id(id).ok_or(Fault::UnknownValueType { id })
    }
}

impl core::fmt::Display for ValueType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// A metadata value. Strings and arrays are borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is GGUF's own name for the type")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Str(&'a str),
    Array(ArrayView<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Value<'a> {
    /// Reads a value of a type that stands before it in the file.
    pub(crate) fn read_typed(cursor: &mut Cursor<'a>) -> Result<Value<'a>, Fault> {
        let kind = ValueType::read(cursor)?;
        Value::read(cursor, kind, 0)
    }

    /// A value whose bytes, type included, were checked before: an array is not walked again.
    pub(crate) fn of_checked(bytes: &'a [u8]) -> Result<Value<'a>, Fault> {
        let mut cursor = Cursor::new(bytes);
        match ValueType::read(&mut cursor)? {
            ValueType::Array => Ok(Value::Array(ArrayView {
                element: ValueType::read(&mut cursor)?,
                len: cursor.count(1)?,
                depth: 1,
                bytes: cursor.take(cursor.remaining())?,
            })),
            scalar => Value::read(&mut cursor, scalar, 0),
        }
    }

    /// Reads a value; `depth` arrays are around it. Every byte of it is checked.
    fn read(cursor: &mut Cursor<'a>, kind: ValueType, depth: usize) -> Result<Value<'a>, Fault> {
        Ok(match kind {
            ValueType::U8 => Value::U8(u8::from_le_bytes(cursor.array()?)),
            ValueType::I8 => Value::I8(i8::from_le_bytes(cursor.array()?)),
            ValueType::U16 => Value::U16(u16::from_le_bytes(cursor.array()?)),
            ValueType::I16 => Value::I16(i16::from_le_bytes(cursor.array()?)),
            ValueType::U32 => Value::U32(u32::from_le_bytes(cursor.array()?)),
            ValueType::I32 => Value::I32(i32::from_le_bytes(cursor.array()?)),
            ValueType::F32 => Value::F32(f32::from_le_bytes(cursor.array()?)),
            ValueType::Bool => Value::Bool(read_bool(cursor)?),
            ValueType::String => Value::Str(cursor.string()?),
            ValueType::Array => Value::Array(ArrayView::read(cursor, depth + 1)?),
            ValueType::U64 => Value::U64(u64::from_le_bytes(cursor.array()?)),
            ValueType::I64 => Value::I64(i64::from_le_bytes(cursor.array()?)),
            ValueType::F64 => Value::F64(f64::from_le_bytes(cursor.array()?)),
        })
    }

    /// The type that the file gives this value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::Str(_) => ValueType::String,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }

    /// The type as error messages write it: `u32`, `array of 3 string`.
    pub fn describe(&self) -> String {
        match self {
            Value::Array(array) => format!("array of {} {}", array.len(), array.element_type()),
            other => other.value_type().to_string(),
        }
    }

    /// An integer of any width; `None` for everything else.
    pub fn as_integer(&self) -> Option<i128> {
        Some(match *self {
            Value::U8(v) => v.into(),
            Value::I8(v) => v.into(),
            Value::U16(v) => v.into(),
            Value::I16(v) => v.into(),
            Value::U32(v) => v.into(),
            Value::I32(v) => v.into(),
            Value::U64(v) => v.into(),
            Value::I64(v) => v.into(),
            _ => return None,
        })
    }
}

fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
    match cursor.array()? {
        [0] => Ok(false),
        [1] => Ok(true),
        [byte] => Err(Fault::InvalidBool { byte }),
    }
}

/// An array of metadata, borrowed from the file. Its elements were checked when the file was opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrayView<'a> {
    element: ValueType,
    len: usize,
    /// Arrays around the elements, this one included.
    depth: usize,
    bytes: &'a [u8],
}

impl<'a> ArrayView<'a> {
    /// Reads an array that `depth - 1` arrays are around, and checks each element.
    fn read(cursor: &mut Cursor<'a>, depth: usize) -> Result<ArrayView<'a>, Fault> {
        if depth > MAX_ARRAY_DEPTH {
            return Err(Fault::TooDeep {
                limit: MAX_ARRAY_DEPTH,
            });
        }
        let element = ValueType::read(cursor)?;
        let len = cursor.count(element.min_bytes())?;
        let start = *cursor;
        match element {
            // Vocabularies: so long that they have a loop of their own.
            ValueType::String => {
                for index in 0..len {
                    if !cursor.skip_string() {
                        let fault = cursor.string().err().unwrap_or(Fault::InvalidUtf8);
                        return Err(fault.at_element(index));
                    }
                }
            }
            // The only other types that can be wrong inside.
            ValueType::Bool | ValueType::Array => {
                for index in 0..len {
                    Value::read(cursor, element, depth).map_err(|fault| fault.at_element(index))?;
                }
            }
            number => {
                let size = len.checked_mul(number.min_bytes());
                cursor.take(size.ok_or(Fault::Truncated)?)?;
            }
        }
        let mut whole = start;
        Ok(ArrayView {
            element,
            len,
            depth,
            bytes: whole.take(cursor.position() - start.position())?,
        })
    }

    /// How many elements the array has, without those inside of nested arrays.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ValueType {
        self.element
    }

    /// The elements as they lie in the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements of an array of strings in order; nothing for other arrays.
    pub(crate) fn strings(&self) -> Strings<'a> {
        Strings {
            cursor: Cursor::new(self.bytes),
            left: match self.element {
                ValueType::String => self.len,
                _ => 0,
            },
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'a>> + Clone + use<'a> {
        ArrayIter {
            cursor: Cursor::new(self.bytes),
            array: *self,
            left: self.len,
        }
    }
}

/// Walks an array of strings without the detour over [`Value`], for vocabularies have 100,000 and more.
#[derive(Clone, Debug)]
pub(crate) struct Strings<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let text = self.cursor.string_bytes();
        if text.is_none() {
            self.left = 0;
        }
        text
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Strings<'_> {}

/// Walks an array. A file that changed under its mapping ends the walk early.
#[derive(Clone, Debug)]
struct ArrayIter<'a> {
    cursor: Cursor<'a>,
    array: ArrayView<'a>,
    left: usize,
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let value = Value::read(&mut self.cursor, self.array.element, self.array.depth).ok();
        if value.is_none() {
            self.left = 0;
        }
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ArrayIter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_n_of_the_table_is_type_n() {
        for (id, row) in TYPES.iter().enumerate() {
            assert_eq!(row.0.id() as usize, id);
            assert_eq!(ValueType::from_id(id as u32), Some(row.0));
        }
        assert_eq!(ValueType::from_id(13), None);
    }
}
