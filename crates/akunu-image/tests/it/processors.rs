//! The processors against those of transformers (`fixtures/make_processors.py`).

use crate::pictures::picture;
use akunu_image::{Layout, PictureProblem, Prepared, Processor, Size};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A configuration, and what transformers makes of some pictures with it.
#[derive(Deserialize)]
struct Case {
    patch: u32,
    config: Value,
    images: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    /// Height and width.
    size: [u32; 2],
    /// transformers answers with an error.
    #[serde(default)]
    refused: bool,
    /// Of the bytes of all tiles before they are normalised.
    #[serde(default)]
    sha256: String,
    /// Four values of the last tile.
    #[serde(default)]
    samples: Vec<f32>,
    /// Rows and columns.
    cut: Option<[u32; 2]>,
    /// Of the first tile, and of the last one if there are several.
    #[serde(default)]
    grids: Vec<[u32; 2]>,
}

impl Case {
    fn processor(&self) -> Processor {
        let text = self.config.to_string();
        Processor::from_config(&text, self.patch).expect("a valid configuration")
    }

    fn field(&self, name: &str) -> Option<[f32; 3]> {
        let values = self.config.get(name)?.as_array()?;
        Some([0, 1, 2].map(|at| values[at].as_f64().expect("a number") as f32))
    }

    /// Mean and deviation, of which the file records only those that are not the class's own.
    fn colours(&self) -> ([f32; 3], [f32; 3]) {
        let clip = (
            [0.481_454_66, 0.457_827_5, 0.408_210_73],
            [0.268_629_54, 0.261_302_6, 0.275_777_1],
        );
        let (mean, std) = match self.config["image_processor_type"].as_str() {
            Some("Gemma4ImageProcessor") => ([0.0; 3], [1.0; 3]),
            Some("Qwen2VLImageProcessor" | "PixtralImageProcessor") => clip,
            Some("CLIPImageProcessor" | "LlavaImageProcessor") => clip,
            _ => ([0.5; 3], [0.5; 3]),
        };
        (
            self.field("image_mean").unwrap_or(mean),
            self.field("image_std").unwrap_or(std),
        )
    }

    /// The digest of the bytes that the tiles were normalised from.
    fn digest(&self, prepared: &Prepared) -> String {
        let (mean, std) = self.colours();
        let mut sha = Sha256::new();
        for tile in &prepared.tiles {
            let plane = tile.pixels.len() / 3;
            let byte = |(at, value): (usize, &f32)| {
                let colour = at / plane;
                (value * std[colour] * 255.0 + mean[colour] * 255.0).round() as u8
            };
            let bytes: Vec<u8> = tile.pixels.iter().enumerate().map(byte).collect();
            sha.update(bytes);
        }
        let digest = sha.finalize();
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn compare(&self, image: &Image, prepared: &Prepared) {
        let name = format!("{} {:?}", self.config["image_processor_type"], image.size);
        let grids: Vec<_> = prepared
            .tiles
            .iter()
            .map(|tile| [tile.grid.height, tile.grid.width])
            .collect();
        let cut = match prepared.layout {
            Layout::Single => None,
            Layout::Tiled { rows, columns, .. } => Some([rows, columns]),
        };
        assert_eq!(cut, image.cut, "{name}");
        assert_eq!(grids.len(), prepared.layout.n_tiles(), "{name}");
        assert_eq!(grids.first(), image.grids.first(), "{name}");
        assert_eq!(grids.last(), image.grids.last(), "{name}");
        for (tile, [height, width]) in prepared.tiles.iter().zip(&grids) {
            let n_pixels = height * width * self.patch * self.patch;
            assert_eq!(tile.pixels.len(), 3 * n_pixels as usize, "{name}");
        }
        let last = &prepared.tiles.last().expect("a tile").pixels;
        for (i, sample) in image.samples.iter().enumerate() {
            let found = last[(last.len() - 1) * i / 3];
            // Eight digits are recorded.
            assert!((found - sample).abs() < 1e-6, "{name}: {found} {sample}");
        }
        assert_eq!(self.digest(prepared), image.sha256, "{name}");
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../fixtures/processors.json")).expect("valid JSON")
}

/// Fails on another filter, size, rounding, order of tiles or normalisation: every byte of every tile counts.
#[test]
fn pixels_are_those_of_transformers() {
    let mut n_compared = 0;
    for case in cases() {
        let processor = case.processor();
        for image in case.images.iter().filter(|image| !image.refused) {
            let [height, width] = image.size;
            let prepared = processor
                .prepare(&picture(Size { width, height }))
                .expect("a picture that transformers takes");
            case.compare(image, &prepared);
            n_compared += 1;
        }
    }
    assert!(n_compared > 400, "{n_compared}");
}

/// Qwen's bound is part of its processor. The other errors of transformers are accidents: it resizes to a height of 0, or
/// cannot stack tiles of different sizes.
#[test]
fn refused_pictures_are_too_narrow() {
    let mut n_refused = 0;
    for case in cases() {
        let is_qwen = case.config["image_processor_type"] == "Qwen2VLImageProcessor";
        for image in case.images.iter().filter(|image| image.refused) {
            let [height, width] = image.size;
            let answer = case.processor().prepare(&picture(Size { width, height }));
            match answer {
                Ok(prepared) => assert!(!is_qwen && prepared.tiles[0].grid.height > 0),
                Err(PictureProblem::TooNarrow { .. }) => n_refused += usize::from(is_qwen),
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert_eq!(n_refused, 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the size, each tile has its grid's pixels, all of them finite, or the shape is refused.
    #[test]
    fn any_size_is_prepared_or_refused(width in 1u32..700, height in 1u32..700, which in 0usize..18) {
        let case = &cases()[which];
        let size = Size { width, height };
        match case.processor().prepare(&picture(size)) {
            Ok(prepared) => {
                prop_assert_eq!(prepared.tiles.len(), prepared.layout.n_tiles());
                for tile in &prepared.tiles {
                    let n_pixels = tile.grid.height * tile.grid.width * case.patch.pow(2);
                    prop_assert!(n_pixels > 0);
                    prop_assert_eq!(tile.pixels.len(), 3 * n_pixels as usize);
                    prop_assert!(tile.pixels.iter().all(|pixel| pixel.abs() < 3.0));
                }
            }
            Err(PictureProblem::TooNarrow { .. }) => prop_assert!(width.max(height) > 200 * width.min(height)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

/// Each names the field and what would be right.
#[test]
fn unusable_configurations_are_refused_in_words() {
    let refuse = |text: &str| Processor::from_config(text, 14).unwrap_err().to_string();
    let of = |class: &str, rest: &str| {
        refuse(&format!(r#"{{"image_processor_type": "{class}"{rest}}}"#))
    };
    assert!(refuse("{").starts_with("is not valid"));
    assert_eq!(
        of("VivitImageProcessor", ""),
        "image_processor_type VivitImageProcessor is not supported"
    );
    assert_eq!(
        of("Qwen2VLImageProcessorFast", r#", "patch_size": 16"#),
        "patch_size is 16; the tower has patches of 14"
    );
    assert_eq!(
        of("CLIPImageProcessor", r#", "resample": 0"#),
        "resample is 0; supported: 1 (Lanczos), 2 (bilinear), 3 (bicubic)"
    );
    assert_eq!(
        of(
            "Gemma3ImageProcessor",
            r#", "size": {"height": 99999, "width": 896}"#
        ),
        "size is 99999; supported: 14 to 8192"
    );
    assert_eq!(
        of("Gemma3ImageProcessor", r#", "do_pan_and_scan": true"#),
        "do_pan_and_scan is true; only false is supported"
    );
    assert_eq!(
        of("Qwen2VLImageProcessor", r#", "max_pixels": 0"#),
        "size.longest_edge is 0; supported: 1 to 67108864"
    );
    assert!(of("SiglipImageProcessor", r#", "image_std": [0, 1, 1]"#).starts_with("image_std is"));
    assert!(of("SiglipImageProcessor", r#", "size": {"height": 30}"#).contains("width is missing"));
}

/// A folder that transformers 5 has written has the settings one level deeper.
#[test]
fn a_processor_config_is_read_too() {
    let text = r#"{"image_processor": {"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 28, "width": 28}},
        "processor_class": "Gemma3Processor"}"#;
    let processor = Processor::from_config(text, 14).expect("valid");
    let prepared = processor
        .prepare(&picture(Size::square(5)))
        .expect("a tile");
    assert_eq!(prepared.tiles[0].grid.width, 2);
}
