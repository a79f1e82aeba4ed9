//! Qwen2-VL and later: a number of pixels within bounds, both edges multiples of patch * merge.
//!
//! ```text
//! step = patch * merge,  edge' = round(edge / step) * step
//! more than max_pixels:  edge' = floor(edge / b / step) * step,  b = sqrt(width * height / max_pixels),  at least step
//! less than min_pixels:  edge' = ceil(edge * b / step) * step,   b = sqrt(min_pixels / (width * height))
//! ```

use super::{Fit, Fitted, round_to};
use crate::error::PictureProblem;
use crate::picture::{Picture, Size};

/// A number of pixels within bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// The least number of pixels; smaller pictures are enlarged.
    pub min_pixels: u64,
    /// The largest number of pixels; larger pictures are reduced.
    pub max_pixels: u64,
    /// Patches of a side of what becomes one token.
    pub merge: u32,
}

/// A picture's long side is at most so many times its short one.
const MAX_RATIO: u32 = 200;

impl Budget {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Result<Fitted, PictureProblem> {
        let Size { width, height } = picture.size();
        if f64::from(width.max(height)) / f64::from(width.min(height)) > f64::from(MAX_RATIO) {
            return Err(PictureProblem::TooNarrow {
                width,
                height,
                limit: MAX_RATIO,
            });
        }
        let step = fit.patch * self.merge;
        let size = within(picture.size(), step, self.min_pixels..=self.max_pixels);
        Ok(Fitted::single(picture.resize(size, fit.filter)))
    }
}

/// The size nearest to the picture's own whose edges are multiples of `step` and whose pixels are within bounds.
fn within(size: Size, step: u32, pixels: std::ops::RangeInclusive<u64>) -> Size {
    let nearest = Size {
        width: round_to(size.width, step),
        height: round_to(size.height, step),
    };
    scaled_into(size, nearest, step, pixels)
}

/// `nearest` if its pixels are within bounds, or else the picture's size scaled by the bound.
pub(super) fn scaled_into(
    size: Size,
    nearest: Size,
    step: u32,
    pixels: std::ops::RangeInclusive<u64>,
) -> Size {
    let found = size.n_pixels() as f64;
    if nearest.n_pixels() > *pixels.end() {
        let by = (found / *pixels.end() as f64).sqrt();
        let edge = |length: u32| (f64::from(length) / by / f64::from(step)).floor() as u32 * step;
        Size {
            width: edge(size.width).max(step),
            height: edge(size.height).max(step),
        }
    } else if nearest.n_pixels() < *pixels.start() {
        let by = (*pixels.start() as f64 / found).sqrt();
        let edge = |length: u32| (f64::from(length) * by / f64::from(step)).ceil() as u32 * step;
        Size {
            width: edge(size.width),
            height: edge(size.height),
        }
    } else {
        nearest
    }
}
