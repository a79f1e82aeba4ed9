//! Q6_K: `x = d * scale * (q - 32)`, q from 0 to 63, its high two bits apart from the other four.
//!
//! 16 groups of 16 values, each with a signed 8-bit scale.

use super::block::Block;
use super::packing::{join, pack, split, unpack};
use super::symmetric::{Halves, Symmetric};
use akunu_types::block::BlockQ6K;

/// q - 32 from -32 to 31, scales from -128 to 127.
const HALVES: Halves = Halves { q: 32, scale: 128 };

impl Block<256> for BlockQ6K {
    fn decode(&self) -> [f32; 256] {
        let low = unpack::<4, 64, 128, 256>(&self.ql);
        let high = unpack::<2, 32, 64, 256>(&self.qh);
        let block = Symmetric {
            d: self.d,
            scales: self.scales,
            q: join(&low, &high, 4).map(|q| q as i8 - 32),
        };
        block.values()
    }

    fn encode(values: &[f32; 256]) -> Self {
        let block = Symmetric::fit(values, HALVES);
        let (low, high) = split(&block.q.map(|q| (q + 32) as u8), 4);
        BlockQ6K {
            ql: pack::<4, 64, 128, 256>(&low),
            qh: pack::<2, 32, 64, 256>(&high),
            scales: block.scales,
            d: block.d,
        }
    }
}
