//! How keys and values are stored.
//!
//! [`KvFormat::F16`]: halves. [`KvFormat::Q8`]: for every 32 neighbouring elements of a head a scale, which is a half,
//! and 32 whole numbers of 8 bits:
//!
//! ```text
//! scale = max |x| / 127, rounded to f16;   q = x / scale, rounded to the nearest (of two the even one) and kept
//! within -127 ..= 127, or 0 where the scale is 0;   x ≈ scale * q
//! ```
//!
//! A page of one head has the numbers of all its slots first, (page, head_dim), then their scales,
//! (page, head_dim / 32).

/// Elements that share a scale in [`KvFormat::Q8`].
pub const Q8_BLOCK: u32 = 32;
/// The largest of the whole numbers of [`KvFormat::Q8`].
pub const Q8_LARGEST: f32 = 127.0;

/// A format of keys and values.
///
/// Not `#[non_exhaustive]`: the kernels match on all formats, so that a new one does not compile until each of them handles it.
///
/// ```
/// use akunu_types::KvFormat;
///
/// // A head of 128 elements: 256 bytes, or 136.
/// assert!(KvFormat::Q8.bytes_per_slot(128) < KvFormat::F16.bytes_per_slot(128));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KvFormat {
    /// 16 bits an element.
    #[default]
    F16,
    /// 8.5 bits an element.
    Q8,
}

impl KvFormat {
    /// All formats.
    pub const ALL: [KvFormat; 2] = [KvFormat::F16, KvFormat::Q8];

    /// The name that users know.
    pub const fn name(self) -> &'static str {
        match self {
            KvFormat::F16 => "f16",
            KvFormat::Q8 => "q8",
        }
    }

    /// The number that stands for it in files. Number 1 was [`KvFormat::Q8`] when all keys were stored as they are.
    pub const fn code(self) -> u32 {
        match self {
            KvFormat::F16 => 0,
            KvFormat::Q8 => 2,
        }
    }

    /// Whether keys are stored less what all keys of a head have in common, where a model has such a vector. Rounding to 16 bits
    /// loses little of a small number beside a large one; rounding to 8 bits loses it.
    pub const fn subtracts_centre(self) -> bool {
        match self {
            KvFormat::F16 => false,
            KvFormat::Q8 => true,
        }
    }

    /// Whether heads of this size can be stored.
    pub const fn takes(self, head_dim: u32) -> bool {
        match self {
            KvFormat::F16 => true,
            KvFormat::Q8 => head_dim.is_multiple_of(Q8_BLOCK),
        }
    }

    /// Bytes of one head of keys, or of values, at one slot: its numbers.
    pub const fn number_bytes(self, head_dim: u32) -> usize {
        match self {
            KvFormat::F16 => 2 * head_dim as usize,
            KvFormat::Q8 => head_dim as usize,
        }
    }

    /// The same with its scales.
    pub const fn bytes_per_slot(self, head_dim: u32) -> usize {
        match self {
            KvFormat::F16 => self.number_bytes(head_dim),
            KvFormat::Q8 => self.number_bytes(head_dim) + 2 * (head_dim / Q8_BLOCK) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bits_take_little_more_than_half_the_bytes() {
        assert_eq!(KvFormat::F16.bytes_per_slot(64), 128);
        assert_eq!(KvFormat::Q8.bytes_per_slot(64), 68);
        assert_eq!(KvFormat::Q8.bytes_per_slot(256), 272);
    }

    #[test]
    fn a_scale_is_for_whole_blocks() {
        assert!(KvFormat::F16.takes(80) && KvFormat::Q8.takes(96));
        assert!(!KvFormat::Q8.takes(80));
    }
}
