//! Params, and the fields of them that depend on the rows of a step.

use akunu_program::{Count, Counts};
use akunu_types::SharedStruct;

/// The bytes of a params struct, inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    bytes: [u8; Params::CAPACITY],
    len: u8,
}

impl Params {
    /// Room for the largest params struct.
    pub const CAPACITY: usize = 80;

    /// The bytes of a struct.
    pub fn of<P: SharedStruct>(params: &P) -> Params {
        const { assert!(size_of::<P>() <= Params::CAPACITY) };
        let mut bytes = [0; Params::CAPACITY];
        bytes[..size_of::<P>()].copy_from_slice(bytemuck::bytes_of(params));
        Params {
            bytes,
            len: size_of::<P>() as u8,
        }
    }

    /// As many bytes as the struct has.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// A field of the params that is a number of rows, or a multiple of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowField {
    /// Offset of the field, from `offset_of!`.
    pub offset: u8,
    /// Which rows.
    pub count: Count,
    /// The field is this many times as large.
    pub times: u32,
}

impl RowField {
    /// A field that is a number of rows.
    pub const fn new(offset: usize, count: Count) -> RowField {
        RowField::times(offset, count, 1)
    }

    /// A field that is a multiple of a number of rows.
    pub const fn times(offset: usize, count: Count, times: u32) -> RowField {
        RowField {
            offset: offset as u8,
            count,
            times,
        }
    }

    pub(super) fn apply(&self, params: &mut Params, counts: &Counts) {
        let at = usize::from(self.offset);
        let value = counts.of(self.count).saturating_mul(self.times);
        params.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}
