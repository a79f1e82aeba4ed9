//! Importance matrices in both forms, and files that are none.

use akunu_gguf::{GgufHeader, ImportanceMatrix};
use akunu_types::DType;
use std::fs;
use std::path::{Path, PathBuf};

const Q: &str = "blk.0.attn_q.weight";
const EXPERTS: &str = "blk.0.ffn_up_exps.weight";

/// The older form, by its grammar.
fn legacy(entries: &[(&str, i32, &[f32])]) -> Vec<u8> {
    let mut bytes = (entries.len() as i32).to_le_bytes().to_vec();
    for (name, calls, values) in entries {
        bytes.extend((name.len() as i32).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(calls.to_le_bytes());
        bytes.extend((values.len() as i32).to_le_bytes());
        bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    }
    bytes
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn error(path: &Path) -> String {
    let error = ImportanceMatrix::open(path).unwrap_err().to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(error.contains(name), "the file is not named: {error}");
    error
}

/// A GGUF file with these tensors of f32 values.
fn gguf(path: &Path, tensors: &[(&str, &[u64], &[f32])]) {
    let mut header = GgufHeader::new();
    header.set("general.type", "imatrix");
    header.set("imatrix.datasets", &["a.txt", "b.txt"][..]);
    header.set("imatrix.chunk_count", &7_u32);
    for (name, dims, _) in tensors {
        header.tensor(name, dims, DType::F32);
    }
    let mut writer = header.create(path).unwrap();
    for (name, _, values) in tensors {
        writer.write(name, &bytes_of(values)).unwrap();
    }
    writer.finish().unwrap();
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn the_gguf_form_is_read_expert_by_expert() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imatrix.gguf");
    let (sums, counts) = (format!("{EXPERTS}.in_sum2"), format!("{EXPERTS}.counts"));
    let linear = format!("{EXPERTS}.in_sum");
    gguf(
        &path,
        &[
            (&linear, &[2, 3], &[9.0; 6]),
            (&sums, &[2, 3], &[2.0, 4.0, 0.0, 0.0, 3.0, 9.0]),
            (&counts, &[1, 3], &[2.0, 0.0, 3.0]),
        ],
    );
    let matrix = ImportanceMatrix::open(&path).unwrap();
    // The second expert saw no token: its columns count the same.
    let expected = vec![1.0, 2.0, 1.0, 1.0, 1.0, 3.0];
    assert_eq!(matrix.means(EXPERTS), Some(expected));
    assert_eq!(matrix.means(Q), None);
    assert_eq!(matrix.names().collect::<Vec<_>>(), [EXPERTS]);
    assert_eq!(matrix.datasets(), ["a.txt", "b.txt"]);
    assert_eq!(matrix.n_chunks(), 7);
}

#[test]
fn the_older_form_is_read_with_and_without_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = legacy(&[(Q, 4, &[8.0, 2.0]), ("other", 0, &[3.0])]);
    let path = write(folder.path(), "short.dat", &bytes);
    let matrix = ImportanceMatrix::open(&path).unwrap();
    assert_eq!(matrix.means(Q), Some(vec![2.0, 0.5]));
    assert_eq!(matrix.means("other"), Some(vec![3.0]));
    assert_eq!(matrix.n_chunks(), 0);

    bytes.extend(4_i32.to_le_bytes());
    bytes.extend(8_i32.to_le_bytes());
    bytes.extend(b"text.txt");
    let path = write(folder.path(), "whole.dat", &bytes);
    let matrix = ImportanceMatrix::open(&path).unwrap();
    assert_eq!((matrix.n_chunks(), &*matrix.datasets()[0]), (4, "text.txt"));
}

/// Fails when what is written cannot be read back, or sums are not divided by their tokens.
#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imatrix.gguf");
    let mut matrix = ImportanceMatrix::new("text.txt", 16);
    matrix.add(Q, 2, &[1.0, 2.0, 3.0, 0.0]);
    matrix.add(Q, 2, &[-2.0, 0.0]);
    matrix.end_chunk();
    matrix.write(&path).unwrap();
    let back = ImportanceMatrix::open(&path).unwrap();
    assert_eq!(back, matrix);
    assert_eq!(back.means(Q), Some(vec![14.0 / 3.0, 4.0 / 3.0]));
}

/// Each expert has a row of sums and a count, in llama.cpp's order of dimensions. Breaks when a row counts for another expert.
#[test]
fn rows_count_for_the_experts_that_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imatrix.gguf");
    let mut matrix = ImportanceMatrix::new("text.txt", 16);
    // Two tokens with two experts each: 2 and 0, then 2 and 1; of four.
    matrix.add_stack(EXPERTS, [4, 2], &[1.0, 2.0, 3.0, 0.0], &[2, 0, 2, 1]);
    matrix.add(EXPERTS, 2, &[100.0, 100.0]);
    matrix.write(&path).unwrap();
    let file = akunu_gguf::GgufFile::open(&path).unwrap();
    let values = |end: &str, dims: [usize; 2]| {
        let view = file.tensor(&format!("{EXPERTS}{end}")).unwrap();
        assert_eq!(view.info.dims.as_slice(), dims);
        view.bytes.to_vec()
    };
    let sums = [1.0, 4.0, 9.0, 0.0, 10.0, 4.0, 0.0, 0.0];
    assert_eq!(values(".in_sum2", [2, 4]), bytes_of(&sums));
    assert_eq!(values(".counts", [1, 4]), bytes_of(&[1.0, 1.0, 2.0, 0.0]));
    let means = [1.0, 4.0, 9.0, 0.0, 5.0, 2.0, 1.0, 1.0];
    let back = ImportanceMatrix::open(&path).unwrap();
    assert_eq!(back.means(EXPERTS), Some(means.to_vec()));
}

/// No prefix of a file may cause a panic; each one is an error that names the file.
#[test]
fn a_truncated_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let whole = legacy(&[(Q, 4, &[8.0, 2.0])]);
    for n in 0..whole.len() {
        let path = write(folder.path(), "cut.dat", &whole[..n]);
        assert!(error(&path).contains("byte"), "{n} bytes");
    }
    let path = folder.path().join("whole.gguf");
    let mut matrix = ImportanceMatrix::new("text.txt", 16);
    matrix.add(Q, 2, &[1.0, 2.0]);
    matrix.write(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    // The last bytes are padding.
    for n in 0..whole.len() - 32 {
        error(&write(folder.path(), "cut.gguf", &whole[..n]));
    }
}

#[test]
fn sizes_beyond_the_file_and_negative_ones_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let huge = i32::MAX.to_le_bytes();
    let cases: [(&str, Vec<u8>); 5] = [
        ("the number of entries", (-1_i32).to_le_bytes().to_vec()),
        ("the name of an entry", [huge, huge].concat()),
        ("the name of an entry", [[1, 0, 0, 0], [255; 4]].concat()),
        (
            "the name of an entry",
            [[1, 0, 0, 0], [1, 0, 0, 0], [255; 4]].concat(),
        ),
        (
            "the values of an entry",
            [[1, 0, 0, 0], [0; 4], [1, 0, 0, 0], huge].concat(),
        ),
    ];
    for (what, bytes) in cases {
        let message = error(&write(folder.path(), "bad.dat", &bytes));
        assert!(message.contains(what), "{what}: {message}");
    }
    let none = error(&write(folder.path(), "none.dat", &[0; 4]));
    assert!(none.contains("no importance matrix"), "{none}");
    let nan = error(&write(
        folder.path(),
        "nan.dat",
        &legacy(&[(Q, 1, &[f32::NAN])]),
    ));
    assert!(nan.contains(Q) && nan.contains("NaN"), "{nan}");
    let empty = error(&write(folder.path(), "empty.dat", &legacy(&[(Q, 1, &[])])));
    assert!(empty.contains(Q) && empty.contains("0 sums"), "{empty}");
}

#[test]
fn a_gguf_file_that_holds_something_else_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.gguf");
    gguf(&path, &[("token_embd.weight", &[2], &[1.0, 2.0])]);
    assert!(error(&path).contains(".in_sum2"), "{}", error(&path));

    gguf(&path, &[("a.in_sum2", &[2], &[1.0, 2.0])]);
    assert!(error(&path).contains("a.counts: it is missing"));

    gguf(
        &path,
        &[
            ("a.in_sum2", &[3], &[1.0, 2.0, 3.0]),
            ("a.counts", &[2], &[1.0, 1.0]),
        ],
    );
    assert!(error(&path).contains("3 sums do not fit 2 counts"));

    let mut header = GgufHeader::new();
    header.tensor("a.in_sum2", &[2], DType::F16);
    let mut writer = header.create(&path).unwrap();
    writer.write("a.in_sum2", &[0; 4]).unwrap();
    writer.finish().unwrap();
    assert!(error(&path).contains("its type is f16"));

    assert!(ImportanceMatrix::open(folder.path().join("missing")).is_err());
}
