//! Model files: GGUF and MLX safetensors as metadata and borrowed tensors.
//!
//! A model file is mapped into memory, checked once, and then read where it lies: opening takes
//! milliseconds whatever the size, and a tensor is a slice of the file. Files are not trusted. A
//! damaged or hostile one gives an error that says what is wrong with which field; it gives neither a
//! panic, nor a read outside of the file, nor memory out of proportion to its size.
//!
//! * [`GgufFile`]: one GGUF file, or all parts of a split one.
#![deny(unsafe_code)]

mod dims;
mod gguf;
mod index;
#[allow(unsafe_code, reason = "mapping a file cannot be done in safe Rust")]
mod mmap;
pub mod quant;

pub use dims::{Dims, MAX_DIMS};
pub use gguf::{
    ArrayView, Fault, GgufError, GgufFile, Lookup, Metadata, Problem, SplitFault, TensorFault,
    TensorInfo, TensorView, Value, ValueType, WriteFault,
};
pub use mmap::FileBytes;
