//! Any bytes as an image: a picture within the limits, which every kind of processor prepares or refuses.
#![no_main]

use akunu_image::{Limits, Picture, Processor};
use libfuzzer_sys::fuzz_target;

const CONFIGS: &[&str] = &[
    r#"{"image_processor_type": "Idefics3ImageProcessor", "size": {"longest_edge": 64}, "max_image_size": {"longest_edge": 32}}"#,
    r#"{"image_processor_type": "Gemma3ImageProcessor", "size": {"height": 32, "width": 32}}"#,
    r#"{"image_processor_type": "Lfm2VlImageProcessor", "tile_size": 32, "min_image_tokens": 1, "max_image_tokens": 4}"#,
    r#"{"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 1024, "max_pixels": 4096}"#,
    r#"{"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 24}, "crop_size": 32}"#,
    r#"{"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 64}}"#,
    r#"{"image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 4}"#,
];

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        max_side: 1024,
        max_pixels: 1 << 16,
        max_memory: 1 << 24,
        ..Limits::default()
    };
    let Ok(picture) = Picture::decode(bytes, &limits) else {
        return;
    };
    assert!(picture.size().n_pixels() <= limits.max_pixels);
    for config in CONFIGS {
        let processor = Processor::from_config(config, 16).expect("a valid configuration");
        if let Ok(prepared) = processor.prepare(&picture) {
            assert_eq!(prepared.tiles.len(), prepared.layout.n_tiles());
        }
    }
});
