//! What `inspect` says of a vision tower: the images that it reads, and the rows that it gives.

use akunu_arch::Vision;
use akunu_arch::vision::Grids;
use akunu_gguf::WeightStore;
use serde::Serialize;

/// A vision tower, alone in a file or beside its language model in a folder.
#[derive(Serialize)]
pub struct Tower {
    /// The name of its kind: that of the projector in llama.cpp's files.
    pub projector: &'static str,
    /// Width and height of its images in pixels.
    pub image_size: u32,
    /// Width and height of a patch in pixels.
    pub patch_size: u32,
    /// Rows that an image takes in a sequence.
    pub rows: u32,
    /// Width of a row: that of the language model.
    pub row_length: u32,
}

impl Tower {
    /// The tower of an open model: `None` if it has none, or the reason if it cannot be run.
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
        let Grids::Square(side) = input.grids;
        let rows = side / input.merge;
        Tower {
            projector: vision.family,
            image_size: side * input.patch,
            patch_size: input.patch,
            rows: rows * rows,
            row_length: vision.out_dim,
        }
    }

    /// For example "512 × 512 pixels in patches of 16 become 64 rows of 576 (idefics3)".
    pub fn line(&self) -> String {
        let size = self.image_size;
        format!(
            "{size} × {size} pixels in patches of {} become {} rows of {} ({})",
            self.patch_size, self.rows, self.row_length, self.projector
        )
    }
}
