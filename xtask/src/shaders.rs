//! `cargo xtask shaders`: compiles `kernels/**/*.metal` for the targets that this machine has.
//!
//! | target | by | into |
//! |---|---|---|
//! | `sim` | clang, a shared library a file | `target/shaders/sim/` |
//! | `ptx` | clang, with real address spaces | `target/shaders/ptx/` |
//! | `metallib` | `xcrun metal`, on a Mac | `target/shaders/metal/`, where the next build finds it |
//!
//! A file whose text, shim, flags and compiler are unchanged is not built again.

mod parse;

use crate::tools::CLANG;
use crate::{debian, parallel};
use akunu_kernels::flatten::{flatten, library_name, metal_files};
use akunu_kernels::sources;
use akunu_kernels::table::Family;
use akunu_repo::{Failure, process, workspace};
use akunu_sim::{Purpose, Toolchain, ptx};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `cargo xtask shaders`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to compile for; without it, everything that this machine can
    #[arg(long)]
    target: Option<Target>,
    /// Compile nothing: let crosstl, an independent parser of MSL, read every file
    #[arg(long, conflicts_with = "target")]
    parse: bool,
}

/// What kernels are compiled for.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The simulator's libraries
    Sim,
    /// Assembly of NVIDIA GPUs, a strict check of types and address spaces
    Ptx,
    /// The Metal library, on a Mac
    Metallib,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.parse {
        return parse::run();
    }
    match args.target {
        Some(Target::Sim) => simulator(),
        Some(Target::Ptx) => run_ptx(),
        Some(Target::Metallib) => metallib(),
        None if cfg!(target_os = "macos") => match metallib() {
            Err(Failure::Unavailable { why, fix }) => {
                println!("{why}: {fix}");
                Ok(())
            }
            done => done,
        },
        None => simulator().and_then(|()| run_ptx()),
    }
}

/// What this machine's own device takes, as a step of `cargo xtask test`: a Metal library on a Mac,
/// the simulator's libraries elsewhere.
pub fn run_step() -> Result<(), Failure> {
    if cfg!(target_os = "macos") {
        return metallib();
    }
    simulator()
}

/// A clang that is there, or that could be installed.
fn toolchain() -> Result<Toolchain, Failure> {
    debian::ensure(&[CLANG])?;
    Toolchain::find().map_err(found)
}

/// The folder of the sources, and the one for this target below `target/shaders/`.
fn folders(target: &str) -> (PathBuf, PathBuf) {
    let root = workspace::root();
    (
        root.join("kernels"),
        root.join("target/shaders").join(target),
    )
}

fn simulator() -> Result<(), Failure> {
    let (kernels, output) = folders("sim");
    let toolchain = toolchain()?;
    let files = metal_files(&kernels).map_err(unreadable)?;
    let made = parallel::map(&files, |file| {
        let source = flatten(&kernels, file).map_err(akunu_sim::SimError::from)?;
        akunu_sim::compile(&toolchain, &source, &output, Purpose::Results)
    });
    let mut failed = Vec::new();
    for (file, made) in files.into_iter().zip(made) {
        match made {
            Ok(_) => println!("  sim {file}"),
            Err(error) => failed.push((file, error.to_string())),
        }
    }
    report("sim", &failed)
}

/// Every kernel to PTX.
pub fn run_ptx() -> Result<(), Failure> {
    let (kernels, output) = folders("ptx");
    let toolchain = toolchain()?;
    if !toolchain.makes_ptx() {
        return Err(Failure::Unavailable {
            why: format!("{} cannot make PTX", toolchain.version),
            fix: NO_PTX.to_owned(),
        });
    }
    let mut failed = Vec::new();
    let mut count = 0;
    let files = metal_files(&kernels).map_err(unreadable)?;
    let compile = |file: &String| ptx::compile_file(&toolchain, &kernels, file, &output);
    for row in parallel::map(&files, compile) {
        match row.result {
            Ok(_) => {
                let state = if row.built { "built" } else { "unchanged" };
                println!("  ptx {:<40} {:>4} kernels  {state}", row.file, row.kernels);
                count += row.kernels;
            }
            Err(error) => failed.push((row.file, error.to_string())),
        }
    }
    if let Err(error) = ptx::race::compile(&toolchain, &kernels, &output) {
        failed.push(("the planted race".to_owned(), error.to_string()));
    }
    println!("ptx: {count} kernels, {} files failed", failed.len());
    report("ptx", &failed)
}

fn report(target: &str, failed: &[(String, String)]) -> Result<(), Failure> {
    if failed.is_empty() {
        return Ok(());
    }
    for (_, why) in failed {
        println!("{why}");
    }
    let files: Vec<&str> = failed.iter().map(|(file, _)| file.as_str()).collect();
    Err(Failure::Found(format!("{target}: {}", files.join(", "))))
}

const NO_PTX: &str = "install LLVM's own clang 19 or newer; on a Mac: brew install llvm, and put \
    its bin folder first in PATH";

/// Whether `xcrun metal` works: with Xcode it may still have to be downloaded.
fn has_metal_compiler() -> bool {
    process::output(Command::new("xcrun").args(["-sdk", "macosx", "metal", "--version"])).is_ok()
}

/// Whether a file has kernels that Metal cannot compile.
fn is_nvidia(file: &str) -> bool {
    file.split_once('/')
        .is_some_and(|(folder, _)| folder == Family::Nvidia.folder())
}

/// Each file alone to AIR, then all together to one library.
fn metallib() -> Result<(), Failure> {
    if !cfg!(target_os = "macos") {
        return Err(Failure::Found(
            "a metallib needs Apple's compiler, `xcrun metal`, which is on macOS only; \
             here use --target sim or --target ptx"
                .to_owned(),
        ));
    }
    if !has_metal_compiler() {
        return Err(Failure::Unavailable {
            why: "there is no Metal compiler, and the engine compiles its sources at the first run"
                .to_owned(),
            fix: "xcodebuild -downloadComponent MetalToolchain".to_owned(),
        });
    }
    let (kernels, folder) = folders("air");
    std::fs::create_dir_all(&folder).map_err(|source| Failure::io(&folder, source))?;
    let mut parts: Vec<PathBuf> = Vec::new();
    let files = metal_files(&kernels).map_err(unreadable)?;
    for file in files.into_iter().filter(|file| !is_nvidia(file)) {
        let part = folder.join(file.replace('/', "-").replace(".metal", ".air"));
        if is_older(&part, &kernels)? {
            process::run(
                Command::new("xcrun")
                    .args(["-sdk", "macosx", "metal", "-std=metal3.1", "-O2"])
                    .args([
                        "-fno-fast-math",
                        "-mmacosx-version-min=14.0",
                        "-Wall",
                        "-Wextra",
                    ])
                    .arg("-I")
                    .arg(&kernels)
                    .arg("-I")
                    .arg(kernels.join("include"))
                    .arg("-c")
                    .arg(kernels.join(&file))
                    .arg("-o")
                    .arg(&part),
            )?;
        }
        parts.push(part);
    }
    let (_, made) = folders("metal");
    std::fs::create_dir_all(&made).map_err(|source| Failure::io(&made, source))?;
    // The hash of the sources: a library of older ones is never embedded.
    let library = made.join(library_name(sources::HASH));
    process::run(
        Command::new("xcrun")
            .args(["-sdk", "macosx", "metallib"])
            .args(&parts)
            .arg("-o")
            .arg(&library),
    )?;
    println!("  {}", library.display());
    Ok(())
}

/// Whether some file of `folder` changed after `made` was written, or `made` is not there.
fn is_older(made: &Path, folder: &Path) -> Result<bool, Failure> {
    let changed = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|data| data.modified())
            .map_err(|source| Failure::io(path, source))
    };
    let Ok(made) = changed(made) else {
        return Ok(true);
    };
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|source| Failure::io(&folder, source))?;
        for entry in entries {
            let path = entry.map_err(|source| Failure::io(&folder, source))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if changed(&path)? > made {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn unreadable(error: akunu_kernels::flatten::FlattenError) -> Failure {
    Failure::Found(error.to_string())
}

fn found(error: akunu_sim::SimError) -> Failure {
    Failure::Found(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the command tries `xcrun` where there is none.
    #[test]
    #[cfg(not(target_os = "macos"))]
    fn a_metallib_is_refused_in_words_away_from_macos() {
        let refused = metallib().expect_err("no Mac");
        assert!(refused.to_string().contains("macOS only"), "{refused}");
    }

    #[test]
    fn what_is_older_than_its_sources_is_built_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let sources = folder.path().join("kernels/include");
        std::fs::create_dir_all(&sources).expect("created");
        let made = folder.path().join("made");
        let kernels = folder.path().join("kernels");
        assert!(
            is_older(&made, &kernels).expect("readable"),
            "it is not there"
        );
        std::fs::write(sources.join("a.h"), "").expect("written");
        std::fs::write(&made, "").expect("written");
        assert!(!is_older(&made, &kernels).expect("readable"));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
        let file = std::fs::File::create(sources.join("a.h")).expect("opened");
        file.set_modified(later).expect("set");
        assert!(is_older(&made, &kernels).expect("readable"));
    }
}
