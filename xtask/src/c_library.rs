//! `cargo xtask c-library FOLDER`: the C library as C programs want to find it.
//!
//! ```text
//! FOLDER/include/akunu.h
//! FOLDER/lib/libakunu_c.so -> libakunu_c.so.0 -> libakunu_c.so.0.1.0, and libakunu_c.a
//! FOLDER/lib/pkgconfig/akunu.pc
//! ```
//!
//! A program that is linked against the shared library asks for `libakunu_c.so.0` when it runs (its SONAME; on a Mac
//! `libakunu_c.0.dylib` in its rpath), so that a version with another interface can be installed in the same folder.

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
    let names = SharedNames::of(env!("CARGO_PKG_VERSION"));
    let mut cargo = process::cargo();
    cargo.args(["rustc", "--release", "--package", "akunu-c", "--lib"]);
    cargo.args(args.cuda.then_some("--features=cuda"));
    cargo.args(["--", "-C", &names.link_argument()]);
    process::run(cargo.current_dir(workspace::root()))?;
    let package = workspace::root().join("crates/akunu-c");
    copy(
        &package.join("include/akunu.h"),
        &args.folder.join("include"),
    )?;
    let built = target_folder()?.join("release");
    let lib = args.folder.join("lib");
    copy(&built.join("libakunu_c.a"), &lib)?;
    names.install(&built, &lib)?;
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

/// The names of the shared library.
#[derive(Debug, PartialEq)]
struct SharedNames {
    /// The file that `-lakunu_c` finds.
    plain: String,
    /// The file that a program asks for when it runs: one for all versions with the same interface.
    at_run_time: String,
    /// The file itself.
    exact: String,
}

impl SharedNames {
    fn of(version: &str) -> SharedNames {
        let major = version.split('.').next().unwrap_or(version);
        let name = |version: &str| match cfg!(target_os = "macos") {
            true => format!("libakunu_c{version}.dylib"),
            false => format!("libakunu_c.so{version}"),
        };
        SharedNames {
            plain: name(""),
            at_run_time: name(&format!(".{major}")),
            exact: name(&format!(".{version}")),
        }
    }

    /// Tells the linker what programs are to ask for.
    fn link_argument(&self) -> String {
        let name = &self.at_run_time;
        match cfg!(target_os = "macos") {
            true => format!("link-arg=-Wl,-install_name,@rpath/{name}"),
            false => format!("link-arg=-Wl,-soname,{name}"),
        }
    }

    /// Copies the library that cargo has built, and links the other names to it.
    fn install(&self, built: &Path, folder: &Path) -> Result<(), Failure> {
        let to = folder.join(&self.exact);
        fs::copy(built.join(&self.plain), &to).map_err(|error| Failure::io(&to, error))?;
        for (name, target) in [
            (&self.at_run_time, &self.exact),
            (&self.plain, &self.at_run_time),
        ] {
            let link = folder.join(name);
            if link.is_symlink() || link.exists() {
                fs::remove_file(&link).map_err(|error| Failure::io(&link, error))?;
            }
            std::os::unix::fs::symlink(target, &link).map_err(|error| Failure::io(&link, error))?;
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when programs that are linked today would ask for a file that is not installed.
    #[test]
    fn every_name_leads_to_the_library() {
        let names = SharedNames::of("3.1.4");
        assert!(names.link_argument().ends_with(&names.at_run_time));
        let (built, lib) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for content in ["old", "new"] {
            fs::write(built.path().join(&names.plain), content).unwrap();
            names.install(built.path(), lib.path()).unwrap();
            for name in [&names.plain, &names.at_run_time, &names.exact] {
                assert_eq!(fs::read_to_string(lib.path().join(name)).unwrap(), content);
            }
        }
        assert!(names.at_run_time.contains(".3") && !names.at_run_time.contains(".1"));
        assert!(names.exact.contains("3.1.4"));
    }
}
