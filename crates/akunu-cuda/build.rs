//! Compiles the kernels to PTX and embeds them, deflated, where the feature `ptx` asks for it.
//!
//! In a clone of the repository the PTX lies in `target/shaders/ptx`, as that of `cargo xtask shaders --target ptx`, and
//! is made anew only where a kernel has changed. `kernels` is a link to the repository's folder; a packaged crate has a
//! copy of it instead, and leaves its PTX in cargo's folder for what build scripts write.

use std::error::Error;

#[cfg(not(feature = "ptx"))]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}

#[cfg(feature = "ptx")]
fn main() -> Result<(), Box<dyn Error>> {
    if let Err(error) = embed::run() {
        // Cargo shows this line, and not the script's whole output.
        println!(
            "cargo::error=the feature `cuda` compiles kernels to PTX while building: {}",
            error.to_string().replace('\n', "; ")
        );
    }
    Ok(())
}

#[cfg(feature = "ptx")]
mod embed {
    use akunu_sim::{Toolchain, ptx};
    use flate2::{Compression, write::DeflateEncoder};
    use std::error::Error;
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};

    pub fn run() -> Result<(), Box<dyn Error>> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let kernels = package.join("kernels");
        println!("cargo::rerun-if-changed=build.rs");
        println!("cargo::rerun-if-changed={}", kernels.display());
        let toolchain = Toolchain::find()?;
        if !toolchain.makes_ptx() {
            let program = &toolchain.program;
            let advice = "on Debian: apt-get install clang-19";
            return Err(format!("{program} does not compile for NVIDIA GPUs; {advice}").into());
        }
        let out = PathBuf::from(std::env::var("OUT_DIR")?);
        let root = package.join("../..");
        let made = if root.join("kernels").is_dir() {
            root.join("target/shaders/ptx")
        } else {
            out.join("ptx")
        };
        let files = ptx::compile_folder(&toolchain, &kernels, &made)?;
        let mut table = String::from("&[\n");
        for ptx::PtxFile { file, result, .. } in files {
            let packed = out.join(ptx::file_name(&file)).with_extension("deflate");
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&std::fs::read(result?)?)?;
            std::fs::write(&packed, encoder.finish()?)?;
            writeln!(table, "({file:?}, include_bytes!({packed:?})),")?;
        }
        table.push_str("]\n");
        Ok(std::fs::write(out.join("ptx.rs"), table)?)
    }
}
