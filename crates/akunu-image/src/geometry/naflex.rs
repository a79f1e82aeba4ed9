//! LFM2-VL: as it is if it is not too large, or else squares and an overview.
//!
//! ```text
//! step = patch * merge,  a token is step^2 pixels
//! the whole picture: edges to the nearest multiples of step, scaled into min_tokens ..= max_tokens
//! too large:  (edges to the nearest multiples of step) has more than max_tokens * tolerance tokens
//! squares:    the grid of min_tiles ..= max_tiles squares with the ratio nearest to the picture's; of equally near ones the
//!             last (in the order of their number of squares) of which the picture covers more than half
//! ```

use super::budget::scaled_into;
use super::split::tiles;
use super::{Fit, Fitted, round_to};
use crate::layout::Layout;
use crate::picture::{Picture, Size};

/// Any shape within a number of tokens; squares of large pictures.
#[derive(Clone, Debug, PartialEq)]
pub struct NaFlex {
    /// The least number of tokens of a whole picture.
    pub min_tokens: u32,
    /// The largest number of tokens of a whole picture.
    pub max_tokens: u32,
    /// Patches of a side of what becomes one token.
    pub merge: u32,
    /// A picture is too large with more tokens than `max_tokens` times this.
    pub tolerance: f64,
    /// How large pictures are cut; `None` if they are reduced instead.
    pub squares: Option<Squares>,
}

/// How large pictures are cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Squares {
    /// Side of a square.
    pub tile: u32,
    /// The least number of squares.
    pub min_tiles: u32,
    /// The largest number of squares.
    pub max_tiles: u32,
    /// After the squares comes the whole picture, unless there is only one square.
    pub overview: bool,
}

/// Columns and rows of squares.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cut {
    columns: u32,
    rows: u32,
}

impl NaFlex {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Fitted {
        let step = fit.patch * self.merge;
        let size = picture.size();
        let whole = self.whole(size, step);
        let squares = self
            .squares
            .as_ref()
            .filter(|_| self.is_too_large(size, fit.patch, step));
        let Some(squares) = squares else {
            return Fitted::single(picture.resize(whole, fit.filter));
        };
        let cut = squares.cut(size);
        let resized = Size {
            width: squares.tile * cut.columns,
            height: squares.tile * cut.rows,
        };
        let mut pictures = tiles(&picture.resize(resized, fit.filter), squares.tile);
        if let [_] = pictures[..] {
            return Fitted {
                pictures,
                layout: Layout::Single,
            };
        }
        let overview = squares.overview;
        if overview {
            pictures.push(picture.resize(whole, fit.filter));
        }
        let layout = Layout::Tiled {
            rows: cut.rows,
            columns: cut.columns,
            overview,
        };
        Fitted { pictures, layout }
    }

    /// A line of pixels can have more tokens than `max_tokens`, because its short side cannot shrink below one token.
    fn whole(&self, size: Size, step: u32) -> Size {
        let nearest = Size {
            width: round_to(size.width, step).max(step),
            height: round_to(size.height, step).max(step),
        };
        let token = u64::from(step).pow(2);
        let bounds = u64::from(self.min_tokens) * token..=u64::from(self.max_tokens) * token;
        scaled_into(size, nearest, step, bounds)
    }

    fn is_too_large(&self, size: Size, patch: u32, step: u32) -> bool {
        let nearest = Size {
            width: round_to(size.width, step).max(patch),
            height: round_to(size.height, step).max(patch),
        };
        let limit = f64::from(self.max_tokens) * f64::from(step).powi(2) * self.tolerance;
        nearest.n_pixels() as f64 > limit
    }
}

impl Squares {
    fn cut(&self, size: Size) -> Cut {
        let ratio = size.aspect_ratio();
        let mut best = Cut {
            columns: 1,
            rows: 1,
        };
        let mut nearest = f64::INFINITY;
        for cut in self.cuts() {
            let distance = (ratio - f64::from(cut.columns) / f64::from(cut.rows)).abs();
            let area = self.tile * self.tile * cut.columns * cut.rows;
            let is_covered = size.n_pixels() as f64 > 0.5 * f64::from(area);
            if distance < nearest || (distance == nearest && is_covered) {
                nearest = distance;
                best = cut;
            }
        }
        best
    }

    /// All cuts, those of fewer squares first.
    fn cuts(&self) -> Vec<Cut> {
        let sides = 1..=self.max_tiles;
        let all = sides
            .clone()
            .flat_map(|columns| sides.clone().map(move |rows| Cut { columns, rows }));
        let n_tiles = |cut: &Cut| cut.columns * cut.rows;
        let mut cuts: Vec<Cut> = all
            .filter(|cut| (self.min_tiles..=self.max_tiles).contains(&n_tiles(cut)))
            .collect();
        cuts.sort_by_key(n_tiles);
        cuts
    }
}
