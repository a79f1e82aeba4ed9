//! Pictures to the numbers that a tower reads: fitted to its patches, and normalised.
//!
//! ```text
//! pixel = (byte - 255 * mean) / (255 * std), for each colour
//! ```

use crate::error::{ConfigError, PictureProblem};
use crate::geometry::{Fit, Fitted, Geometry};
use crate::layout::{Grid, Prepared, Tile};
use crate::picture::{Picture, Size};
use crate::resize::Filter;

/// Mean and standard deviation of red, green and blue, on a scale from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// Subtracted.
    pub mean: [f32; 3],
    /// Divided by.
    pub std: [f32; 3],
}

impl Normalisation {
    fn check(&self) -> Result<(), ConfigError> {
        let is_usable = |std: &f32| std.is_finite() && *std > 0.0;
        if self.std.iter().all(is_usable) && self.mean.iter().all(|mean| mean.is_finite()) {
            return Ok(());
        }
        Err(ConfigError::Value {
            field: "image_std",
            found: format!("{:?} (with image_mean {:?})", self.std, self.mean),
            expected: "deviations must be above 0, and means finite".into(),
        })
    }

    /// -1 to 1: SigLIP's.
    pub const HALF: Self = Self {
        mean: [0.5; 3],
        std: [0.5; 3],
    };
    /// 0 to 1.
    pub const NONE: Self = Self {
        mean: [0.0; 3],
        std: [1.0; 3],
    };
    /// Those of CLIP's training images.
    pub const CLIP: Self = Self {
        mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
        std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
    };
}

/// How one model wants its images.
///
/// ```
/// use akunu_image::{Filter, Geometry, Normalisation, Picture, Processor, Size, Stretched};
///
/// let square = Geometry::Stretched(Stretched { size: Size::square(896) });
/// let gemma3 = Processor::new(14, Normalisation::HALF, Filter::Bilinear, square)?;
/// let white = Picture::from_rgb(Size { width: 2, height: 3 }, vec![255; 18]).unwrap();
/// let prepared = gemma3.prepare(&white).unwrap();
/// assert_eq!(prepared.tiles[0].grid.width, 64);
/// assert_eq!(prepared.tiles[0].pixels.len(), 3 * 896 * 896);
/// assert!(prepared.tiles[0].pixels.iter().all(|&pixel| pixel == 1.0));
/// # Ok::<(), akunu_image::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    patch: u32,
    normalisation: Normalisation,
    filter: Filter,
    geometry: Geometry,
}

impl Processor {
    /// A processor for a tower with patches of `patch` x `patch` pixels. Refuses numbers that no model has, so that one
    /// picture cannot take memory out of proportion.
    pub fn new(
        patch: u32,
        normalisation: Normalisation,
        filter: Filter,
        geometry: Geometry,
    ) -> Result<Self, ConfigError> {
        geometry.check(patch)?;
        normalisation.check()?;
        Ok(Self {
            patch,
            normalisation,
            filter,
            geometry,
        })
    }

    /// How pictures are fitted.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Pixels of a side of a patch.
    #[must_use]
    pub fn patch(&self) -> u32 {
        self.patch
    }

    /// Fits a picture to the tower's patches and normalises it.
    pub fn prepare(&self, picture: &Picture) -> Result<Prepared, PictureProblem> {
        let fit = Fit {
            patch: self.patch,
            filter: self.filter,
        };
        let Fitted { pictures, layout } = match &self.geometry {
            Geometry::Stretched(it) => it.fit(picture, fit),
            Geometry::Cropped(it) => it.fit(picture, fit),
            Geometry::Split(it) => it.fit(picture, fit),
            Geometry::NaFlex(it) => it.fit(picture, fit),
            Geometry::Budget(it) => it.fit(picture, fit)?,
            Geometry::Aligned(it) => it.fit(picture, fit),
            Geometry::SoftTokens(it) => it.fit(picture, fit),
        };
        let tiles = pictures.iter().map(|picture| self.tile(picture)).collect();
        Ok(Prepared { tiles, layout })
    }

    fn tile(&self, picture: &Picture) -> Tile {
        let grid = Grid {
            height: picture.size().height / self.patch,
            width: picture.size().width / self.patch,
        };
        let size = Size {
            width: grid.width * self.patch,
            height: grid.height * self.patch,
        };
        // A tower leaves out what is less than a patch at the right and at the bottom.
        let cut = (size != picture.size()).then(|| picture.crop(0, 0, size));
        let picture = cut.as_ref().unwrap_or(picture);
        let Normalisation { mean, std } = self.normalisation;
        let plane = |colour: usize| {
            let (mean, std) = (255.0 * mean[colour], 255.0 * std[colour]);
            let bytes = picture.rgb().iter().skip(colour).step_by(3);
            bytes.map(move |&byte| (f32::from(byte) - mean) / std)
        };
        Tile {
            pixels: (0..3).flat_map(plane).collect(),
            grid,
        }
    }
}
