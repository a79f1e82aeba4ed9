//! Images in a sequence: rows with the features of a vision tower beside rows with the embeddings of tokens.
//!
//! ```text
//! tokens    <start>  <image> <image> <image>  <end>  What is this?
//! slots        0        1       2       3       4      5 …
//! a span             start = 1, 3 rows
//! ```
//!
//! Each row of an image has a token too, the model's placeholder, so that tokens, slots and pages are counted as without
//! images. A tower computes the features; the engine only sees [`ImageFeatures`].

mod content;
mod error;
mod features;
mod prompt;
mod span;

pub(crate) use self::content::{Content, check_features};
pub use self::error::ImageError;
pub use self::features::{ImageFeatures, ImageGrid};
pub use self::prompt::{ImageSpan, Prompt};
pub(crate) use self::span::{Images, Span};
