//! What people hear who build this without optimisation, which `cargo run` does.

/// A warning for a build with this `opt-level` of cargo's, if it is slow.
pub fn warning(opt_level: &str) -> Option<&'static str> {
    let warning = "akunu was built without optimisation and computes a hundred times slower than it can: build with --release, or add \
                   `[profile.dev.package.\"*\"]` with `opt-level = 3` to Cargo.toml";
    (opt_level == "0").then_some(warning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Breaks when the log and the documentation of `akunu` tell different cures, or when fast builds are warned of.
    #[test]
    fn the_warning_has_the_lines_of_the_documentation() {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../akunu/README.md");
        let readme = std::fs::read_to_string(readme).expect("the documentation of akunu");
        let warning = warning("0").expect("a warning");
        for cure in ["--release", "[profile.dev.package.\"*\"]", "opt-level = 3"] {
            assert!(warning.contains(cure) && readme.contains(cure), "{cure}");
        }
        assert_eq!(super::warning("3"), None);
    }
}
