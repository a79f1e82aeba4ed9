//! Metadata values as bytes: the inverse of [`super::value`].

use super::value::ValueType;

/// A Rust value that can stand in GGUF metadata.
///
/// Numbers, `bool`, text, and slices or vectors of them, nested as wanted.
pub trait MetadataValue {
    /// Its type in the file.
    const TYPE: ValueType;
    /// Appends the value, without its type.
    fn encode(&self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($rust:ty => $kind:ident),+ $(,)?) => {$(
        impl MetadataValue for $rust {
            const TYPE: ValueType = ValueType::$kind;
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )+};
}

numbers! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
    f32 => F32, f64 => F64,
}

impl MetadataValue for bool {
    const TYPE: ValueType = ValueType::Bool;
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl MetadataValue for str {
    const TYPE: ValueType = ValueType::String;
    fn encode(&self, out: &mut Vec<u8>) {
        encode_length(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }
}

impl MetadataValue for String {
    const TYPE: ValueType = ValueType::String;
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_str().encode(out);
    }
}

impl<T: MetadataValue> MetadataValue for [T] {
    const TYPE: ValueType = ValueType::Array;
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&T::TYPE.id().to_le_bytes());
        encode_length(self.len(), out);
        for element in self {
            element.encode(out);
        }
    }
}

impl<T: MetadataValue> MetadataValue for Vec<T> {
    const TYPE: ValueType = ValueType::Array;
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_slice().encode(out);
    }
}

impl<T: MetadataValue, const N: usize> MetadataValue for [T; N] {
    const TYPE: ValueType = ValueType::Array;
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_slice().encode(out);
    }
}

impl<T: MetadataValue + ?Sized> MetadataValue for &T {
    const TYPE: ValueType = T::TYPE;
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

fn encode_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u64).to_le_bytes());
}
