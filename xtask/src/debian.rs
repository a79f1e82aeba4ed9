//! Programs that Debian packages bring: installed when we may, named when we may not.
//!
//! A package list can be months old, and an old list installs an old program without a word: the lists
//! are refreshed before the first installation, and every tool is looked at again after it.

use crate::tools::{Decision, Installer, Probe, Tool, Version, decide};
use akunu_repo::Failure;
use akunu_repo::process::{self, ProcessError};
use akunu_sim::{SimError, Toolchain};
use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// What a machine can be asked, and told to do. The tests have one that only takes notes.
pub trait Machine {
    /// The version of a tool that is there.
    fn version(&self, probe: Probe) -> Option<Version>;
    /// Why packages cannot be installed, if they cannot.
    fn obstacle(&self) -> Option<&'static str>;
    /// Gets the current package lists.
    fn refresh(&self) -> Result<(), ProcessError>;
    /// Installs these packages, or upgrades them.
    fn install(&self, packages: &[&str]) -> Result<(), ProcessError>;
}

/// Sees to it that these tools are there and new enough.
///
/// # Errors
/// [`Failure::Unavailable`] with what is wanted, what was found, and the command that would help.
pub fn ensure(tools: &[Tool]) -> Result<(), Failure> {
    ensure_on(&ThisMachine, tools)
}

fn ensure_on(machine: &impl Machine, tools: &[Tool]) -> Result<(), Failure> {
    let obstacle = machine.obstacle();
    let may_install = match obstacle {
        None => Installer::Ready,
        Some(_) => Installer::None,
    };
    let look = |tool: &Tool, installer| decide(tool, machine.version(tool.probe), installer);
    let wanting: Vec<&Tool> = tools
        .iter()
        .filter(|tool| look(tool, may_install) == Decision::Install)
        .collect();
    let (installer, trouble) = if wanting.is_empty() {
        (may_install, obstacle.map(str::to_owned))
    } else {
        (Installer::HasRun, install(machine, &wanting))
    };
    let lacking = tools.iter().filter_map(|tool| match look(tool, installer) {
        Decision::Lacking(why) => Some((tool, why)),
        Decision::Use | Decision::Install => None,
    });
    let (lacking, mut reasons): (Vec<&Tool>, Vec<String>) = lacking.unzip();
    if lacking.is_empty() {
        return Ok(());
    }
    reasons.extend(trouble);
    Err(Failure::Unavailable {
        why: reasons.join("; "),
        fix: format!(
            "on Debian as root: apt-get update && apt-get install {} (elsewhere: what your system calls them)",
            packages_of(&lacking).join(" ")
        ),
    })
}

/// Installs the packages of these tools; in one line, what went wrong, if something did.
fn install(machine: &impl Machine, tools: &[&Tool]) -> Option<String> {
    println!("installing {}", packages_of(tools).join(", "));
    if let Err(error) = machine.refresh() {
        // A list of somebody else may be out of reach; Debian's own may still be current.
        println!("the package lists could not be refreshed: {error}");
    }
    // apt-get installs nothing at all when one package is unknown: then each tool by itself.
    let together = machine.install(&packages_of(tools));
    let each = |_| {
        let alone = |tool: &&Tool| machine.install(tool.packages);
        tools.iter().map(alone).fold(Ok(()), Result::and)
    };
    let trouble = together.or_else(each).err()?.to_string();
    trouble.lines().next_back().map(str::to_owned)
}

/// The packages of these tools, each once.
fn packages_of(tools: &[&Tool]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for &name in tools.iter().flat_map(|tool| tool.packages) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The machine that this program runs on.
struct ThisMachine;

impl Machine for ThisMachine {
    fn version(&self, probe: Probe) -> Option<Version> {
        match probe {
            Probe::Says(command) => {
                let said = process::output(Command::new(command[0]).args(&command[1..])).ok()?;
                Some(Version::in_words(&said).unwrap_or(Version::ANY))
            }
            Probe::Has(file) => Path::new(file).exists().then_some(Version::ANY),
            Probe::SimulatorClang => match Toolchain::find() {
                // Apple counts otherwise: what the simulator takes is new enough.
                Ok(found) => Version::in_words(&found.version).map(|v| v.max(Version::CLANG)),
                Err(SimError::NoCompiler { found }) => Version::in_words(&found),
                Err(_) => None,
            },
        }
    }

    fn obstacle(&self) -> Option<&'static str> {
        if !process::exists("apt-get") {
            return Some("there is no apt-get here");
        }
        let id = process::output(Command::new("id").arg("-u"));
        let is_root = id.is_ok_and(|id| id.trim() == "0");
        (!is_root).then_some("only root may install packages")
    }

    fn refresh(&self) -> Result<(), ProcessError> {
        static REFRESHED: Once = Once::new();
        let mut done = Ok(());
        REFRESHED.call_once(|| done = apt_get(&["update", "--quiet"]));
        done
    }

    fn install(&self, packages: &[&str]) -> Result<(), ProcessError> {
        let arguments = [
            "install",
            "--quiet",
            "--yes",
            "--no-install-recommends",
            // A check does not take away what somebody else put here.
            "--no-remove",
        ];
        apt_get(&[&arguments, packages].concat())
    }
}

fn apt_get(arguments: &[&str]) -> Result<(), ProcessError> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    process::output(&mut command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const RUSTC: Tool = Tool {
        name: "rustc",
        packages: &["rustc-web"],
        probe: Probe::Says(&["rustc"]),
        oldest: "1.95",
    };
    const NPM: Tool = Tool::any("npm", &["npm"], Probe::Says(&["npm"]));
    /// A package that no list has.
    const CLANG: Tool = Tool::any("clang", &["clang-99"], Probe::Says(&["clang"]));

    /// A machine whose packages are words: what is there, what its old and its current lists offer.
    struct Noted {
        rustc: RefCell<Option<&'static str>>,
        /// What the lists on the machine offer, and what those of the archive do.
        offered: RefCell<&'static str>,
        current: &'static str,
        obstacle: Option<&'static str>,
        calls: RefCell<Vec<String>>,
    }

    fn machine(rustc: Option<&'static str>, current: &'static str) -> Noted {
        Noted {
            rustc: RefCell::new(rustc),
            offered: RefCell::new("1.85.0"),
            current,
            obstacle: None,
            calls: RefCell::new(Vec::new()),
        }
    }

    impl Machine for Noted {
        fn version(&self, probe: Probe) -> Option<Version> {
            match probe {
                Probe::Says(["rustc"]) => Version::in_words((*self.rustc.borrow())?),
                Probe::Says(["clang"]) => None,
                _ => Some(Version::ANY),
            }
        }
        fn obstacle(&self) -> Option<&'static str> {
            self.obstacle
        }
        fn refresh(&self) -> Result<(), ProcessError> {
            self.calls.borrow_mut().push("update".to_owned());
            *self.offered.borrow_mut() = self.current;
            Ok(())
        }
        fn install(&self, packages: &[&str]) -> Result<(), ProcessError> {
            let call = format!("install {}", packages.join(" "));
            self.calls.borrow_mut().push(call);
            if packages.contains(&"clang-99") {
                return Err(ProcessError::Failed {
                    program: "apt-get".to_owned(),
                    status: std::process::ExitStatus::default(),
                    said: ":\nE: Unable to locate package clang-99".to_owned(),
                });
            }
            *self.rustc.borrow_mut() = Some(*self.offered.borrow());
            Ok(())
        }
    }

    /// Breaks when the lists are not refreshed first: the old ones would bring 1.85.
    #[test]
    fn old_lists_are_refreshed_before_the_first_installation() {
        for before in [None, Some("1.85.0")] {
            let machine = machine(before, "1.96.0");
            ensure_on(&machine, &[RUSTC, NPM]).expect("1.96 is offered");
            assert_eq!(*machine.calls.borrow(), ["update", "install rustc-web"]);
        }
    }

    /// Breaks when one unknown package keeps all others from being installed, or when the reason runs over
    /// several lines: the summary shows the first.
    #[test]
    fn an_unknown_package_does_not_stop_the_others() {
        let machine = machine(None, "1.96.0");
        let refused = ensure_on(&machine, &[RUSTC, CLANG]).expect_err("no clang");
        assert_eq!(
            *machine.calls.borrow(),
            [
                "update",
                "install rustc-web clang-99",
                "install rustc-web",
                "install clang-99"
            ]
        );
        let words = refused.to_string();
        assert!(
            words.starts_with(
                "clang is wanted, none was found after apt-get install clang-99; E: Unable"
            ),
            "{words}"
        );
        assert_eq!(words.lines().count(), 1);
    }

    #[test]
    fn what_is_new_enough_is_left_alone() {
        let machine = machine(Some("1.95.0"), "1.96.0");
        ensure_on(&machine, &[RUSTC, NPM]).expect("it is there");
        assert!(machine.calls.borrow().is_empty());
    }

    /// Breaks when a package that installed cleanly counts without a look at its version.
    #[test]
    fn a_version_that_is_still_too_old_is_named() {
        let machine = machine(None, "1.85.0");
        let words = ensure_on(&machine, &[RUSTC])
            .expect_err("too old")
            .to_string();
        assert!(
            words.contains("rustc 1.95 or newer is wanted, 1.85.0 was found after"),
            "{words}"
        );
    }

    #[test]
    fn without_rights_nothing_is_tried_and_the_command_is_told() {
        let mut machine = machine(None, "1.96.0");
        machine.obstacle = Some("only root may install packages");
        let refused = ensure_on(&machine, &[RUSTC, NPM]).expect_err("not root");
        assert!(machine.calls.borrow().is_empty());
        let Failure::Unavailable { why, fix } = refused else {
            panic!("{refused}");
        };
        assert_eq!(
            why,
            "rustc 1.95 or newer is wanted, none was found; only root may install packages"
        );
        assert!(fix.contains("apt-get install rustc-web"), "{fix}");
    }
}
