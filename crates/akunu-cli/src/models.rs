//! Resolves the argument of `-m` to a file: it is a path, a name of the catalogue, or a file of a hub.

use crate::cache;
use crate::failure::Failure;
use crate::progress;
use akunu_arch::Model;
use akunu_fetch::{DEFAULT_ENDPOINT, FetchError, Hub, ModelName, Stored};
use akunu_gguf::{SpeechFolder, WeightStore};
use std::env;
use std::path::{Path, PathBuf};

/// The model when none is named.
pub const DEFAULT: &str = "qwen2.5-coder-0.5b";

/// The model for vectors when none is named.
pub const DEFAULT_EMBEDDER: &str = "minilm";

/// The model for speech when none is named.
pub const DEFAULT_SPEECH: &str = "whisper-base";

/// The note about the default model.
pub const LARGER: &str = "this is a small model; `chat -m qwen2.5-coder-1.5b` answers better, and `pull --list` shows \
                          others";

/// The same note for `serve`.
pub const LARGER_SERVED: &str = "this is a small model; `serve -m qwen2.5-coder-1.5b` answers better, and `pull \
                                 --list` shows others";

/// The file or folder that `name` means, fetched if it is not here yet. A name of the catalogue comes
/// first; `./name` is always a path.
pub fn resolve(name: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    match fetch(name) {
        // It exists, or looks like a path: whoever opens it says what is wrong with it.
        Err(Failure::UnknownModel { .. })
            if path.exists() || path.extension().is_some() || path.components().count() > 1 =>
        {
            Ok(path.to_path_buf())
        }
        fetched => fetched,
    }
}

/// Refuses a Whisper, in a command that `needs` another model.
pub fn refuse_speech(path: &Path, needs: &'static str) -> Result<(), Failure> {
    match SpeechFolder::is_at(path) {
        true => Err(Failure::IsSpeech {
            path: path.to_path_buf(),
            needs,
        }),
        false => Ok(()),
    }
}

/// Refuses a model that is no Whisper. What is no model either is left to those who open it.
pub fn refuse_text(path: &Path) -> Result<(), Failure> {
    if SpeechFolder::is_at(path) {
        return Ok(());
    }
    let store = WeightStore::open(path).ok();
    let config = store.and_then(|store| Model::from_store(&store).ok());
    match config {
        Some(config) => Err(Failure::NotSpeech {
            path: path.to_path_buf(),
            architecture: config.arch,
            does: match config.is_encoder() {
                false => "writes text",
                true => "makes embeddings or scores of texts",
            },
        }),
        None => Ok(()),
    }
}

/// The file of a name of the catalogue or of a hub, fetched if it is not here yet.
pub fn fetch(name: &str) -> Result<PathBuf, Failure> {
    let name: ModelName = name.parse().map_err(|error| match error {
        FetchError::UnknownModel { name, known } => Failure::UnknownModel { name, known },
        FetchError::NotAModel(name) => Failure::NotAModel(name),
        error => error.into(),
    })?;
    Ok(name.install(&root()?, hub(), &progress::download())?)
}

/// What lies in the cache, by name.
pub fn stored() -> Result<Vec<Stored>, Failure> {
    Ok(akunu_fetch::stored(&root()?)?)
}

/// The name under which [`stored`] lists what a person calls `name`.
pub fn listed_as(name: &str) -> Result<String, Failure> {
    Ok(akunu_fetch::listed_as(name)?)
}

/// Removes what has this name from the cache, and returns the bytes that this frees.
pub fn remove(name: &str) -> Result<u64, Failure> {
    Ok(akunu_fetch::remove(name, &root()?)?)
}

/// Hugging Face, or what `HF_ENDPOINT` names instead: its own programs read the same variable.
fn hub() -> Hub {
    let endpoint = env::var("HF_ENDPOINT").ok();
    let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
    Hub::new(endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT))
}

fn root() -> Result<PathBuf, Failure> {
    let folder = cache::folder().ok_or(Failure::NoCache)?;
    Ok(folder.join("models"))
}
