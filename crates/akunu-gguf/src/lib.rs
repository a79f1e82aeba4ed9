#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod adapter;
mod ctranslate2;
mod dims;
mod gguf;
mod imatrix;
mod index;
#[allow(unsafe_code, reason = "mapping a file cannot be done in safe Rust")]
mod mmap;
pub mod quant;
mod safetensors;
mod span;
mod speech;
mod store;

pub use adapter::{AdapterError, AdapterFile, AdapterPart, AdapterProblem};
pub use ctranslate2::{Ct2Fault, Ct2File, Ct2Tensor};
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
pub use speech::{SpeechError, SpeechFolder, SpeechProblem, SpeechTensor};
pub use store::{
    Container, Data, StoreError, WeightStore, WeightView, canonical_from_gguf,
    canonical_from_hugging_face, has_sandwich_norms,
};
