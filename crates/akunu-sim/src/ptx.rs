//! Compiles `.metal` files to PTX, the assembly of NVIDIA GPUs.
//!
//! clang does it twice: first a check in which every MSL address space is one of its own, so that a
//! pointer in the wrong one does not compile, then the code, in which `constant` buffers are global
//! memory.
//!
//! An entry point takes a pointer for each `[[buffer(n)]]` but the params, in the order of n, then the
//! params by value in the bytes of the largest ([`Params::CAPACITY`]), then a `u32` for each `[[threadgroup(n)]]`: its byte offset into the
//! dynamic shared memory. Function constants are compiled in where a value is given; the others are
//! read from the module's array `akunu_constants` of (bits, defined) pairs, by their index. `akunu-cuda`
//! replaces these reads by values when it loads a kernel, so that the driver's compiler folds them.
//!
//! The code is for compute capability 7.5, which later ones can run too: the driver compiles it for the
//! GPU that is there. Everything is inlined: a pointer to a thread's array that is passed to a function
//! would put the array into memory.

pub mod race;

use crate::compile::Build;
use crate::error::SimError;
use crate::launch;
use crate::rewrite::{Target, rewrite};
use crate::toolchain::Toolchain;
use akunu_kernels::ConstantValue;
use akunu_kernels::flatten::{FlatSource, flatten, metal_files};
use akunu_kernels::plan::Params;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const FLAGS: [&str; 23] = [
    "-x",
    "c++",
    "-std=c++17",
    "--target=nvptx64-nvidia-cuda",
    "-march=sm_75",
    "-Xclang",
    "-target-feature",
    "-Xclang",
    "+ptx80",
    "-Xclang",
    "-cl-single-precision-constant",
    "-O2",
    "-mllvm",
    "-inline-threshold=100000",
    "-D__METAL_VERSION__=310",
    "-ffp-contract=fast",
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

/// Compiles every `.metal` file under `folder` into `output`, where the inputs have changed, on all cores.
///
/// # Errors
/// When the folder cannot be listed. What is wrong with a single file stands in its row.
pub fn compile_folder(
    toolchain: &Toolchain,
    folder: &Path,
    output: &Path,
) -> Result<Vec<PtxFile>, SimError> {
    let files = metal_files(folder)?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            made.push(compile_file(toolchain, folder, file, output));
        }
        made
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut made: Vec<PtxFile> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.flat_map(Result::unwrap_or_default).collect()
    });
    made.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(made)
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
        .map(|(index, value)| (*index, launch::source(*value)))
        .collect();
    let rewritten = rewrite(source, Target::Ptx, &values)?;
    let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    flags.extend(toolchain.include_flags("ptx"));
    let indices = rewritten.unit.constants.iter().map(|it| it.index);
    let n_constants = indices.max().map_or(1, |last| last + 1);
    flags.push(format!("-DAKUNU_CONSTANT_COUNT={n_constants}"));
    flags.push(format!("-DAKUNU_PARAMS_BYTES={}", Params::CAPACITY));
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
