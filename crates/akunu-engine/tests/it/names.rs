//! The engine asks for properties, never for a name: no architecture and no weight format stands in
//! its sources.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use akunu_arch::arch;
use akunu_types::DType;

/// What Rust calls its own numbers, which are names of formats as well.
const RUST_NUMBERS: [&str; 7] = ["f16", "f32", "f64", "i8", "i16", "i32", "i64"];

/// The names of formats, as constants (`Q4_0`) and as text (`q4_0`).
static FORMATS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let names = DType::all().flat_map(|dtype| [dtype.name().to_string(), format!("{dtype:?}")]);
    names
        .filter(|name| !RUST_NUMBERS.contains(&name.as_str()))
        .collect()
});

/// Whether a word names an architecture, be it in part: `Llama`, `is_llama`.
fn names_arch(word: &str) -> bool {
    let word = word.to_lowercase();
    let mut names = arch::ALL
        .iter()
        .flat_map(|arch| arch.model_types.iter().chain([&arch.name]));
    names.any(|name| word.contains(name))
}

fn names_in(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let named = words.filter(|word| FORMATS.contains(*word) || names_arch(word));
    named.collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_engine_names_no_architecture_and_no_format() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        // Tests may open a real model's files.
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        assert_eq!(names_in(product), [""; 0], "{}", file.display());
    }
}

#[test]
fn a_name_is_found_wherever_it_stands() {
    for (text, name) in [
        ("if dtype == DType::Q4_0 {", "Q4_0"),
        ("match arch { \"qwen3\" => 1 }", "qwen3"),
        ("fn is_gemma3() {}", "is_gemma3"),
        ("// as Llama does", "Llama"),
        ("model_type == \"gemma3_text\"", "gemma3_text"),
        ("DType::F32", "F32"),
        ("name == \"q6_k\"", "q6_k"),
    ] {
        assert_eq!(names_in(text), [name]);
    }
    assert_eq!(names_in("let x: f32 = f16::MAX;"), [""; 0]);
}
