//! all-MiniLM-L6-v2 against `sentence-transformers` (`fixtures/make_embedding_fixtures.py`), and a model that generates
//! text as an embedder.

use akunu::{
    CpuOptions, Device, EmbedOptions, Embedder, EncodeOptions, Error, Model, Reranker,
    SessionOptions,
};
use std::path::PathBuf;

use crate::classifier::minilm_with_labels;

fn minilm() -> PathBuf {
    let config = akunu_assets::path("minilm", "config.json");
    config.parent().unwrap().to_path_buf()
}

fn on_cpu() -> Embedder {
    Embedder::open_on(minilm(), Device::Cpu(CpuOptions::default())).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    products.sum()
}

/// Texts of one word to more than the model looks at, and their vectors.
fn golden() -> Vec<(String, Vec<f32>)> {
    let text = include_str!("../fixtures/minilm.json");
    let rows: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
    let row = |row: serde_json::Value| {
        let vector = serde_json::from_value(row["vector"].clone()).unwrap();
        (row["text"].as_str().unwrap().to_string(), vector)
    };
    rows.into_iter().map(row).collect()
}

/// Fails when a norm, a position, the pooling, the tokens or the place where a text is cut differ. Both compute in f32.
#[test]
fn vectors_are_those_of_sentence_transformers() {
    let (embedder, golden) = (on_cpu(), golden());
    let texts: Vec<&str> = golden.iter().map(|(text, _)| text.as_str()).collect();
    let made = embedder
        .embed_with(&texts, EmbedOptions::default())
        .unwrap();
    for ((text, wanted), made) in golden.iter().zip(&made) {
        let cosine = dot(&made.vector, wanted) / dot(wanted, wanted).sqrt();
        assert!(cosine > 0.999_999, "{cosine} for {text:.40?}");
        assert!((dot(&made.vector, &made.vector) - 1.0).abs() < 1e-5);
        assert_eq!(made.n_cut > 0, text.len() > 1000, "{text:.40?}");
        let alone = embedder.embed(text).unwrap();
        assert!(dot(&alone, &made.vector) > 0.999_999, "{text:.40?}");
    }
    assert_eq!((embedder.dimensions(), embedder.max_tokens()), (384, 256));
    assert_eq!(embedder.pooling(), "mean");
}

/// Breaks when somebody has to find the empty text among thousands.
#[test]
fn an_empty_text_is_named() {
    let error = on_cpu().embed_all(&["a", "", "b"]).unwrap_err();
    assert!(matches!(error, Error::EmptyText { index: 1 }), "{error}");
    assert!(error.to_string().starts_with("text 2 is empty"), "{error}");
}

/// The specification and the fast device agree on a real model, in a batch of texts of different lengths.
#[test]
fn the_twin_gives_the_same_vectors() {
    let texts = [
        "The weather is lovely today.",
        "a",
        "He drove to the stadium.",
    ];
    let twin = Embedder::open_on(minilm(), Device::Twin).unwrap();
    let wanted = twin.embed_all(&texts).unwrap();
    for (found, wanted) in on_cpu().embed_all(&texts).unwrap().iter().zip(&wanted) {
        assert!(dot(found, wanted) > 0.999_999);
    }
}

/// A shortened vector has length 1 again and points the same way as far as it goes.
#[test]
fn vectors_can_be_shortened_and_long_texts_refused() {
    let embedder = on_cpu();
    let whole = embedder.embed("It's so sunny outside!").unwrap();
    let with = |options, text: &str| embedder.embed_with(&[text], options);
    let short = EmbedOptions {
        dimensions: Some(100),
        ..EmbedOptions::default()
    };
    let short = with(short, "It's so sunny outside!")
        .unwrap()
        .remove(0)
        .vector;
    let share = dot(&whole[..100], &whole[..100]).sqrt();
    assert_eq!(short.len(), 100);
    assert!((dot(&short, &short) - 1.0).abs() < 1e-5);
    assert!((dot(&short, &whole[..100]) - share).abs() < 1e-5);
    for dimensions in [0, 385] {
        let options = EmbedOptions {
            dimensions: Some(dimensions),
            ..EmbedOptions::default()
        };
        let error = with(options, "x").unwrap_err().to_string();
        assert!(error.contains("384"), "{error}");
    }
    let strict = EmbedOptions {
        strict: true,
        ..EmbedOptions::default()
    };
    let long = embedder.embed_with(&["short".to_string(), "long ".repeat(300)], strict);
    let Err(Error::TextTooLong {
        index: 1, max: 256, ..
    }) = long
    else {
        panic!("{long:?}");
    };
    assert!(embedder.embed(" \n ").is_err(), "there is nothing in it");
}

/// A model that generates text gives the state of its last token, made length 1, and one that is open already is shared.
#[test]
fn a_decoder_is_an_embedder_too() {
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let model = Model::open(path).unwrap();
    let embedder = Embedder::from(model.clone());
    assert_eq!((embedder.dimensions(), embedder.pooling()), (576, "last"));
    let texts = ["the cat sleeps", "a cat is sleeping", "stock market"];
    let vectors = embedder.embed_all(&texts).unwrap();
    assert!(dot(&vectors[0], &vectors[1]) > dot(&vectors[0], &vectors[2]));
    let ids = model.tokenizer().encode(
        texts[0],
        EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        },
    );
    let state = model
        .session(SessionOptions::default())
        .unwrap()
        .embed(&ids)
        .unwrap();
    let length = dot(&state, &state).sqrt();
    assert!(length > 1.5 && (dot(&state, &vectors[0]) / length - 1.0).abs() < 1e-5);
}

#[test]
fn a_model_without_a_score_is_no_reranker() {
    let Err(error) = Reranker::open(minilm()) else {
        panic!("MiniLM scores nothing");
    };
    assert!(error.to_string().contains("no classifier"), "{error}");
}

/// Several scores are classes, and none of them says how well a document answers.
#[test]
fn a_model_with_several_scores_is_no_reranker() {
    let three = minilm_with_labels(3);
    let Err(error) = Reranker::open(three.path()) else {
        panic!("three scores are no ranking");
    };
    assert!(
        error
            .to_string()
            .ends_with("gives 3 scores for a pair of texts; a reranker gives one"),
        "{error}"
    );
}
