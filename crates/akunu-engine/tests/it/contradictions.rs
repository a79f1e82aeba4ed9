//! Every field of every architecture with values that no model can have: each is refused in a sentence that names the file, or is
//! taken, and none ends in a panic.

use std::path::Path;

use akunu_arch::Model;
use akunu_gguf::WeightStore;
use serde_json::{Value, json};

use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::Fixture;

/// What a field is replaced by.
fn values() -> [Value; 5] {
    [
        json!(0),
        json!(u32::MAX),
        json!(-1.5),
        json!("text"),
        json!([1, 2, 3]),
    ]
}

/// The models of all architectures, with no weight but the first: descriptions are read before weights are looked for.
fn fixtures() -> Vec<(String, Fixture)> {
    let mut found = Vec::new();
    for folder in ["transformers", "numpy"] {
        let path = format!("{}/tests/fixtures/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(path).expect("fixtures") {
            let path = entry.expect("fixtures").path();
            let name = path.file_stem().expect("a name").to_string_lossy();
            let mut fixture = Fixture::read(folder, &name);
            fixture.weights.truncate(1);
            found.push((name.to_string(), fixture));
        }
    }
    assert!(found.len() > 40, "{}", found.len());
    found
}

/// Describes the model in a file. An error must name it.
fn describe(path: &Path, what: &str) -> bool {
    let store = WeightStore::open(path).expect("the container is whole");
    match Model::from_store(&store) {
        Ok(_) => true,
        Err(error) => {
            let error = error.to_string();
            let file = path.to_string_lossy();
            assert!(
                error.contains(&*file) && error.len() > file.len() + 10,
                "{what}: {error}"
            );
            false
        }
    }
}

#[test]
fn fields_of_metadata() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut taken, mut refused) = (0, 0);
    for (name, mut fixture) in fixtures() {
        let keys: Vec<String> = fixture.metadata.keys().cloned().collect();
        for key in keys {
            // Two values each: the other architectures try the others with the same key.
            for value in values()
                .into_iter()
                .cycle()
                .skip((taken + refused) % 5)
                .take(2)
            {
                let what = format!("{name}: {key} = {value}");
                let before = fixture.metadata.insert(key.clone(), value);
                match describe(&write_gguf(&fixture, folder.path()), &what) {
                    true => taken += 1,
                    false => refused += 1,
                }
                fixture
                    .metadata
                    .insert(key.clone(), before.expect("it was there"));
            }
        }
    }
    assert!(refused > taken, "{refused} refused, {taken} taken");
}

#[test]
fn fields_of_configs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, fixture) in fixtures() {
        let path = write_folder(&fixture, folder.path());
        let config = fixture.config.as_object().expect("an object").clone();
        let of_rope = config.get("rope_parameters").and_then(Value::as_object);
        let inner: Vec<String> = of_rope.map_or_else(Vec::new, |all| all.keys().cloned().collect());
        let numbers = config
            .iter()
            .filter(|(_, value)| value.is_number() || value.is_array());
        let places = numbers.map(|(key, _)| vec![key.clone()]);
        let inner = inner
            .into_iter()
            .map(|key| vec!["rope_parameters".to_string(), key]);
        let places: Vec<Vec<String>> = places.chain(inner).collect();
        for place in places {
            for value in values() {
                let what = format!("{name}: {place:?} = {value}");
                let mut changed = Value::Object(config.clone());
                let keys = place.iter();
                *keys.fold(&mut changed, |object, key| &mut object[key]) = value;
                std::fs::write(path.join("config.json"), changed.to_string()).expect("written");
                describe(&path, &what);
            }
        }
    }
}

/// Fails if the sentence speaks of the size of the vocabulary, which is what the missing tensor would have said.
#[test]
fn a_missing_token_embedding_is_named() {
    let mut fixture = Fixture::read("transformers", "qwen3");
    fixture
        .weights
        .retain(|weight| weight.gguf != "token_embd.weight");
    fixture.weights.truncate(1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&fixture, folder.path());
    let store = WeightStore::open(&path).expect("the container is whole");
    let error = Model::from_store(&store)
        .expect_err("no embedding")
        .to_string();
    let wanted = format!("{}: `token_embd.weight` is missing", path.display());
    assert_eq!(error, wanted);
}
