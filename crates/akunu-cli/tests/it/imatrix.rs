//! `imatrix` from the outside: what it measures, and what it refuses.

use crate::program::{self, akunu, assert_error, smollm2};
use akunu_gguf::{GgufFile, ImportanceMatrix};
use serde_json::Value;
use std::path::{Path, PathBuf};

const TEXT: &str = include_str!("../fixtures/imatrix/text.txt");

fn text_file(folder: &Path) -> PathBuf {
    let path = folder.join("text.txt");
    std::fs::write(&path, TEXT).unwrap();
    path
}

fn run(folder: &Path, options: &[&str]) -> program::Finished {
    let (model, file) = (smollm2(), text_file(folder));
    let output = folder.join("imatrix.gguf");
    let arguments = ["imatrix", "-m", &model, "-f", file.to_str().unwrap()];
    let output = ["-o", output.to_str().unwrap()];
    akunu(arguments.iter().chain(&output).chain(options))
}

/// llama-imatrix measured the same text on the same file (see `fixtures/imatrix/make.py`). The activations
/// of both programs are rounded differently on their way, so the sums differ by some percent in a column,
/// and by less over a matrix. A wrong binding, a column off or a token too many is far outside of that.
#[test]
fn the_sums_are_those_of_llama_cpp() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["--ctx", "64", "--chunks", "2"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("210 matrices, 2 chunks"),
        "{}",
        done.stdout
    );
    let matrix = ImportanceMatrix::open(folder.path().join("imatrix.gguf")).unwrap();
    assert_eq!((matrix.names().len(), matrix.n_chunks()), (210, 2));
    let peer: Value =
        serde_json::from_str(include_str!("../fixtures/imatrix/smollm2.json")).unwrap();
    let rows = peer.as_object().unwrap();
    assert_eq!(rows.len(), 210);
    for (name, row) in rows {
        let means = matrix.means(name).unwrap();
        let mean = means.iter().map(|&x| f64::from(x)).sum::<f64>() / means.len() as f64;
        let expected = row["mean"].as_f64().unwrap();
        assert!(
            (mean / expected - 1.0).abs() < 0.05,
            "{name}: {mean}, not {expected}"
        );
        for (column, expected) in row["columns"].as_object().unwrap() {
            let (column, expected) = (column.parse::<usize>().unwrap(), expected.as_f64().unwrap());
            let found = f64::from(means[column]);
            assert!(
                (found / expected - 1.0).abs() < 0.25,
                "{name}, column {column}: {found}, not {expected}"
            );
        }
    }
}

/// The columns of each matrix are those of the tensor, so that `quantize` takes the file.
#[test]
fn every_matrix_of_the_layers_has_an_entry_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["--ctx", "16", "--chunks", "1"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let matrix = ImportanceMatrix::open(folder.path().join("imatrix.gguf")).unwrap();
    let file = GgufFile::open(smollm2()).unwrap();
    for tensor in file.tensors() {
        let is_matrix = tensor.name.starts_with("blk.") && tensor.dims.rows() > 1;
        let cols = matrix.means(&tensor.name).map(|means| means.len());
        assert_eq!(
            cols,
            is_matrix.then(|| tensor.dims.cols()),
            "{}",
            tensor.name
        );
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
    let folder = tempfile::tempdir().unwrap();
    assert_error(&run(folder.path(), &["--ctx", "1"]), "choose 2 or more");
    assert_error(&run(folder.path(), &["--ctx", "4000"]), "lower --ctx");
    let model = smollm2();
    let missing = folder.path().join("missing.txt");
    let missing = missing.to_str().unwrap();
    assert_error(
        &akunu(["imatrix", "-m", &model, "-f", missing]),
        "missing.txt",
    );

    let output = folder.path().join("imatrix.gguf");
    std::fs::write(&output, "precious").unwrap();
    assert_error(&run(folder.path(), &["--ctx", "16"]), "--force");
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
}
