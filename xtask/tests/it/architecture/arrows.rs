//! Which crate may know which.

use super::tree;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// The arrows of the crate map. A crate may know those it points at, and those that they may know.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "akunu-cli",
        &["akunu", "akunu-server", "akunu-sim", "akunu-fetch"],
    ),
    ("akunu-server", &["akunu"]),
    ("akunu-c", &["akunu"]),
    ("akunu-cuda", &["akunu-kernels", "akunu-sim"]),
    (
        "akunu",
        &[
            "akunu-engine",
            "akunu-audio",
            "akunu-cpu",
            "akunu-cuda",
            "akunu-fetch",
            "akunu-image",
            "akunu-kernels",
            "akunu-tokenizer",
        ],
    ),
    (
        "akunu-engine",
        &["akunu-arch", "akunu-tokenizer", "akunu-program"],
    ),
    ("akunu-arch", &["akunu-gguf"]),
    ("akunu-tokenizer", &["akunu-gguf"]),
    ("akunu-gguf", &["akunu-types"]),
    ("akunu-cpu", &["akunu-kernels"]),
    ("akunu-sim", &["akunu-kernels"]),
    ("akunu-kernels", &["akunu-program"]),
    ("akunu-program", &["akunu-types"]),
    ("akunu-types", &[]),
    ("akunu-assets", &[]),
    ("akunu-benches", &[]),
    ("akunu-audio", &[]),
    ("akunu-image", &[]),
    ("akunu-fetch", &[]),
    ("akunu-repo", &["akunu-assets", "akunu-fetch"]),
    ("xtask", &["akunu-kernels", "akunu-sim", "akunu-repo"]),
    (
        "akunu-bench",
        &[
            "akunu-gguf",
            "akunu-kernels",
            "akunu-sim",
            "akunu-cuda",
            "akunu-repo",
        ],
    ),
];

/// A dependency between two crates of the workspace.
struct Dependency {
    from: String,
    to: String,
    /// Only tests, examples and benches see it.
    is_dev: bool,
}

fn may_know(from: &str) -> BTreeSet<&'static str> {
    let row = ARROWS.iter().find(|(name, _)| *name == from);
    let direct = row.map_or(&[] as &[&str], |(_, to)| to);
    direct
        .iter()
        .flat_map(|to| may_know(to).into_iter().chain([*to]))
        .collect()
}

fn violations(members: &[String], dependencies: &[Dependency]) -> Vec<String> {
    let known = |name: &String| ARROWS.iter().any(|(row, _)| row == name);
    let strangers = members
        .iter()
        .filter(|name| !known(name))
        .map(|name| format!("{name} has no row in the crate map"));
    let forbidden = dependencies
        .iter()
        .filter(|d| d.to == "xtask" || (!d.is_dev && !may_know(&d.from).contains(&*d.to)))
        .map(|d| format!("{} may not depend on {}", d.from, d.to));
    strangers.chain(forbidden).collect()
}

/// The workspace's crates and the dependencies among them, as cargo sees them.
fn read_workspace() -> (Vec<String>, Vec<Dependency>) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(tree::root())
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let name_of = |value: &Value| value["name"].as_str().expect("a name").to_string();
    let members: Vec<String> = packages.iter().map(name_of).collect();
    let mut dependencies = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let to = name_of(dependency);
            if members.contains(&to) {
                let is_dev = dependency["kind"].as_str() == Some("dev");
                dependencies.push(Dependency {
                    from: name_of(package),
                    to,
                    is_dev,
                });
            }
        }
    }
    (members, dependencies)
}

#[test]
fn every_dependency_follows_the_crate_map() {
    let (members, dependencies) = read_workspace();
    assert!(members.contains(&"xtask".to_string()));
    assert!(
        dependencies
            .iter()
            .any(|d| d.from == "xtask" && d.to == "akunu-types")
    );
    assert_eq!(violations(&members, &dependencies), Vec::<String>::new());
}

#[test]
fn a_forbidden_arrow_is_found() {
    let check = |from: &str, to: &str, is_dev| {
        let dependency = Dependency {
            from: from.into(),
            to: to.into(),
            is_dev,
        };
        violations(&[from.into()], &[dependency])
    };
    assert!(
        check("akunu-engine", "akunu-types", false).is_empty(),
        "through akunu-program"
    );
    let found = check("akunu-engine", "akunu-kernels", false);
    assert_eq!(found, ["akunu-engine may not depend on akunu-kernels"]);
    let found = check("akunu-kernels", "akunu-gguf", false);
    assert_eq!(found, ["akunu-kernels may not depend on akunu-gguf"]);
    assert!(
        check("akunu-kernels", "akunu-gguf", true).is_empty(),
        "its tests may"
    );
    assert_eq!(
        check("akunu-cli", "xtask", true),
        ["akunu-cli may not depend on xtask"]
    );
    let found = check("akunu-new", "akunu-types", true);
    assert_eq!(found, ["akunu-new has no row in the crate map"]);
}
