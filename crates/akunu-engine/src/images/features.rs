//! The features of one image, as a vision tower computes them.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::error::ImageError;

/// How the rows of an image lie in it: row r is the cell in line `r / width` and column `r % width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageGrid {
    /// Lines.
    pub height: u32,
    /// Cells of a line.
    pub width: u32,
}

/// The features of an image: rows that take the place of the embeddings of placeholder tokens. They are finite numbers.
///
/// ```
/// use akunu_engine::{ImageFeatures, ImageGrid};
///
/// let grid = ImageGrid { height: 2, width: 3 };
/// let features = ImageFeatures::new(64, vec![0.5; 6 * 64])?.with_grid(grid)?;
/// assert_eq!(features.n_rows(), 6);
/// assert!(ImageFeatures::new(64, vec![f32::NAN; 64]).is_err());
/// # Ok::<(), akunu_engine::ImageError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ImageFeatures {
    dim: u32,
    rows: Vec<f32>,
    grid: Option<ImageGrid>,
    deep: Vec<Vec<f32>>,
    hash: OnceLock<[u8; 32]>,
}

impl ImageFeatures {
    /// Features of (n, dim), n at least 1.
    pub fn new(dim: u32, rows: Vec<f32>) -> Result<ImageFeatures, ImageError> {
        check(dim, &rows)?;
        Ok(ImageFeatures {
            dim,
            rows,
            grid: None,
            deep: Vec::new(),
            hash: OnceLock::new(),
        })
    }

    /// The same with the place of each row in the image, for models whose positions have three axes.
    pub fn with_grid(self, grid: ImageGrid) -> Result<ImageFeatures, ImageError> {
        let ImageGrid { height, width } = grid;
        let rows = self.n_rows();
        if u64::from(height) * u64::from(width) != rows as u64 {
            return Err(ImageError::Grid {
                height,
                width,
                rows,
            });
        }
        Ok(ImageFeatures {
            grid: Some(grid),
            hash: OnceLock::new(),
            ..self
        })
    }

    /// The same with further feature maps, each of (n, dim): map i is added to the residual stream after layer i.
    pub fn with_deep(self, deep: Vec<Vec<f32>>) -> Result<ImageFeatures, ImageError> {
        for map in &deep {
            check(self.dim, map)?;
            if map.len() != self.rows.len() {
                return Err(ImageError::Ragged {
                    values: map.len(),
                    dim: self.dim,
                });
            }
        }
        Ok(ImageFeatures {
            deep,
            hash: OnceLock::new(),
            ..self
        })
    }

    /// Elements of a row.
    pub fn dim(&self) -> u32 {
        self.dim
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.len() / self.dim as usize
    }

    /// The rows, (n, dim).
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// How the rows lie in the image.
    pub fn grid(&self) -> Option<ImageGrid> {
        self.grid
    }

    /// The further feature maps, each of (n, dim).
    pub fn deep(&self) -> &[Vec<f32>] {
        &self.deep
    }

    /// A hash of all that the model sees of the image. It is computed once.
    pub fn hash(&self) -> [u8; 32] {
        *self.hash.get_or_init(|| {
            let mut hash = Sha256::new();
            let grid = self.grid.map_or([0; 2], |grid| [grid.height, grid.width]);
            for number in [self.dim, self.deep.len() as u32, grid[0], grid[1]] {
                hash.update(number.to_le_bytes());
            }
            for map in [&self.rows].into_iter().chain(&self.deep) {
                hash.update(bytemuck::cast_slice::<f32, u8>(map));
            }
            hash.finalize().into()
        })
    }
}

impl PartialEq for ImageFeatures {
    fn eq(&self, other: &ImageFeatures) -> bool {
        self.hash() == other.hash()
    }
}

/// Refuses what are not whole rows of finite numbers.
fn check(dim: u32, rows: &[f32]) -> Result<(), ImageError> {
    let values = rows.len();
    if values == 0 {
        return Err(ImageError::Empty);
    }
    if dim == 0 || !values.is_multiple_of(dim as usize) {
        return Err(ImageError::Ragged { values, dim });
    }
    match rows.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(ImageError::NotFinite {
            row: at / dim as usize,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(first: f32) -> ImageFeatures {
        ImageFeatures::new(2, vec![first, 1.0, 2.0, 3.0]).expect("whole rows")
    }

    /// Fails when images that a model tells apart are one for the pages.
    #[test]
    fn the_hash_depends_on_all_that_the_model_sees() {
        let grid = |height, width| features(0.0).with_grid(ImageGrid { height, width });
        let deep = features(0.0).with_deep(vec![vec![0.0; 4]]);
        let all = [
            features(0.0),
            features(0.5),
            grid(1, 2).expect("two cells"),
            grid(2, 1).expect("two cells"),
            deep.expect("a map of the same size"),
        ];
        let mut hashes = all.map(|features| features.hash()).to_vec();
        assert_eq!(hashes[0], features(0.0).hash());
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 5);
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let new = |dim, rows: &[f32]| ImageFeatures::new(dim, rows.to_vec()).expect_err("refused");
        assert_eq!(new(2, &[]), ImageError::Empty);
        assert_eq!(new(2, &[1.0; 3]), ImageError::Ragged { values: 3, dim: 2 });
        assert_eq!(new(0, &[1.0; 3]), ImageError::Ragged { values: 3, dim: 0 });
        let infinite = [0.0, 1.0, 2.0, f32::INFINITY];
        assert_eq!(new(2, &infinite), ImageError::NotFinite { row: 1 });
        let grid = ImageGrid {
            height: u32::MAX,
            width: u32::MAX,
        };
        let refused = features(0.0).with_grid(grid).expect_err("refused");
        assert!(matches!(refused, ImageError::Grid { rows: 2, .. }));
        let refused = features(0.0).with_deep(vec![vec![0.0; 2]]);
        assert!(matches!(refused, Err(ImageError::Ragged { .. })));
    }
}
