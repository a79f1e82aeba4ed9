//! CLIP, LLaVA: the middle of a picture.
//!
//! ```text
//! short' = shortest_edge,  long' = floor(shortest_edge * long / short)
//! left = floor((width' - crop.width) / 2),  top likewise; what the crop has beyond the picture is black
//! ```
//!
//! With `background`, the picture is first centred on a square of that colour.

use super::{Fit, Fitted};
use crate::picture::{Picture, Size};
use crate::resize::Window;

/// The shortest edge to a length, and then the middle.
#[derive(Clone, Debug, PartialEq)]
pub struct Cropped {
    /// Length of the shortest edge after resizing.
    pub shortest_edge: u32,
    /// The rectangle in the middle that is read.
    pub crop: Size,
    /// Makes the picture a square first, with this colour around it.
    pub background: Option<[u8; 3]>,
}

impl Cropped {
    pub(crate) fn fit(&self, picture: &Picture, fit: Fit) -> Fitted {
        let square = self
            .background
            .filter(|_| picture.size().width != picture.size().height)
            .map(|colour| on_square(picture, colour));
        let picture = square.as_ref().unwrap_or(picture);
        let size = self.resized(picture.size());
        let (left, width) = middle(size.width, self.crop.width);
        let (top, height) = middle(size.height, self.crop.height);
        let window = Window {
            left: left.from,
            top: top.from,
            size: Size { width, height },
        };
        let part = picture.resize_window(size, window, fit.filter);
        if part.size() == self.crop {
            return Fitted::single(part);
        }
        let mut canvas = Picture::filled(self.crop, [0; 3]);
        canvas.paste(left.to, top.to, &part);
        Fitted::single(canvas)
    }

    fn resized(&self, from: Size) -> Size {
        let edge = u64::from(self.shortest_edge);
        let long = edge * u64::from(from.longest()) / u64::from(from.shortest());
        let long = u32::try_from(long).unwrap_or(u32::MAX);
        if from.width <= from.height {
            Size {
                width: self.shortest_edge,
                height: long,
            }
        } else {
            Size {
                width: long,
                height: self.shortest_edge,
            }
        }
    }
}

/// Where the visible part starts in the resized picture, and where in the crop.
struct Start {
    from: u32,
    to: u32,
}

/// The middle `crop` of `length` pixels, and how many pixels it has.
fn middle(length: u32, crop: u32) -> (Start, u32) {
    let start = Start {
        from: length.saturating_sub(crop) / 2,
        to: crop.saturating_sub(length) / 2,
    };
    (start, length.min(crop))
}

fn on_square(picture: &Picture, colour: [u8; 3]) -> Picture {
    let Size { width, height } = picture.size();
    let side = width.max(height);
    let mut square = Picture::filled(Size::square(side), colour);
    square.paste((side - width) / 2, (side - height) / 2, picture);
    square
}
