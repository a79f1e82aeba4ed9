//! Requests and moments that look random, and are the same for the same seed.

/// Numbers that look random (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, at most 1.
    pub fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub fn within(&mut self, (from, to): (u32, u32)) -> u32 {
        from + (self.next() % u64::from(to - from + 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_range_are_drawn() {
        let mut random = Random(1);
        let drawn: Vec<u32> = (0..200).map(|_| random.within((2, 5))).collect();
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&2), Some(&5))
        );
    }
}
