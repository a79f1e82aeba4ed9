//! Folders of other programs in which one thing is wrong: each is refused in a sentence that names the folder, or is taken, and
//! none ends in a panic.

use std::path::Path;

use akunu_gguf::{Data, WeightStore};
use serde_json::{Map, Value, json};

use crate::support::folders::{FOLDERS, fixture};

/// Opens a folder and converts its weights.
fn walk(path: &Path) -> Result<(), String> {
    let store = WeightStore::open(path).map_err(|error| {
        let error = error.to_string();
        let folder = path.to_string_lossy();
        assert!(
            error.contains(&*folder) && error.len() > folder.len() + 10,
            "{error}"
        );
        error
    })?;
    for weight in store.iter() {
        if let Data::Converted(converted) = weight.data {
            converted.repack().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The header of a safetensors file, and its data.
fn parts(file: &[u8]) -> (Map<String, Value>, Vec<u8>) {
    let (length, rest) = file.split_first_chunk().expect("a header");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    (serde_json::from_slice(header).expect("JSON"), data.to_vec())
}

fn write(folder: &Path, header: &Map<String, Value>, data: &[u8]) {
    let header = Value::from(header.clone()).to_string();
    let file = [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        data,
    ]
    .concat();
    std::fs::write(folder.join("model.safetensors"), file).expect("written");
}

/// One change after the other to each tensor of a weight.
fn check_tensors(name: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = |file: &str| std::fs::read(fixture(name).join(file)).expect("a fixture");
    std::fs::write(folder.path().join("config.json"), copy("config.json")).expect("written");
    let (header, data) = parts(&copy("model.safetensors"));
    write(folder.path(), &header, &data);
    assert_eq!(walk(folder.path()), Ok(()), "{name} as it is");
    let tensors: Vec<String> = header
        .keys()
        .filter(|key| key.contains("down_proj."))
        .cloned()
        .collect();
    assert!(tensors.len() > 1, "{name}");
    for tensor in tensors {
        let entry = &header[&tensor];
        let offsets: Vec<usize> =
            serde_json::from_value(entry["data_offsets"].clone()).expect("two");
        let shape: Vec<usize> = serde_json::from_value(entry["shape"].clone()).expect("a shape");
        let bytes = offsets[1] - offsets[0];
        let changed = |dtype: &str, shape: Vec<usize>| {
            let mut header = header.clone();
            header[&tensor]["dtype"] = json!(dtype);
            header[&tensor]["shape"] = json!(shape);
            header
        };
        let own = entry["dtype"].as_str().expect("a type");
        let mut headers = vec![
            changed("U8", vec![bytes]),
            changed("U8", vec![1, bytes]),
            changed("I8", vec![bytes, 1]),
            changed(own, shape.iter().rev().copied().collect()),
            changed(own, vec![shape.iter().product()]),
            changed(own, vec![1, 1, shape.iter().product()]),
        ];
        if bytes.is_multiple_of(4) {
            headers.extend([
                changed("F32", vec![bytes / 4]),
                changed("I32", vec![bytes / 4, 1]),
            ]);
        }
        // The tensor under an unknown name.
        let mut without = header.clone();
        let entry = without.remove(&tensor).expect("there");
        without.insert("left.over".to_string(), entry);
        headers.push(without);
        for header in headers {
            write(folder.path(), &header, &data);
            let _refused_or_not = walk(folder.path());
        }
        for byte in [0, 127, 128, 255] {
            let mut data = data.clone();
            data[offsets[0]..offsets[1]].fill(byte);
            write(folder.path(), &header, &data);
            let _refused_or_not = walk(folder.path());
        }
    }
}

#[test]
fn tensors() {
    FOLDERS.into_iter().for_each(check_tensors);
}

/// Every setting of every method with values that it cannot have.
#[test]
fn settings() {
    for name in FOLDERS {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copy = |file: &str| std::fs::read(fixture(name).join(file)).expect("a fixture");
        std::fs::write(
            folder.path().join("model.safetensors"),
            copy("model.safetensors"),
        )
        .expect("written");
        let config: Value = serde_json::from_slice(&copy("config.json")).expect("JSON");
        let section = config["quantization_config"]
            .as_object()
            .expect("a section");
        for key in section.keys() {
            let values = [
                json!(null),
                json!(0),
                json!(u64::MAX),
                json!(-1.5),
                json!("text"),
                json!([1, 2]),
                json!({"a": {"weights": 1}}),
            ];
            for value in values {
                let mut config = config.clone();
                config["quantization_config"][key] = value;
                std::fs::write(folder.path().join("config.json"), config.to_string())
                    .expect("written");
                let _refused_or_not = walk(folder.path());
            }
        }
    }
}

/// The sentences name the weight, its tensor, and what that should be.
#[test]
fn sentences() {
    let cases = [
        (
            "gptq",
            "qzeros",
            None,
            "lacks its `model.layers.0.mlp.down_proj.qzeros`",
        ),
        (
            "gptq",
            "scales",
            Some(("F16", [1, 128])),
            "has `scales` of type F16 and shape [1, 128]: the shape [2, 64] is wanted",
        ),
        (
            "awq",
            "qweight",
            Some(("F32", [128, 8])),
            "has `qweight` of type F32 and shape [128, 8]: the type I32 is wanted",
        ),
        (
            "fp8",
            "weight",
            Some(("F8_E5M2", [64, 128])),
            "has `weight` of type F8_E5M2 and shape [64, 128]: the type F8_E4M3 is wanted",
        ),
        (
            "compressed-4",
            "weight_shape",
            None,
            "lacks its `model.layers.0.mlp.down_proj.weight_shape`",
        ),
        ("nf4", "weight", Some(("U8", [8192, 1])), ""),
    ];
    for (name, suffix, change, wanted) in cases {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copy = |file: &str| std::fs::read(fixture(name).join(file)).expect("a fixture");
        std::fs::write(folder.path().join("config.json"), copy("config.json")).expect("written");
        let (mut header, data) = parts(&copy("model.safetensors"));
        let tensor = format!("model.layers.0.mlp.down_proj.{suffix}");
        match change {
            Some((dtype, shape)) => {
                header[&tensor]["dtype"] = json!(dtype);
                header[&tensor]["shape"] = json!(shape);
            }
            None => {
                let entry = header.remove(&tensor).expect("there");
                header.insert("left.over".to_string(), entry);
            }
        }
        write(folder.path(), &header, &data);
        let error = walk(folder.path()).expect_err(name);
        assert!(error.contains(wanted), "{name}: {error}");
    }
}

/// A group that is not there would be read from beyond the scales.
#[test]
fn a_column_of_no_group_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = |file: &str| std::fs::read(fixture("gptq").join(file)).expect("a fixture");
    std::fs::write(folder.path().join("config.json"), copy("config.json")).expect("written");
    let (header, mut data) = parts(&copy("model.safetensors"));
    let at = header["model.layers.0.mlp.down_proj.g_idx"]["data_offsets"][0]
        .as_u64()
        .expect("a place");
    data[at as usize] = 2;
    write(folder.path(), &header, &data);
    let error = walk(folder.path()).expect_err("there are two groups");
    assert!(error.contains("groups from 0 to 1 is wanted"), "{error}");
}

/// Zeros change nothing, and some programs write them; other numbers would be left out. Those of towers are not the model's.
#[test]
fn biases_of_zeros_and_of_towers_are_ignored() {
    let fixture_folder = crate::support::folders::copy("gptq");
    let file = std::fs::read(fixture_folder.path().join("model.safetensors")).expect("a fixture");
    let (header, data) = parts(&file);
    let own = "model.layers.0.mlp.down_proj.bias";
    let cases = [
        (own, 0u8, true),
        (own, 1, false),
        ("vision_tower.encoder.layers.0.mlp.fc1.bias", 1, true),
        ("lm_head.bias", 1, false),
    ];
    for (name, value, is_taken) in cases {
        let (mut header, mut data) = (header.clone(), data.clone());
        let begin = data.len();
        data.resize(begin + 128, value);
        let entry = json!({"dtype": "F16", "shape": [64], "data_offsets": [begin, begin + 128]});
        header.insert(name.to_string(), entry);
        write(fixture_folder.path(), &header, &data);
        let opened =
            akunu_engine::Model::load(fixture_folder.path(), crate::support::exact_cpu::cpu());
        assert_eq!(
            opened.is_ok(),
            is_taken,
            "{name}: {:?}",
            opened.err().map(|error| error.to_string())
        );
    }
}
