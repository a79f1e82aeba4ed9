//! Files and images that a vision tower refuses, each in a sentence that names what is wrong.

use std::path::{Path, PathBuf};

use super::{grid, pixels};
use crate::support::files::{gguf_of, write_folder, write_gguf};
use crate::support::fixture::Fixture;
use akunu_engine::vision::{Grid, VisionModel};
use akunu_engine::{EngineError, Model};
use akunu_kernels::twin_device::TwinDevice;
use serde_json::{Value, json};

/// The error of a file that is written from a changed fixture.
fn refusal(name: &str, write: Write, change: impl FnOnce(&mut Fixture)) -> String {
    let mut model = Fixture::read("vision", name);
    change(&mut model);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(&model, folder.path());
    match VisionModel::load(&path, Box::new(TwinDevice::new())) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

type Write = fn(&Fixture, &Path) -> PathBuf;

/// Metadata of a tower that cannot be: the value, and what is said.
#[test]
fn metadata_that_no_tower_can_have_is_refused_by_name() {
    let cases: [(&str, Value, &str); 17] = [
        (
            "projector_type",
            json!("resampler"),
            "`resampler` are not supported; those that run are idefics3, gemma3, qwen3vl_merger, lfm2",
        ),
        (
            "has_vision_encoder",
            json!(false),
            "has no vision tower: `clip.has_vision_encoder` is false",
        ),
        ("use_gelu", json!(false), "without `clip.use_gelu`"),
        (
            "vision.attention.head_count",
            json!(5),
            "`clip.vision.attention.head_count` is 5 for a width of 48",
        ),
        (
            "vision.attention.head_count",
            json!(0),
            "`clip.vision.attention.head_count` is 0",
        ),
        (
            "vision.attention.head_count",
            json!(24),
            "`clip.vision.attention.head_count` is 24 for a width of 48",
        ),
        (
            "vision.projection_dim",
            json!(44),
            "is 40 × 192, the config says 44 × 192",
        ),
        (
            "vision.feed_forward_length",
            json!(96),
            "is 80 × 48, the config says 96 × 48",
        ),
        (
            "vision.block_count",
            json!(4),
            "there is no tensor `v.blk.3.ln1.weight`",
        ),
        (
            "vision.block_count",
            json!(4_000_000),
            "`clip.vision.block_count` is 4000000",
        ),
        (
            "vision.image_size",
            json!(84),
            "`vision.positions.weight` is 36 × 48, the config says 144 × 48",
        ),
        (
            "vision.image_size",
            json!(2100),
            "`patches of an image` is 300 × 300",
        ),
        (
            "vision.image_size",
            json!(6),
            "`clip.vision.image_size` is 6, and a patch has 7",
        ),
        (
            "vision.patch_size",
            json!(3),
            "`vision.patches.weight` is 1008 × 7, the config says 432 × 3",
        ),
        (
            "vision.projector.scale_factor",
            json!(4),
            "`patches that become a row` is 4 × 4 for 6 × 6 patches",
        ),
        (
            "vision.attention.layer_norm_epsilon",
            json!(-1.0),
            "`norm epsilon` is -1",
        ),
        (
            "vision.image_std",
            json!([0.5, 0.25]),
            "`image_std` is [0.5, 0.25]",
        ),
    ];
    for (key, value, wanted) in cases {
        let error = refusal("idefics3", write_gguf, |model| {
            model.metadata.insert(format!("clip.{key}"), value);
        });
        assert!(
            error.contains("model.gguf") && error.contains(wanted),
            "{key}: {error}"
        );
    }
    for key in ["projector_type", "vision.patch_size", "vision.image_mean"] {
        let key = format!("clip.{key}");
        let error = refusal("idefics3", write_gguf, |model| {
            model.metadata.remove(&key);
        });
        assert!(error.contains(&key), "{key}: {error}");
    }
}

/// The same of folders.
#[test]
fn a_config_that_no_tower_can_have_is_refused_by_name() {
    let change = |name: &str, change: &dyn Fn(&mut Value)| {
        refusal(name, write_folder, |model| change(&mut model.config))
    };
    let error = change("idefics3", &|config| config["vision_config"] = Value::Null);
    assert!(
        error.contains("has no vision tower: `vision_config` is missing"),
        "{error}"
    );
    let error = change("idefics3", &|config| {
        config["model_type"] = "florence2".into()
    });
    assert!(
        error.contains(
            "`florence2` are not supported; those that run are idefics3, smolvlm, gemma3, qwen3_vl"
        ),
        "{error}"
    );
    let error = change("idefics3", &|config| {
        config["scale_factor"] = 1_000_000.into()
    });
    assert!(error.contains("`scale_factor` is 1000000"), "{error}");
    let error = change("idefics3", &|config| {
        config["vision_config"]["hidden_act"] = "silu".into()
    });
    assert!(error.contains("`hidden_act` = `silu`"), "{error}");
    let error = change("gemma3", &|config| {
        config["mm_tokens_per_image"] = 10.into()
    });
    assert!(
        error.contains("`mm_tokens_per_image` is 10 for 12 × 12 patches"),
        "{error}"
    );
}

/// Weights that are missing, or that have become NaN.
#[test]
fn damaged_towers_are_refused() {
    let missing = refusal("gemma3", write_gguf, |model| {
        model
            .weights
            .retain(|weight| weight.gguf != "v.blk.1.attn_q.weight");
    });
    assert!(
        missing.contains("`vision.layers.1.attention.q.weight` is missing: there is no tensor `v.blk.1.attn_q.weight`"),
        "{missing}"
    );
    let missing = refusal("gemma3", write_folder, |model| {
        model
            .weights
            .retain(|weight| !weight.name.contains("input_projection"));
    });
    assert!(missing.contains("mm_input_projection_weight"), "{missing}");
    let mut model = Fixture::read("vision", "gemma3");
    let mut weights = model.weights.iter_mut();
    let norm = weights.find(|weight| weight.gguf == "v.post_ln.weight");
    norm.expect("it is there").scale = f32::NAN;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    let mut tower = VisionModel::load(&path, Box::new(TwinDevice::new())).expect("a whole tower");
    let grid = grid(&model.images[0]);
    let pixels = pixels(
        0,
        grid.len() * tower.config().input.patch_numbers() as usize,
    );
    let error = tower.see(&pixels, grid).expect_err("rows of NaN");
    assert!(matches!(error, EngineError::NotNumbers { .. }), "{error}");
}

/// Clear errors for a model of the wrong kind and for an image of the wrong size.
#[test]
fn towers_and_language_models_are_not_mixed_up() {
    let text = gguf_of("llama3");
    let error = VisionModel::load(&text.path, Box::new(TwinDevice::new())).err();
    let error = error.expect("a language model").to_string();
    assert!(
        error.contains("has no vision tower: its architecture is `llama`"),
        "{error}"
    );
    let model = Fixture::read("vision", "idefics3");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    let error = Model::load(&path, Box::new(TwinDevice::new())).err();
    let error = error.expect("a tower").to_string();
    assert!(error.contains("is a vision tower (`clip`)"), "{error}");

    let mut tower = VisionModel::load(&path, Box::new(TwinDevice::new())).expect("a whole tower");
    let refused = |tower: &mut VisionModel, numbers: usize, height: u32, width: u32| {
        let error = tower.see(&vec![0.0; numbers], Grid { height, width });
        error.expect_err("it does not fit").to_string()
    };
    let wide = refused(&mut tower, 147 * 42, 6, 7);
    assert!(
        wide.contains("6 × 7 patches") && wide.contains("42 × 42 pixels"),
        "{wide}"
    );
    let short = refused(&mut tower, 147 * 36 - 1, 6, 6);
    assert!(
        short.contains("5291 numbers") && short.contains("has 5292"),
        "{short}"
    );
}

/// Grids of a tower that reads images of any size.
#[test]
fn grids_that_are_not_whole_or_too_large_are_refused() {
    let model = Fixture::read("vision", "qwen3vl");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&model, folder.path());
    let mut tower = VisionModel::load(&path, Box::new(TwinDevice::new())).expect("a whole tower");
    let cases = [
        (3, 4, "both must be multiples of 2"),
        (0, 4, "both must be multiples of 2"),
        (2, 40_000, "more than 65536"),
        (u32::MAX - 1, u32::MAX - 1, "more than 65536"),
        (2, 2, "it has 0 numbers, and its grid of patches has 588"),
    ];
    for (height, width, wanted) in cases {
        let error = tower.see(&[], Grid { height, width });
        let error = error.expect_err("it does not fit").to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Layers with projectors that the tower does not have, or in another order.
#[test]
fn projectors_of_layers_that_are_not_there_are_refused() {
    let change = |list: Value| {
        refusal("qwen3vl", write_folder, |model| {
            model.config["vision_config"]["deepstack_visual_indexes"] = list;
        })
    };
    for list in [json!([0, 3]), json!([2, 0]), json!([0, -1]), json!("all")] {
        let error = change(list);
        assert!(error.contains("`deepstack_visual_indexes` is"), "{error}");
        assert!(error.contains("in ascending order"), "{error}");
    }
    let error = change(json!([0, 1, 2]));
    assert!(
        error.contains("visual.deepstack_merger_list.2.norm.weight"),
        "{error}"
    );
    let error = refusal("qwen3vl", write_gguf, |model| {
        let flags = json!([true, true, true]);
        model
            .metadata
            .insert("clip.vision.is_deepstack_layers".into(), flags);
    });
    assert!(error.contains("`v.deepstack.1.norm.weight`"), "{error}");
    let error = refusal("qwen3vl", write_folder, |model| {
        model.config["vision_config"]["num_position_embeddings"] = 24.into();
    });
    assert!(error.contains("`num_position_embeddings` is 24"), "{error}");
}
