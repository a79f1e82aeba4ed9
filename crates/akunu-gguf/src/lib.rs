#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod adapter;
mod ctranslate2;
mod dims;
mod gguf;
mod imatrix;
mod index;
mod json_size;
#[allow(unsafe_code, reason = "mapping a file cannot be done in safe Rust")]
mod mmap;
pub mod quant;
mod safetensors;
mod span;
mod speech;
mod store;
mod whole_file;

pub use adapter::{AdapterError, AdapterFile, AdapterPart};
/// The crate of `DType`, the type of weights.
#[doc(no_inline)]
pub use akunu_types as types;
pub use ctranslate2::{Ct2Fault, Ct2File, Ct2Tensor};
pub use dims::{Dims, MAX_DIMS};
pub use gguf::{
    ArrayView, GgufError, GgufFile, GgufHeader, GgufWriter, Lookup, Metadata, MetadataValue,
    TensorInfo, TensorView, Value, ValueType,
};
pub use imatrix::{ImatrixError, ImportanceMatrix};
pub use json_size::n_json_values;
pub use mmap::FileBytes;
pub use safetensors::{
    Affine, ConvertError, Converted, ElementType, FloatFormat, FolderError, MlxTensor, ModelFolder,
    OwnedAffine, Packing, Quantization, Repacked, RowError, SafetensorInfo,
    read_safetensors_header,
};
pub use span::Span;
pub use speech::{SpeechError, SpeechFolder, SpeechTensor};
pub use store::{
    Container, Conversion, Data, StoreError, WeightStore, WeightView, canonical_from_gguf,
    canonical_from_hugging_face, has_sandwich_norms,
};
pub use whole_file::WholeFile;
