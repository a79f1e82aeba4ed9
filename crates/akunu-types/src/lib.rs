//! The bytes that Rust and Metal share.
//!
//! * [`params`]: the structs that a kernel reads from its `constant` binding. The host fills one in
//!   and hands its bytes to the device; fields marked *patched per token* are rewritten in a copy of
//!   those bytes for each token of a chain decode.
//! * [`block`]: the quantised blocks as they lie in a GGUF file.
//! * [`dtype`]: the ids, names and block sizes of every tensor type.
//! * [`layout`]: a description of each struct (names, types, offsets, comments) as data. The C++ /
//!   MSL header `kernels/ShaderTypes.h` is generated from it, and the parity check compares it with
//!   what a C++ compiler says.
//! * [`kv_format`]: how keys and values are stored.
//! * [`rope`]: the table of divisors that the RoPE kernels read.
//!
//! Rust owns these layouts. Every struct is `#[repr(C)]`, has no hidden padding (bytemuck's `Pod`
//! refuses it), and states the offset of each field, which the compiler checks.
//!
//! ```
//! use akunu_types::params::RMSNormParams;
//!
//! let params = RMSNormParams { dim: 576, eps: 1e-5, ..Default::default() };
//! let bytes: &[u8] = bytemuck::bytes_of(&params);
//! assert_eq!(bytes.len(), 16);
//! ```
#![forbid(unsafe_code)]

pub mod block;
pub mod dtype;
pub mod kv_format;
pub mod layout;
pub mod params;
pub mod rope;

pub use dtype::DType;
pub use kv_format::KvFormat;
pub use layout::{FieldLayout, Scalar, SharedStruct, StructLayout};
