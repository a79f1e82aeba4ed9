//! The scaling of positions: every kind in both containers, and the refused ones.

use akunu_arch::{Model, Rope, RopeFactors};
use serde_json::{Value, json};

use crate::descriptions::{describe, describe_gguf, llama, with};

fn rope(model: &Model) -> Rope {
    let attention = model.attention().next().expect("a layer");
    attention.rope.expect("it turns")
}

/// A model whose config has this scaling, in the old place.
fn scaled(scaling: Value) -> Result<Model, String> {
    describe(&with(llama(), json!({ "rope_scaling": scaling })))
}

fn phi(scaling: Value) -> Result<Model, String> {
    let phi = json!({ "model_type": "phi3", "original_max_position_embeddings": 512, "rope_scaling": scaling });
    describe(&with(llama(), phi))
}

/// Heads of 16 have 8 pairs.
fn factors(n: usize) -> Value {
    json!(vec![2.0; n])
}

#[test]
fn long_rope_has_two_lists_and_a_magnitude() {
    for name in ["longrope", "su"] {
        let scaling =
            json!({ "type": name, "short_factor": factors(8), "long_factor": vec![3.0; 8] });
        let model = phi(scaling).expect("whole");
        let long = model.long_rope.as_ref().expect("long-rope");
        assert_eq!(long.original_context, 512);
        assert_eq!([long.short[7], long.long[7]], [2.0, 3.0]);
        // sqrt(1 + ln 4 / ln 512)
        assert!((rope(&model).magnitude - 1.105_541_6).abs() < 1e-6);
        assert_eq!(rope(&model).factors, RopeFactors::Weight);
    }
    let said = json!({
        "rope_type": "longrope", "short_factor": factors(8), "long_factor": factors(8), "attention_factor": 1.5
    });
    assert_eq!(rope(&phi(said).expect("whole")).magnitude, 1.5);
}

#[test]
fn yarn_has_a_magnitude_by_its_scales() {
    let yarn = |more: Value| {
        let yarn =
            json!({ "type": "yarn", "factor": 8.0, "original_max_position_embeddings": 256 });
        rope(&scaled(with(yarn, more)).expect("whole")).magnitude
    };
    let by_factor = 1.0 + 0.1 * 8f32.ln();
    assert_eq!(yarn(json!({})), by_factor);
    assert_eq!(yarn(json!({ "attention_factor": 1.25 })), 1.25);
    assert_eq!(yarn(json!({ "mscale": 1.0, "mscale_all_dim": 1.0 })), 1.0);
    let ratio = by_factor / (1.0 + 0.05 * 8f32.ln());
    let found = yarn(json!({ "mscale": 1.0, "mscale_all_dim": 0.5 }));
    assert!((found - ratio).abs() < 1e-6, "{found}");
    assert_eq!(
        yarn(json!({ "factor": null })),
        by_factor,
        "by the contexts"
    );
}

/// Within the context that a model was trained for, dynamic NTK changes nothing unless there is an alpha.
#[test]
fn dynamic_scaling_is_that_of_a_larger_base() {
    let plain = scaled(json!({ "type": "dynamic", "factor": 2.0 })).expect("whole");
    assert_eq!(rope(&plain).theta, 500_000.0);
    let larger = scaled(json!({ "type": "dynamic", "alpha": 1000.0 })).expect("whole");
    assert!(rope(&larger).theta > 1000.0 * 500_000.0);
}

#[test]
fn the_temperature_of_attention_has_the_original_context() {
    let scaling = json!({
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512, "llama_4_scaling_beta": 0.1
    });
    let ministral = json!({ "model_type": "ministral3", "rope_parameters": scaling });
    let model = describe(&with(llama(), ministral)).expect("whole");
    let attention = model.attention().next().expect("a layer");
    let temperature = attention.temperature.expect("there is one");
    assert_eq!((temperature.scale, temperature.period), (0.1, 512));
}

#[test]
fn what_is_wrong_with_a_scaling_is_named() {
    let long = |short: Value, long: Value| json!({ "type": "longrope", "short_factor": short, "long_factor": long });
    let cases = [
        (json!({ "type": "ntk2" }), "the RoPE scaling `ntk2` is not"),
        (
            long(factors(7), factors(8)),
            "`short_factor` is a list of 7 for 8 pairs",
        ),
        (
            long(factors(8), json!("all")),
            "`long_factor` is a list of 0 for 8 pairs",
        ),
        (long(factors(8), json!(null)), "`long_factor` is missing"),
        (
            long(factors(8), json!([1, 1, 1, 1, 1, 1, 1, 0])),
            "`long_factor` is a list with 0",
        ),
        (
            long(json!([1, 1, 1, "a", 1, 1, 1, 1]), factors(8)),
            "`short_factor` is a list with NaN",
        ),
        (
            json!({ "type": "yarn", "factor": -1.0 }),
            "`YaRN factor` is -1",
        ),
        (
            json!({ "type": "dynamic", "alpha": -1.0 }),
            "`RoPE base` is",
        ),
    ];
    for (scaling, message) in cases {
        let error = phi(scaling.clone()).expect_err("must be refused");
        assert!(error.contains(message), "{scaling}: {error}");
    }
    let endless = json!({ "type": "longrope", "short_factor": factors(8), "long_factor": factors(8), "attention_factor": -1.0 });
    let error = phi(endless).expect_err("no magnitude");
    assert!(
        error.contains("`long-rope's attention factor` is -1"),
        "{error}"
    );
    let error = scaled(long(factors(8), factors(8))).expect_err("no original context");
    assert!(
        error.contains("`original_max_position_embeddings` is missing"),
        "{error}"
    );
}

#[test]
fn gguf_names_what_is_wrong_with_a_scaling() {
    let kind =
        |name: &'static str| describe_gguf(|header| header.set("llama.rope.scaling.type", name));
    let error = kind("ntk2").expect_err("unknown");
    assert!(error.contains("the RoPE scaling `ntk2`"), "{error}");
    let error = kind("longrope").expect_err("without its weights");
    assert!(error.contains("original_context_length"), "{error}");
    let error = kind("yarn").expect_err("without its context");
    assert!(error.contains("original_context_length"), "{error}");
}
