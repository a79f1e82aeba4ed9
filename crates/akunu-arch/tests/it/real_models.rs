//! The shapes of real models, as their makers publish them.

use std::path::PathBuf;

use akunu_arch::{Activation, ArchError, Change, Ffn, Model, Output, Pairing, RopeFactors};
use akunu_gguf::WeightStore;
use akunu_types::KvFormat;

fn asset(name: &str, file: &str) -> (WeightStore, PathBuf) {
    let path = akunu_assets::path(name, file);
    (WeightStore::open(&path).expect("a whole file"), path)
}

#[test]
fn smollm2() {
    let (store, path) = asset("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let config = Model::from_store(&store).expect("a Llama");
    assert_eq!(config.arch, "llama");
    assert_eq!(
        (
            config.layers.len(),
            config.dim,
            config.layers[0].ffn.width()
        ),
        (30, 576, 1536)
    );
    assert_eq!(config.vocab_size, 49_152);
    assert!(matches!(&config.output, Output::Logits(logits) if logits.is_tied));
    for attention in config.attention() {
        let heads = (attention.heads, attention.kv_heads, attention.head_dim);
        assert_eq!((heads, attention.scale), ((9, 3, 64), 0.125));
        let rope = attention.rope.expect("it turns");
        assert_eq!(
            (rope.pairing, rope.theta),
            (Pairing::Interleaved, 100_000.0)
        );
        assert_eq!(attention.window, None);
    }
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
    let config = Model::from_store(&store).expect("a Gemma 3");
    assert_eq!((config.layers.len(), config.dim), (18, 640));
    assert_eq!(config.embedding.scale, Some(640f32.sqrt()));
    assert!(matches!(&config.output, Output::Logits(logits) if logits.softcap.is_none()));
    let norm = config.norm.as_ref().expect("of the result");
    assert_eq!(norm.weight.change, Change::None, "GGUF holds 1 + w");
    for (at, attention) in config.attention().enumerate() {
        let heads = (attention.heads, attention.kv_heads, attention.head_dim);
        assert_eq!((heads, attention.softcap), ((4, 1, 256), None));
        let is_global = (at + 1) % 6 == 0;
        assert_eq!(attention.window, (!is_global).then_some(512), "layer {at}");
        let rope = attention.rope.expect("it turns");
        let theta = if is_global { 1e6 } else { 1e4 };
        assert_eq!(
            (rope.theta, rope.factors),
            (theta, RopeFactors::None),
            "layer {at}"
        );
    }
    let is_gelu = |ffn: &Ffn| matches!(ffn, Ffn::Gated(ffn) if ffn.activation == Activation::Gelu);
    assert!(config.layers.iter().all(|layer| is_gelu(&layer.ffn)));
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
    let mut config = Model::from_store(&store).expect("a Llama");
    let norm = |model: &mut Model| {
        let norm = model.layers[29].norms.mixer.input.as_mut();
        norm.expect("of what attention reads").weight.name =
            "layers.30.attention_norm.weight".into();
    };
    let whole = config.clone();
    norm(&mut config);
    let error = config
        .check_weights(&store, &path)
        .expect_err("there is no layer 30");
    assert!(
        matches!(&error, ArchError::MissingWeight { name, tensors, .. }
        if name == "layers.30.attention_norm.weight" && *tensors == ["blk.30.attn_norm.weight"]),
        "{error}"
    );
    config = whole;
    let Ffn::Gated(ffn) = &mut config.layers[0].ffn else {
        panic!("there is a gate");
    };
    ffn.gate.weight.tensor_rows += 1;
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
