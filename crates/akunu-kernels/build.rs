//! Embeds the kernels: every `.metal` file made flat and, for macOS, the Metal library that
//! `cargo xtask shaders` compiled from the same sources, where there is one.
//!
//! `kernels` is a link to the repository's folder; a packaged crate has a copy of it instead.

#[path = "src/flatten.rs"]
mod flatten;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let kernels = package.join("kernels");
    // Cargo looks at every file below a folder.
    println!("cargo::rerun-if-changed={}", kernels.display());
    println!("cargo::rerun-if-changed=src/flatten.rs");
    plant_type_error();

    let mut sources = Vec::new();
    for file in flatten::metal_files(&kernels)? {
        sources.push(flatten::flatten(&kernels, &file)?);
    }
    let parts = sources.iter().map(|source| (&*source.file, &*source.text));
    let hash = flatten::sources_hash(parts);

    let mut table = String::from("&[\n");
    for source in &sources {
        let name = out.join(source.file.replace('/', "-"));
        std::fs::write(&name, &source.text)?;
        writeln!(table, "({:?}, include_str!({name:?})),", source.file)?;
    }
    table.push_str("]\n");
    std::fs::write(out.join("sources.rs"), table)?;
    std::fs::write(out.join("hash.rs"), format!("{hash:#x}"))?;
    let library = metal_library(package, hash)?;
    let library = match library {
        Some(path) => format!("Some(include_bytes!({path:?}))"),
        None => "None".to_owned(),
    };
    std::fs::write(out.join("library.rs"), library)?;
    Ok(())
}

/// `cargo xtask check-macos` asks for a type error in the Metal code, to see that it is compiled.
fn plant_type_error() {
    const VARIABLE: &str = "AKUNU_PLANTED_TYPE_ERROR";
    println!("cargo::rustc-check-cfg=cfg(akunu_planted_type_error)");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    if std::env::var_os(VARIABLE).is_some() {
        println!("cargo::rustc-cfg=akunu_planted_type_error");
    }
}

/// The compiled library of these very sources: its name holds their hash. Only a clone of the repository has one.
fn metal_library(package: &Path, hash: u64) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let root = package.join("../..");
    let is_clone = root.join("kernels").is_dir();
    if std::env::var("CARGO_CFG_TARGET_OS")? != "macos" || !is_clone {
        return Ok(None);
    }
    // The folder must exist: cargo runs this script again each time while a watched path is missing.
    let folder = root.join("target/shaders/metal");
    std::fs::create_dir_all(&folder)?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let path = folder.join(flatten::library_name(hash));
    Ok(path.is_file().then_some(path))
}
