//! The safetensors container: Hugging Face and MLX model folders.

mod element;
mod error;
mod folder;
mod header;
mod mlx;
mod quantization;
mod weights;

pub use element::ElementType;
pub use error::{
    EntryFault, FolderError, FolderProblem, HeaderFault, QuantizationFault, TripleFault,
};
pub use folder::ModelFolder;
pub use header::{SafetensorInfo, read_safetensors_header};
pub use mlx::{MlxTensor, RowError};
pub use quantization::{Affine, Quantization};
