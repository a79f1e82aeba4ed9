#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod dtype;
mod e8m0;
pub mod format;
pub mod kv_format;
pub mod layout;
pub mod params;
pub mod rope;

pub use dtype::DType;
pub use e8m0::E8M0;
pub use kv_format::KvFormat;
pub use layout::{FieldLayout, Scalar, SharedStruct, StructLayout};
