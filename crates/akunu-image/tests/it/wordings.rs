//! The text around images against transformers' (`fixtures/make_wordings.py`), and processors of families.

use akunu_image::{Grid, Layout, Normalisation, Piece, Processor, TowerNumbers, Wording};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    family: String,
    /// Rows and columns of what the tower makes of each tile.
    grids: Vec<[u32; 2]>,
    /// Rows and columns of tiles.
    cut: Option<[u32; 2]>,
    text: String,
}

impl Case {
    fn pieces(&self, wording: Wording) -> Vec<Piece> {
        let grids: Vec<Grid> = self
            .grids
            .iter()
            .map(|&[height, width]| Grid { height, width })
            .collect();
        let layout = match self.cut {
            None => Layout::Single,
            Some([rows, columns]) => Layout::Tiled {
                rows,
                columns,
                overview: true,
            },
        };
        assert_eq!(layout.n_tiles(), grids.len());
        wording.pieces(layout, &grids)
    }
}

/// Fails on another token, on rows that are left out or written twice, and on another order of tiles.
#[test]
fn texts_are_those_of_transformers() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../fixtures/wordings.json")).expect("valid JSON");
    for case in &cases {
        let wording = Wording::of_family(&case.family).expect("a known family");
        let mut text = String::new();
        let mut rows = Vec::new();
        for piece in case.pieces(wording) {
            match piece {
                Piece::Control(name) => text += &name,
                Piece::Text(part) => text += part,
                Piece::Rows { tile, start, n } => {
                    text += &wording.row_token().repeat(n as usize);
                    rows.extend((start..start + n).map(|row| (tile, row)));
                }
            }
        }
        assert_eq!(text, case.text, "{}", case.family);
        let tiles = case.grids.iter().enumerate();
        let all = tiles
            .flat_map(|(tile, [height, width])| (0..height * width).map(move |row| (tile, row)));
        assert!(rows.into_iter().eq(all), "{}: each row once", case.family);
    }
}

/// A file without `preprocessor_config.json` gets the settings that the models of its family have.
#[test]
fn families_have_the_settings_of_their_models() {
    let half = r#""image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]"#;
    let cases = [
        // SmolVLM2-500M
        (
            "idefics3",
            16,
            4,
            512,
            r#""image_processor_type": "SmolVLMImageProcessor", "size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}"#,
        ),
        // Gemma 3 4B
        (
            "gemma3",
            14,
            4,
            896,
            r#""image_processor_type": "Gemma3ImageProcessor", "size": {"height": 896, "width": 896}, "resample": 2"#,
        ),
        // LFM2-VL-450M
        (
            "lfm2",
            16,
            2,
            512,
            r#""image_processor_type": "Lfm2VlImageProcessorFast", "resample": 2"#,
        ),
        // Qwen3-VL-2B
        (
            "qwen3vl_merger",
            16,
            2,
            768,
            r#""image_processor_type": "Qwen2VLImageProcessorFast", "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "patch_size": 16"#,
        ),
        // Qwen2.5-VL-3B, but for its mean and deviation
        (
            "qwen2.5vl_merger",
            14,
            2,
            560,
            r#""image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 12845056"#,
        ),
        (
            "pixtral",
            16,
            1,
            1024,
            r#""image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 1024}"#,
        ),
        (
            "mlp",
            14,
            1,
            336,
            r#""image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 336}, "crop_size": 336"#,
        ),
        (
            "gemma4v",
            16,
            3,
            224,
            r#""image_processor_type": "Gemma4ImageProcessor", "do_normalize": true"#,
        ),
    ];
    for (family, patch, merge, side, config) in cases {
        let numbers = TowerNumbers {
            patch,
            merge,
            side,
            normalisation: Normalisation::HALF,
        };
        let of_family = Processor::of_family(family, numbers).expect("a known family");
        let text = format!("{{{config}, {half}}}");
        let of_config = Processor::from_config(&text, patch).expect("a valid configuration");
        assert_eq!(of_family, of_config, "{family}");
    }
    let numbers = TowerNumbers {
        patch: 14,
        merge: 1,
        side: 336,
        normalisation: Normalisation::CLIP,
    };
    let error = Processor::of_family("glm4v", numbers)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "clip.projector_type glm4v is not supported");
}
