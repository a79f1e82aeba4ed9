//! The catalogue of assets: what exists, where it comes from, and the hashes it must have.
//!
//! The data is the repository's `assets/catalogue.json`, to which this crate has a link. An asset is made of *archives*
//! (a package of a registry, by name and version) and of the *files* or *trees* to take out of them. A hub model is one
//! file of a hub, which announces its size and hash before the download.

use crate::hub_file::HubFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const CATALOGUE: &str = include_str!("../catalogue.json");

/// Every asset and every hub model, in the order of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// What package registries carry, with the hashes it must have.
    pub assets: Vec<Asset>,
    /// Models that only a hub has.
    pub hub_models: Vec<HubModel>,
}

/// Sampling options by name, such as `temperature`.
pub type SamplingValues = BTreeMap<String, f64>;

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
    /// The sampling that the model's authors recommend.
    #[serde(default)]
    pub sampling: SamplingValues,
    /// The packages that carry it.
    pub archives: Vec<Archive>,
    /// Single files to make out of the archives.
    #[serde(default)]
    pub files: Vec<File>,
    /// Whole folders to take out of the archives.
    #[serde(default)]
    pub trees: Vec<Tree>,
}

/// A model that only a hub has. The hub knows its exact size and its hash.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubModel {
    /// Its name on the command line.
    pub name: String,
    /// What it is and what to expect of it, in one line.
    pub what: String,
    /// The licence of the content.
    pub licence: String,
    /// The sampling that the model's authors recommend.
    #[serde(default)]
    pub sampling: SamplingValues,
    /// The file.
    pub hub: HubFile,
    /// Its size, rounded.
    pub about_bytes: u64,
}

/// A model of the catalogue, wherever it comes from.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelEntry<'a> {
    /// Its name on the command line.
    pub name: &'a str,
    /// What it is and what to expect of it, in one line.
    pub what: &'a str,
    /// The licence of the content.
    pub licence: &'a str,
    /// Its size on the disk.
    pub bytes: u64,
    /// Whether `bytes` is rounded, because only a hub knows the exact size.
    pub is_rounded: bool,
    /// The sampling that the model's authors recommend; empty where they recommend none.
    pub sampling: &'a SamplingValues,
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

    /// The models that can be run: those of packages, then those of hubs.
    pub fn models(&self) -> impl Iterator<Item = ModelEntry<'_>> {
        let assets = self.assets.iter().filter(|asset| asset.model().is_some());
        let hub_models = self.hub_models.iter().map(HubModel::entry);
        assets.map(Asset::entry).chain(hub_models)
    }

    /// The hub model of this name.
    pub fn hub_model(&self, name: &str) -> Option<&HubModel> {
        self.hub_models.iter().find(|model| model.name == name)
    }

    /// The name of a hub's file: short where the catalogue has one.
    pub(crate) fn name_of(&self, file: &HubFile) -> String {
        let known = self.hub_models.iter().find(|model| model.hub == *file);
        known.map_or_else(|| file.to_string(), |model| model.name.clone())
    }
}

impl HubModel {
    pub(crate) fn entry(&self) -> ModelEntry<'_> {
        ModelEntry {
            name: &self.name,
            what: &self.what,
            licence: &self.licence,
            bytes: self.about_bytes,
            is_rounded: true,
            sampling: &self.sampling,
        }
    }
}

impl Asset {
    pub(crate) fn entry(&self) -> ModelEntry<'_> {
        ModelEntry {
            name: &self.name,
            what: &self.what,
            licence: &self.licence,
            bytes: self.bytes(),
            is_rounded: false,
            sampling: &self.sampling,
        }
    }

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
        let names: Vec<&str> = catalogue.models().map(|model| model.name).collect();
        let packaged = [
            "smollm2",
            "gemma3-270m",
            "qwen2.5-coder-0.5b",
            "qwen2.5-coder-1.5b",
            "whisper-tiny.en",
            "whisper-base",
            "minilm",
        ];
        assert_eq!(names[..packaged.len()], packaged);
        let on_hubs = &names[packaged.len()..];
        assert!(on_hubs.contains(&"qwen3-4b") && on_hubs.contains(&"llama3.2-3b"));
        for model in &catalogue.hub_models {
            assert!(model.hub.file_name().ends_with(".gguf"), "{}", model.name);
        }
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
        for model in &catalogue.hub_models {
            assert!(names.insert(&model.name), "{} stands twice", model.name);
            assert!(model.about_bytes > 100_000_000, "{}", model.name);
        }
    }
}
