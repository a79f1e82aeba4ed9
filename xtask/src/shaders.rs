//! `cargo xtask shaders`: compiles `kernels/**/*.metal` for the targets that this machine has.
//!
//! | target | by | into |
//! |---|---|---|
//! | `sim` | clang, a shared library a file | `target/shaders/sim/` |
//! | `ptx` | clang, with real address spaces | `target/shaders/ptx/` |
//! | `metallib` | `xcrun metal`, on a Mac | `target/shaders/metal/`, where the next build finds it |
//!
//! A file whose text, shim, flags and compiler are unchanged is not built again.

use crate::failure::Failure;
use crate::{debian, process, workspace};
use akunu_kernels::flatten::{flatten, library_name, metal_files};
use akunu_kernels::sources;
use akunu_sim::{Toolchain, ptx};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `cargo xtask shaders`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to compile for; without it, everything that this machine can
    #[arg(long)]
    target: Option<Target>,
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
    let kernels = workspace::root().join("kernels");
    let output = workspace::root().join("target/shaders");
    let targets = match args.target {
        Some(target) => vec![target],
        None if cfg!(target_os = "macos") && has_metal_compiler() => vec![Target::Metallib],
        None if cfg!(target_os = "macos") => {
            println!("{NO_METAL_COMPILER}");
            Vec::new()
        }
        None => vec![Target::Sim, Target::Ptx],
    };
    for target in targets {
        match target {
            Target::Sim => simulator(&kernels, &output.join("sim"))?,
            Target::Ptx => ptx(&kernels, &output.join("ptx"))?,
            Target::Metallib => metallib(&kernels, &output)?,
        }
    }
    Ok(())
}

/// Everything that this machine can compile for, as a step of `cargo xtask test`.
pub fn run_all() -> Result<(), Failure> {
    run(&Args { target: None })
}

/// A clang that is there, or that could be installed.
fn toolchain() -> Result<Toolchain, Failure> {
    if Toolchain::find().is_err() && cfg!(target_os = "linux") {
        debian::install(&["clang-19"])?;
    }
    Toolchain::find().map_err(found)
}

fn simulator(kernels: &Path, output: &Path) -> Result<(), Failure> {
    let toolchain = toolchain()?;
    let mut failed = Vec::new();
    for file in metal_files(kernels).map_err(unreadable)? {
        let made = flatten(kernels, &file)
            .map_err(akunu_sim::SimError::from)
            .and_then(|source| akunu_sim::compile(&toolchain, &source, output));
        match made {
            Ok(_) => println!("  sim {file}"),
            Err(error) => failed.push((file, error.to_string())),
        }
    }
    report("sim", &failed)
}

fn ptx(kernels: &Path, output: &Path) -> Result<(), Failure> {
    let mut failed = Vec::new();
    let mut count = 0;
    for row in ptx::compile_folder(&toolchain()?, kernels, output).map_err(found)? {
        match row.result {
            Ok(_) => {
                let state = if row.built { "built" } else { "unchanged" };
                println!("  ptx {:<40} {:>4} kernels  {state}", row.file, row.kernels);
                count += row.kernels;
            }
            Err(error) => failed.push((row.file, error.to_string())),
        }
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

const NO_METAL_COMPILER: &str = "no Metal compiler: `xcodebuild -downloadComponent MetalToolchain`; \
    without it the engine compiles its embedded sources at the first run";

/// Whether `xcrun metal` works: with Xcode it may still have to be downloaded.
fn has_metal_compiler() -> bool {
    process::output(Command::new("xcrun").args(["-sdk", "macosx", "metal", "--version"])).is_ok()
}

/// Each file alone to AIR, then all together to one library.
fn metallib(kernels: &Path, output: &Path) -> Result<(), Failure> {
    if !cfg!(target_os = "macos") {
        return Err(Failure::Found(
            "a metallib needs Apple's compiler, `xcrun metal`, which is on macOS only; \
             here use --target sim or --target ptx"
                .to_owned(),
        ));
    }
    if !has_metal_compiler() {
        return Err(Failure::Found(NO_METAL_COMPILER.to_owned()));
    }
    let folder = output.join("air");
    std::fs::create_dir_all(&folder).map_err(|source| Failure::io(&folder, source))?;
    let mut parts: Vec<PathBuf> = Vec::new();
    for file in metal_files(kernels).map_err(unreadable)? {
        let part = folder.join(file.replace('/', "-").replace(".metal", ".air"));
        if is_older(&part, kernels)? {
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
                    .arg(kernels)
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
    let made = output.join("metal");
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
        let refused = metallib(Path::new("kernels"), Path::new("out")).expect_err("no Mac");
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
