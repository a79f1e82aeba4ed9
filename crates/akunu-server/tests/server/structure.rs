//! How the sources of the server hang together.

use std::path::Path;

/// The protocols, and what chooses between them.
const EDGE: [&str; 5] = ["anthropic", "native", "ollama", "openai", "router"];

fn violations(path: &str, text: &str) -> Vec<String> {
    let first = path.split(['/', '.']).next().unwrap_or_default();
    if EDGE.contains(&first) || path == "lib.rs" {
        return Vec::new();
    }
    let imports = |name: &str| {
        [format!("crate::{name}::"), format!("crate::{name};")]
            .iter()
            .any(|import| text.contains(import))
    };
    let named = EDGE.iter().filter(|name| imports(name));
    named.map(|name| format!("{path} knows {name}")).collect()
}

/// Breaks when what all protocols share imports something of one of them.
#[test]
fn neutral_code_knows_no_protocol() {
    let root = Path::new("src");
    let mut folders = vec![root.to_path_buf()];
    let mut n_files = 0;
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                n_files += 1;
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.extend(violations(name, &std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(n_files > 50, "{n_files} files");
    assert_eq!(found, ["server.rs knows router"], "which starts it all");
    let planted = violations("question/calls.rs", "use crate::openai::now;");
    assert_eq!(planted, ["question/calls.rs knows openai"]);
    assert!(violations("ollama/chat.rs", "use crate::openai::now;").is_empty());
}
