//! GGUF files that want to do harm: each must be refused at once, with an error that names the problem.

use super::bytes::*;
use akunu_gguf::GgufFile;
use std::time::{Duration, Instant};

/// A refusal takes microseconds. What this catches, counting to a claim of 2^40 or walking in quadratic
/// time, takes hours; the room between is for machines under load.
const AT_ONCE: Duration = Duration::from_secs(10);

#[track_caller]
fn refused(bytes: &[u8], word: &str) {
    let start = Instant::now();
    let error = walk_gguf(bytes).expect_err("a hostile file was accepted");
    assert!(error.contains(word), "`{word}` is not in: {error}");
    assert!(
        start.elapsed() < AT_ONCE,
        "took {:?}: {error}",
        start.elapsed()
    );
}

/// The base of the cases: without this, a case could be refused for another reason than its own.
#[test]
fn the_file_that_the_cases_damage_is_valid() {
    assert!(walk_gguf(&RawGguf::valid().build()).is_ok());
    let version_2 = RawGguf {
        version: 2,
        ..RawGguf::valid()
    };
    assert!(walk_gguf(&version_2.build()).is_ok());
}

#[test]
fn not_gguf() {
    let other = RawGguf {
        magic: *b"GGML",
        ..RawGguf::valid()
    };
    refused(&other.build(), "not a GGUF file");
    refused(b"<!DOCTYPE html>", "it begins with \"<!DO\"");
    refused(b"\0\xff\x01\n", r#"it begins with "\x00\xff\x01\n""#);
    refused(b"", "the file is empty");
    refused(b"GG", "only 2 bytes, the download is incomplete");
    refused(
        b"GGUF\x03",
        "download is incomplete, or the file is damaged: it ends after 5 bytes",
    );
}

#[test]
fn other_versions_and_big_endian() {
    let of_version = |version| {
        RawGguf {
            version,
            ..RawGguf::valid()
        }
        .build()
    };
    refused(&of_version(0), "version 0 is not supported");
    refused(&of_version(1), "version 1 is not supported");
    refused(&of_version(4), "version 4 is not supported");
    refused(&of_version(3u32.swap_bytes()), "big-endian");
}

#[test]
fn huge_counts() {
    for count in [u64::MAX, 1 << 63, 1 << 32, 1_000_000] {
        let tensors = RawGguf {
            n_tensors: Some(count),
            ..RawGguf::valid()
        };
        refused(&tensors.build(), "`tensor count`: claims");
        let entries = RawGguf {
            n_entries: Some(count),
            ..RawGguf::valid()
        };
        refused(&entries.build(), "`metadata count`: claims");
    }
}

#[test]
fn more_tensors_than_any_model_has() {
    let mut raw = RawGguf::new();
    raw.tensors = (0..70_000)
        .map(|i| tensor(format!("t{i}").as_bytes(), &[1], F32, 0))
        .collect();
    refused(&raw.build(), "70000 tensors are more than");
}

#[test]
fn counts_that_are_one_off() {
    let valid = RawGguf::valid();
    let entries = valid.entries.len() as u64;
    let fewer = RawGguf {
        n_entries: Some(entries - 1),
        ..valid.clone()
    };
    assert!(walk_gguf(&fewer.build()).is_err());
    let more = RawGguf {
        n_entries: Some(entries + 1),
        ..valid
    };
    assert!(walk_gguf(&more.build()).is_err());
}

#[test]
fn huge_lengths() {
    for length in [u64::MAX, 1 << 40, 10_000] {
        let text = RawGguf::new().entry("k", STRING, &length.to_le_bytes());
        refused(&text.build(), "(`k`): claims");
        for kind in [U8, U32, BOOL, STRING, ARRAY] {
            let list = RawGguf::new().entry("k", ARRAY, &array(kind, length, &[0; 16]));
            refused(&list.build(), "(`k`): claims");
        }
        let mut key = RawGguf::new();
        key.entries.push(length.to_le_bytes().repeat(3));
        refused(&key.build(), "metadata 0: claims");
    }
}

#[test]
fn names_that_are_empty_or_too_long() {
    refused(&RawGguf::new().entry("", U8, &[0]).build(), "0 bytes long");
    let long = "k".repeat(70_000);
    refused(
        &RawGguf::new().entry(&long, U8, &[0]).build(),
        "70000 bytes long",
    );
    refused(
        &RawGguf::new().tensor("", &[1], F32, 0).data(32).build(),
        "0 bytes long",
    );
}

#[test]
fn dims_that_overflow_are_zero_or_too_many() {
    let with = |dims: &[u64]| RawGguf::new().tensor("t", dims, F32, 0).data(64).build();
    refused(
        &with(&[1 << 32, 1 << 32]),
        "(`t`): has the dimensions [4294967296, 4294967296]",
    );
    refused(&with(&[u64::MAX]), "overflows");
    refused(&with(&[1 << 62, 4]), "overflows");
    refused(&with(&[1 << 62]), "overflows");
    refused(&with(&[8, 0]), "none may be zero");
    refused(&with(&[0]), "none may be zero");
    refused(&with(&[]), "has 0 dimensions");
    refused(&with(&[1; 5]), "has 5 dimensions");
    refused(&with(&[1; 1000]), "has 1000 dimensions");
}

#[test]
fn rows_that_are_not_whole_blocks() {
    // 16 × 2 values are one block of 32, but a row is half of one.
    let raw = RawGguf::new().tensor("t", &[16, 2], Q4_0, 0).data(64);
    refused(&raw.build(), "not a multiple of the block of 32 of q4_0");
}

#[test]
fn unknown_tensor_and_value_types() {
    for id in [4, 5, 36, 1004, u32::MAX] {
        let raw = RawGguf::new().tensor("t", &[32], id, 0).data(512);
        refused(
            &raw.build(),
            &format!("(`t`): has the unknown tensor type {id}"),
        );
    }
    let value = RawGguf::new().entry("k", 13, &[0; 8]);
    refused(&value.build(), "(`k`): has the unknown value type 13");
    let element = RawGguf::new().entry("k", ARRAY, &array(99, 0, &[]));
    refused(&element.build(), "unknown value type 99");
}

#[test]
fn offsets_beyond_the_file() {
    let at = |offset| {
        RawGguf::new()
            .tensor("t", &[8], F32, offset)
            .data(64)
            .build()
    };
    assert!(walk_gguf(&at(32)).is_ok(), "exactly fits");
    let whole = at(64);
    let (found, wanted) = (whole.len(), whole.len() + 32);
    refused(
        &whole,
        &format!("download is incomplete: the file has {found} bytes of {wanted}"),
    );
    refused(&at(1 << 40), "download is incomplete");
    refused(&at(u64::MAX - 31), "download is incomplete");
}

#[test]
fn offsets_that_overlap_or_are_out_of_order() {
    let pair = |first, second| {
        let raw = RawGguf::new().tensor("a", &[16], F32, first);
        raw.tensor("b", &[16], F32, second).data(256).build()
    };
    assert!(walk_gguf(&pair(0, 64)).is_ok());
    refused(
        &pair(0, 0),
        "(`b`): starts at offset 0, before the end (64)",
    );
    refused(
        &pair(0, 32),
        "(`b`): starts at offset 32, before the end (64)",
    );
    refused(
        &pair(64, 0),
        "(`b`): starts at offset 0, before the end (128)",
    );
}

#[test]
fn misaligned_offsets() {
    let raw = RawGguf::new().tensor("t", &[8], F32, 4).data(64);
    refused(
        &raw.build(),
        "offset 4, which is not a multiple of the alignment 32",
    );
}

#[test]
fn impossible_alignments() {
    let with = |kind, value: &[u8], padding| {
        let raw = RawGguf::new().entry("general.alignment", kind, value);
        let raw = raw.tensor("t", &[8], F32, 0).data(64);
        RawGguf { padding, ..raw }.build()
    };
    assert!(walk_gguf(&with(U32, &64u32.to_le_bytes(), 64)).is_ok());
    for alignment in [0u32, 1, 4, 33, 48, 1 << 21, u32::MAX] {
        let word = format!("general.alignment is {alignment}");
        refused(&with(U32, &alignment.to_le_bytes(), 32), &word);
    }
    refused(
        &with(STRING, &string(b"32"), 32),
        "`general.alignment` is string",
    );
}

#[test]
fn duplicate_keys_and_tensors() {
    let keys = RawGguf::new().entry("k", U8, &[1]).entry("k", U8, &[2]);
    refused(&keys.build(), "key `k` occurs twice");
    let tensors = RawGguf::new()
        .tensor("t", &[8], F32, 0)
        .tensor("t", &[8], F32, 32);
    refused(&tensors.data(64).build(), "tensor `t` occurs twice");
}

#[test]
fn deep_and_wide_nested_arrays() {
    let nest = |levels: usize| {
        let mut value = array(ARRAY, 1, &[]).repeat(levels - 1);
        value.extend(array(U8, 1, &[1]));
        RawGguf::new().entry("k", ARRAY, &value).build()
    };
    assert!(walk_gguf(&nest(8)).is_ok());
    refused(&nest(9), "nested deeper than 8 levels");
    refused(&nest(100_000), "nested deeper than 8 levels");
    // A million empty arrays: legal, and must be walked quickly.
    let empty = array(U8, 0, &[]).repeat(1_000_000);
    let wide = RawGguf::new()
        .entry("k", ARRAY, &array(ARRAY, 1_000_000, &empty))
        .build();
    let start = Instant::now();
    assert!(walk_gguf(&wide).is_ok());
    assert!(start.elapsed() < AT_ONCE, "took {:?}", start.elapsed());
}

#[test]
fn invalid_utf8() {
    let value = RawGguf::new().entry("k", STRING, &string(b"\xff"));
    refused(&value.build(), "(`k`): is not valid UTF-8");
    let mut key = RawGguf::new();
    key.entries.push(entry(b"\xc3\x28", U8, &[0]));
    refused(&key.build(), "metadata 0: is not valid UTF-8");
    let mut name = RawGguf::new();
    name.tensors.push(tensor(b"\xed\xa0\x80", &[1], F32, 0));
    refused(&name.data(32).build(), "tensor 0: is not valid UTF-8");
    let tokens = [string(b"ok"), string(b"\xf0\x9f")].concat();
    let tokens = RawGguf::new().entry("tokenizer.ggml.tokens", ARRAY, &array(STRING, 2, &tokens));
    refused(
        &tokens.build(),
        "(`tokenizer.ggml.tokens`): element 1 is not valid UTF-8",
    );
}

#[test]
fn bools_that_are_neither() {
    refused(
        &RawGguf::new().entry("k", BOOL, &[2]).build(),
        "bool with the value 2",
    );
    let list = RawGguf::new().entry("k", ARRAY, &array(BOOL, 3, &[0, 1, 9]));
    refused(&list.build(), "element 2 is a bool with the value 9");
}

/// Where a reader wants an array of one type, another is an error and not a panic or an empty list.
#[test]
fn arrays_of_the_wrong_element_type() {
    let numbers = array(U32, 2, &[0; 8]);
    let texts = array(STRING, 1, &string(b"x"));
    let raw = RawGguf::new()
        .entry("tokenizer.ggml.tokens", ARRAY, &numbers)
        .entry("tokenizer.ggml.merges", U8, &[1])
        .entry("tokenizer.ggml.scores", ARRAY, &texts)
        .entry("tokenizer.ggml.token_type", ARRAY, &texts);
    let file = GgufFile::parse(raw.build()).unwrap();
    let metadata = file.metadata();
    let errors = [
        (
            metadata.strings("tokenizer.ggml.tokens").err(),
            "tokens` is array of 2 u32",
        ),
        (
            metadata.strings("tokenizer.ggml.merges").err(),
            "merges` is u8",
        ),
        (
            metadata.f32s("tokenizer.ggml.scores").err(),
            "expected array of f32",
        ),
        (
            metadata.i32s("tokenizer.ggml.token_type").err(),
            "expected array of i32",
        ),
    ];
    for (error, word) in errors {
        let error = error.expect("refused").to_string();
        assert!(
            error.contains(word) && error.contains("<memory>"),
            "{error}"
        );
    }
}

/// Every prefix of a valid file is refused: nothing in it is optional, and no read passes the end.
#[test]
fn truncation_at_every_byte() {
    let whole = RawGguf::valid().build();
    for length in 0..whole.len() {
        let error = walk_gguf(&whole[..length]).expect_err("a part was taken for the whole");
        assert!(!error.is_empty());
    }
}
