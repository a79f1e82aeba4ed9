//! From an open file to a vision tower whose numbers make sense.

use std::path::Path;

use akunu_gguf::{Container, GgufFile, ModelFolder, WeightStore};

use super::check::checked;
use super::families::{by_model_type, by_projector, known};
use super::file::TowerFile;
use super::tower::Vision;
use crate::check_weights::Check;
use crate::error::ArchError;
use crate::file::Section;
use crate::weights::Bind;

/// The value of `general.architecture` of a file with a tower and no language model.
pub(crate) const CLIP: &str = "clip";

impl Vision {
    /// Reads the description of the tower of an open file: one of llama.cpp's `mmproj`, or the folder of a whole model.
    pub fn from_store(store: &WeightStore) -> Result<Vision, ArchError> {
        match store.container() {
            Container::Gguf(file) => of_metadata(store, file),
            Container::Folder(folder) => of_folder(store, folder),
        }
    }

    /// Whether an open file is a tower and nothing else.
    pub fn is_alone(store: &WeightStore) -> bool {
        match store.container() {
            Container::Gguf(file) => {
                matches!(
                    file.metadata().string("general.architecture"),
                    Ok(Some(CLIP))
                )
            }
            Container::Folder(_) => false,
        }
    }

    /// Checks that the file has every weight of the tower in its shape.
    pub fn check_weights(&self, store: &WeightStore, path: &Path) -> Result<(), ArchError> {
        let mut check = Check::new(store, path);
        self.bind(&mut check)?;
        check.vector(&self.positions.weight)
    }
}

fn of_metadata(store: &WeightStore, file: &GgufFile) -> Result<Vision, ArchError> {
    let metadata = file.metadata();
    let architecture = metadata.string("general.architecture")?;
    if architecture != Some(CLIP) {
        let is = architecture.unwrap_or("nameless").to_string();
        return Err(no_tower(file.path(), format!("its architecture is `{is}`")));
    }
    if metadata.bool("clip.has_vision_encoder")? == Some(false) {
        let why = "`clip.has_vision_encoder` is false".to_string();
        return Err(no_tower(file.path(), why));
    }
    let key = "clip.projector_type";
    let name = match metadata.string(key)? {
        Some(name) => Some(name),
        None => metadata.string("clip.vision.projector_type")?,
    };
    let name = name.ok_or_else(|| metadata.missing(key))?;
    let family = by_projector(name).ok_or_else(|| ArchError::UnknownProjector {
        path: file.path().to_path_buf(),
        name: name.to_string(),
        known: known(|family| vec![family.name]),
    })?;
    let tower = TowerFile::of_metadata(store, file);
    checked(&tower, (family.read)(&tower)?)
}

fn of_folder(store: &WeightStore, folder: &ModelFolder) -> Result<Vision, ArchError> {
    let path = folder.path().join("config.json");
    let whole = Section {
        path: &path,
        object: folder.config(),
    };
    let name = whole.string("model_type")?;
    let name = name.ok_or_else(|| whole.missing("model_type"))?;
    let Some(vision) = whole.section("vision_config") else {
        return Err(no_tower(&path, "`vision_config` is missing".to_string()));
    };
    let family = by_model_type(name).ok_or_else(|| ArchError::UnknownProjector {
        path: path.clone(),
        name: name.to_string(),
        known: known(|family| family.model_types.to_vec()),
    })?;
    let tower = TowerFile::of_config(store, whole, vision);
    checked(&tower, (family.read)(&tower)?)
}

fn no_tower(path: &Path, why: String) -> ArchError {
    ArchError::NoTower {
        path: path.to_path_buf(),
        why,
    }
}
