//! Model folders with `config.json` and safetensors.

use super::bytes::safetensors;
use akunu_gguf::{Container, Data, ModelFolder, WeightStore};
use akunu_types::DType;
use std::path::Path;
use tempfile::TempDir;

/// A tensor in a file to be written: name, type, shape; its bytes are all zero.
type Tensor<'a> = (&'a str, &'a str, &'a [usize]);

fn file(tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut at = 0;
    let entries: Vec<String> = tensors
        .iter()
        .map(|(name, dtype, shape)| {
            let size = match *dtype {
                "F32" | "U32" => 4,
                "U8" => 1,
                _ => 2,
            };
            let begin = at;
            at += size * shape.iter().product::<usize>();
            format!(
                r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{at}]}}"#
            )
        })
        .collect();
    safetensors(&format!("{{{}}}", entries.join(",")), &vec![0; at])
}

fn folder(config: &str, files: &[(&str, Vec<u8>)]) -> TempDir {
    let folder = tempfile::tempdir().expect("the temporary folder can be written");
    std::fs::write(folder.path().join("config.json"), config)
        .expect("the temporary folder can be written");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes)
            .expect("the temporary folder can be written");
    }
    folder
}

#[track_caller]
fn refused(path: &Path, word: &str) {
    let error = WeightStore::open(path).expect_err("accepted").to_string();
    assert!(error.contains(word), "`{word}` is not in: {error}");
}

const QUANTIZED: [Tensor<'static>; 4] = [
    ("model.layers.0.self_attn.q_proj.weight", "U32", &[2, 8]),
    ("model.layers.0.self_attn.q_proj.scales", "F16", &[2, 1]),
    ("model.layers.0.self_attn.q_proj.biases", "F16", &[2, 1]),
    ("model.norm.weight", "BF16", &[64]),
];
const AFFINE_4: &str = r#"{"quantization":{"group_size":64,"bits":4}}"#;

#[test]
fn a_quantised_weight_is_one_weight_under_its_canonical_name() {
    let folder = folder(AFFINE_4, &[("model.safetensors", file(&QUANTIZED))]);
    let store = WeightStore::open(folder.path()).unwrap();
    assert_eq!(
        store.len(),
        2,
        "scales and biases are not weights of their own"
    );
    let q = store.tensor("layers.0.attention.q.weight").unwrap();
    assert_eq!((q.rows(), q.cols(), q.dtype), (2, 64, DType::MLX_Q4));
    let Data::Mlx(mlx) = q.data else {
        panic!("not quantised");
    };
    assert_eq!(
        (mlx.affine.bits, mlx.affine.group_size, mlx.groups()),
        (4, 64, 1)
    );
    assert_eq!(
        mlx.packed.bytes.as_ptr(),
        store.parts()[0][mlx.packed.range()].as_ptr()
    );
    let norm = store.tensor("output_norm.weight").unwrap();
    assert_eq!(
        (norm.tensor, norm.dtype),
        ("model.norm.weight", DType::BF16)
    );
}

#[test]
fn shards_are_found_by_index_or_by_name() {
    let files = [
        (
            "model-00001-of-00002.safetensors",
            file(&[("model.norm.weight", "F32", &[4])]),
        ),
        (
            "model-00002-of-00002.safetensors",
            file(&[("lm_head.weight", "F32", &[2, 4])]),
        ),
    ];
    let index = r#"{"metadata":{},"weight_map":{
        "model.norm.weight":"model-00001-of-00002.safetensors",
        "lm_head.weight":"model-00002-of-00002.safetensors"}}"#;
    let with_index = folder("{}", &files);
    std::fs::write(
        with_index.path().join("model.safetensors.index.json"),
        index,
    )
    .unwrap();
    let without = folder("{}", &files);
    for folder in [with_index, without] {
        let store = WeightStore::open(folder.path()).unwrap();
        assert_eq!(store.parts().len(), 2);
        assert_eq!(store.tensor("output.weight").unwrap().rows(), 2);
    }
}

#[test]
fn an_index_cannot_lead_out_of_the_folder_or_lie() {
    for (file_name, word) in [
        ("../model.safetensors", "only plain file names"),
        ("/etc/passwd", "only plain file names"),
        ("a/b.safetensors", "only plain file names"),
        ("..", "only plain file names"),
        ("", "only plain file names"),
        ("missing.safetensors", "cannot be opened"),
    ] {
        let folder = folder("{}", &[]);
        let index = format!(r#"{{"weight_map":{{"a":{file_name:?}}}}}"#);
        std::fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
        refused(folder.path(), word);
    }
    let lying = folder("{}", &[("x.safetensors", file(&[("b", "F32", &[1])]))]);
    let index = r#"{"weight_map":{"a":"x.safetensors"}}"#;
    std::fs::write(lying.path().join("model.safetensors.index.json"), index).unwrap();
    refused(
        lying.path(),
        "`x.safetensors` holds tensor `a`, but it does not",
    );
}

#[test]
fn folders_without_the_right_files_are_refused() {
    let empty = tempfile::tempdir().unwrap();
    refused(empty.path(), "is a folder without config.json");
    refused(folder("{}", &[]).path(), "neither `model.safetensors`");
    refused(folder("{", &[]).path(), "not valid JSON");
    refused(folder(&"[".repeat(1 << 20), &[]).path(), "not valid JSON");
    refused(folder(&" ".repeat(5 << 20), &[]).path(), "at most");
    refused(&empty.path().join("no such file"), "cannot be opened");
}

#[test]
fn the_same_tensor_in_two_files_is_refused() {
    let one = || file(&[("model.norm.weight", "F32", &[4])]);
    let same = folder(
        "{}",
        &[
            ("model-1.safetensors", one()),
            ("model-2.safetensors", one()),
        ],
    );
    refused(same.path(), "`model.norm.weight` occurs twice");
    let twins = file(&[
        ("norm.weight", "F32", &[4]),
        ("model.norm.weight", "F32", &[4]),
    ]);
    let twins = folder("{}", &[("model.safetensors", twins)]);
    refused(twins.path(), "two tensors are `output_norm.weight`");
    let json = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                   "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
    let keys = folder("{}", &[("model.safetensors", safetensors(json, &[0; 2]))]);
    // The later one counts, which leaves a gap.
    refused(keys.path(), "tensor `a` begins at byte 1");
}

/// Each change makes the three parts of a quantised weight disagree.
#[test]
fn quantised_weights_whose_parts_do_not_fit_are_refused() {
    let cases: [(usize, Tensor<'_>, &str); 7] = [
        (
            0,
            ("model.layers.0.self_attn.q_proj.weight", "U32", &[2, 9]),
            "do not fit 4 bits",
        ),
        (
            0,
            ("model.layers.0.self_attn.q_proj.weight", "U32", &[3, 8]),
            "do not fit 4 bits",
        ),
        (
            0,
            ("model.layers.0.self_attn.q_proj.weight", "F32", &[2, 8]),
            "expected U32",
        ),
        (
            1,
            ("model.layers.0.self_attn.q_proj.scales", "F16", &[2, 2]),
            "do not fit 4 bits",
        ),
        (
            1,
            ("model.layers.0.self_attn.q_proj.scales", "BF16", &[2, 1]),
            "both must be F16",
        ),
        (
            1,
            ("other", "F16", &[2, 1]),
            "lacks its `model.layers.0.self_attn.q_proj.scales`",
        ),
        (
            2,
            ("other", "F16", &[2, 1]),
            "lacks its `model.layers.0.self_attn.q_proj.biases`",
        ),
    ];
    for (at, replacement, word) in cases {
        let mut tensors = QUANTIZED;
        tensors[at] = replacement;
        let folder = folder(AFFINE_4, &[("model.safetensors", file(&tensors))]);
        refused(folder.path(), word);
    }
    for config in [
        "{}",
        r#"{"quantization":{"group_size":64,"bits":4,"model.layers.0.self_attn.q_proj":false}}"#,
    ] {
        let undescribed = folder(config, &[("model.safetensors", file(&QUANTIZED))]);
        refused(undescribed.path(), "describes no quantisation for it");
    }
    let eight_bits = r#"{"quantization":{"group_size":64,"bits":8}}"#;
    let other_bits = folder(eight_bits, &[("model.safetensors", file(&QUANTIZED))]);
    refused(other_bits.path(), "do not fit 8 bits");
}

/// Each of these would read codes or scales beside their tensor.
#[test]
fn floats_whose_parts_do_not_fit_are_refused() {
    let mlx = r#"{"quantization":{"group_size":32,"bits":4,"mode":"mxfp4"}}"#;
    let gpt_oss = r#"{"quantization_config":{"quant_method":"mxfp4"}}"#;
    let codes: Tensor<'_> = ("a.weight", "U32", &[2, 8]);
    let blocks: Tensor<'_> = ("a_blocks", "U8", &[3, 2, 4, 16]);
    let fit = "do not fit mxfp4";
    for (config, tensors, word) in [
        (mlx, [codes, ("a.scales", "U8", &[2, 3])], fit),
        (mlx, [codes, ("a.scales", "U8", &[3, 2])], fit),
        (mlx, [codes, ("a.scales", "F16", &[2, 2])], fit),
        (mlx, [codes, ("b", "U8", &[2, 2])], "lacks its `a.scales`"),
        (
            mlx,
            [("a.weight", "F16", &[2, 8]), ("a.scales", "U8", &[2, 2])],
            fit,
        ),
        (gpt_oss, [blocks, ("a_scales", "U8", &[3, 2, 5])], fit),
        (
            gpt_oss,
            [
                ("a_blocks", "U8", &[3, 2, 4, 8]),
                ("a_scales", "U8", &[3, 2, 4]),
            ],
            fit,
        ),
        (
            "{}",
            [blocks, ("a_scales", "U8", &[3, 2, 4])],
            "describes no quantisation",
        ),
        (
            AFFINE_4,
            [blocks, ("a_scales", "U8", &[3, 2, 4])],
            "describes no quantisation",
        ),
    ] {
        let folder = folder(config, &[("model.safetensors", file(&tensors))]);
        refused(folder.path(), word);
    }
}

#[test]
fn a_weight_of_an_unusable_type_is_refused_and_other_tensors_are_left_out() {
    let weight = folder(
        "{}",
        &[("model.safetensors", file(&[("lm_head.bias", "U32", &[4])]))],
    );
    refused(weight.path(), "weight `lm_head.bias` has the type U32");
    let buffer = file(&[("seed", "U32", &[4]), ("lm_head.weight", "F32", &[1, 4])]);
    let buffer = folder("{}", &[("model.safetensors", buffer)]);
    let store = WeightStore::open(buffer.path()).unwrap();
    assert!(store.tensor("seed").is_none());
    let Container::Folder(open) = store.container() else {
        panic!("a folder");
    };
    assert!(
        open.tensor("seed").is_some(),
        "still reachable in the container"
    );
}

#[test]
fn tied_embeddings_are_detected() {
    let embedding: Tensor<'_> = ("model.embed_tokens.weight", "F32", &[3, 4]);
    let head: Tensor<'_> = ("lm_head.weight", "F32", &[3, 4]);
    for (config, tensors, tied) in [
        ("{}", vec![embedding], true),
        ("{}", vec![embedding, head], false),
        (
            r#"{"tie_word_embeddings":false}"#,
            vec![embedding, head],
            false,
        ),
        (
            r#"{"tie_word_embeddings":true}"#,
            vec![embedding, head],
            true,
        ),
        (
            r#"{"text_config":{"tie_word_embeddings":true}}"#,
            vec![embedding, head],
            true,
        ),
    ] {
        let folder = folder(config, &[("model.safetensors", file(&tensors))]);
        let store = WeightStore::open(folder.path()).unwrap();
        assert_eq!(store.has_tied_embeddings(), tied, "{config}");
        let output = if tied {
            "model.embed_tokens.weight"
        } else {
            "lm_head.weight"
        };
        assert_eq!(store.output().unwrap().tensor, output);
    }
}

#[test]
fn the_config_is_handed_on() {
    let one = file(&[("x", "F32", &[1])]);
    let folder = folder(r#"{"model_type":"qwen3"}"#, &[("model.safetensors", one)]);
    let open = ModelFolder::open(folder.path()).unwrap();
    assert_eq!(open.config()["model_type"], "qwen3");
    assert!(open.quantization().is_none());
}
