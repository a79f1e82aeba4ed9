//! What the writer writes, the reader reads.

use akunu_gguf::{GgufFile, GgufHeader, Value};
use akunu_types::DType;
use std::path::Path;

fn header() -> GgufHeader {
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    header.set("a.u8", &8u8);
    header.set("a.i8", &-8i8);
    header.set("a.u16", &16u16);
    header.set("a.i16", &-16i16);
    header.set("a.u32", &32u32);
    header.set("a.i32", &-32i32);
    header.set("a.u64", &64u64);
    header.set("a.i64", &-64i64);
    header.set("a.f32", &0.5f32);
    header.set("a.f64", &0.25f64);
    header.set("a.bool", &true);
    header.set("tokens", &["<s>", "", "é"][..]);
    header.set("scores", &[0.0f32, -1.5]);
    header.set("types", &[1i32, -2]);
    header.set("flags", &[true, false, true]);
    header.set("nested", &vec![vec![1u8, 2], vec![], vec![3]]);
    header.tensor("a", &[32, 3], DType::Q4_0);
    header.tensor("b", &[5], DType::F32);
    header.tensor("c", &[1, 1, 1, 7], DType::I8);
    header
}

fn write(header: &GgufHeader, path: &Path) {
    let mut writer = header.create(path).expect("a valid file can be written");
    writer
        .write("a", &[1; 54])
        .expect("a valid file can be written");
    writer
        .write("b", &[2; 12])
        .expect("a valid file can be written");
    writer
        .write("b", &[3; 8])
        .expect("a valid file can be written");
    writer
        .write("c", &[4; 7])
        .expect("a valid file can be written");
    writer.finish().expect("a valid file can be written");
}

#[test]
fn every_type_of_metadata_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    write(&header(), &path);
    let file = GgufFile::open(&path).unwrap();
    let metadata = file.metadata();
    for (key, value) in [
        ("general.architecture", Value::Str("llama")),
        ("a.u8", Value::U8(8)),
        ("a.i8", Value::I8(-8)),
        ("a.u16", Value::U16(16)),
        ("a.i16", Value::I16(-16)),
        ("a.u32", Value::U32(32)),
        ("a.i32", Value::I32(-32)),
        ("a.u64", Value::U64(64)),
        ("a.i64", Value::I64(-64)),
        ("a.f32", Value::F32(0.5)),
        ("a.f64", Value::F64(0.25)),
        ("a.bool", Value::Bool(true)),
    ] {
        assert_eq!(metadata.get(key), Some(value), "{key}");
    }
    let texts: Vec<&str> = metadata.strings("tokens").unwrap().unwrap().collect();
    assert_eq!(texts, ["<s>", "", "é"]);
    assert!(metadata.f32s("scores").unwrap().unwrap().eq([0.0, -1.5]));
    assert!(metadata.i32s("types").unwrap().unwrap().eq([1, -2]));
    assert!(
        metadata
            .bools("flags")
            .unwrap()
            .unwrap()
            .eq([true, false, true])
    );
    let nested = metadata.array("nested").unwrap().unwrap();
    let lengths: Vec<usize> = nested
        .iter()
        .map(|inner| match inner {
            Value::Array(inner) => inner.len(),
            other => panic!("not an array: {other:?}"),
        })
        .collect();
    assert_eq!(lengths, [2, 0, 1]);
    assert_eq!(metadata.iter().count(), metadata.len());
}

#[test]
fn tensors_come_back_aligned_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    write(&header(), &path);
    let file = GgufFile::open(&path).unwrap();
    assert!(
        file.tensors()
            .iter()
            .all(|tensor| tensor.range.start.is_multiple_of(32))
    );
    let bytes = |name| file.tensor(name).unwrap().bytes;
    assert_eq!(bytes("a"), [1; 54]);
    assert_eq!(bytes("b"), [&[2u8; 12][..], &[3; 8]].concat());
    assert_eq!(bytes("c"), [4; 7]);
    assert_eq!(file.tensor("c").unwrap().info.dims.as_slice(), [1, 1, 1, 7]);
    assert!(file.tensor("d").is_none());
}

#[test]
fn metadata_can_be_taken_over_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (
        folder.path().join("old.gguf"),
        folder.path().join("new.gguf"),
    );
    let mut first = header();
    first.set("split.count", &1u16);
    write(&first, &old);
    let mut copy = GgufHeader::new();
    copy.copy_metadata(GgufFile::open(&old).unwrap().metadata());
    copy.set("a.u32", &33u32);
    copy.create(&new).unwrap().finish().unwrap();
    let (old, new) = (GgufFile::open(&old).unwrap(), GgufFile::open(&new).unwrap());
    assert_eq!(
        new.metadata().get("split.count"),
        None,
        "describes the old file"
    );
    assert_eq!(new.metadata().get("a.u32"), Some(Value::U32(33)));
    let others = |file: &GgufFile| {
        let kept = file
            .metadata()
            .iter()
            .filter(|(key, _)| !matches!(*key, "a.u32" | "split.count"));
        kept.map(|(key, value)| format!("{key} {value:?}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(others(&old), others(&new));
}

#[test]
fn typed_look_ups_convert_integers_and_refuse_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    write(&header(), &path);
    let file = GgufFile::open(&path).unwrap();
    let metadata = file.metadata();
    assert_eq!(metadata.u32("a.u64").unwrap(), Some(64));
    assert_eq!(
        metadata
            .u32("a.i8")
            .map_err(|e| e.to_string().contains("i8 -8")),
        Err(true)
    );
    assert_eq!(metadata.u32("absent").unwrap(), None);
    assert_eq!(metadata.f32("a.f64").unwrap(), Some(0.25));
    let error = metadata.string("a.u32").unwrap_err().to_string();
    let expected = format!(
        "{}: metadata key `a.u32` is u32 32, expected string",
        path.display()
    );
    assert_eq!(error, expected);
    let missing = metadata.missing("llama.block_count").to_string();
    assert!(missing.contains("m.gguf") && missing.contains("`llama.block_count` is missing"));
}

/// A crash in the middle of a conversion must not leave half a file under the model's name.
#[test]
fn a_file_appears_complete_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, b"what was there before").unwrap();
    let mut writer = header().create(&path).unwrap();
    writer.write("a", &[1; 54]).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(
        error.contains("before the data of tensor `b` was complete"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"what was there before");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "no temporary file is left"
    );
    write(&header(), &path);
    assert!(GgufFile::open(&path).is_ok());
}

#[test]
fn data_out_of_turn_or_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = header().create(folder.path().join("m.gguf")).unwrap();
    let error = writer.write("b", &[0; 20]).unwrap_err().to_string();
    assert!(error.contains("for tensor `b` when a was due"), "{error}");
    let error = writer.write("a", &[0; 55]).unwrap_err().to_string();
    assert!(error.contains("tensor `a` holds 54 bytes"), "{error}");
}

#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    for (dims, dtype, word) in [
        (&[16, 2][..], DType::Q4_0, "block of 32"),
        (&[0], DType::F32, "zero"),
        (&[1; 5], DType::F32, "5 dimensions"),
        (&[u64::MAX, 2], DType::F32, "overflows"),
        (&[32], DType::MLX_Q4, "unknown tensor type 1004"),
    ] {
        let mut header = GgufHeader::new();
        header.tensor("t", dims, dtype);
        let error = header
            .create(folder.path().join("m.gguf"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{error}");
    }
    let mut twice = GgufHeader::new();
    twice.tensor("t", &[1], DType::F32);
    twice.tensor("t", &[1], DType::F32);
    assert!(twice.create(folder.path().join("m.gguf")).is_err());
}
