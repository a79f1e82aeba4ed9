//! Pixtral: no edge longer than a bound, both edges up to multiples of the patch.
//!
//! ```text
//! ratio = max(width, height) / longest_edge;  if above 1: edge = floor(edge / ratio)
//! edge' = ceil(edge / step) * step,  step = patch * merge
//! ```

use super::{Fit, Fitted, round_up};
use crate::picture::{Picture, Size};

/// At most so long, in whole patches.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    /// The longest edge is at most this, before it is rounded up to whole patches.
    pub longest_edge: u32,
    /// Patches of a side of what becomes one token.
    pub merge: u32,
}

impl Aligned {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Fitted {
        let Size { width, height } = picture.size();
        let ratio = f64::from(width.max(height)) / f64::from(self.longest_edge);
        let step = fit.patch * self.merge;
        let edge = |length: u32| {
            let scaled = if ratio > 1.0 {
                (f64::from(length) / ratio).floor() as u32
            } else {
                length
            };
            // transformers counts (0 - 1) / step + 1 patches of an edge of length 0, which is none, and then fails.
            round_up(scaled.max(1), step)
        };
        let size = Size {
            width: edge(width),
            height: edge(height),
        };
        Fitted::single(picture.resize(size, fit.filter))
    }
}
