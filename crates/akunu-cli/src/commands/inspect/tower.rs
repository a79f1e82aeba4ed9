//! What `inspect` says of a vision tower: the images that it reads, and the rows that it gives.

use akunu_arch::Vision;
use akunu_arch::vision::Grids;
use akunu_gguf::WeightStore;
use serde::Serialize;

/// A vision tower, from a separate file or from the folder of its language model.
#[derive(Serialize)]
pub struct Tower {
    /// The name of its kind: that of the projector in llama.cpp's files.
    pub projector: &'static str,
    /// Width and height of its images in pixels; absent if they may be of any size.
    pub image_size: Option<u32>,
    /// Width and height of a patch in pixels.
    pub patch_size: u32,
    /// Width and height in patches of the squares that become one row.
    pub merge: u32,
    /// Rows that an image takes in a sequence, if all have the same size.
    pub rows: Option<u32>,
    /// Width of a row: that of the language model.
    pub row_length: u32,
}

impl Tower {
    /// The tower of an open model, or the reason why it cannot be run; `None` for a model that only reads text.
    pub fn of(store: &WeightStore) -> Option<Result<(Tower, Vision), String>> {
        match Vision::from_store(store) {
            Ok(vision) => Some(Ok((Tower::new(&vision), vision))),
            // A language model without a tower, or with one that we do not have, is described without it.
            Err(_) if !Vision::is_alone(store) => None,
            Err(error) => Some(Err(error.to_string())),
        }
    }

    fn new(vision: &Vision) -> Tower {
        let input = &vision.input;
        let side = match input.grids {
            Grids::Square(side) => Some(side),
            Grids::Any => None,
        };
        let rows = side.map(|side| side / input.merge);
        Tower {
            projector: vision.family,
            image_size: side.map(|side| side * input.patch),
            patch_size: input.patch,
            merge: input.merge,
            rows: rows.map(|rows| rows * rows),
            row_length: vision.out_dim,
        }
    }

    /// For example "512 × 512 pixels in patches of 16 become 64 rows of 576 (idefics3)".
    pub fn line(&self) -> String {
        let (patch, length, projector) = (self.patch_size, self.row_length, self.projector);
        match (self.image_size, self.rows) {
            (Some(size), Some(rows)) => format!(
                "{size} × {size} pixels in patches of {patch} become {rows} rows of {length} ({projector})"
            ),
            _ => {
                let square = self.merge * patch;
                format!("each {square} × {square} pixels become a row of {length} ({projector})")
            }
        }
    }
}
