//! The shapes of real models, as their makers publish them.

use std::path::PathBuf;

use akunu_arch::{Activation, ArchError, ModelConfig, RopeFactors, RopePairing};
use akunu_gguf::WeightStore;
use akunu_types::KvFormat;

fn asset(name: &str, file: &str) -> (WeightStore, PathBuf) {
    let path = akunu_assets::path(name, file);
    (WeightStore::open(&path).expect("a whole file"), path)
}

#[test]
fn smollm2() {
    let (store, path) = asset("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let config = ModelConfig::from_store(&store).expect("a Llama");
    assert_eq!(config.arch.name, "llama");
    assert_eq!(
        (config.layers.len(), config.dim, config.ffn_dim),
        (30, 576, 1536)
    );
    assert_eq!(
        (config.n_heads, config.n_kv_heads, config.head_dim),
        (9, 3, 64)
    );
    assert_eq!((config.vocab_size, config.tied_embeddings), (49_152, true));
    assert_eq!(config.arch.rope, Some(RopePairing::Interleaved));
    assert_eq!(config.layers[0].rope.theta, 100_000.0);
    assert_eq!(config.attention_scale, 0.125);
    assert!(config.layers.iter().all(|layer| layer.window.is_none()));
    config
        .check_weights(&store, &path)
        .expect("all weights are there");
    // 30 layers × 2 × 3 heads × 64 × 2 bytes a position.
    assert_eq!(
        config.kv_bytes_read(1000, KvFormat::F16),
        30 * 2 * 3 * 64 * 2 * 1000
    );
}

#[test]
fn gemma3_has_windows_and_two_rope_bases() {
    let (store, path) = asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    let config = ModelConfig::from_store(&store).expect("a Gemma 3");
    assert_eq!((config.layers.len(), config.dim), (18, 640));
    assert_eq!(
        (config.n_heads, config.n_kv_heads, config.head_dim),
        (4, 1, 256)
    );
    assert_eq!(config.arch.activation, Activation::GeluGate);
    assert_eq!(config.embedding_scale, Some(640f32.sqrt()));
    assert_eq!(
        (config.attention_softcap, config.final_softcap),
        (None, None)
    );
    assert!(!config.arch.norm_adds_one, "GGUF holds 1 + w");
    for (at, layer) in config.layers.iter().enumerate() {
        let global = (at + 1) % 6 == 0;
        assert_eq!(layer.window, (!global).then_some(512), "layer {at}");
        assert_eq!(
            layer.rope.theta,
            if global { 1e6 } else { 1e4 },
            "layer {at}"
        );
        assert_eq!(layer.rope.factors, RopeFactors::None);
    }
    // 15 layers see 512 positions and 3 see all, with a key and a value of 256 halves each.
    let read = config.kv_bytes_read(4096, KvFormat::F16);
    assert_eq!(read, 2 * 2 * 256 * (15 * 512 + 3 * 4096));
    config
        .check_weights(&store, &path)
        .expect("all weights are there");
}

#[test]
fn a_missing_weight_is_named() {
    let (store, path) = asset("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let mut config = ModelConfig::from_store(&store).expect("a Llama");
    config.layers.push(config.layers[0]);
    let error = config
        .check_weights(&store, &path)
        .expect_err("there is no layer 30");
    assert!(
        matches!(&error, ArchError::MissingWeight { name, tensors, .. }
        if name == "layers.30.attention_norm.weight" && *tensors == ["blk.30.attn_norm.weight"]),
        "{error}"
    );
    config.layers.pop();
    config.ffn_dim += 1;
    let error = config
        .check_weights(&store, &path)
        .expect_err("another width");
    assert!(
        error
            .to_string()
            .contains("`layers.0.ffn.gate.weight` is 1536 × 576"),
        "{error}"
    );
}
