//! Everything that can be wrong with an image, or with the description of a processor.

use std::path::PathBuf;

/// An image file that cannot be used, and why.
///
/// ```no_run
/// use akunu_image::{Limits, Picture};
///
/// if let Err(error) = Picture::open("cat.jpg", &Limits::default()) {
///     eprintln!("{}: {}", error.path.display(), error.problem);
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
#[non_exhaustive]
pub struct PictureError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub problem: PictureProblem,
}

/// Why an image cannot be used. Each message continues a sentence that starts with the name of the image.
///
/// ```
/// use akunu_image::{PictureProblem, Limits, Picture};
///
/// let problem = Picture::decode(b"not an image", &Limits::default()).unwrap_err();
/// assert!(matches!(problem, PictureProblem::UnknownFormat));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureProblem {
    /// The operating system refused to read it.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It has no bytes.
    #[error("is empty")]
    Empty,
    /// More bytes than [`Limits::max_bytes`](crate::Limits::max_bytes).
    #[error("has {found} bytes or more; the limit is {limit}")]
    TooManyBytes {
        /// Bytes of the file, as far as they were counted.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// It starts like no image format.
    #[error("is not an image of a supported format (PNG, JPEG, WebP, GIF)")]
    UnknownFormat,
    /// An image of a format that is not read.
    #[error("is a {0} image, which is not supported; convert it to PNG, JPEG, WebP or GIF")]
    Unsupported(String),
    /// One side is longer than [`Limits::max_side`](crate::Limits::max_side).
    #[error("has {width} x {height} pixels; the limit for each side is {limit}")]
    TooLong {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// The limit.
        limit: u32,
    },
    /// More pixels than [`Limits::max_pixels`](crate::Limits::max_pixels).
    #[error("has {width} x {height} pixels, {found} in all; the limit is {limit}")]
    TooManyPixels {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Width times height.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Decoding would take more memory than [`Limits::max_memory`](crate::Limits::max_memory).
    #[error("needs more than {0} bytes of memory to decode, which is the limit")]
    TooMuchMemory(u64),
    /// The file ends too early.
    #[error("is truncated: the file ends in the middle of the image")]
    Truncated,
    /// The file contradicts itself.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// A width or a height of zero.
    #[error("has no pixels ({width} x {height})")]
    NoPixels {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// One side is too long for its other side, for this model.
    #[error(
        "has {width} x {height} pixels; this model takes images whose long side is at most {limit} times the short one"
    )]
    TooNarrow {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// The largest ratio.
        limit: u32,
    },
    /// A `data:` URL that cannot be taken apart.
    #[error("is not a valid data URL: {0}; expected data:image/png;base64,...")]
    DataUrl(&'static str),
}

/// Why a `preprocessor_config.json` cannot be used. Each message continues a sentence that starts with the file's name.
///
/// ```
/// let error = akunu_image::Processor::from_config("{}", 16).unwrap_err();
/// assert_eq!(error.to_string(), "image_processor_type is missing");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is not JSON, or a field has another type than expected.
    #[error("is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// A field that this processor needs.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A class that is not supported.
    #[error("image_processor_type {0} is not supported")]
    Class(String),
    /// A family of towers that is not known.
    #[error("clip.projector_type {0} is not supported")]
    Family(String),
    /// A field with a value that cannot be used.
    #[error("{field} is {found}; {expected}")]
    Value {
        /// The field's name.
        field: &'static str,
        /// Its value.
        found: String,
        /// The values that can be used.
        expected: String,
    },
}
