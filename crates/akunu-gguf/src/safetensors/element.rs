//! The element types of safetensors.

use akunu_types::DType;

/// The type of a tensor's elements, as a safetensors header names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each variant is the format's own name for the type"
)]
#[allow(
    non_camel_case_types,
    reason = "each variant is the format's own name for the type"
)]
#[non_exhaustive]
pub enum ElementType {
    BOOL,
    U8,
    I8,
    F8_E4M3,
    F8_E5M2,
    F8_E8M0,
    U16,
    I16,
    F16,
    BF16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

/// Type, name in the header, bytes, and our own type where there is one.
const TABLE: &[(ElementType, &str, usize, Option<DType>)] = &[
    (ElementType::BOOL, "BOOL", 1, None),
    (ElementType::U8, "U8", 1, None),
    (ElementType::I8, "I8", 1, Some(DType::I8)),
    (ElementType::F8_E4M3, "F8_E4M3", 1, None),
    (ElementType::F8_E5M2, "F8_E5M2", 1, None),
    (ElementType::F8_E8M0, "F8_E8M0", 1, None),
    (ElementType::U16, "U16", 2, None),
    (ElementType::I16, "I16", 2, Some(DType::I16)),
    (ElementType::F16, "F16", 2, Some(DType::F16)),
    (ElementType::BF16, "BF16", 2, Some(DType::BF16)),
    (ElementType::U32, "U32", 4, None),
    (ElementType::I32, "I32", 4, Some(DType::I32)),
    (ElementType::F32, "F32", 4, Some(DType::F32)),
    (ElementType::U64, "U64", 8, None),
    (ElementType::I64, "I64", 8, Some(DType::I64)),
    (ElementType::F64, "F64", 8, Some(DType::F64)),
];

impl ElementType {
    /// The type of this name.
    pub fn from_name(name: &str) -> Option<ElementType> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The name of the type in safetensors files: `BF16`, for example.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        TABLE[self as usize].2
    }

    /// The same type among those that weights may have.
    pub fn dtype(self) -> Option<DType> {
        TABLE[self as usize].3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_finds_its_row_and_sizes_agree_with_our_own_types() {
        for &(element, name, bytes, dtype) in TABLE {
            assert_eq!(element.name(), name);
            assert_eq!(ElementType::from_name(name), Some(element));
            if let Some(dtype) = dtype {
                assert_eq!(dtype.block_bytes(), bytes, "{name}");
            }
        }
    }
}
