//! Files to pictures: limits first, then decoding, then upright, opaque bytes.
//!
//! ```text
//! 16 bits -> their high byte;  grey -> three equal colours;  a palette -> its colours
//! transparent -> over white:  round((colour * alpha + 255 * (255 - alpha)) / 255)
//! ```
//!
//! `transformers`' processors do the same with pictures of Pillow, but for grey pictures of 16 bits, which Pillow makes white
//! wherever they are brighter than 255 of 65,535.

use crate::error::{PictureError, PictureProblem};
use crate::jpeg_end;
use crate::limits::Limits;
use crate::picture::{Picture, Size};
use image::error::{ImageError as CrateError, LimitErrorKind};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};
use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::Path;

impl Picture {
    /// Reads an image file: PNG, JPEG, WebP, or the first frame of a GIF.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, PictureError> {
        let path = path.as_ref();
        let read = || {
            let mut bytes = Vec::new();
            let file = File::open(path)?;
            file.take(limits.max_bytes.saturating_add(1))
                .read_to_end(&mut bytes)?;
            Self::decode(&bytes, limits)
        };
        read().map_err(|problem| PictureError {
            path: path.into(),
            problem,
        })
    }

    /// Decodes the bytes of an image file: PNG, JPEG, WebP, or the first frame of a GIF.
    ///
    /// ```
    /// use akunu_image::{PictureProblem, Limits, Picture};
    ///
    /// let error = Picture::decode(b"%PDF-1.7", &Limits::default()).unwrap_err();
    /// assert!(matches!(error, PictureProblem::UnknownFormat));
    /// ```
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, PictureProblem> {
        let found = bytes.len() as u64;
        if found > limits.max_bytes {
            return Err(PictureProblem::TooManyBytes {
                found,
                limit: limits.max_bytes,
            });
        }
        let format = format_of(bytes)?;
        if format == ImageFormat::Jpeg && !jpeg_end::has_end(bytes) {
            return Err(PictureProblem::Truncated);
        }
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        let mut allowed = image::Limits::default();
        allowed.max_alloc = Some(limits.max_memory);
        reader.limits(allowed);
        let explain = |error| explain(error, limits);
        let mut decoder = reader.into_decoder().map_err(explain)?;
        let (width, height) = decoder.dimensions();
        check_size(Size { width, height }, limits)?;
        if decoder.total_bytes() > limits.max_memory {
            return Err(PictureProblem::TooMuchMemory(limits.max_memory));
        }
        let orientation = decoder.orientation().map_err(explain)?;
        let mut decoded = DynamicImage::from_decoder(decoder).map_err(explain)?;
        decoded.apply_orientation(orientation);
        opaque(decoded)
    }
}

fn format_of(bytes: &[u8]) -> Result<ImageFormat, PictureProblem> {
    if bytes.is_empty() {
        return Err(PictureProblem::Empty);
    }
    let format = image::guess_format(bytes).map_err(|_| PictureProblem::UnknownFormat)?;
    match format {
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP | ImageFormat::Gif => Ok(format),
        other => Err(PictureProblem::Unsupported(
            format!("{other:?}").to_uppercase(),
        )),
    }
}

fn check_size(size: Size, limits: &Limits) -> Result<(), PictureProblem> {
    let Size { width, height } = size;
    let found = size.n_pixels();
    if found == 0 {
        return Err(PictureProblem::NoPixels { width, height });
    }
    if size.longest() > limits.max_side {
        let limit = limits.max_side;
        return Err(PictureProblem::TooLong {
            width,
            height,
            limit,
        });
    }
    if found > limits.max_pixels {
        let limit = limits.max_pixels;
        return Err(PictureProblem::TooManyPixels {
            width,
            height,
            found,
            limit,
        });
    }
    Ok(())
}

fn explain(error: CrateError, limits: &Limits) -> PictureProblem {
    match error {
        CrateError::Limits(error) if matches!(error.kind(), LimitErrorKind::InsufficientMemory) => {
            PictureProblem::TooMuchMemory(limits.max_memory)
        }
        CrateError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            PictureProblem::Truncated
        }
        CrateError::Unsupported(error) => PictureProblem::Unsupported(error.to_string()),
        other => PictureProblem::Damaged(other.to_string()),
    }
}

fn opaque(decoded: DynamicImage) -> Result<Picture, PictureProblem> {
    let (width, height) = (decoded.width(), decoded.height());
    let size = Size { width, height };
    let rgb = match decoded {
        DynamicImage::ImageRgb8(it) => it.into_raw(),
        DynamicImage::ImageRgb16(it) => high_bytes(it.into_raw()),
        DynamicImage::ImageRgba8(it) => over_white::<4>(&it.into_raw()),
        DynamicImage::ImageRgba16(it) => over_white::<4>(&high_bytes(it.into_raw())),
        DynamicImage::ImageLuma8(it) => three_times(&it.into_raw()),
        DynamicImage::ImageLuma16(it) => three_times(&high_bytes(it.into_raw())),
        DynamicImage::ImageLumaA8(it) => three_times(&over_white::<2>(&it.into_raw())),
        DynamicImage::ImageLumaA16(it) => three_times(&over_white::<2>(&high_bytes(it.into_raw()))),
        other => {
            let kind = format!("{:?}", other.color());
            return Err(PictureProblem::Unsupported(kind));
        }
    };
    Picture::from_rgb(size, rgb).ok_or(PictureProblem::NoPixels { width, height })
}

fn high_bytes(values: Vec<u16>) -> Vec<u8> {
    values.into_iter().map(|value| (value >> 8) as u8).collect()
}

fn three_times(greys: &[u8]) -> Vec<u8> {
    greys.iter().flat_map(|&grey| [grey; 3]).collect()
}

/// Pixels of N bytes, of which the last is alpha, over white, without the alpha.
fn over_white<const N: usize>(pixels: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pixels.len() / N * (N - 1));
    for pixel in pixels.chunks_exact(N) {
        let alpha = u32::from(pixel[N - 1]);
        let blend = |&colour: &u8| {
            let sum = u32::from(colour) * alpha + 255 * (255 - alpha);
            ((sum + 127) / 255) as u8
        };
        out.extend(pixel[..N - 1].iter().map(blend));
    }
    out
}
