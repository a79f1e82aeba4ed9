//! Why an image cannot be part of a prompt.

/// An image that cannot be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// A model that was not made for images.
    #[error("`{arch}` models take no images: use a model that does, or leave the images out")]
    Unsupported {
        /// The model's architecture.
        arch: &'static str,
    },
    /// Features without a single row.
    #[error("the features of an image have no rows")]
    Empty,
    /// Values that are not whole rows.
    #[error("the features of an image have {values} values, which are not rows of {dim}")]
    Ragged {
        /// The number of values.
        values: usize,
        /// Elements of a row.
        dim: u32,
    },
    /// A value that is NaN or infinite.
    #[error(
        "row {row} of an image's features has a value that is NaN or infinite: the vision tower or the image is damaged"
    )]
    NotFinite {
        /// The row.
        row: usize,
    },
    /// A grid that does not have as many cells as there are rows.
    #[error("a grid of {height} × {width} does not fit the {rows} rows of an image")]
    Grid {
        /// Rows of the grid.
        height: u32,
        /// Columns of the grid.
        width: u32,
        /// Rows of the features.
        rows: usize,
    },
    /// An image without the grid that the model's positions need.
    #[error("image {image} has no grid, which the positions of `{arch}` models need")]
    NoGrid {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// The model's architecture.
        arch: &'static str,
    },
    /// Features of another width than the model's.
    #[error(
        "the features of image {image} have {found} elements a row, and the model has {wanted}: they are of another model's \
         vision tower"
    )]
    Width {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// Elements of its rows.
        found: u32,
        /// Elements of the model's rows.
        wanted: u32,
    },
    /// Another number of further feature maps than the model adds to its first layers.
    #[error(
        "image {image} has {found} further feature maps, and the model takes {wanted}: they are of another model's vision tower"
    )]
    Deep {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// Its maps.
        found: usize,
        /// Those that the model takes.
        wanted: usize,
    },
    /// A span that is not among the tokens.
    #[error(
        "image {image} takes rows {start} to {end} of a prompt of {tokens} tokens: the prompt needs a placeholder token for \
         each row",
        end = .start.saturating_add(*.rows)
    )]
    Beyond {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// Its first row.
        start: usize,
        /// Its number of rows.
        rows: usize,
        /// Tokens of the prompt.
        tokens: usize,
    },
    /// Spans that overlap or are not in order.
    #[error("image {image} begins at row {start}, before the end of the image before it")]
    Order {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// Its first row.
        start: usize,
    },
    /// An image whose rows see all of it, with more rows than a window of the model has.
    #[error(
        "image {image} has {rows} rows, and the rows of an image see at most {window} in this model"
    )]
    Window {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// Its number of rows.
        rows: usize,
        /// Rows of the smallest window.
        window: u32,
    },
    /// An image that has to be read in one step and does not fit it.
    #[error(
        "image {image} has {rows} rows, which this model reads in one step of at most {limit}: use a larger chunk"
    )]
    TooLong {
        /// The number of the image in the prompt, from 0.
        image: usize,
        /// Its number of rows.
        rows: usize,
        /// Rows that are possible.
        limit: usize,
    },
}
