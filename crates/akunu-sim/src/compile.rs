//! Compiles a flat source to a shared library, once for each content.

use crate::error::SimError;
use crate::rewrite::{Target, rewrite};
use crate::toolchain::Toolchain;
use akunu_kernels::flatten::FlatSource;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Halves are rounded after every operation, so that a result does not depend on the machine; `1.0` is a float, as in MSL; the checks call the handlers of the shim. Kernels are C++14, as MSL is, and a
/// warning is an error; only what a file includes and does not use is no fault of it.
const FLAGS: [&str; 24] = [
    "-std=c++14",
    "-O2",
    "-fPIC",
    "-shared",
    "-g0",
    "-D__METAL_VERSION__=310",
    "-fno-math-errno",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-Xclang",
    "-cl-single-precision-constant",
    "-fno-lax-vector-conversions",
    "-fno-exceptions",
    "-fno-rtti",
    "-fstack-clash-protection",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fsanitize=alignment,shift-exponent,array-bounds,integer-divide-by-zero",
    "-fno-sanitize-link-runtime",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-function",
    "-Wno-unused-const-variable",
];

/// Every operation is rounded by itself.
const SEPARATE: &str = "-ffp-contract=off";
/// Products and sums are fused wherever clang can, in other places than a GPU's compiler would.
const FUSED: &str = "-ffp-contract=fast";

/// clang calls the shim (`akunu_access.h`) before each load and store, by what it has for finding wrong addresses; none of its
/// library is linked.
const REPORTING: [&str; 12] = [
    "-fsanitize=address",
    "-fsanitize-recover=address",
    "-fno-sanitize-address-use-after-scope",
    "-fsanitize-address-use-after-return=never",
    "-mllvm",
    "-asan-constructor-kind=none",
    "-mllvm",
    "-asan-instrumentation-with-call-threshold=0",
    "-mllvm",
    "-asan-stack=0",
    "-mllvm",
    "-asan-globals=0",
];

/// Not before loads, and not before atomic operations that read and write.
const STORES_ONLY: [&str; 4] = [
    "-mllvm",
    "-asan-instrument-reads=0",
    "-mllvm",
    "-asan-instrument-atomics=0",
];

/// For counting, loads are reported as they are written, so that clang does not join those of several rounds of a loop.
const COUNTING: [&str; 2] = ["-fno-vectorize", "-fno-slp-vectorize"];

/// What a library is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be run.
    Results,
    /// To be run as a GPU might: products and sums are fused, and denormal numbers are zeros.
    Fused,
    /// To be counted: it reports each load and store, and is slow.
    Counts,
}

/// Compiles `source` for the simulator into `cache`, unless it is there already, and returns the
/// library's path. Safe when several processes do it at once.
///
/// # Errors
/// When the source cannot be read, clang refuses it, or the cache cannot be written.
pub fn compile(
    toolchain: &Toolchain,
    source: &FlatSource,
    cache: &Path,
    purpose: Purpose,
) -> Result<PathBuf, SimError> {
    let rewritten = rewrite(source, Target::Simulator, &[])?;
    let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    let contract = if purpose == Purpose::Fused {
        FUSED
    } else {
        SEPARATE
    };
    flags.push(contract.to_owned());
    flags.extend(REPORTING.map(str::to_owned));
    if purpose == Purpose::Counts {
        flags.extend(COUNTING.map(str::to_owned));
    } else {
        flags.extend(STORES_ONLY.map(str::to_owned));
    }
    flags.extend(machine_flags());
    flags.extend(toolchain.include_flags("sim"));
    let key = toolchain.key(&rewritten.text, &flags);
    let stem = source.file.trim_end_matches(".metal").replace('/', "-");
    let library = cache.join(format!("{stem}-{key}.so"));
    if library.is_file() {
        return Ok(library);
    }
    tracing::debug!(file = source.file, "compiling for the simulator");
    let build = Build {
        toolchain,
        file: &source.file,
        text: &rewritten.text,
        cache,
    };
    build.run(&flags, &["-lm"], &library)?;
    Ok(library)
}

/// The processor features that make `half` fast, where this machine has them.
fn machine_flags() -> Vec<String> {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c") {
        return vec!["-march=x86-64-v3".to_owned()];
    }
    Vec::new()
}

/// One run of clang, from text to a file that appears whole or not at all.
pub(crate) struct Build<'a> {
    pub(crate) toolchain: &'a Toolchain,
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    pub(crate) cache: &'a Path,
}

impl Build<'_> {
    /// Compiles to `output`.
    pub(crate) fn run(
        &self,
        flags: &[String],
        libraries: &[&str],
        output: &Path,
    ) -> Result<(), SimError> {
        let folder = self.folder()?;
        let made = folder.path().join("made");
        let mut all = flags.to_vec();
        all.extend(["-o".to_owned(), made.display().to_string()]);
        all.extend(libraries.iter().map(|&library| library.to_owned()));
        self.clang(&folder, &all)?;
        std::fs::rename(&made, output).map_err(|source| self.io(source))
    }

    /// Checks the source with clang, without output.
    pub(crate) fn check(&self, flags: &[String]) -> Result<(), SimError> {
        self.clang(&self.folder()?, flags)
    }

    fn folder(&self) -> Result<tempfile::TempDir, SimError> {
        std::fs::create_dir_all(self.cache).map_err(|source| self.io(source))?;
        tempfile::tempdir_in(self.cache).map_err(|source| self.io(source))
    }

    fn clang(&self, folder: &tempfile::TempDir, flags: &[String]) -> Result<(), SimError> {
        let input = folder.path().join("kernels.cpp");
        std::fs::write(&input, self.text).map_err(|source| self.io(source))?;
        let result = Command::new(&self.toolchain.program)
            .arg(&input)
            .args(flags)
            .output()
            .map_err(|source| self.io(source))?;
        if result.status.success() {
            return Ok(());
        }
        Err(SimError::Compile {
            file: self.file.to_owned(),
            messages: String::from_utf8_lossy(&result.stderr).into_owned(),
        })
    }

    fn io(&self, source: std::io::Error) -> SimError {
        SimError::Io {
            path: self.cache.to_owned(),
            source,
        }
    }
}
