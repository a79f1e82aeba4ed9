//! Programs that Debian packages bring: installed when we may, named when we may not.

use crate::failure::Failure;
use crate::process;
use std::path::Path;
use std::process::Command;

/// A Debian package.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// A file that it installs.
    pub brings: &'static str,
}

/// Installs the packages that are missing; when this is not Debian or we are not root, fails and
/// names them.
pub fn ensure(packages: &[Package]) -> Result<(), Failure> {
    let missing = missing(packages, |path| Path::new(path).exists());
    if missing.is_empty() {
        return Ok(());
    }
    if !(is_root() && process::exists("apt-get")) {
        return Err(Failure::Found(advice(&missing)));
    }
    println!("installing {}", missing.join(", "));
    install(&missing).or_else(|_| {
        apt_get(&["update", "--quiet"])?;
        install(&missing)
    })?;
    Ok(())
}

fn install(names: &[&str]) -> Result<(), process::ProcessError> {
    let arguments = ["install", "--quiet", "--yes", "--no-install-recommends"];
    apt_get(&[&arguments, names].concat())
}

fn apt_get(arguments: &[&str]) -> Result<(), process::ProcessError> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    process::output(&mut command).map(|_| ())
}

fn missing(packages: &[Package], exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    packages
        .iter()
        .filter(|package| !exists(package.brings))
        .map(|package| package.name)
        .collect()
}

fn advice(missing: &[&str]) -> String {
    let names = missing.join(" ");
    format!("these Debian packages are missing: {names}; as root: apt-get install {names}")
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_asked_for() {
        let packages = [
            Package {
                name: "there",
                brings: "/bin/there",
            },
            Package {
                name: "absent",
                brings: "/bin/absent",
            },
        ];
        let missing = missing(&packages, |path| path.ends_with("/there"));
        assert_eq!(missing, ["absent"]);
        assert!(advice(&missing).ends_with("apt-get install absent"));
    }
}
