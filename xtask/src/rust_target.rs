//! Targets that the project's own toolchain compiles for, beside the machine itself.
//!
//! rustup brings their standard libraries, compiled. Where it does not, because there is no rustup or no way to its
//! server, Debian's Rust builds them from source, which takes a minute.

use akunu_repo::process;
use std::path::Path;
use std::process::Command;

/// Whether the toolchain has the standard library of this target.
pub fn is_there(target: &str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]);
    process::output(&mut rustc).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// Asks rustup for the target, if it is not there; whether it is there now.
pub fn install(target: &str) -> bool {
    if is_there(target) {
        return true;
    }
    if let Err(error) = process::output(Command::new("rustup").args(["target", "add", target])) {
        println!("rustup does not bring {target}, Debian's Rust is to build it: {error}");
    }
    is_there(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when each target, or none, counts as installed.
    #[test]
    fn a_target_is_there_when_its_library_is() {
        let said = process::output(Command::new("rustc").arg("-vV")).expect("rustc");
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        assert!(is_there(host.expect("rustc names its host")));
        assert!(!is_there("no-such-target"));
    }
}
