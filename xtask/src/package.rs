//! `cargo xtask package`: each crate as others would get it.
//!
//! ```text
//! crates/*  → cargo package → archives → target/packages/akunu-gguf-0.1.0/   what a registry would hand out
//!                                        target/packages/use-akunu-gguf/     a stranger that depends on it
//! ```
//!
//! The stranger knows nothing of this repository: its documentation is the crate's README, whose examples are built and
//! run against the unpacked archives. Examples that only want a model get a real one, and run as well.

use akunu_repo::{Failure, assets, process, workspace};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Which model the examples open as `model.gguf`.
const MODEL: (&str, &str) = ("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
/// These show what does not end by itself, or needs clang: their examples are built, not run.
const ONLY_BUILT: [&str; 2] = ["akunu-server", "akunu-sim"];
/// Other crates whose names may stand in examples.
const OTHERS: [&str; 3] = ["bytemuck", "serde_json", "tempfile"];

/// Which crates.
#[derive(clap::Args)]
pub struct Args {
    /// Only the examples of these crates; without a name, of all
    names: Vec<String>,
}

/// What `cargo metadata` says, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// The registries it may go to; empty for none, `null` for all.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    fn is_public(&self) -> bool {
        self.publish.is_none()
    }

    fn is_library(&self) -> bool {
        let mut kinds = self.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|kind| kind == "lib")
    }

    /// Its folder, as in the archive.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let packages = public_packages()?;
    for name in &args.names {
        if !packages.iter().any(|package| package.name == *name) {
            let names: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
            let known = names.join(", ");
            return Err(Failure::Usage(format!(
                "there is no crate {name} to package; there are {known}"
            )));
        }
    }
    assets::ensure(&[MODEL.0])?;
    let folder = workspace::root().join("target/packages");
    make(&packages, &folder)?;
    write_workspace(&packages, &folder)?;
    for package in &packages {
        if args.names.is_empty() || args.names.contains(&package.name) {
            try_out(package, &folder)?;
        }
    }
    Ok(())
}

fn public_packages() -> Result<Vec<Package>, Failure> {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
    let said = process::output(cargo.current_dir(workspace::root()))?;
    let metadata: Metadata = serde_json::from_str(&said)
        .map_err(|error| Failure::Found(format!("what cargo metadata says: {error}")))?;
    let public = metadata.packages.into_iter().filter(Package::is_public);
    Ok(public.collect())
}

/// Packages the crates, and unpacks the archives into an empty folder.
fn make(packages: &[Package], folder: &Path) -> Result<(), Failure> {
    let mut cargo = process::cargo();
    cargo.args(["package", "--no-verify", "--allow-dirty", "--quiet"]);
    cargo.arg("--target-dir").arg(folder.join("target"));
    for package in packages {
        cargo.args(["--package", &package.name]);
    }
    process::run(cargo.current_dir(workspace::root()))?;
    for package in packages {
        let unpacked = folder.join(package.folder());
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked).map_err(|error| Failure::io(&unpacked, error))?;
        }
        let archive = folder.join(format!("target/package/{}.crate", package.folder()));
        let mut tar = std::process::Command::new("tar");
        tar.arg("xzf").arg(&archive).arg("-C").arg(folder);
        process::run(&mut tar)?;
        let bytes = fs::metadata(&archive).map_err(|error| Failure::io(&archive, error))?;
        println!("{:<20} {:>4} KB", package.name, bytes.len() / 1000);
    }
    Ok(())
}

/// A workspace in which the archives stand for what a registry has.
fn write_workspace(packages: &[Package], folder: &Path) -> Result<(), Failure> {
    let mut manifest = String::from("[workspace]\nresolver = \"3\"\nmembers = [\n");
    for package in packages {
        let member = if package.is_library() {
            format!("use-{}", package.name)
        } else {
            package.folder()
        };
        let _ = writeln!(manifest, "    {member:?},");
    }
    manifest.push_str("]\n\n[patch.crates-io]\n");
    for package in packages.iter().filter(|package| package.is_library()) {
        let _ = writeln!(
            manifest,
            "{} = {{ path = {:?} }}",
            package.name,
            package.folder()
        );
    }
    manifest.push_str("\n[profile.dev]\nopt-level = 1\ndebug = false\n");
    manifest.push_str("\n[profile.dev.package.akunu-cpu]\nopt-level = 3\n");
    write(&folder.join("Cargo.toml"), &manifest)?;
    let lock = folder.join("Cargo.lock");
    let ours = workspace::root().join("Cargo.lock");
    fs::copy(&ours, &lock).map_err(|error| Failure::io(&ours, error))?;
    for package in packages.iter().filter(|package| package.is_library()) {
        write_user(package, packages, folder)?;
    }
    Ok(())
}

/// A crate that has the README as its documentation, and depends on what the README names.
fn write_user(package: &Package, packages: &[Package], folder: &Path) -> Result<(), Failure> {
    let source = folder.join(package.folder()).join("README.md");
    let readme = fs::read_to_string(&source).map_err(|error| Failure::io(&source, error))?;
    let mut manifest = format!(
        "[package]\nname = \"use-{}\"\nedition = \"2024\"\n\n[dependencies]\n{} = \"{}\"\n",
        package.name, package.name, package.version
    );
    let names = |name: &str| readme.contains(&format!("{}::", name.replace('-', "_")));
    for other in packages {
        if other.name != package.name && names(&other.name) {
            let _ = writeln!(manifest, "{} = \"{}\"", other.name, other.version);
        }
    }
    for other in OTHERS.iter().filter(|name| names(name)) {
        let _ = writeln!(manifest, "{other} = \"*\"");
    }
    let readme = if ONLY_BUILT.contains(&&*package.name) {
        readme
    } else {
        readme.replace("```rust,no_run", "```rust")
    };
    let user = folder.join(format!("use-{}", package.name));
    write(&user.join("Cargo.toml"), &manifest)?;
    write(&user.join("README.md"), &readme)?;
    write(
        &user.join("src/lib.rs"),
        "#![doc = include_str!(\"../README.md\")]\n",
    )?;
    let model = user.join("model.gguf");
    if !model.exists() {
        let asset = workspace::assets().join(MODEL.0).join(MODEL.1);
        fs::hard_link(&asset, &model)
            .or_else(|_| fs::copy(&asset, &model).map(drop))
            .map_err(|error| Failure::io(&model, error))?;
    }
    Ok(())
}

/// Builds a crate from its archive, and runs its examples.
fn try_out(package: &Package, folder: &Path) -> Result<(), Failure> {
    let started = Instant::now();
    let mut cargo = process::cargo();
    let name = &package.name;
    let what = if package.is_library() {
        cargo.args(["test", "--doc", "--quiet", "--package"]);
        cargo.arg(format!("use-{name}"));
        "its README's examples run"
    } else {
        cargo.args(["build", "--quiet", "--package", name]);
        "it builds"
    };
    cargo.arg("--target-dir").arg(folder.join("target"));
    process::output(cargo.current_dir(folder))?;
    let seconds = started.elapsed().as_secs_f32();
    println!("{name:<20} {what} ({seconds:.0} s)");
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| Failure::io(path, error);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}
