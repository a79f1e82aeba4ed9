//! Reads what a `.metal` source says about its own interface.
//!
//! [`read`] finds every kernel entry point of a flat source (see [`akunu_kernels::flatten`]): plain
//! `kernel void f(…)` functions and the explicit instantiations
//! `template [[host_name("name")]] kernel … f<Args>;` of kernel templates, with their parameters,
//! and the function constants. The simulator and the PTX compiler make entry points from it; the
//! binding-parity test compares it with the kernel table.
//!
//! It reads declarations, it does not preprocess: an instantiation hidden in a macro is an error.
//!
//! ```
//! let unit = akunu_sim::msl::read(
//!     "#line 1 \"scale.metal\"\n
//!      constant uint FC_DIM [[function_constant(3)]];
//!      kernel void scale(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
//!                        uint i [[thread_position_in_grid]]) { y[i] = 2.0f * x[i]; }",
//! )?;
//! assert_eq!(unit.kernels[0].name, "scale");
//! assert_eq!(unit.kernels[0].buffers().count(), 2);
//! assert_eq!(unit.constants[0].index, 3);
//! # Ok::<(), akunu_sim::msl::ReadError>(())
//! ```

mod arrays;
pub mod cursor;
pub mod lexer;
pub(crate) mod lint;
mod parameters;
mod reader;
pub(crate) use reader::declarations;
mod signature;

pub use reader::read;
pub use signature::{
    AddressSpace, BufferAccess, Builtin, FunctionConstant, Kernel, Parameter, ParameterKind, Unit,
};

/// What the reader could not make sense of, with file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ReadError {
    /// The file, as its `#line` directive names it.
    pub file: String,
    /// The line in that file.
    pub line: u32,
    /// What is wrong, and what to write instead.
    pub problem: String,
}
