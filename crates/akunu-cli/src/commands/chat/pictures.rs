//! Images for questions: `--image`, `--mmproj` and `/image`.

use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::running::Loaded;
use akunu::{Image, Limits, Picture, Vision};
use clap::Args;
use std::path::{Path, PathBuf};

/// The images of the first question, and the vision tower that reads them.
#[derive(Args)]
pub struct ImageArgs {
    /// An image for the question, or for the first one of a conversation: PNG, JPEG, WebP or GIF. May be given several times
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// The vision tower of the model [default: the mmproj file in its folder]
    #[arg(long, value_name = "FILE")]
    mmproj: Option<PathBuf>,
}

/// The images of the next question, and the tower that looks at them. It is opened for the first image.
pub struct Pictures {
    model: PathBuf,
    mmproj: Option<PathBuf>,
    device: DeviceArgs,
    threads: Option<usize>,
    vision: Option<Vision>,
    waiting: Vec<Image>,
}

impl ImageArgs {
    /// Looks at the images of the first question.
    pub fn open(
        &self,
        loaded: &Loaded,
        device: &DeviceArgs,
        threads: Option<usize>,
    ) -> Result<Pictures, Failure> {
        let mut pictures = Pictures {
            model: loaded.model.path().to_path_buf(),
            mmproj: self.mmproj.clone(),
            device: device.clone(),
            threads,
            vision: None,
            waiting: Vec::new(),
        };
        for file in &self.image {
            pictures.show(file)?;
        }
        Ok(pictures)
    }
}

impl Pictures {
    /// Adds an image to the next question; returns how many tokens it takes.
    pub fn show(&mut self, file: &Path) -> Result<usize, Failure> {
        let picture = Picture::open(file, &Limits::default()).map_err(akunu::Error::from)?;
        let image = self.vision()?.look(&picture)?;
        let n_tokens = image.n_tokens();
        self.waiting.push(image);
        Ok(n_tokens)
    }

    /// The images of the next question.
    pub fn waiting(&self) -> &[Image] {
        &self.waiting
    }

    /// The question with the images was answered, or taken back.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    fn vision(&mut self) -> Result<Vision, Failure> {
        if let Some(vision) = &self.vision {
            return Ok(vision.clone());
        }
        let vision = self.open()?;
        Ok(self.vision.insert(vision).clone())
    }

    fn open(&self) -> Result<Vision, Failure> {
        let is_folder = self.model.is_dir();
        let tower = match &self.mmproj {
            Some(file) => file.clone(),
            None if is_folder => self.model.clone(),
            None => Vision::beside(&self.model).ok_or_else(|| Failure::NoTower {
                model: self.model.clone(),
            })?,
        };
        let device = self.device.open(self.threads)?;
        Ok(Vision::open_on(tower, akunu::Device::Custom(device))?)
    }
}
