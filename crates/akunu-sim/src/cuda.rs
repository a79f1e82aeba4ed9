//! Runs the PTX of kernels on an NVIDIA GPU, case by case against the twins.
//!
//! A second, very different GPU is a second opinion on the `.metal` files: threads there really run at
//! the same time, and NVIDIA's `compute-sanitizer` finds races and bad accesses in them. The driver is
//! loaded at run time, so that nobody needs CUDA to build.
//!
//! ```no_run
//! use akunu_kernels::KernelId;
//! use akunu_sim::cuda::{Gpu, Guards, Program};
//! use std::path::Path;
//!
//! let gpu = Gpu::open()?;
//! let row = KernelId::RmsNorm.row();
//! let (kernels, ptx) = (Path::new("kernels"), Path::new("target/shaders/ptx"));
//! let program = Program::load(&gpu, kernels, &row.source_path(), ptx)?;
//! for case in (row.cases)(row.dtype) {
//!     let nmse = program.run_case(&row, &case, Guards::Bytes)?;
//!     assert!(nmse <= case.nmse);
//! }
//! # Ok::<(), akunu_sim::cuda::CudaError>(())
//! ```

mod driver;
mod gpu;
mod guarded;
mod program;

pub use gpu::Gpu;
pub use guarded::Guards;
pub use program::Program;

use crate::error::SimError;
use crate::table::TableError;

/// What can go wrong on the way to and on an NVIDIA GPU.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// The driver's library is not installed.
    #[error(
        "no CUDA driver (tried {tried}): this needs a machine with an NVIDIA GPU and its driver; \
         without one, `cargo xtask kernels` runs the same cases in the simulator"
    )]
    NoDriver {
        /// The libraries that were tried.
        tried: String,
    },
    /// The driver's library lacks a function.
    #[error("the CUDA driver is too old, install CUDA 12 or newer: {0}")]
    OldDriver(#[source] libloading::Error),
    /// The driver refused a call, or a kernel crashed.
    #[error("{call}: {message}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// What the driver said.
        message: String,
    },
    /// The driver does not compile a file's PTX.
    #[error("the driver refuses the PTX of {file}: {log}")]
    Ptx {
        /// The `.metal` file.
        file: String,
        /// What the driver said.
        log: String,
    },
    /// The PTX was made from another source than the one read.
    #[error("`{name}` has {found} bytes, not {expected}: the PTX is not of these sources")]
    Global {
        /// The variable.
        name: String,
        /// Its size in the module.
        found: usize,
        /// Its size by the source.
        expected: usize,
    },
    /// A kernel changed a binding that it may only read.
    #[error("`{kernel}` changed its read-only binding {binding}")]
    Changed {
        /// The kernel.
        kernel: String,
        /// The binding's name.
        binding: &'static str,
    },
    /// A source could not be read, or a kernel wrote beside a binding.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A result is not the twin's.
    #[error(transparent)]
    Table(#[from] TableError),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without CUDA the user reads what is missing and what to do instead.
    #[test]
    fn a_missing_driver_is_explained() {
        let error = driver::Driver::load_from(&["libno-such-cuda.so"]).err();
        let words = error.expect("there is no such library").to_string();
        assert!(words.contains("libno-such-cuda.so"), "{words}");
        assert!(words.contains("cargo xtask kernels"), "{words}");
    }
}
