//! SigLIP, Gemma 3: every picture to one size.

use super::{Fit, Fitted};
use crate::picture::{Picture, Size};

/// To one size, whatever the picture's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretched {
    /// The size that the tower reads.
    pub size: Size,
}

impl Stretched {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Fitted {
        Fitted::single(picture.resize(self.size, fit.filter))
    }
}
