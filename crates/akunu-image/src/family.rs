//! The processor of a tower that comes without `preprocessor_config.json`, as llama.cpp's `mmproj` files do.
//!
//! These files have a patch, a size, a mean and a deviation. The rest is what the models of a family have in common.

use crate::error::ConfigError;
use crate::geometry::{
    Aligned, Budget, Cropped, Geometry, NaFlex, SoftTokens, Split, Squares, Stretched,
};
use crate::picture::Size;
use crate::processor::{Normalisation, Processor};
use crate::resize::Filter;
use crate::wording::Wording;

/// The numbers of a tower that decide how its images are prepared.
///
/// ```
/// use akunu_image::{Normalisation, Processor, TowerNumbers, Wording};
///
/// let numbers = TowerNumbers { patch: 16, merge: 4, side: 512, normalisation: Normalisation::HALF };
/// let processor = Processor::of_family("idefics3", numbers)?;
/// assert_eq!(processor.patch(), 16);
/// assert_eq!(Wording::of_family("idefics3"), Some(Wording::Idefics3));
/// # Ok::<(), akunu_image::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TowerNumbers {
    /// Pixels of a side of a patch.
    pub patch: u32,
    /// Patches of a side of what becomes one row.
    pub merge: u32,
    /// Pixels of a side of the images that it was trained with.
    pub side: u32,
    /// Mean and standard deviation of the colours.
    pub normalisation: Normalisation,
}

impl Processor {
    /// The processor of a family, named as GGUF's `clip.projector_type`.
    pub fn of_family(family: &str, tower: TowerNumbers) -> Result<Self, ConfigError> {
        let TowerNumbers {
            patch,
            merge,
            side,
            normalisation,
        } = tower;
        let (filter, geometry) = match family {
            "idefics3" => {
                let split = Split {
                    longest_edge: side.saturating_mul(4),
                    tile: side,
                    is_split: true,
                };
                (Filter::Lanczos, Geometry::Split(split))
            }
            "gemma3" => {
                let size = Size::square(side);
                (Filter::Bilinear, Geometry::Stretched(Stretched { size }))
            }
            "lfm2" => (Filter::Bilinear, lfm2(merge)),
            "qwen2vl_merger" | "qwen2.5vl_merger" => (Filter::Bicubic, qwen2(merge)),
            "qwen3vl_merger" => (Filter::Bicubic, qwen3(merge)),
            "pixtral" => {
                let longest_edge = side;
                let aligned = Aligned {
                    longest_edge,
                    merge,
                };
                (Filter::Bicubic, Geometry::Aligned(aligned))
            }
            "mlp" => {
                let cropped = Cropped {
                    shortest_edge: side,
                    crop: Size::square(side),
                    background: None,
                };
                (Filter::Bicubic, Geometry::Cropped(cropped))
            }
            "gemma4v" => {
                let tokens = SoftTokens {
                    max_soft_tokens: 280,
                    pooling: merge,
                };
                (Filter::Bicubic, Geometry::SoftTokens(tokens))
            }
            other => return Err(ConfigError::Family(other.into())),
        };
        Self::new(patch, normalisation, filter, geometry)
    }
}

impl Wording {
    /// The wording of a family, named as GGUF's `clip.projector_type`.
    #[must_use]
    pub fn of_family(family: &str) -> Option<Self> {
        match family {
            "idefics3" => Some(Self::Idefics3),
            "gemma3" => Some(Self::Gemma3),
            "gemma4v" => Some(Self::Gemma4),
            "lfm2" => Some(Self::Lfm2),
            "qwen2vl_merger" | "qwen2.5vl_merger" | "qwen3vl_merger" => Some(Self::Qwen),
            "pixtral" => Some(Self::Pixtral),
            _ => None,
        }
    }
}

fn lfm2(merge: u32) -> Geometry {
    Geometry::NaFlex(NaFlex {
        min_tokens: 64,
        max_tokens: 256,
        merge,
        tolerance: 2.0,
        squares: Some(Squares {
            tile: 512,
            min_tiles: 2,
            max_tiles: 10,
            overview: true,
        }),
    })
}

fn qwen2(merge: u32) -> Geometry {
    Geometry::Budget(Budget {
        min_pixels: 56 * 56,
        max_pixels: 28 * 28 * 16_384,
        merge,
    })
}

fn qwen3(merge: u32) -> Geometry {
    Geometry::Budget(Budget {
        min_pixels: 256 * 256,
        max_pixels: 4096 * 4096,
        merge,
    })
}
