//! Which numbers a geometry may have. They come from files, and decide how much memory a picture takes.

use super::{Aligned, Budget, Cropped, Geometry, NaFlex, SoftTokens, Split, Stretched};
use crate::error::ConfigError;
use crate::picture::Size;
use std::ops::RangeInclusive;

const PATCHES: RangeInclusive<u64> = 1..=256;
const MERGES: RangeInclusive<u64> = 1..=16;
const EDGES: RangeInclusive<u64> = 1..=8192;
const PIXELS: RangeInclusive<u64> = 1..=64 << 20;
const TOKENS: RangeInclusive<u64> = 1..=16_384;
const TILES: RangeInclusive<u64> = 1..=64;

impl Geometry {
    pub(crate) fn check(&self, patch: u32) -> Result<(), ConfigError> {
        within("patch_size", patch, PATCHES)?;
        let whole = u64::from(patch)..=*EDGES.end();
        match self {
            Self::Stretched(Stretched { size }) => sides("size", *size, &whole),
            Self::Cropped(it) => it.check(&whole),
            Self::Split(it) => it.check(&whole),
            Self::NaFlex(it) => it.check(&whole),
            Self::Budget(it) => it.check(),
            Self::Aligned(it) => it.check(),
            Self::SoftTokens(it) => it.check(),
        }
    }
}

impl Cropped {
    fn check(&self, whole: &RangeInclusive<u64>) -> Result<(), ConfigError> {
        within("size.shortest_edge", self.shortest_edge, EDGES)?;
        sides("crop_size", self.crop, whole)
    }
}

impl Split {
    fn check(&self, whole: &RangeInclusive<u64>) -> Result<(), ConfigError> {
        within("max_image_size.longest_edge", self.tile, whole.clone())?;
        // The picture is not cut into tiles that are much smaller than it.
        let edges = 1..=u64::from(self.tile) * 8;
        within("size.longest_edge", self.longest_edge, edges)
    }
}

impl NaFlex {
    fn check(&self, whole: &RangeInclusive<u64>) -> Result<(), ConfigError> {
        within("downsample_factor", self.merge, MERGES)?;
        within("max_image_tokens", self.max_tokens, TOKENS)?;
        let least = 1..=u64::from(self.max_tokens);
        within("min_image_tokens", self.min_tokens, least)?;
        if let Some(squares) = &self.squares {
            within("tile_size", squares.tile, whole.clone())?;
            within("max_tiles", squares.max_tiles, TILES)?;
            let least = 1..=u64::from(squares.max_tiles);
            within("min_tiles", squares.min_tiles, least)?;
            let pixels = u64::from(squares.tile).pow(2) * u64::from(squares.max_tiles);
            within("tile_size^2 * max_tiles", pixels, PIXELS)?;
        }
        Ok(())
    }
}

impl Budget {
    fn check(&self) -> Result<(), ConfigError> {
        within("merge_size", self.merge, MERGES)?;
        within("size.longest_edge", self.max_pixels, PIXELS)?;
        within("size.shortest_edge", self.min_pixels, 1..=self.max_pixels)
    }
}

impl Aligned {
    fn check(&self) -> Result<(), ConfigError> {
        within("spatial_merge_size", self.merge, MERGES)?;
        within("size.longest_edge", self.longest_edge, EDGES)
    }
}

impl SoftTokens {
    fn check(&self) -> Result<(), ConfigError> {
        within("pooling_kernel_size", self.pooling, MERGES)?;
        within("max_soft_tokens", self.max_soft_tokens, TOKENS)
    }
}

fn sides(field: &'static str, size: Size, range: &RangeInclusive<u64>) -> Result<(), ConfigError> {
    within(field, size.width, range.clone())?;
    within(field, size.height, range.clone())
}

fn within(
    field: &'static str,
    found: impl Into<u64>,
    range: RangeInclusive<u64>,
) -> Result<(), ConfigError> {
    let found = found.into();
    if range.contains(&found) {
        return Ok(());
    }
    Err(ConfigError::Value {
        field,
        found: found.to_string(),
        expected: format!("supported: {} to {}", range.start(), range.end()),
    })
}
