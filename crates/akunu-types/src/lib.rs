#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod dtype;
pub mod format;
pub mod kv_format;
pub mod layout;
pub mod params;
pub mod rope;

pub use dtype::DType;
pub use kv_format::KvFormat;
pub use layout::{FieldLayout, Scalar, SharedStruct, StructLayout};
