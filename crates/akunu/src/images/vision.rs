//! A vision tower with the preprocessing of its images.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use akunu_engine::vision::{Features, Grid as TowerGrid, Grids, VisionModel};
use akunu_engine::{EngineError, ImageFeatures, ImageGrid};
use akunu_image::{
    ConfigError, Grid, Normalisation, Picture, Piece, Prepared, Processor, TowerNumbers, Wording,
};

use crate::device::Device;
use crate::error::Error;

/// A vision tower, which turns pictures into what a language model reads.
///
/// It comes as a second file next to the model (`mmproj-….gguf`), or in the folder of the model. Copies share the tower.
///
/// ```no_run
/// use akunu::{Limits, Model, Picture, Vision};
///
/// let vision = Vision::open("mmproj-SmolVLM.gguf")?;
/// let cat = vision.look(&Picture::open("cat.jpg", &Limits::default())?)?;
/// let mut chat = Model::open("SmolVLM.gguf")?.chat()?;
/// for piece in chat.ask_with("What is this?", &[cat])? {
///     print!("{}", piece?);
/// }
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone)]
pub struct Vision {
    path: PathBuf,
    tower: Arc<Mutex<VisionModel>>,
    processor: Processor,
    wording: Wording,
    merge: u32,
}

impl Vision {
    /// Opens a tower on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Vision, Error> {
        Vision::open_on(path, Device::Auto)
    }

    /// Opens a tower on this device.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Vision, Error> {
        let path = path.as_ref();
        let tower = VisionModel::load(path, device.open()?)?;
        let refuse = |why: ConfigError| Error::ImageProcessor {
            path: path.to_path_buf(),
            why,
        };
        let family = tower.config().family;
        let wording = Wording::of_family(family)
            .ok_or_else(|| refuse(ConfigError::Family(family.to_string())))?;
        let processor = processor(path, &tower).map_err(refuse)?;
        Ok(Vision {
            path: path.to_path_buf(),
            merge: tower.config().input.merge,
            tower: Arc::new(Mutex::new(tower)),
            processor,
            wording,
        })
    }

    /// The tower of a model's file: a GGUF file in the same folder whose name begins with `mmproj`. `None` if there
    /// is none, or if there are several of which no name contains the model's.
    pub fn beside(model: impl AsRef<Path>) -> Option<PathBuf> {
        let model = model.as_ref();
        let mut found = towers_in(model.parent()?);
        if found.len() == 1 {
            return found.pop();
        }
        let name = model.file_stem()?.to_str()?.to_lowercase();
        let is_of_model = |tower: &&PathBuf| of_model(tower, &name);
        let mut matching = found.iter().filter(is_of_model);
        match (matching.next(), matching.next()) {
            (Some(tower), None) => Some(tower.clone()),
            _ => None,
        }
    }

    /// The file or folder of the tower.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A picture as the rows that the language model reads.
    pub fn look(&self, picture: &Picture) -> Result<Image, Error> {
        let Prepared { tiles, layout } = self.processor.prepare(picture)?;
        let mut tower = self.tower.lock().unwrap_or_else(PoisonError::into_inner);
        let mut grids = Vec::new();
        let mut seen = Vec::new();
        for tile in &tiles {
            let Grid { height, width } = tile.grid;
            let features = tower.see(&tile.pixels, TowerGrid { height, width })?;
            grids.push(tile.grid.merged(self.merge));
            seen.push(features);
        }
        let pieces = self.wording.pieces(layout, &grids);
        let features = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Rows { tile, start, n } => Some((*tile, *start, *n)),
                Piece::Control(_) | Piece::Text(_) => None,
            })
            .map(|(tile, start, n)| features_of(&seen[tile], start as usize, n as usize))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Image {
            inner: Arc::new(Inner {
                id: id_of(&features),
                wording: self.wording,
                pieces,
                features,
            }),
        })
    }
}

impl fmt::Debug for Vision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vision({})", self.path.display())
    }
}

/// A picture that a vision tower has read, for [`Chat::ask_with`](crate::Chat::ask_with). Copies share it.
///
/// ```no_run
/// # let vision = akunu::Vision::open("mmproj-SmolVLM.gguf")?;
/// let cat = vision.look(&akunu::Picture::open("cat.jpg", &akunu::Limits::default())?)?;
/// println!("{} tokens", cat.n_tokens());
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone)]
pub struct Image {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    wording: Wording,
    pieces: Vec<Piece>,
    /// For each piece with rows.
    features: Vec<Arc<ImageFeatures>>,
}

impl Image {
    /// How many tokens of the context its rows take; the text around them takes some more.
    pub fn n_tokens(&self) -> usize {
        let features = self.inner.features.iter();
        features.map(|features| features.n_rows()).sum()
    }

    /// A name for messages, which follows from all that the model sees of it.
    pub(crate) fn id(&self) -> &str {
        &self.inner.id
    }

    pub(crate) fn wording(&self) -> Wording {
        self.inner.wording
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.inner.pieces
    }

    pub(crate) fn features(&self) -> &[Arc<ImageFeatures>] {
        &self.inner.features
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} tokens)", self.n_tokens())
    }
}

/// That of the folder's `preprocessor_config.json`, or else that of the tower's family.
fn processor(path: &Path, tower: &VisionModel) -> Result<Processor, ConfigError> {
    let input = tower.config().input;
    if let Ok(text) = fs::read_to_string(path.join("preprocessor_config.json")) {
        return Processor::from_config(&text, input.patch);
    }
    // Families whose towers read all grids have no size of their own.
    let side = match input.grids {
        Grids::Square(side) => side,
        Grids::Any => 0,
    };
    let numbers = TowerNumbers {
        patch: input.patch,
        merge: input.merge,
        side: side.saturating_mul(input.patch),
        normalisation: Normalisation {
            mean: input.mean,
            std: input.std,
        },
    };
    Processor::of_family(tower.config().family, numbers)
}

/// Some rows of a tile. Those of a whole tile have its grid.
fn features_of(seen: &Features, start: usize, n: usize) -> Result<Arc<ImageFeatures>, Error> {
    let dim = seen.dim;
    let part = |rows: &Vec<f32>| rows[start * dim..(start + n) * dim].to_vec();
    let features = || {
        let features = ImageFeatures::new(dim as u32, part(&seen.rows))?;
        let features = features.with_deep(seen.deep.iter().map(part).collect())?;
        let TowerGrid { height, width } = seen.grid;
        match n == seen.n_rows {
            true => features.with_grid(ImageGrid { height, width }),
            false => Ok(features),
        }
    };
    Ok(Arc::new(features().map_err(EngineError::from)?))
}

fn id_of(features: &[Arc<ImageFeatures>]) -> String {
    let mut id = [0u8; 32];
    for features in features {
        let hash = features.hash();
        id.iter_mut()
            .zip(hash)
            .for_each(|(byte, new)| *byte = byte.rotate_left(1) ^ new);
    }
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn towers_in(folder: &Path) -> Vec<PathBuf> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .map(|file| file.path())
        .filter(|path| is_tower(path))
        .collect()
}

fn is_tower(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| {
        let name = name.to_lowercase();
        name.starts_with("mmproj") && name.ends_with(".gguf")
    })
}

/// Whether a tower's name, without `mmproj` and its precision, is the beginning of the model's.
fn of_model(tower: &Path, model: &str) -> bool {
    let name = tower.file_stem().and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_lowercase();
    let name = name
        .trim_start_matches("mmproj")
        .trim_matches(['-', '_', '.']);
    let precisions = ["f16", "bf16", "f32", "q8_0"];
    let name = precisions
        .iter()
        .find_map(|precision| name.strip_suffix(precision))
        .unwrap_or(name)
        .trim_end_matches(['-', '_', '.', 'b']);
    !name.is_empty() && model.starts_with(name)
}
