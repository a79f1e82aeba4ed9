//! Gemma 4: the largest size in proportion that a number of soft tokens allows.
//!
//! ```text
//! step = pooling * patch,  pixels = soft_tokens * step^2
//! edge' = floor(edge * sqrt(pixels / (width * height)) / step) * step
//! an edge of 0 becomes step, and the other one min(floor(long / short), soft_tokens) * step
//! ```

use super::{Fit, Fitted};
use crate::picture::{Picture, Size};

/// As large as a number of soft tokens allows.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftTokens {
    /// The largest number of tokens that an image becomes.
    pub max_soft_tokens: u32,
    /// Patches of a side of what becomes one token.
    pub pooling: u32,
}

impl SoftTokens {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Fitted {
        let size = self.resized(picture.size(), fit.patch * self.pooling);
        Fitted::single(picture.resize(size, fit.filter))
    }

    fn resized(&self, from: Size, step: u32) -> Size {
        let pixels = f64::from(self.max_soft_tokens) * f64::from(step).powi(2);
        let by = (pixels / from.n_pixels() as f64).sqrt();
        let edge = |length: u32| (by * f64::from(length) / f64::from(step)).floor() as u32 * step;
        let (width, height) = (edge(from.width), edge(from.height));
        let long = (from.longest() / from.shortest()).min(self.max_soft_tokens) * step;
        match (width, height) {
            (0, _) => Size {
                width: step,
                height: long,
            },
            (_, 0) => Size {
                width: long,
                height: step,
            },
            (width, height) => Size { width, height },
        }
    }
}
