//! Descriptions written by hand: each architecture from `config.json`, and what is refused.

use std::fs;

use akunu_arch::{
    Activation, ArchError, Architecture, Attention, Change, Ffn, Key, Layer, Model, ModelFile,
    Output, Pairing, Parts, RopeFactors, WindowPattern,
};
use akunu_gguf::{GgufHeader, WeightStore};
use akunu_types::DType;
use serde_json::{Value, json};

/// A folder with this config and a token embedding of 10 rows, opened and described.
pub fn describe(config: &Value) -> Result<Model, String> {
    let store = open(config)?;
    Model::from_store(&store).map_err(|error| error.to_string())
}

fn open(config: &Value) -> Result<WeightStore, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let header = json!({"model.embed_tokens.weight": {
        "dtype": "F32", "shape": [10, 1], "data_offsets": [0, 40]
    }});
    let header = header.to_string().into_bytes();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(&header);
    file.extend([0; 40]);
    fs::write(folder.path().join("model.safetensors"), file).expect("written");
    fs::write(folder.path().join("config.json"), config.to_string()).expect("written");
    WeightStore::open(folder.path()).map_err(|error| error.to_string())
}

pub fn llama() -> Value {
    json!({
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 500000.0
    })
}

pub fn with(mut config: Value, fields: Value) -> Value {
    let fields = fields.as_object().expect("an object").clone();
    config.as_object_mut().expect("an object").extend(fields);
    config
}

fn first_attention(model: &Model) -> &Attention {
    model.attention().next().expect("a layer")
}

fn is_tied(model: &Model) -> bool {
    matches!(&model.output, Output::Logits(logits) if logits.is_tied)
}

#[test]
fn safetensors_llama_has_split_halves() {
    let config = describe(&llama()).expect("complete");
    let attention = first_attention(&config);
    let rope = attention.rope.expect("it turns");
    assert_eq!(rope.pairing, Pairing::SplitHalves, "only GGUF permutes");
    assert_eq!(
        (attention.head_dim, attention.kv_heads, config.vocab_size),
        (16, 2, 10)
    );
    assert_eq!(rope.theta, 500_000.0);
    assert!(is_tied(&config), "there is no output weight");
}

#[test]
fn llama3_scaling_in_the_old_and_the_new_place() {
    let scaling = json!({
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192
    });
    let old = describe(&with(llama(), json!({ "rope_scaling": scaling }))).expect("complete");
    let parameters = with(scaling, json!({ "rope_theta": 500000.0 }));
    let new = describe(&with(llama(), json!({ "rope_parameters": parameters }))).expect("complete");
    assert_eq!(old, new);
    let last = old.attention().last().and_then(|attention| attention.rope);
    assert!(matches!(
        last.expect("it turns").factors,
        RopeFactors::Llama3 { factor: 32.0, .. }
    ));
}

#[test]
fn qwen_models_differ_in_bias_and_norm() {
    let qwen = |name| describe(&with(llama(), json!({ "model_type": name }))).expect("complete");
    let (two, three) = (qwen("qwen2"), qwen("qwen3"));
    let parts = |model| {
        let attention: &Attention = first_attention(model);
        (attention.k.bias.is_some(), attention.qk_norm.is_some())
    };
    assert_eq!([parts(&two), parts(&three)], [(true, false), (false, true)]);
}

#[test]
fn gemma2_alternates_and_caps() {
    let config = describe(&with(
        llama(),
        json!({
            "model_type": "gemma2", "head_dim": 32, "sliding_window": 8, "query_pre_attn_scalar": 144,
            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0
        }),
    ));
    let config = config.expect("complete");
    let windows: Vec<_> = config.windows().collect();
    assert_eq!(windows, [Some(8), None, Some(8), None]);
    let attention = first_attention(&config);
    assert_eq!(
        (attention.softcap, attention.scale),
        (Some(50.0), 1.0 / 12.0)
    );
    assert!(matches!(&config.output, Output::Logits(logits) if logits.softcap == Some(30.0)));
    let norm = config.norm.expect("of the result");
    assert_eq!(norm.weight.change, Change::Plus(1.0), "safetensors hold w");
}

#[test]
fn gemma3_takes_its_layers_from_the_list() {
    let config = describe(
        &json!({ "model_type": "gemma3", "text_config": with(llama(), json!({
            "sliding_window": 8, "rope_theta": 1e6, "rope_local_base_freq": 2e4,
            "rope_scaling": { "rope_type": "linear", "factor": 8.0 },
            "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]
        }))}),
    );
    let config = config.expect("complete");
    let seen: Vec<_> = config
        .attention()
        .map(|attention| {
            let rope = attention.rope.expect("it turns");
            assert_eq!(rope.factors, RopeFactors::None);
            (attention.window, rope.theta, rope.freq_scale)
        })
        .collect();
    assert_eq!(seen[..2], [(None, 1e6, 0.125), (Some(8), 2e4, 1.0)]);
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let cases = [
        (
            json!({ "model_type": "mamba" }),
            "`mamba` is not supported; those that run are llama",
        ),
        (json!({ "hidden_size": null }), "`hidden_size` is missing"),
        (
            json!({ "hidden_size": "wide" }),
            "`hidden_size` is \"wide\"",
        ),
        (json!({ "num_hidden_layers": 0 }), "`layers` is 0"),
        (
            json!({ "num_hidden_layers": 4_000_000_000u32 }),
            "`layers` is",
        ),
        (json!({ "num_key_value_heads": 3 }), "`heads` is 4 for 3"),
        (
            json!({ "num_key_value_heads": 0 }),
            "`key/value heads` is 0",
        ),
        (json!({ "num_attention_heads": 0 }), "`heads` is 0"),
        (json!({ "head_dim": 15 }), "`head length` is 15"),
        (json!({ "rms_norm_eps": -1.0 }), "`norm epsilon` is -1"),
        (json!({ "rope_theta": 0 }), "`RoPE base` is 0"),
        (
            json!({ "rope_scaling": { "type": "linear" } }),
            "`factor` is missing",
        ),
        (
            json!({ "rope_scaling": { "type": "linear", "factor": 0 } }),
            "`RoPE scale` is",
        ),
        (json!({ "rope_theta": 1e-40 }), "`RoPE` is scaled"),
        (
            json!({ "rope_scaling": {
                "rope_type": "llama3", "factor": 0, "low_freq_factor": 1, "high_freq_factor": 4,
                "original_max_position_embeddings": 8192,
            } }),
            "`RoPE` is scaled",
        ),
        (json!({ "head_dim": 20 }), "a multiple of 8, at most 576"),
        (json!({ "head_dim": 584 }), "a multiple of 8, at most 576"),
    ];
    for (fields, message) in cases {
        let error = describe(&with(llama(), fields.clone())).expect_err("must be refused");
        assert!(error.contains(message), "{fields}: {error}");
    }
}

/// Variants that would be computed wrongly are named.
#[test]
fn variants_of_architectures_are_refused_by_name() {
    let cases = [
        (
            json!({ "model_type": "stablelm", "qk_layernorm": true }),
            "`qk_layernorm` in the architecture `stablelm`",
        ),
        (
            json!({ "model_type": "cohere", "use_qk_norm": true }),
            "`use_qk_norm` in the architecture `command-r`",
        ),
        (
            json!({ "model_type": "arcee", "hidden_act": "silu" }),
            "`hidden_act` = `silu` in the architecture `arcee`",
        ),
        (
            json!({ "model_type": "nemotron", "hidden_act": "gelu" }),
            "`hidden_act` = `gelu`",
        ),
        (
            json!({ "model_type": "starcoder2", "hidden_act": "relu" }),
            "`hidden_act` = `relu`",
        ),
        (
            json!({ "model_type": "minicpm", "scale_depth": -1.0 }),
            "`scale_depth` is -1",
        ),
        (
            json!({ "model_type": "minicpm", "dim_model_base": 0 }),
            "`dim_model_base` is 0",
        ),
    ];
    for (fields, message) in cases {
        let error = describe(&with(llama(), fields.clone())).expect_err("must be refused");
        assert!(error.contains(message), "{fields}: {error}");
    }
}

/// Gemma 4 whose last layers read keys and values of earlier ones.
fn gemma4(n_shared: u32) -> Value {
    let kinds = ["sliding_attention", "full_attention"].repeat(3);
    let fields = json!({
        "model_type": "gemma4_text", "num_hidden_layers": 6, "layer_types": kinds, "sliding_window": 32,
        "head_dim": 16, "global_head_dim": 32, "num_kv_shared_layers": n_shared, "use_double_wide_mlp": true,
        "rope_parameters": {
            "sliding_attention": { "rope_type": "default", "rope_theta": 1e4 },
            "full_attention": { "rope_type": "default", "rope_theta": 1e6 }
        }
    });
    with(llama(), fields)
}

/// A layer that stores no keys reads those of the last layer before with the same window, and its blocks are wider.
#[test]
fn the_last_layers_of_gemma4_read_the_keys_of_the_last_of_their_kind() {
    let model = describe(&gemma4(3)).expect("complete");
    let sources: Vec<_> = model
        .attention()
        .map(|attention| attention.keys_of)
        .collect();
    assert_eq!(sources, [None, None, None, Some(1), Some(2), Some(1)]);
    let keys: Vec<&str> = model
        .attention()
        .map(|attention| &attention.k.weight.name[7..8])
        .collect();
    assert_eq!(
        keys,
        ["0", "1", "2", "1", "2", "1"],
        "they are products of those layers"
    );
    assert_eq!(
        model.cached_attention().count(),
        3,
        "the others store nothing"
    );
    let widths: Vec<u32> = model.layers.iter().map(|layer| layer.ffn.width()).collect();
    assert_eq!(widths, [128, 128, 128, 256, 256, 256]);
    let all_own = describe(&gemma4(0)).expect("complete");
    assert_eq!(all_own.cached_attention().count(), 6);
}

#[test]
fn layers_of_gemma4_that_find_no_keys_are_refused() {
    for n_shared in [6, 7] {
        let error = describe(&gemma4(n_shared)).expect_err("no layer has keys");
        assert!(error.contains("`num_kv_shared_layers` is"), "{error}");
    }
    let error = describe(&gemma4(5)).expect_err("none without a window has keys");
    assert!(
        error.contains("a layer finds no keys of its kind"),
        "{error}"
    );
    let wide = json!({ "hidden_size_per_layer_input": 1 << 20 });
    let error = describe(&with(gemma4(0), wide)).expect_err("too wide");
    assert!(
        error.contains("`hidden_size_per_layer_input` is 1048576"),
        "{error}"
    );
}

/// DeepSeek V3 without experts.
fn deepseek(fields: Value) -> Value {
    let sizes = json!({
        "model_type": "deepseek_v3", "kv_lora_rank": 48, "qk_nope_head_dim": 24, "qk_rope_head_dim": 16, "v_head_dim": 32
    });
    with(with(llama(), sizes), fields)
}

/// One key of 64 elements is stored for all heads, of which 16 turn by pairs of neighbours.
#[test]
fn latent_attention_stores_one_key() {
    let model = describe(&deepseek(json!({}))).expect("complete");
    let attention = first_attention(&model);
    let latent = attention.latent.as_ref().expect("it is latent");
    assert_eq!((attention.kv_heads, attention.head_dim), (1, 64));
    assert_eq!((attention.turned_dim(), latent.query_dim()), (16, 40));
    assert_eq!(
        attention.rope.map(|rope| rope.pairing),
        Some(Pairing::Interleaved)
    );
    assert_eq!(attention.scale, 1.0 / 40f32.sqrt());
    let shape = |linear: &akunu_arch::Linear| (linear.weight.rows, linear.weight.cols);
    assert_eq!(
        (shape(&attention.q), shape(&attention.output)),
        ((160, 64), (64, 128))
    );
}

/// Scores have the square of YaRN's factor, and heads none: both scales of the file are the same.
#[test]
fn latent_attention_scales_scores_by_yarn() {
    let scaling = json!({
        "type": "yarn", "factor": 40.0, "mscale": 0.707, "mscale_all_dim": 0.707,
        "original_max_position_embeddings": 4096
    });
    let model = describe(&deepseek(json!({ "rope_scaling": scaling }))).expect("complete");
    let attention = first_attention(&model);
    let factor = 0.1 * 0.707 * 40f32.ln() + 1.0;
    let wanted = factor * factor / 40f32.sqrt();
    assert!(
        (attention.scale / wanted - 1.0).abs() < 1e-6,
        "{}",
        attention.scale
    );
    assert_eq!(attention.rope.map(|rope| rope.magnitude), Some(1.0));
}

#[test]
fn latent_attention_of_other_kinds_is_refused() {
    let cases = [
        (json!({ "kv_lora_rank": null }), "`kv_lora_rank` is missing"),
        (
            json!({ "kv_lora_rank": 0 }),
            "`rank of keys and values` is 0",
        ),
        (json!({ "kv_lora_rank": 4096 }), "`head length` is 4112"),
        (
            json!({ "v_head_dim": 1 << 20 }),
            "`elements of a value` is 1048576",
        ),
        (json!({ "qk_rope_head_dim": 15 }), "`head length` is 63"),
        (
            json!({ "rope_interleave": false }),
            "`rope_interleave` = false",
        ),
        (json!({ "attention_bias": true }), "`attention_bias`"),
        (
            json!({ "n_group": 8, "topk_method": "group_limited_greedy" }),
            "`topk_method` = `group_limited_greedy`",
        ),
    ];
    for (fields, message) in cases {
        let error = describe(&deepseek(fields.clone())).expect_err("must be refused");
        assert!(error.contains(message), "{fields}: {error}");
    }
}

/// A GGUF file with these extra keys, described.
pub fn describe_gguf(extra: impl FnOnce(&mut GgufHeader)) -> Result<Model, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tiny.gguf");
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    for (key, value) in [
        ("llama.block_count", 2u32),
        ("llama.embedding_length", 64),
        ("llama.feed_forward_length", 128),
        ("llama.attention.head_count", 4),
        ("llama.context_length", 128),
    ] {
        header.set(key, &value);
    }
    header.tensor("token_embd.weight", &[64, 10], DType::F32);
    extra(&mut header);
    let mut writer = header.create(&path).expect("a header");
    writer
        .write("token_embd.weight", &[0; 64 * 10 * 4])
        .expect("written");
    writer.finish().expect("written");
    let store = WeightStore::open(&path).map_err(|error| error.to_string())?;
    Model::from_store(&store).map_err(|error| error.to_string())
}

/// A model of another crate: a Llama whose logits have a scale of their own key.
static OUTSIDE: Architecture = Architecture::new(
    "outside",
    &["outside"],
    Pairing::SplitHalves,
    |file: &ModelFile| -> Result<Model, ArchError> {
        let scale = file.f32(Key::same(&["logit_scale"]))?;
        let parts = Parts::read(file, WindowPattern::None, None)?;
        let mut model = parts.decoder(|at| {
            let attention = parts.attention(at).with_qkv_bias();
            let ffn = parts.gated(at, Activation::Silu);
            Layer::gated(attention, ffn, parts.input_norms(at))
        });
        if let Output::Logits(logits) = &mut model.output {
            logits.scale = scale;
        }
        Ok(model)
    },
);

/// Breaks when a person with a new model needs a fork of this crate.
#[test]
fn an_architecture_can_come_from_outside() {
    let outside = json!({"model_type": "outside", "logit_scale": 0.5});
    let config = with(llama(), outside);
    let refused = describe(&config).expect_err("it is not in the list");
    assert!(refused.contains("`outside` is not supported"), "{refused}");
    let store = open(&config).expect("a folder");
    let model = Model::from_store_as(&store, &OUTSIDE).expect("complete");
    assert_eq!((model.arch, model.layers.len()), ("outside", 4));
    assert!(matches!(&model.output, Output::Logits(logits) if logits.scale == Some(0.5)));
    assert!(first_attention(&model).q.bias.is_some());

    let broken = with(config, json!({"num_attention_heads": 3}));
    let store = open(&broken).expect("a folder");
    let error = Model::from_store_as(&store, &OUTSIDE).expect_err("3 heads, 2 of keys");
    assert!(error.to_string().contains("heads"), "{error}");
}

#[test]
fn gguf_defaults_and_refusals() {
    let config = describe_gguf(|_| ()).expect("complete");
    let attention = first_attention(&config);
    assert_eq!((attention.kv_heads, attention.head_dim), (4, 16));
    assert_eq!(attention.rope.expect("it turns").theta, 10_000.0);

    let config = describe_gguf(|header| {
        header.set("llama.attention.sliding_window", &16u32);
        header.set("llama.attention.sliding_window_pattern", &[false, true][..]);
    });
    let config = config.expect("complete");
    let windows: Vec<_> = config.windows().collect();
    assert_eq!(windows, [None, Some(16)], "a flag for each layer");

    let key = "llama.feed_forward_length";
    let config = describe_gguf(|header| header.set(key, &[128u32, 256][..])).expect("complete");
    let widths: Vec<_> = config
        .layers
        .iter()
        .map(|layer| layer.ffn.width())
        .collect();
    assert_eq!(widths, [128, 256], "a width for each layer");
    assert!(matches!(&config.layers[1].ffn, Ffn::Gated(ffn) if ffn.down.weight.cols == 256));
    let error = describe_gguf(|header| header.set(key, &[128u32][..])).expect_err("too short");
    assert!(error.contains("a list of 1 for 2 layers"), "{error}");

    let pattern = "llama.attention.sliding_window_pattern";
    let error = describe_gguf(|header| header.set(pattern, "all"));
    assert!(error.expect_err("another type").contains(pattern));

    let error = describe_gguf(|header| header.set("general.architecture", "mamba"));
    assert!(
        error
            .expect_err("unknown")
            .contains("those that run are llama, qwen2")
    );
    let error = describe_gguf(|header| header.set("llama.block_count", "two"));
    assert!(
        error
            .expect_err("another type")
            .contains("llama.block_count")
    );
}
