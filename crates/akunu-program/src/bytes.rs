//! Host memory with an alignment that every element type can be read at.

/// A zeroed byte buffer whose start is aligned to 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignedBytes {
    words: Vec<u128>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> AlignedBytes {
        AlignedBytes {
            words: vec![0; len.div_ceil(size_of::<u128>())],
            len,
        }
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> AlignedBytes {
        let mut copy = AlignedBytes::zeroed(bytes.len());
        copy.as_mut().copy_from_slice(bytes);
        copy
    }

    /// The bytes of a slice of plain values.
    pub fn from_values<T: bytemuck::NoUninit>(values: &[T]) -> AlignedBytes {
        AlignedBytes::copy_of(bytemuck::cast_slice(values))
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

impl AsMut<[u8]> for AlignedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}
