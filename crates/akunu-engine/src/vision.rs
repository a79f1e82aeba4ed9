//! Vision towers: images become rows that a language model reads in the place of tokens.
//!
//! An image is resized, normalised and cut to a grid of whole patches before it comes here ([`ImageInput`] has the numbers for
//! that). It is one step: each patch is a row, and sees all patches of its image.
//!
//! ```no_run
//! use akunu_engine::vision::{Grid, VisionModel};
//! use akunu_kernels::twin_device::TwinDevice;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut tower = VisionModel::load("mmproj-model.gguf", Box::new(TwinDevice::new()))?;
//! let grid = Grid { height: 32, width: 32 };
//! let side = (32 * tower.config().input.patch) as usize;
//! let features = tower.see(&vec![0.0; 3 * side * side], grid)?;
//! println!("{} rows of {}", features.n_rows, features.dim);
//! # Ok(())
//! # }
//! ```

mod memory;
mod patches;
mod positions;
mod runtime;
mod turns;

use std::path::{Path, PathBuf};

use akunu_gguf::WeightStore;
use akunu_program::{Device, Program};

use self::positions::Positions;
use self::runtime::Runtime;
use crate::error::EngineError;
use crate::weights;

pub use self::patches::Grid;
pub use akunu_arch::Vision;
pub use akunu_arch::vision::{Grids, ImageInput, MAX_PATCHES};

/// A vision tower whose weights are bound to a device.
pub struct VisionModel {
    path: PathBuf,
    config: Vision,
    weight_bytes: u64,
    runtime: Runtime,
}

/// The rows of an image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// (n_rows, dim), in reading order.
    pub rows: Vec<f32>,
    /// How many rows the image takes in a sequence.
    pub n_rows: usize,
    /// Width of a row: that of the language model's residual stream.
    pub dim: usize,
    /// Lines and columns of these rows in the image.
    pub grid: Grid,
    /// Rows that the language model adds to its residual stream at the image's positions, the first after its first layer and so
    /// on (deepstack); empty for other models. Each is as large as `rows`.
    pub deep: Vec<Vec<f32>>,
}

impl VisionModel {
    /// Opens an `mmproj` file, or the folder of a whole model, and binds the weights of the tower to `device`.
    pub fn load(
        path: impl AsRef<Path>,
        mut device: Box<dyn Device>,
    ) -> Result<VisionModel, EngineError> {
        let path = path.as_ref();
        let store = WeightStore::open(path)?;
        let config = Vision::from_store(&store)?;
        config.check_weights(&store, path)?;
        let positions = Positions::read(&store, &config, path)?;
        let bound = weights::bind_tower(&store, &config, path, device.as_mut())?;
        let own = store
            .iter()
            .filter(|weight| weight.name.starts_with("vision."));
        Ok(VisionModel {
            path: path.to_path_buf(),
            config,
            weight_bytes: own.map(|weight| weight.size() as u64).sum(),
            runtime: Runtime::new(bound, positions, device),
        })
    }

    /// The file or folder of the tower.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The shape of the tower, and the images that it reads.
    pub fn config(&self) -> &Vision {
        &self.config
    }

    /// Bytes of the weights of the tower and its projector.
    pub fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    /// The device's name, and what it runs on.
    pub fn device(&self) -> (&'static str, String) {
        self.runtime.describe()
    }

    /// The rows of an image. `pixels` are normalised, (3, grid.height * patch, grid.width * patch).
    pub fn see(&mut self, pixels: &[f32], grid: Grid) -> Result<Features, EngineError> {
        let input = self.config.input;
        grid.check(&input)
            .and_then(|()| patches::check_pixels(pixels, grid, &input))
            .map_err(|why| EngineError::TowerImage {
                path: self.path.clone(),
                why,
            })?;
        let (rows, deep) = self.runtime.see(pixels, grid)?;
        let mut all = rows.iter().chain(deep.iter().flatten());
        if all.any(|number| !number.is_finite()) {
            let path = self.path.clone();
            return Err(EngineError::NotNumbers { path });
        }
        let merged = grid.merged(input.merge);
        Ok(Features {
            rows,
            n_rows: merged.len(),
            dim: self.config.out_dim as usize,
            grid: merged,
            deep,
        })
    }

    /// The program of an image with this grid, for tests and traces.
    pub fn program(&mut self, grid: Grid) -> Result<Program, EngineError> {
        self.runtime.program(grid)
    }
}
