//! Compiles `.metal` files to PTX, the assembly of NVIDIA GPUs.
//!
//! clang does it twice: first a check in which every MSL address space is one of its own, so that a
//! pointer in the wrong one does not compile, then the code, in which `constant` buffers are global
//! memory.
//!
//! An entry point takes a pointer for each `[[buffer(n)]]`, in the order of n, then a `u32` for each
//! `[[threadgroup(n)]]`: its byte offset into the dynamic shared memory. Function constants are
//! compiled in where a value is given; the others are read from the module's array
//! `akunu_constants` of (bits, defined) pairs, in the order of the file's declarations.

use crate::compile::Build;
use crate::error::SimError;
use crate::launch::ConstantValue;
use crate::rewrite::{Target, rewrite};
use crate::toolchain::Toolchain;
use akunu_kernels::flatten::{FlatSource, flatten, metal_files};
use std::path::{Path, PathBuf};

const FLAGS: [&str; 21] = [
    "-x",
    "c++",
    "-std=c++17",
    "--target=nvptx64-nvidia-cuda",
    "-march=sm_90",
    "-Xclang",
    "-target-feature",
    "-Xclang",
    "+ptx80",
    "-Xclang",
    "-cl-single-precision-constant",
    "-O2",
    "-D__METAL_VERSION__=310",
    "-ffp-contract=off",
    "-fno-lax-vector-conversions",
    "-fno-exceptions",
    "-fno-rtti",
    "-fconvergent-functions",
    "-w",
    "-Werror=undefined-internal",
    "-S",
];

/// What became of one file.
#[derive(Debug)]
pub struct PtxFile {
    /// The `.metal` file, relative to its folder.
    pub file: String,
    /// Kernels in it.
    pub kernels: usize,
    /// The PTX, or why there is none.
    pub result: Result<PathBuf, SimError>,
    /// Whether it was made now, rather than found unchanged.
    pub built: bool,
}

/// Compiles every `.metal` file under `folder` into `output`, where the inputs have changed.
///
/// # Errors
/// When the folder cannot be listed. What is wrong with a single file stands in its row.
pub fn compile_folder(
    toolchain: &Toolchain,
    folder: &Path,
    output: &Path,
) -> Result<Vec<PtxFile>, SimError> {
    let files = metal_files(folder)?;
    let compile_one = |file: &String| compile_file(toolchain, folder, file, output);
    Ok(files.iter().map(compile_one).collect())
}

/// Compiles one `.metal` file of `folder` into `output`, where its inputs have changed.
pub fn compile_file(toolchain: &Toolchain, folder: &Path, file: &str, output: &Path) -> PtxFile {
    let made = flatten(folder, file)
        .map_err(SimError::from)
        .and_then(|source| compile(toolchain, &source, &[], output));
    let (kernels, built) = made
        .as_ref()
        .map_or((0, true), |made| (made.kernels, made.built));
    PtxFile {
        file: file.to_owned(),
        kernels,
        result: made.map(|made| made.path),
        built,
    }
}

/// The name of the PTX of a `.metal` file: `norm-rmsnorm.ptx` for `norm/rmsnorm.metal`.
pub fn file_name(file: &str) -> String {
    let stem = file.trim_end_matches(".metal").replace('/', "-");
    format!("{stem}.ptx")
}

/// A compiled file.
#[derive(Debug)]
pub struct Ptx {
    /// Where the text is.
    pub path: PathBuf,
    /// Kernels in it.
    pub kernels: usize,
    /// Whether it was made now, rather than found unchanged.
    pub built: bool,
}

/// Checks and compiles one source, with these function constants compiled in.
///
/// # Errors
/// When the source cannot be read or clang refuses it: a type, an address space, an instantiation.
pub fn compile(
    toolchain: &Toolchain,
    source: &FlatSource,
    constants: &[(u32, ConstantValue)],
    output: &Path,
) -> Result<Ptx, SimError> {
    let values: Vec<_> = constants
        .iter()
        .map(|(index, value)| (*index, value.source()))
        .collect();
    let rewritten = rewrite(source, Target::Ptx, &values)?;
    let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    flags.extend(toolchain.include_flags("ptx"));
    let n_constants = rewritten.unit.constants.len().max(1);
    flags.push(format!("-DAKUNU_CONSTANT_COUNT={n_constants}"));
    let key = toolchain.key(&rewritten.text, &flags);
    let path = output.join(file_name(&source.file));
    let stamp = path.with_extension("key");
    let kernels = rewritten.unit.kernels.len();
    if path.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|known| known == key) {
        return Ok(Ptx {
            path,
            kernels,
            built: false,
        });
    }
    let build = Build {
        toolchain,
        file: &source.file,
        text: &rewritten.text,
        cache: output,
    };
    let mut strict = flags.clone();
    strict.extend(["-DAKUNU_STRICT".to_owned(), "-fsyntax-only".to_owned()]);
    build.check(&strict)?;
    build.run(&flags, &[], &path)?;
    std::fs::write(&stamp, key).map_err(|source| SimError::Io {
        path: stamp,
        source,
    })?;
    Ok(Ptx {
        path,
        kernels,
        built: true,
    })
}
