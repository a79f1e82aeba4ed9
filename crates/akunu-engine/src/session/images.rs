//! The images of a saved session.
//!
//! ```text
//! n_images                        4 bytes; all numbers are little-endian
//! for each image
//!     slot, rows                  4 each: where it begins, and how many of its rows the session has
//!     height, width               4 each: its grid; 0 and 0 without one
//!     n_rows, n_deep              4 each
//!     its features                4 * n_rows * dim
//!     its further features        4 * n_rows * dim, n_deep times
//! ```

use std::sync::Arc;

use akunu_arch as arch;

use crate::error::SavedSessionError;
use crate::images::{ImageFeatures, ImageGrid, Images, Span, check_features};

/// The bytes of all images; none without one.
pub(super) fn to_bytes(images: &Images) -> Vec<u8> {
    let mut bytes = Vec::new();
    if images.is_empty() {
        return bytes;
    }
    let spans = images.spans();
    bytes.extend((spans.len() as u32).to_le_bytes());
    for Span {
        start,
        len,
        features,
    } in spans
    {
        let grid = features
            .grid()
            .map_or([0; 2], |grid| [grid.height, grid.width]);
        let [height, width] = grid.map(|n| n as usize);
        let sizes = [features.n_rows(), features.deep().len()];
        for number in [*start, *len, height, width, sizes[0], sizes[1]] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(bytemuck::cast_slice::<f32, u8>(features.rows()));
        for map in features.deep() {
            bytes.extend(bytemuck::cast_slice::<f32, u8>(map));
        }
    }
    bytes
}

/// Reads the images, which take all of `bytes`; they are among `n_tokens` tokens.
pub(super) fn from_bytes(
    bytes: &[u8],
    model: &arch::Model,
    n_tokens: usize,
) -> Result<Images, SavedSessionError> {
    if bytes.is_empty() {
        return Ok(Images::default());
    }
    let mut reader = Reader { rest: bytes };
    let n_images = reader.word()?;
    let mut spans: Vec<Span> = Vec::new();
    for image in 0..n_images as usize {
        let span = reader.span(model, image)?;
        let first = spans.last().map_or(0, Span::end);
        let end = span.start.checked_add(span.len);
        if span.start < first || end.is_none_or(|end| end > n_tokens) {
            return Err(damaged(format!("image {image} is not among its tokens")));
        }
        spans.push(span);
    }
    match reader.rest.len() {
        0 => Ok(Images::new(spans)),
        left => Err(damaged(format!("{left} bytes follow its images"))),
    }
}

fn damaged(why: String) -> SavedSessionError {
    SavedSessionError::Damaged { why }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u32, SavedSessionError> {
        let (word, rest) = (self.rest.split_first_chunk())
            .ok_or_else(|| damaged("its images end too early".into()))?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*word))
    }

    /// So many rows of `dim` numbers.
    fn floats(&mut self, rows: u32, dim: u32) -> Result<Vec<f32>, SavedSessionError> {
        let bytes = u64::from(rows) * u64::from(dim) * size_of::<f32>() as u64;
        let taken = usize::try_from(bytes).ok();
        let taken = taken.and_then(|bytes| self.rest.split_at_checked(bytes));
        let (floats, rest) = taken.ok_or_else(|| damaged("its images end too early".into()))?;
        self.rest = rest;
        let floats = floats.chunks_exact(size_of::<f32>());
        Ok(floats.map(bytemuck::pod_read_unaligned).collect())
    }

    fn span(&mut self, model: &arch::Model, image: usize) -> Result<Span, SavedSessionError> {
        let [start, len] = [self.word()? as usize, self.word()? as usize];
        let [height, width] = [self.word()?, self.word()?];
        let [n_rows, n_deep] = [self.word()?, self.word()?];
        let rows = self.floats(n_rows, model.dim)?;
        let mut deep = Vec::new();
        for _ in 0..n_deep {
            deep.push(self.floats(n_rows, model.dim)?);
        }
        let refused = |error: crate::images::ImageError| damaged(error.to_string());
        let mut features = ImageFeatures::new(model.dim, rows).map_err(refused)?;
        if [height, width] != [0, 0] {
            let grid = ImageGrid { height, width };
            features = features.with_grid(grid).map_err(refused)?;
        }
        if !deep.is_empty() {
            features = features.with_deep(deep).map_err(refused)?;
        }
        check_features(image, &features, model).map_err(refused)?;
        if len == 0 || len > features.n_rows() {
            return Err(damaged(format!("image {image} has no {len} rows")));
        }
        Ok(Span {
            start,
            len,
            features: Arc::new(features),
        })
    }
}
