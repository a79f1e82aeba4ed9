//! How decoders read images: what architectures say, and what their files must say.

use akunu_arch::{ImageInput, ImageSight, RopeAxes};
use akunu_gguf::GgufHeader;
use serde_json::{Value, json};

use crate::descriptions::{describe, describe_gguf, llama, with};

/// A folder of a whole model of this type, of which the language model is a part.
fn whole(kind: &str, text: Value, vision: Value) -> Value {
    let text = with(llama(), text);
    json!({ "model_type": kind, "text_config": text, "vision_config": vision })
}

fn images(config: &Value) -> Option<ImageInput> {
    describe(config).expect("complete").images
}

#[test]
fn architectures_say_how_they_read_images() {
    let smolvlm = whole("smolvlm", json!({}), json!({}));
    assert_eq!(images(&smolvlm), Some(ImageInput::PLAIN));
    let gemma = whole("gemma3", json!({ "head_dim": 16 }), json!({}));
    let sight = images(&gemma).map(|images| images.sight);
    assert_eq!(sight, Some(ImageSight::Whole));
    let text = with(llama(), json!({ "model_type": "qwen3", "head_dim": 16 }));
    assert_eq!(images(&text), None);
}

/// Older files have the axes in `rope_scaling`, and the language model's fields beside those of vision.
#[test]
fn axes_follow_each_other_or_are_interleaved() {
    let scaling = json!({ "type": "mrope", "mrope_section": [2, 3, 3] });
    let older = json!({ "model_type": "qwen2_vl", "rope_scaling": scaling });
    let pairs = [2, 3, 3];
    let axes = RopeAxes {
        pairs,
        is_interleaved: false,
    };
    assert_eq!(
        images(&with(llama(), older)),
        Some(ImageInput {
            axes: Some(axes),
            ..ImageInput::PLAIN
        })
    );
    let rope = json!({ "rope_type": "default", "rope_theta": 1e6, "mrope_section": pairs });
    let text = json!({ "head_dim": 16, "rope_parameters": rope });
    let deep = json!({ "deepstack_visual_indexes": [5, 11] });
    let is_interleaved = true;
    assert_eq!(
        images(&whole("qwen3_vl", text, deep)),
        Some(ImageInput {
            axes: Some(RopeAxes {
                pairs,
                is_interleaved
            }),
            deep_layers: 2,
            ..ImageInput::PLAIN
        })
    );
}

#[test]
fn axes_must_be_said() {
    let none = with(llama(), json!({ "model_type": "qwen2_vl" }));
    let error = describe(&none).expect_err("no axes");
    assert!(error.contains("mrope_section"), "{error}");
    let scaling = json!({ "type": "mrope", "mrope_section": [2, -3, 3] });
    let wrong = json!({ "model_type": "qwen2_vl", "rope_scaling": scaling });
    let error = describe(&with(llama(), wrong)).expect_err("no number");
    assert!(error.contains("the pairs of three axes"), "{error}");
}

/// Three maps of features for two layers.
#[test]
fn features_are_added_after_layers_that_there_are() {
    let file = |deep: u32| {
        describe_gguf(|header: &mut GgufHeader| {
            header.set("general.architecture", "qwen3vl");
            for (key, value) in [
                ("block_count", 2u32),
                ("embedding_length", 64),
                ("feed_forward_length", 128),
                ("attention.head_count", 4),
                ("context_length", 128),
                ("n_deepstack_layers", deep),
            ] {
                header.set(&format!("qwen3vl.{key}"), &value);
            }
            let sections = [3u32, 3, 2, 0];
            header.set("qwen3vl.rope.dimension_sections", &sections[..]);
        })
    };
    let images = file(2).expect("complete").images.expect("it reads images");
    assert_eq!(images.deep_layers, 2);
    assert_eq!(images.axes.map(|axes| axes.pairs), Some([3, 3, 2]));
    let error = file(3).expect_err("two layers");
    assert!(error.contains("layers with features of images"), "{error}");
}
