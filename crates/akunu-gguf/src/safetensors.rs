//! The safetensors container: Hugging Face and MLX model folders.

mod converted;
mod error;
mod fault;
mod float;
mod folder;
mod header;
mod method;
mod mlx;
mod quantization;
mod rows;
mod weights;

pub use ::safetensors::Dtype as ElementType;
pub use converted::{ConvertError, Converted};
pub use error::FolderError;
pub(crate) use error::FolderProblem;
pub use float::FloatFormat;
pub use folder::ModelFolder;
pub(crate) use header::read_header;
pub use header::{SafetensorInfo, read_safetensors_header};
pub use mlx::{Affine, MlxTensor, RowError};
pub use quantization::{Packing, Quantization};
pub use rows::{OwnedAffine, Repacked};
pub(crate) use weights::QuantizedParts;
