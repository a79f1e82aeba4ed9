//! E8M0: a scale that is a power of two, in a byte.

use bytemuck::{Pod, Zeroable};

/// The exponent of a power of two, raised by 127: `2^(bits - 127)`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct E8M0(u8);

impl E8M0 {
    /// The scale with these bits.
    pub const fn from_bits(bits: u8) -> E8M0 {
        E8M0(bits)
    }

    /// Its bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Half of the scale, `2^(bits - 128)`, for numbers that are stored doubled. It is finite for all bits, as in ggml: the
    /// standard's NaN, 255, is the largest power of two here.
    pub const fn half(self) -> f32 {
        // Below 2^-126 a power of two is a single bit of the fraction.
        f32::from_bits(match self.0 {
            bits @ 0..=1 => 1 << (21 + bits),
            bits => (bits as u32 - 1) << 23,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exponent_doubles_the_scale() {
        assert_eq!(E8M0::from_bits(128).half(), 1.0);
        for bits in 0..u8::MAX {
            let [scale, next] = [bits, bits + 1].map(|bits| E8M0::from_bits(bits).half());
            assert_eq!(2.0 * scale, next, "{bits}");
        }
    }
}
