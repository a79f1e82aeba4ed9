//! `cargo xtask c-library FOLDER`: the C library as C programs want to find it.
//!
//! ```text
//! FOLDER/include/akunu.h
//! FOLDER/lib/libakunu_c.so, libakunu_c.a
//! FOLDER/lib/pkgconfig/akunu.pc
//! ```

use akunu_repo::{Failure, process, workspace};
use std::fs;
use std::path::{Path, PathBuf};

/// What a program needs besides that is linked with the static library.
const PRIVATE: &str = if cfg!(target_os = "macos") {
    "-framework Metal -framework Foundation -lobjc -lm"
} else {
    "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"
};

/// Where it goes.
#[derive(clap::Args)]
pub struct Args {
    /// The folder that gets include/ and lib/
    folder: PathBuf,
    /// Build with NVIDIA GPUs, which needs clang 19
    #[arg(long)]
    cuda: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut cargo = process::cargo();
    cargo.args(["build", "--release", "--package", "akunu-c"]);
    cargo.args(args.cuda.then_some("--features=cuda"));
    process::run(cargo.current_dir(workspace::root()))?;
    let package = workspace::root().join("crates/akunu-c");
    copy(
        &package.join("include/akunu.h"),
        &args.folder.join("include"),
    )?;
    let built = target_folder()?.join("release");
    for name in [
        format!("libakunu_c{}", std::env::consts::DLL_SUFFIX),
        "libakunu_c.a".to_owned(),
    ] {
        copy(&built.join(name), &args.folder.join("lib"))?;
    }
    let template = package.join("akunu.pc.in");
    let text = fs::read_to_string(&template).map_err(|error| Failure::io(&template, error))?;
    let text = text
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@PRIVATE@", PRIVATE);
    let folder = args.folder.join("lib/pkgconfig");
    fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, error))?;
    let path = folder.join("akunu.pc");
    fs::write(&path, text).map_err(|error| Failure::io(&path, error))?;
    println!(
        "PKG_CONFIG_PATH={} pkg-config --cflags --libs akunu",
        folder.display()
    );
    Ok(())
}

/// Where cargo puts what it builds.
fn target_folder() -> Result<PathBuf, Failure> {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let said = process::output(cargo.current_dir(workspace::root()))?;
    let metadata: serde_json::Value = serde_json::from_str(&said)
        .map_err(|error| Failure::Found(format!("what cargo metadata says: {error}")))?;
    let folder = metadata["target_directory"].as_str().unwrap_or("target");
    Ok(PathBuf::from(folder))
}

fn copy(file: &Path, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::io(folder, error))?;
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, &to).map_err(|error| Failure::io(file, error))?;
    Ok(())
}
