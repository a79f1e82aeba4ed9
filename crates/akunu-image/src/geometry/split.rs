//! Idefics 3, SmolVLM: squares, then the whole picture as one more square.
//!
//! ```text
//! 1. the longest edge to `longest_edge`, the other one in proportion, made even
//! 2. both edges up to multiples of `tile`, the shorter one from the longer one's length by the ratio of 1
//! 3. tiles of tile x tile, row by row
//! 4. the picture of 2, resized to tile x tile
//! ```

use super::{Fit, Fitted, round_up};
use crate::layout::Layout;
use crate::picture::{Picture, Size};

/// Squares of one size, and an overview.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Length of the longest edge before the picture is cut.
    pub longest_edge: u32,
    /// Side of a square.
    pub tile: u32,
    /// Whether pictures are cut at all; if not, only the overview is read.
    pub is_split: bool,
}

/// No resized edge is longer.
const MAX_EDGE: u32 = 4096;

impl Split {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Fitted {
        let square = Size::square(self.tile);
        let size = below(even(picture.size(), self.longest_edge), MAX_EDGE);
        let picture = picture.resize(size, fit.filter);
        if !self.is_split {
            return Fitted::single(picture.resize(square, fit.filter));
        }
        let picture = picture.resize(self.whole_tiles(size), fit.filter);
        let rows = picture.size().height / self.tile;
        let columns = picture.size().width / self.tile;
        if rows == 1 && columns == 1 {
            return Fitted::single(picture);
        }
        let mut pictures = tiles(&picture, self.tile);
        pictures.push(picture.resize(square, fit.filter));
        let layout = Layout::Tiled {
            rows,
            columns,
            overview: true,
        };
        Fitted { pictures, layout }
    }

    fn whole_tiles(&self, size: Size) -> Size {
        let ratio = size.aspect_ratio();
        let (width, height) = if size.width >= size.height {
            let width = round_up(size.width, self.tile);
            (width, (f64::from(width) / ratio) as u32)
        } else {
            let height = round_up(size.height, self.tile);
            ((f64::from(height) * ratio) as u32, height)
        };
        Size {
            width: round_up(width, self.tile),
            height: round_up(height, self.tile),
        }
    }
}

/// The squares of a picture, row by row.
pub(super) fn tiles(picture: &Picture, tile: u32) -> Vec<Picture> {
    let Size { width, height } = picture.size();
    let corners =
        (0..height / tile).flat_map(|row| (0..width / tile).map(move |column| (row, column)));
    corners
        .map(|(row, column)| picture.crop(column * tile, row * tile, Size::square(tile)))
        .collect()
}

/// The longest edge as given, the other one even.
fn even(size: Size, longest: u32) -> Size {
    let ratio = size.aspect_ratio();
    let (width, height) = if size.width >= size.height {
        let height = (f64::from(longest) / ratio) as u32;
        (longest, height + height % 2)
    } else {
        let width = (f64::from(longest) * ratio) as u32;
        (width + width % 2, longest)
    };
    Size {
        width: width.max(1),
        height: height.max(1),
    }
}

/// In proportion, with no edge above the bound.
fn below(size: Size, bound: u32) -> Size {
    if size.longest() <= bound {
        return size;
    }
    let ratio = size.aspect_ratio();
    let (width, height) = if size.width >= size.height {
        (bound, (f64::from(bound) / ratio) as u32)
    } else {
        ((f64::from(bound) * ratio) as u32, bound)
    };
    Size {
        width: width.max(1),
        height: height.max(1),
    }
}
