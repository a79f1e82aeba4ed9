//! Recognising a model of the catalogue by the names and sizes of its files, wherever they lie. The content is not read.

use crate::catalogue::{Asset, AssetModel, Catalogue, File, HubModel, ModelEntry};
use std::fs;
use std::path::Path;

/// A hub model's real size differs from the catalogue's rounded one by less than one part in this.
const ROUNDING: u64 = 50;

impl Catalogue {
    /// The model in this file or folder, if it is one of the catalogue.
    pub fn recognise(&self, path: &Path) -> Option<ModelEntry<'_>> {
        let is_asset = |asset: &&Asset| asset.is_at(path);
        let asset = self.assets.iter().find(is_asset).map(Asset::entry);
        let is_hub_model = |model: &&HubModel| model.is_at(path);
        let hub_model = || self.hub_models.iter().find(is_hub_model);
        asset.or_else(|| hub_model().map(HubModel::entry))
    }
}

impl HubModel {
    fn is_at(&self, path: &Path) -> bool {
        let tolerance = self.about_bytes / ROUNDING;
        is_named(path, self.hub.file_name())
            && size_of_file(path).is_some_and(|size| size.abs_diff(self.about_bytes) < tolerance)
    }
}

impl Asset {
    fn is_at(&self, path: &Path) -> bool {
        let is_whole = |path: &Path, file: &File| size_of_file(path) == Some(file.bytes);
        match self.model() {
            None => false,
            Some(AssetModel::File(_)) => self.files.iter().any(|file| {
                let names = [Some(&*file.path), file.hub_name()];
                let is_named = names.into_iter().flatten().any(|name| is_named(path, name));
                is_named && is_whole(path, file)
            }),
            Some(AssetModel::Folder) => self
                .files
                .iter()
                .all(|file| is_whole(&path.join(&file.path), file)),
        }
    }
}

impl File {
    /// The file's name on the hub.
    fn hub_name(&self) -> Option<&str> {
        Some(self.hub.as_deref()?.rsplit_once('/')?.1)
    }
}

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|found| found == name)
}

fn size_of_file(path: &Path) -> Option<u64> {
    let metadata = fs::metadata(path).ok()?;
    metadata.is_file().then_some(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a sparse file of this name and size.
    fn sparse(name: &str, bytes: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = fs::File::create(folder.path().join(name)).expect("a file");
        file.set_len(bytes).expect("a size");
        folder
    }

    /// Breaks when a model is not recognised under its name in the catalogue or on the hub, or when another file is taken
    /// for it.
    #[test]
    fn a_model_is_recognised_by_its_name_and_size() {
        let catalogue = Catalogue::embedded().expect("the catalogue is valid");
        let found = |name: &str, bytes: u64| {
            let folder = sparse(name, bytes);
            let entry = catalogue.recognise(&folder.path().join(name));
            entry.map(|entry| entry.name.to_string())
        };
        let is = |name: &str| Some(name.to_string());
        let coder = "qwen2.5-coder-0.5b";
        let ours = "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf";
        let theirs = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
        assert_eq!(found(ours, 491_400_064), is(coder));
        assert_eq!(found(theirs, 491_400_064), is(coder));
        assert_eq!(found(ours, 491_400_065), None, "another size");
        assert_eq!(found("other.gguf", 491_400_064), None, "another name");
        let hub = "Qwen3-4B-Q4_K_M.gguf";
        assert_eq!(found(hub, 2_497_280_256), is("qwen3-4b"));
        assert_eq!(found(hub, 2_400_000_000), None, "not only rounded");
        assert!(
            catalogue
                .recognise(Path::new("no/such/file.gguf"))
                .is_none()
        );
    }

    #[test]
    fn a_folder_is_recognised_when_all_of_its_files_are_there() {
        let catalogue = Catalogue::embedded().expect("the catalogue is valid");
        let minilm = catalogue.get("minilm").expect("in the catalogue");
        let folder = sparse("other", 1);
        for file in &minilm.files {
            assert!(catalogue.recognise(folder.path()).is_none());
            let made = fs::File::create(folder.path().join(&file.path)).expect("a file");
            made.set_len(file.bytes).expect("a size");
        }
        let entry = catalogue.recognise(folder.path()).expect("complete");
        assert_eq!(entry.name, "minilm");
    }
}
