//! Images among the tokens of a decoder.

/// How a decoder reads the rows of images, whose features come from a vision tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInput {
    /// The slots that the rows of an image see.
    pub sight: ImageSight,
    /// The axes that pairs of a head turn by; `None` where all turn by the number of the token.
    pub axes: Option<RopeAxes>,
    /// Layers after which further features are added to the rows of images, from the first layer on.
    pub deep_layers: u32,
}

/// The slots that the rows of an image see in addition to those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSight {
    /// Nothing, as the rows of tokens.
    Before,
    /// All rows of their image.
    Whole,
}

/// The axes that the pairs of a head turn by: time, height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RopeAxes {
    /// Pairs of each axis, in this order.
    pub pairs: [u32; 3],
    /// Whether the pairs of the axes take turns, as long as height and width have some. Otherwise those of an axis follow each other.
    pub is_interleaved: bool,
}

impl ImageInput {
    /// Rows of images are like those of tokens.
    pub const PLAIN: ImageInput = ImageInput {
        sight: ImageSight::Before,
        axes: None,
        deep_layers: 0,
    };
}
