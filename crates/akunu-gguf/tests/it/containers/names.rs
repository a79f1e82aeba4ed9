//! The name table against the names that the `gguf` package gives to Hugging Face tensors.

use akunu_gguf::{canonical_from_gguf, canonical_from_hugging_face, has_sandwich_norms};
use akunu_types::DType;
use std::collections::BTreeMap;

/// Fails when a row of our table maps a Hugging Face name to another GGUF name than converters use.
#[test]
fn hugging_face_and_gguf_names_meet() {
    let json = include_str!("../../fixtures/containers/names.json");
    let models: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(json).unwrap();
    assert_eq!(models.len(), 7);
    for (model, names) in &models {
        assert!(names.len() >= 11, "{model} has only {} names", names.len());
        let sandwich = names.keys().any(|name| has_sandwich_norms(name));
        for (hf, gguf) in names {
            let canonical = canonical_from_gguf(gguf);
            assert!(canonical.is_some(), "{model}: {gguf} is not in the table");
            assert_eq!(
                canonical_from_hugging_face(hf, sandwich),
                canonical,
                "{model}: {hf}"
            );
        }
    }
}

/// Fails when a type of ggml is missing in our table or has another block.
#[test]
fn every_type_of_ggml_is_known_with_its_size() {
    let json = include_str!("../../fixtures/containers/dtype_sizes.json");
    let sizes: BTreeMap<String, (u32, usize, usize)> = serde_json::from_str(json).unwrap();
    for (name, &(id, block_len, block_bytes)) in &sizes {
        let dtype = DType::from_gguf_id(id).unwrap_or_else(|| panic!("{name} ({id}) is missing"));
        assert_eq!(
            (dtype.name(), dtype.block_len()),
            (name.as_str(), block_len)
        );
        // The package still counts the two f32 that q8_1 once had; ggml's block has two f16.
        let ours = if name == "q8_1" { 36 } else { block_bytes };
        assert_eq!(dtype.block_bytes(), ours, "{name}");
    }
    assert_eq!(
        DType::all()
            .filter(|dtype| dtype.mlx_bits().is_none())
            .count(),
        sizes.len()
    );
}
