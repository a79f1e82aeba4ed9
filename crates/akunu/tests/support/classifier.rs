//! A model that ranks documents, for tests.

use serde_json::json;

/// MiniLM with a classifier of so many labels: zeros, and the number of the label as a bias.
pub fn minilm_with_labels(n_labels: usize) -> tempfile::TempDir {
    let config = akunu_assets::path("minilm", "config.json");
    let from = config.parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json"] {
        std::fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    let whole = std::fs::read(from.join("model.safetensors")).unwrap();
    let n_head = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let (head, data) = whole[8..].split_at(n_head);
    let mut head: serde_json::Value = serde_json::from_slice(head).unwrap();
    let mut data = data.to_vec();
    let biases = (1..=n_labels).map(|label| label as f32);
    for (name, shape, values) in [
        (
            "classifier.weight",
            json!([n_labels, 384]),
            vec![0.0; n_labels * 384],
        ),
        (
            "classifier.bias",
            json!([n_labels]),
            biases.collect::<Vec<f32>>(),
        ),
    ] {
        let begin = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let ends = [begin, data.len()];
        head[name] = json!({"dtype": "F32", "shape": shape, "data_offsets": ends});
    }
    let mut head = head.to_string().into_bytes();
    // As others write it: the numbers begin at a multiple of 8 bytes.
    head.resize(head.len().next_multiple_of(8), b' ');
    let length = (head.len() as u64).to_le_bytes();
    let path = folder.path().join("model.safetensors");
    std::fs::write(path, [&length[..], &head, &data].concat()).unwrap();
    folder
}
