//! The draw: the largest of `noise - d * scale`.
//!
//! Noise of the whole vocabulary would cost two logarithms a token. The noise of a token is above x only if its uniform
//! number u is below `exp(-x)`, since `-ln(1 - u) >= u`: so the random bits of many tokens, which cost little, are compared
//! with their limits at once, and few tokens need their logarithms.

use akunu_kernels::kernel::sampling::candidates::{Source, distance};
use akunu_kernels::kernel::sampling::philox::gumbel;

use super::argmax::largest_of;
use crate::simd::{Lanes, WithLanes, exp};

/// Logits that are looked at together.
const BLOCK: usize = 256;
/// Groups of four tokens whose random bits are made together.
const GROUPS: usize = 16;
/// Tokens of them.
const TOGETHER: usize = 4 * GROUPS;
/// Limits are a little larger than needed: logarithms and exponentials round.
const SLACK: f32 = 1e-4;

/// What a token draws.
fn score(bits: u32, distance: f32, scale: f32) -> f32 {
    gumbel(bits) - distance * scale
}

/// A draw on its way.
pub(super) struct Race {
    source: Source,
    scale: f32,
    /// The largest score so far, its token and its distance.
    best: Option<(f32, u32, f32)>,
}

impl Race {
    pub fn new(source: Source, scale: f32) -> Race {
        Race {
            source,
            scale,
            best: None,
        }
    }

    /// The token that won, and its distance.
    pub fn winner(&self) -> Option<(u32, f32)> {
        self.best.map(|(_, token, distance)| (token, distance))
    }

    /// A candidate takes part.
    #[inline(always)]
    pub fn enter(&mut self, distance: f32, token: u32) {
        let bits = self.source.of_token(token);
        if bits <= self.limit(distance) {
            self.compare(bits, distance, token);
        }
    }

    /// Random bits above this lose at this distance.
    #[inline(always)]
    fn limit(&self, distance: f32) -> u32 {
        match self.best {
            Some((best, ..)) => {
                let limit = (SLACK - best - distance * self.scale).exp();
                (limit * (1u64 << 32) as f32) as u32
            }
            None => u32::MAX,
        }
    }

    #[inline(always)]
    fn compare(&mut self, bits: u32, distance: f32, token: u32) {
        let score = score(bits, distance, self.scale);
        let wins = match self.best {
            Some((best, first, _)) => score > best || (score == best && token < first),
            None => !score.is_nan(),
        };
        if wins {
            self.best = Some((score, token, distance));
        }
    }

    /// Some logits take part, from token `first` on, a multiple of four; their largest is `largest`.
    #[inline(always)]
    fn enter_block<L: Lanes>(&mut self, best: f32, largest: f32, logits: &[f32], first: u32) {
        if self.limit(distance(best, largest)) == 0 {
            return;
        }
        for (at, logits) in logits.chunks(TOGETHER).enumerate() {
            let first = first + (at * TOGETHER) as u32;
            let bits = philox_groups(self.source, first / 4);
            let mut chances = [0f32; TOGETHER];
            for (i, chance) in chances.iter_mut().enumerate() {
                *chance = bits[i % 4][i / 4] as u32 as f32 * (1.0 / (1u64 << 32) as f32);
            }
            let whole = logits.chunks_exact(L::N);
            let n_whole = whole.len() * L::N;
            for (i, logits) in whole.enumerate() {
                // SAFETY: `reach`: there are `N` of both.
                let may_win = unsafe {
                    let chances = L::load(chances[i * L::N..].as_ptr());
                    let bound =
                        L::splat(SLACK - self.best.map_or(f32::NEG_INFINITY, |best| best.0));
                    let d = L::splat(best).sub(L::load(logits.as_ptr()));
                    let limits = exp(d.fma(L::splat(-self.scale), bound));
                    limits.sub(chances).largest() > 0.0
                };
                if may_win {
                    self.enter_each(best, logits, i * L::N, &bits, first);
                }
            }
            self.enter_each(best, &logits[n_whole..], n_whole, &bits, first);
        }
    }

    /// The logits from place `at` of a group on take part one by one.
    #[inline(always)]
    fn enter_each(&mut self, best: f32, logits: &[f32], at: usize, bits: &Bits, first: u32) {
        for (i, &logit) in (at..).zip(logits) {
            if logit > f32::NEG_INFINITY {
                let (bits, d) = (bits[i % 4][i / 4] as u32, distance(best, logit));
                if bits <= self.limit(d) {
                    self.compare(bits, d, first + i as u32);
                }
            }
        }
    }
}

/// All logits on their way into a draw.
pub(super) struct EnterAll<'a> {
    /// The draw.
    pub race: &'a mut Race,
    /// The largest logit.
    pub best: f32,
    /// The logits.
    pub logits: &'a [f32],
}

impl WithLanes for EnterAll<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (at, block) in self.logits.chunks(BLOCK).enumerate() {
            let largest = largest_of::<L>(block);
            let first = (at * BLOCK) as u32;
            self.race.enter_block::<L>(self.best, largest, block, first);
        }
    }
}

/// The random bits of [`TOGETHER`] tokens: word w of group g belongs to token `4 g + w`. They are 32 bits each, in lanes of
/// 64 for the products.
type Bits = [[u64; GROUPS]; 4];

/// [`Source::of_tokens`] for groups that follow each other: loops over groups become vectors.
#[inline(always)]
fn philox_groups(source: Source, first: u32) -> Bits {
    let mut c0: [u64; GROUPS] = std::array::from_fn(|group| (first + group as u32).into());
    let mut c1 = [u64::from(source.position); GROUPS];
    let [mut c2, mut c3] = [[0u64; GROUPS]; 2];
    let mut key = source.seed;
    for _ in 0..10 {
        let [key0, key1] = key.map(u64::from);
        for group in 0..GROUPS {
            // Factors of 32 bits: nothing wraps, and nothing has to be checked, which vectors cannot do.
            let product0 = c0[group].wrapping_mul(0xD251_1F53);
            let product1 = c2[group].wrapping_mul(0xCD9E_8D57);
            c0[group] = (product1 >> 32) ^ c1[group] ^ key0;
            c1[group] = product1 & 0xFFFF_FFFF;
            c2[group] = (product0 >> 32) ^ c3[group] ^ key1;
            c3[group] = product0 & 0xFFFF_FFFF;
        }
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    [c0, c1, c2, c3]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if groups get other bits than one by one, as the other devices make them.
    #[test]
    fn groups_have_the_bits_of_their_tokens() {
        let source = Source {
            seed: [7, 1 << 31],
            position: 1000,
        };
        let bits = philox_groups(source, 40);
        for token in 160..160 + 4 * GROUPS as u32 {
            let at = token as usize - 160;
            assert_eq!(bits[at % 4][at / 4], source.of_token(token).into());
        }
    }
}
