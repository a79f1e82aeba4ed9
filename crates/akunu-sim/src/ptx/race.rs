//! A kernel with a planted race, so that a checker of races can be shown to find one.
//!
//! SIMD groups of `rmsnorm_f32` add up a row through threadgroup memory. Here the barrier is missing between writing the
//! parts of the sum and reading them.

use crate::error::SimError;
use crate::ptx;
use crate::toolchain::Toolchain;
use akunu_kernels::flatten::{FlatSource, flatten};
use std::path::{Path, PathBuf};

/// The kernel that has the race.
pub const KERNEL: &str = "rmsnorm_f32";
/// Its file.
const FILE: &str = "norm/rmsnorm.metal";

const BARRIER: &str =
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n    const float total = simd_sum(";
const NO_BARRIER: &str = "    const float total = simd_sum(";

/// The PTX with the race that replaces a file's own: `None` for files without the kernel. `ptx` is the folder of all PTX.
pub fn replacement(ptx: &Path, file: &str) -> Option<PathBuf> {
    (file == FILE).then(|| folder(ptx).join(ptx::file_name(file)))
}

/// Compiles the kernel with the race into a folder below that of all PTX.
///
/// # Errors
/// When the source cannot be read or clang refuses it.
pub fn compile(toolchain: &Toolchain, kernels: &Path, ptx: &Path) -> Result<(), SimError> {
    let source = without_barrier(flatten(kernels, FILE)?);
    ptx::compile(toolchain, &source, &[], &folder(ptx))?;
    Ok(())
}

fn folder(ptx: &Path) -> PathBuf {
    ptx.join("planted-race")
}

fn without_barrier(source: FlatSource) -> FlatSource {
    FlatSource {
        text: source.text.replacen(BARRIER, NO_BARRIER, 1),
        ..source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the barrier in the text the planted race would be none.
    #[test]
    fn the_planted_race_is_the_kernel_without_its_barrier() {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
        let source = flatten(&kernels, FILE).expect("the kernel is there");
        let barriers = |text: &str| text.matches("threadgroup_barrier(").count();
        let before = barriers(&source.text);
        assert_eq!(barriers(&without_barrier(source).text), before - 1);
    }
}
