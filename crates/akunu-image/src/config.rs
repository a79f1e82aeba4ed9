//! `preprocessor_config.json`: the settings of a processor of `transformers`, with the defaults of its class.

use crate::error::ConfigError;
use crate::geometry::{
    Aligned, Budget, Cropped, Geometry, NaFlex, SoftTokens, Split, Squares, Stretched,
};
use crate::lengths::{Lengths, invalid};
use crate::picture::Size;
use crate::processor::{Normalisation, Processor};
use crate::resize::Filter;
use serde::Deserialize;
use serde_json::Value;

/// The fields that some class reads. Others say how a batch is padded, or which format an array has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    image_processor_type: Option<String>,
    do_resize: Option<bool>,
    do_rescale: Option<bool>,
    do_normalize: Option<bool>,
    do_center_crop: Option<bool>,
    do_image_splitting: Option<bool>,
    do_pan_and_scan: Option<bool>,
    do_pad: Option<bool>,
    rescale_factor: Option<f64>,
    image_mean: Option<[f32; 3]>,
    image_std: Option<[f32; 3]>,
    resample: Option<u32>,
    size: Option<Lengths>,
    crop_size: Option<Lengths>,
    max_image_size: Option<Lengths>,
    patch_size: Option<Lengths>,
    encoder_patch_size: Option<u32>,
    merge_size: Option<u32>,
    min_pixels: Option<u64>,
    max_pixels: Option<u64>,
    downsample_factor: Option<u32>,
    min_tiles: Option<u32>,
    max_tiles: Option<u32>,
    use_thumbnail: Option<bool>,
    min_image_tokens: Option<u32>,
    max_image_tokens: Option<u32>,
    tile_size: Option<u32>,
    max_pixels_tolerance: Option<f64>,
    max_soft_tokens: Option<u32>,
    pooling_kernel_size: Option<u32>,
}

impl Processor {
    /// The processor of a `preprocessor_config.json`, or of a `processor_config.json` that contains one.
    ///
    /// `patch` is the side of the tower's patches, with which a `patch_size` in the text must agree.
    ///
    /// ```
    /// use akunu_image::{Geometry, Processor};
    ///
    /// let text = r#"{"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}}"#;
    /// let processor = Processor::from_config(text, 16)?;
    /// assert!(matches!(processor.geometry(), Geometry::Stretched(_)));
    /// # Ok::<(), akunu_image::ConfigError>(())
    /// ```
    pub fn from_config(text: &str, patch: u32) -> Result<Self, ConfigError> {
        let mut value: Value = serde_json::from_str(text)?;
        if let Some(inner) = value.get_mut("image_processor") {
            value = inner.take();
        }
        let config: Config = serde_json::from_value(value)?;
        config.processor(patch)
    }
}

impl Config {
    fn processor(&self, patch: u32) -> Result<Processor, ConfigError> {
        let class = self
            .image_processor_type
            .as_deref()
            .ok_or(ConfigError::Missing("image_processor_type"))?;
        let name = class.strip_suffix("Fast").unwrap_or(class);
        let class = Class::ALL
            .iter()
            .find(|known| known.names.contains(&name))
            .ok_or_else(|| ConfigError::Class(class.into()))?;
        self.check(patch)?;
        let geometry = (class.geometry)(self)?;
        let filter = self.filter()?.unwrap_or(class.filter);
        let normalisation = self.normalisation(class.normalisation)?;
        Processor::new(patch, normalisation, filter, geometry)
    }

    /// Refuses settings that no model has and that would change the pixels.
    fn check(&self, patch: u32) -> Result<(), ConfigError> {
        let switched_off = [
            ("do_resize", self.do_resize),
            ("do_rescale", self.do_rescale),
        ];
        for (field, value) in switched_off {
            if value == Some(false) {
                return Err(invalid(field, false, "only true is supported"));
            }
        }
        if self.do_pan_and_scan == Some(true) {
            return Err(invalid("do_pan_and_scan", true, "only false is supported"));
        }
        let factor = self.rescale_factor.unwrap_or(1.0 / 255.0);
        if (factor * 255.0 - 1.0).abs() > 1e-6 {
            return Err(invalid("rescale_factor", factor, "only 1/255 is supported"));
        }
        let sides = [
            (
                "patch_size",
                self.patch_size.map(Lengths::side).transpose()?,
            ),
            ("encoder_patch_size", self.encoder_patch_size),
        ];
        for (field, side) in sides {
            if let Some(side) = side.filter(|&side| side != patch) {
                let expected = format!("the tower has patches of {patch}");
                return Err(invalid(field, side, &expected));
            }
        }
        Ok(())
    }

    fn filter(&self) -> Result<Option<Filter>, ConfigError> {
        match self.resample {
            None => Ok(None),
            Some(1) => Ok(Some(Filter::Lanczos)),
            Some(2) => Ok(Some(Filter::Bilinear)),
            Some(3) => Ok(Some(Filter::Bicubic)),
            Some(other) => {
                let expected = "supported: 1 (Lanczos), 2 (bilinear), 3 (bicubic)";
                Err(invalid("resample", other, expected))
            }
        }
    }

    fn normalisation(&self, default: Normalisation) -> Result<Normalisation, ConfigError> {
        let is_on = self.do_normalize.unwrap_or(default != Normalisation::NONE);
        if !is_on {
            return Ok(Normalisation::NONE);
        }
        Ok(Normalisation {
            mean: self.image_mean.unwrap_or(default.mean),
            std: self.image_std.unwrap_or(default.std),
        })
    }

    fn stretched(&self) -> Result<Geometry, ConfigError> {
        let size = self.size.map_or(Ok(Size::square(224)), Lengths::size)?;
        Ok(Geometry::Stretched(Stretched { size }))
    }

    /// CLIP's, which LLaVA may begin with a square.
    fn cropped(&self) -> Result<Geometry, ConfigError> {
        if self.do_center_crop == Some(false) {
            return self.stretched();
        }
        let shortest_edge = self.size.map_or(Ok(224), Lengths::shortest)?;
        let crop = self
            .crop_size
            .map_or(Ok(Size::square(224)), Lengths::size)?;
        let mean = self.image_mean.unwrap_or(Normalisation::CLIP.mean);
        let background = mean.map(|mean| (f64::from(mean) * 255.0) as u8);
        Ok(Geometry::Cropped(Cropped {
            shortest_edge,
            crop,
            background: (self.do_pad == Some(true)).then_some(background),
        }))
    }

    fn split(&self) -> Result<Geometry, ConfigError> {
        Ok(Geometry::Split(Split {
            longest_edge: self.size.map_or(Ok(4 * 364), Lengths::longest)?,
            tile: self.max_image_size.map_or(Ok(364), Lengths::longest)?,
            is_split: self.do_image_splitting.unwrap_or(true),
        }))
    }

    fn naflex(&self) -> Result<Geometry, ConfigError> {
        let squares = Squares {
            tile: self.tile_size.unwrap_or(512),
            min_tiles: self.min_tiles.unwrap_or(2),
            max_tiles: self.max_tiles.unwrap_or(10),
            overview: self.use_thumbnail.unwrap_or(true),
        };
        let is_split = self.do_image_splitting.unwrap_or(true)
            && (squares.min_tiles, squares.max_tiles) != (1, 1);
        Ok(Geometry::NaFlex(NaFlex {
            min_tokens: self.min_image_tokens.unwrap_or(64),
            max_tokens: self.max_image_tokens.unwrap_or(256),
            merge: self.downsample_factor.unwrap_or(2),
            tolerance: self.max_pixels_tolerance.unwrap_or(2.0),
            squares: is_split.then_some(squares),
        }))
    }

    fn budget(&self) -> Result<Geometry, ConfigError> {
        let (shortest, longest) = self.size.map_or((None, None), Lengths::edges);
        Ok(Geometry::Budget(Budget {
            min_pixels: self.min_pixels.or(shortest).unwrap_or(56 * 56),
            max_pixels: self.max_pixels.or(longest).unwrap_or(28 * 28 * 1280),
            merge: self.merge_size.unwrap_or(2),
        }))
    }

    fn aligned(&self) -> Result<Geometry, ConfigError> {
        Ok(Geometry::Aligned(Aligned {
            longest_edge: self.size.map_or(Ok(1024), Lengths::longest)?,
            merge: 1,
        }))
    }

    fn soft_tokens(&self) -> Result<Geometry, ConfigError> {
        Ok(Geometry::SoftTokens(SoftTokens {
            max_soft_tokens: self.max_soft_tokens.unwrap_or(280),
            pooling: self.pooling_kernel_size.unwrap_or(3),
        }))
    }
}

/// A processor's class and its defaults.
struct Class {
    /// Without the suffix `Fast`.
    names: &'static [&'static str],
    filter: Filter,
    normalisation: Normalisation,
    geometry: fn(&Config) -> Result<Geometry, ConfigError>,
}

impl Class {
    const ALL: &[Self] = &[
        Self {
            names: &["Idefics3ImageProcessor", "SmolVLMImageProcessor"],
            filter: Filter::Lanczos,
            normalisation: Normalisation::HALF,
            geometry: Config::split,
        },
        Self {
            names: &["Gemma3ImageProcessor"],
            filter: Filter::Bilinear,
            normalisation: Normalisation::HALF,
            geometry: Config::stretched,
        },
        Self {
            names: &["SiglipImageProcessor"],
            filter: Filter::Bicubic,
            normalisation: Normalisation::HALF,
            geometry: Config::stretched,
        },
        Self {
            names: &["Lfm2VlImageProcessor"],
            filter: Filter::Bilinear,
            normalisation: Normalisation::HALF,
            geometry: Config::naflex,
        },
        Self {
            names: &["Qwen2VLImageProcessor"],
            filter: Filter::Bicubic,
            normalisation: Normalisation::CLIP,
            geometry: Config::budget,
        },
        Self {
            names: &["CLIPImageProcessor", "LlavaImageProcessor"],
            filter: Filter::Bicubic,
            normalisation: Normalisation::CLIP,
            geometry: Config::cropped,
        },
        Self {
            names: &["PixtralImageProcessor"],
            filter: Filter::Bicubic,
            normalisation: Normalisation::CLIP,
            geometry: Config::aligned,
        },
        Self {
            names: &["Gemma4ImageProcessor"],
            filter: Filter::Bicubic,
            normalisation: Normalisation::NONE,
            geometry: Config::soft_tokens,
        },
    ];
}
