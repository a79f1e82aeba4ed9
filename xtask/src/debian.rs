//! Programs that Debian packages bring: installed when we may, named when we may not.

use crate::failure::Failure;
use crate::process;
use std::path::Path;
use std::process::Command;

/// Installs these packages; when this is not Debian or we are not root, fails and names them.
pub fn install(missing: &[&str]) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    if !(is_root() && process::exists("apt-get")) {
        return Err(Failure::Found(advice(missing)));
    }
    println!("installing {}", missing.join(", "));
    apt_get_install(missing).or_else(|_| {
        apt_get(&["update", "--quiet"])?;
        apt_get_install(missing)
    })?;
    Ok(())
}

/// Installs those packages whose file is not there.
pub fn install_missing(packages: &[(&str, &str)]) -> Result<(), Failure> {
    let absent = packages
        .iter()
        .filter(|(_, file)| !Path::new(file).exists());
    let missing: Vec<&str> = absent.map(|(package, _)| *package).collect();
    install(&missing)
}

fn apt_get_install(names: &[&str]) -> Result<(), process::ProcessError> {
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
    fn the_advice_can_be_typed() {
        assert!(advice(&["npm", "clang-19"]).ends_with("apt-get install npm clang-19"));
    }

    #[test]
    fn nothing_missing_needs_no_rights() {
        assert!(install(&[]).is_ok());
    }
}
