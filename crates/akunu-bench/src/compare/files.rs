//! The five files that are compared: SmolLM2 in four types, and Gemma 3.

use super::ours::Ours;
use akunu_repo::{Failure, assets, workspace};
use std::path::PathBuf;

/// A file by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An asset as it comes: its name and its file.
    Asset(&'static str, &'static str),
    /// SmolLM2 in another type.
    Quantised,
}

const SMOLLM2: Source = Source::Asset("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");

const FILES: [(&str, Source); 5] = [
    ("q4_1", SMOLLM2),
    ("q4_0", Source::Quantised),
    ("q8_0", Source::Quantised),
    ("f16", Source::Quantised),
    (
        "gemma",
        Source::Asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf"),
    ),
];

/// A file that is there.
pub struct ModelFile {
    pub name: String,
    pub path: PathBuf,
}

/// Where a file stands in the list; unknown names come last.
pub fn place(name: &str) -> usize {
    let found = FILES.iter().position(|(known, _)| *known == name);
    found.unwrap_or(FILES.len())
}

/// The files of these names; none means all.
pub fn choose(names: &[String]) -> Result<Vec<(&'static str, Source)>, Failure> {
    if names.is_empty() {
        return Ok(FILES.to_vec());
    }
    let find = |name: &String| {
        let found = FILES.iter().find(|(known, _)| known == name);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = FILES.iter().map(|(known, _)| *known).collect();
            Failure::Usage(format!(
                "there is no file `{name}` to compare; there are {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Fetches and quantises what is not there yet.
pub fn make(chosen: &[(&'static str, Source)], ours: &Ours) -> Result<Vec<ModelFile>, Failure> {
    chosen
        .iter()
        .map(|&(name, source)| {
            let path = match source {
                Source::Asset(asset, file) => asset_path(asset, file)?,
                Source::Quantised => quantised(name, ours)?,
            };
            let name = name.to_string();
            Ok(ModelFile { name, path })
        })
        .collect()
}

fn asset_path(asset: &str, file: &str) -> Result<PathBuf, Failure> {
    let path = workspace::assets().join(asset).join(file);
    if !path.exists() {
        assets::ensure(&[asset])?;
    }
    Ok(path)
}

/// A folder for what is made on the way.
pub fn folder() -> Result<PathBuf, Failure> {
    let folder = workspace::root().join("target/compare");
    std::fs::create_dir_all(&folder).map_err(|source| Failure::io(&folder, source))?;
    Ok(folder)
}

/// SmolLM2 in this type. The quantiser writes a whole file or none.
fn quantised(dtype: &str, ours: &Ours) -> Result<PathBuf, Failure> {
    let Source::Asset(asset, file) = SMOLLM2 else {
        unreachable!("SmolLM2 is an asset")
    };
    let path = folder()?.join(format!("smollm2.{dtype}.gguf"));
    if !path.exists() {
        ours.quantise(&asset_path(asset, file)?, &path, dtype)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_files_get_the_list() {
        assert_eq!(choose(&[]).expect("all").len(), 5);
        assert_eq!(choose(&["f16".into()]).expect("one")[0].0, "f16");
        let Err(Failure::Usage(said)) = choose(&["q9".into()]) else {
            panic!("a usage error");
        };
        assert!(
            said.contains("`q9`") && said.contains("q4_1, q4_0"),
            "{said}"
        );
    }
}
