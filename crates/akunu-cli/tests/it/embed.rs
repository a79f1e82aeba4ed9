//! `embed` and `rerank`: texts in, vectors and rankings out.

use crate::program::{akunu, akunu_reads, assert_error, assert_usage, asset};
use serde_json::Value;
use std::path::Path;

fn minilm() -> String {
    let config = asset("minilm", "config.json");
    let folder = Path::new(&config).parent().unwrap();
    folder.to_str().unwrap().to_string()
}

fn vectors(lines: &str) -> Vec<Vec<f64>> {
    let vector = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        serde_json::from_value(line["embedding"].clone()).unwrap()
    };
    lines.lines().map(vector).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Arguments, lines of a file and of standard input give the same vectors, and the nearest is the one that means the same.
#[test]
fn texts_come_from_arguments_a_file_or_standard_input() {
    let texts = [
        "a cat sleeps on the sofa",
        "the kitten is napping",
        "interest rates rose",
    ];
    let model = minilm();
    let from_arguments = akunu([&["embed", "-m", &model], &texts[..]].concat());
    assert_eq!(from_arguments.code, 0, "{}", from_arguments.stderr);
    let found = vectors(&from_arguments.stdout);
    assert_eq!((found.len(), found[0].len()), (3, 384));
    assert!(dot(&found[0], &found[1]) > dot(&found[0], &found[2]) + 0.2);
    let first: Value = serde_json::from_str(from_arguments.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["text"], texts[0]);
    assert_eq!(first["tokens"], 8);

    let lines = texts.join("\n") + "\n";
    let from_input = akunu_reads(["embed", "-m", &model], lines.as_bytes());
    assert_eq!(from_input.stdout, from_arguments.stdout);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("texts");
    std::fs::write(&file, &lines).unwrap();
    let npy = folder.path().join("vectors.npy");
    let (file, npy) = (file.to_str().unwrap(), npy.to_str().unwrap());
    let from_file = akunu(["embed", "-m", &model, "-f", file, "--npy", npy, "-d", "64"]);
    assert_eq!((from_file.code, from_file.stdout.as_str()), (0, ""));
    let array = std::fs::read(npy).unwrap();
    assert!(array.starts_with(b"\x93NUMPY\x01\x00"));
    let numbers: Vec<f64> = array[array.len() - 3 * 64 * 4..]
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()).into())
        .collect();
    let share = dot(&found[1][..64], &found[1][..64]).sqrt();
    let cosine = dot(&numbers[64..128], &found[1][..64]) / share;
    assert!(cosine > 0.99999, "{cosine}");
}

/// What cannot be embedded is told with its number and what to do about it.
#[test]
fn texts_that_cannot_be_embedded_are_named() {
    let model = minilm();
    let embed = |more: &[&str], input: &str| {
        let arguments = [&["embed", "-m", &model], more].concat();
        akunu_reads(arguments, input.as_bytes())
    };
    assert_error(&embed(&[], "one\n\nthree\n"), "text 2 is empty");
    assert_error(&embed(&[], ""), "there are no texts");
    assert_error(&embed(&["-d", "0"], "x\n"), "this model has 384");
    let long = "word ".repeat(400);
    assert_error(
        &embed(&["--strict"], &format!("x\n{long}\n")),
        "text 2 has 402 tokens",
    );
    let cut = embed(&[], &long);
    assert_eq!((cut.code, cut.stdout.lines().count()), (0, 1));
    assert!(cut.stderr.contains("1 text was cut"), "{}", cut.stderr);
    let broken = akunu_reads(["embed", "-m", &model], b"fine\n\xff\xfe\n");
    assert_error(&broken, "byte 5 is not UTF-8");
    assert_usage(&embed(&["x", "-f", "y"], ""), "--file");
    let rerank = akunu_reads(["rerank", "-m", &model, "a question"], b"a document\n");
    assert_error(&rerank, "no classifier");
}
