//! Repeatable random numbers.

/// A small generator of repeatable numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0 .. n`.
    pub fn below(&mut self, n: u32) -> u32 {
        (self.bits() % u64::from(n)) as u32
    }

    /// A number in -1 .. 1.
    pub fn unit(&mut self) -> f32 {
        ((self.bits() >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    /// `n` numbers in `-scale .. scale`.
    pub fn floats(&mut self, n: usize, scale: f32) -> Vec<f32> {
        (0..n).map(|_| self.unit() * scale).collect()
    }

    /// `n` halves in `-scale .. scale`.
    pub fn halves(&mut self, n: usize, scale: f32) -> Vec<half::f16> {
        (0..n)
            .map(|_| half::f16::from_f32(self.unit() * scale))
            .collect()
    }

    /// `n` random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}
