//! The GGUF container: reading and writing.

mod cursor;
mod encode;
mod error;
mod file;
mod metadata;
mod parse;
mod split;
mod tensor;
mod utf8;
mod value;
mod writer;

pub use encode::MetadataValue;
pub use error::GgufError;
pub use file::GgufFile;
pub use metadata::{Lookup, Metadata};
pub use tensor::{TensorInfo, TensorView};
pub use value::{ArrayView, Value, ValueType};
pub use writer::{GgufHeader, GgufWriter};
