//! Layers with a state: rows of a sequence that go on from each other. Parts share what is independent: channels, heads,
//! elements of values. A part takes its piece of a state through all rows of a sequence, and is alone with it.

mod delta_rule;
mod gated_norm;
mod short_conv;
mod ssd;
mod walk;

pub(crate) use self::delta_rule::DeltaRule;
pub(crate) use self::gated_norm::{GatedNorm, split_heads};
pub(crate) use self::short_conv::ShortConv;
pub(crate) use self::ssd::Ssd;
use crate::simd::Lanes;

/// A vector of some numbers, at most `L::N`; the others are 0.
#[inline(always)]
fn load<L: Lanes>(from: &[f32]) -> L {
    // SAFETY: `reach`: as many are there.
    unsafe {
        match from.len() >= L::N {
            true => L::load(from.as_ptr()),
            false => L::load_part(from.as_ptr(), from.len()),
        }
    }
}

/// Stores the first numbers of a vector, as many as there are places, at most `L::N`.
#[inline(always)]
fn store<L: Lanes>(numbers: L, to: &mut [f32]) {
    // SAFETY: `reach`: as many are there.
    unsafe {
        match to.len() >= L::N {
            true => numbers.store(to.as_mut_ptr()),
            false => numbers.store_part(to.as_mut_ptr(), to.len()),
        }
    }
}
