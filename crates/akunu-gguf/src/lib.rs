//! Model files: GGUF and MLX safetensors as metadata and borrowed tensors.
//!
//! A model file is mapped into memory, checked once, and then read where it lies: opening takes
//! milliseconds whatever the size, and a tensor is a slice of the file. Files are not trusted. A
//! damaged or hostile one gives an error that says what is wrong with which field; it gives neither a
//! panic, nor a read outside of the file, nor memory out of proportion to its size.
//!
//! * [`WeightStore`]: a model's weights under canonical names, from either container.
//! * [`GgufFile`]: one GGUF file, or all parts of a split one; [`GgufHeader`] writes one.
//! * [`ModelFolder`]: `config.json` and safetensors, plain or in MLX's quantisation.
//! * [`ImportanceMatrix`]: how much each column of a matrix matters, from llama.cpp's files.
//! * [`quant`]: quantised blocks to numbers and back.
#![deny(unsafe_code)]

mod dims;
mod gguf;
mod imatrix;
mod index;
#[allow(unsafe_code, reason = "mapping a file cannot be done in safe Rust")]
mod mmap;
pub mod quant;
mod safetensors;
mod span;
mod store;

pub use dims::{Dims, MAX_DIMS};
pub use gguf::{
    ArrayView, Fault, GgufError, GgufFile, GgufHeader, GgufWriter, Lookup, Metadata, MetadataValue,
    Problem, SplitFault, TensorFault, TensorInfo, TensorView, Value, ValueType, WriteFault,
};
pub use imatrix::{ImatrixError, ImatrixProblem, ImportanceMatrix};
pub use mmap::FileBytes;
pub use safetensors::{
    Affine, ElementType, EntryFault, FolderError, FolderProblem, HeaderFault, MlxTensor,
    ModelFolder, Quantization, QuantizationFault, RowError, SafetensorInfo, TripleFault,
    read_safetensors_header,
};
pub use span::Span;
pub use store::{
    Container, Data, StoreError, WeightStore, WeightView, canonical_from_gguf,
    canonical_from_hugging_face, has_sandwich_norms,
};
