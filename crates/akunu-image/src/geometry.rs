//! How a picture of any size becomes one that a tower can read: one file for each way.

mod aligned;
mod bounds;
mod budget;
mod cropped;
mod naflex;
mod soft_tokens;
mod split;
mod stretched;

pub use aligned::Aligned;
pub use budget::Budget;
pub use cropped::Cropped;
pub use naflex::{NaFlex, Squares};
pub use soft_tokens::SoftTokens;
pub use split::Split;
pub use stretched::Stretched;

use crate::layout::Layout;
use crate::picture::Picture;
use crate::resize::Filter;

/// How a picture is fitted to a tower.
#[derive(Clone, Debug, PartialEq)]
pub enum Geometry {
    /// To one size, whatever its shape: SigLIP, Gemma 3.
    Stretched(Stretched),
    /// Its shortest edge to a length, and then the middle of it: CLIP, LLaVA.
    Cropped(Cropped),
    /// Cut into squares, with an overview: Idefics 3, SmolVLM.
    Split(Split),
    /// As it is, or cut into squares if it is large: LFM2-VL.
    NaFlex(NaFlex),
    /// To a number of pixels within bounds: Qwen2-VL, Qwen2.5-VL, Qwen3-VL.
    Budget(Budget),
    /// Its longest edge to at most a length: Pixtral.
    Aligned(Aligned),
    /// As large as a number of soft tokens allows: Gemma 4.
    SoftTokens(SoftTokens),
}

/// The pictures for the tower, whose sides are multiples of the patch, or its own size.
pub(crate) struct Fitted {
    pub(crate) pictures: Vec<Picture>,
    pub(crate) layout: Layout,
}

impl Fitted {
    fn single(picture: Picture) -> Self {
        Self {
            pictures: vec![picture],
            layout: Layout::Single,
        }
    }
}

/// The numbers that every way needs.
#[derive(Clone, Copy)]
pub(crate) struct Fit {
    /// Pixels of a side of a patch.
    pub(crate) patch: u32,
    pub(crate) filter: Filter,
}

/// The next multiple of `step` that is at least `n`.
fn round_up(n: u32, step: u32) -> u32 {
    n.div_ceil(step) * step
}

/// `length / step` as a multiple of `step`, rounded to the nearest, halves to the even one.
fn round_to(length: u32, step: u32) -> u32 {
    (f64::from(length) / f64::from(step)).round_ties_even() as u32 * step
}
