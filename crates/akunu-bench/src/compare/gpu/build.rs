//! Where the peer's programs come from: a folder that has them, or its sources, built with CUDA.
//!
//! llama-cpp-python builds a library only, so that the programs are built from the sources in its archive.

use crate::compare::peer::PACKAGE;
use akunu_repo::{Failure, process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs.
#[derive(Debug, PartialEq, Eq)]
pub struct Built {
    pub bench: PathBuf,
    pub batched: PathBuf,
}

/// What a build has: CUDA for the GPU of this machine, and no AMX, whose code dies on the machines that we
/// have.
const OPTIONS: [&str; 9] = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_CUDA=ON",
    "-DCMAKE_CUDA_ARCHITECTURES=native",
    "-DGGML_NATIVE=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
];

/// The programs of this folder, or of one of our own; where there are only sources, they are built.
pub fn ensure(folder: Option<&Path>) -> Result<Built, Failure> {
    let sources = match folder {
        Some(folder) => folder.to_path_buf(),
        None => our_sources(),
    };
    if let Some(built) = find(&sources) {
        return Ok(built);
    }
    if folder.is_none() && !has_sources(&sources) {
        fetch()?;
    }
    if !has_sources(&sources) {
        return Err(Failure::Found(format!(
            "{} has neither llama-bench and llama-batched-bench nor the sources of llama.cpp",
            sources.display()
        )));
    }
    build(&sources)?;
    let missing = || {
        Failure::Found(format!(
            "{} has no programs after its build",
            sources.display()
        ))
    };
    find(&sources).ok_or_else(missing)
}

/// Both programs: in the folder itself, or where a build of CMake leaves them.
fn find(folder: &Path) -> Option<Built> {
    let places = ["", "bin", "build/bin"].map(|place| folder.join(place));
    let programs = places.map(|place| Built {
        bench: place.join("llama-bench"),
        batched: place.join("llama-batched-bench"),
    });
    let are_there = |built: &Built| built.bench.is_file() && built.batched.is_file();
    programs.into_iter().find(are_there)
}

fn has_sources(folder: &Path) -> bool {
    folder.join("CMakeLists.txt").is_file()
}

/// Where the archive of the package lies.
fn our_folder() -> PathBuf {
    workspace::root().join("target/peer-cuda")
}

/// The archive's name and its folder's: the package's with underscores, and the version.
fn archive() -> String {
    let (name, version) = PACKAGE.split_once("==").unwrap_or((PACKAGE, ""));
    format!("{}-{version}", name.replace('-', "_"))
}

fn our_sources() -> PathBuf {
    our_folder().join(archive()).join("vendor/llama.cpp")
}

/// Downloads the sources and unpacks them.
fn fetch() -> Result<(), Failure> {
    let folder = our_folder();
    std::fs::create_dir_all(&folder).map_err(|source| Failure::io(&folder, source))?;
    eprintln!("fetching {PACKAGE}");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps"]);
    pip.args(["--no-binary", "llama-cpp-python", PACKAGE, "--dest"]);
    process::run_beside(pip.arg(&folder))?;
    let mut tar = Command::new("tar");
    tar.arg("xzf")
        .arg(format!("{}.tar.gz", archive()))
        .current_dir(&folder);
    Ok(process::run(&mut tar)?)
}

/// Builds both programs beside their sources, which takes minutes: the lines of CMake count the steps.
fn build(sources: &Path) -> Result<(), Failure> {
    for tool in ["cmake", "nvcc"] {
        if !process::exists(tool) {
            return Err(Failure::Found(format!(
                "llama.cpp is built for a GPU by cmake and CUDA's nvcc, and there is no {tool} on PATH; \
                 --peer can name a folder that has llama-bench and llama-batched-bench"
            )));
        }
    }
    let folder = sources.join("build");
    eprintln!("building llama.cpp in {}: minutes", folder.display());
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(sources).arg("-B").arg(&folder);
    process::run_beside(configure.args(OPTIONS))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut compile = Command::new("cmake");
    compile.arg("--build").arg(&folder);
    compile.args(["--parallel", &threads.to_string(), "--target"]);
    compile.args(["llama-bench", "llama-batched-bench"]);
    Ok(process::run_beside(&mut compile)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if one program without the other is enough, or if a build is not found where CMake leaves it.
    #[test]
    fn both_programs_are_found_where_a_build_leaves_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bin = folder.path().join("build/bin");
        std::fs::create_dir_all(&bin).expect("a new folder");
        std::fs::write(bin.join("llama-bench"), "").expect("written");
        assert_eq!(find(folder.path()), None);
        std::fs::write(bin.join("llama-batched-bench"), "").expect("written");
        for place in ["", "build", "build/bin"] {
            let built = find(&folder.path().join(place)).expect(place);
            assert_eq!(built.bench, bin.join("llama-bench"));
        }
    }

    #[test]
    fn the_folder_of_the_archive_is_that_of_the_package() {
        let folder = our_sources();
        assert!(folder.ends_with("target/peer-cuda/llama_cpp_python-0.3.36/vendor/llama.cpp"));
    }
}
