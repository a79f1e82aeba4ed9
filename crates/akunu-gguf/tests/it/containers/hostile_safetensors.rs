//! Safetensors files that want to do harm: each must be refused at once, with an error that names the problem.

use super::bytes::{safetensors, walk_safetensors};
use std::time::{Duration, Instant};

/// A refusal takes milliseconds. What this catches, quadratic time in the number of entries, takes
/// minutes; the room between is for machines under load.
const AT_ONCE: Duration = Duration::from_secs(10);

const VALID: &str = r#"{"__metadata__":{"format":"mlx"},
    "a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},
    "b":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]},
    "c":{"dtype":"U8","shape":[],"data_offsets":[24,25]}}"#;

#[track_caller]
fn refused(bytes: &[u8], word: &str) {
    let start = Instant::now();
    let error = walk_safetensors(bytes).expect_err("a hostile file was accepted");
    assert!(error.contains(word), "`{word}` is not in: {error}");
    assert!(
        start.elapsed() < AT_ONCE,
        "took {:?}: {error}",
        start.elapsed()
    );
}

/// A header with one tensor `t` over 16 bytes of data.
fn one(entry: &str) -> Vec<u8> {
    safetensors(&format!("{{\"t\":{entry}}}"), &[1; 16])
}

#[test]
fn the_file_that_the_cases_damage_is_valid() {
    assert_eq!(walk_safetensors(&safetensors(VALID, &[1; 25])), Ok(25));
    let good = r#"{"dtype":"F32","shape":[4],"data_offsets":[0,16]}"#;
    assert_eq!(walk_safetensors(&one(good)), Ok(16));
}

#[test]
fn truncation_at_every_byte() {
    let whole = safetensors(VALID, &[1; 25]);
    for length in 0..whole.len() {
        assert!(
            walk_safetensors(&whole[..length]).is_err(),
            "{length} bytes were accepted"
        );
    }
}

#[test]
fn header_lengths_that_lie() {
    for length in [u64::MAX, 1 << 40, 100_000_001] {
        let mut file = safetensors(VALID, &[1; 25]);
        file[..8].copy_from_slice(&length.to_le_bytes());
        refused(&file, "most that the format allows");
    }
    let mut file = safetensors(VALID, &[1; 25]);
    file[..8].copy_from_slice(&50_000_000u64.to_le_bytes());
    refused(&file, "download is incomplete");
}

#[test]
fn headers_that_are_not_the_right_json() {
    for json in [
        "",
        "[]",
        "null",
        "{",
        "{\"a\":1}",
        "{} {}",
        "{\"a\":{}}",
        "\u{0}",
    ] {
        refused(&safetensors(json, &[]), "not valid");
    }
    let not_utf8 = [&4u64.to_le_bytes()[..], b"{\"\xff\""].concat();
    refused(&not_utf8, "not valid");
    refused(&safetensors(&"[".repeat(1_000_000), &[]), "not valid");
    let deep = format!("{{\"__metadata__\":{}", "{\"a\":".repeat(200_000));
    refused(&safetensors(&deep, &[]), "not valid");
    let negative = r#"{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}"#;
    refused(&one(negative), "not valid");
}

#[test]
fn one_hundred_thousand_entries() {
    let entries: Vec<String> = (0..100_000)
        .map(|i| {
            format!(
                r#""t{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#,
                i + 1
            )
        })
        .collect();
    let json = format!("{{{}}}", entries.join(","));
    refused(
        &safetensors(&json, &vec![0; 100_000]),
        "more than 65536 tensors",
    );
}

#[test]
fn shapes_that_overflow_are_zero_or_too_many() {
    for shape in [
        "[4294967296,4294967296]",
        "[18446744073709551615]",
        "[4611686018427387904]",
        "[0]",
        "[4,0]",
        "[1,1,1,1,1,1,4]",
    ] {
        let entry = format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[0,16]}}"#);
        refused(&one(&entry), "tensor `t` has the shape [");
    }
    let many = format!("[{}4]", "1,".repeat(100_000));
    let entry = format!(r#"{{"dtype":"F32","shape":{many},"data_offsets":[0,16]}}"#);
    refused(&one(&entry), "has the shape");
}

#[test]
fn ranges_that_do_not_fit() {
    let at = |offsets| format!(r#"{{"dtype":"F32","shape":[4],"data_offsets":{offsets}}}"#);
    refused(&one(&at("[0,17]")), "of 16 bytes of data");
    refused(
        &one(&at("[18446744073709551600,18446744073709551615]")),
        "of 16 bytes of data",
    );
    refused(&one(&at("[16,0]")), "lies at 16..0");
    refused(&one(&at("[0,12]")), "has 12 bytes, but its shape needs 16");
    refused(
        &one(r#"{"dtype":"F32","shape":[3],"data_offsets":[4,16]}"#),
        "begins at byte 4",
    );
    refused(
        &one(r#"{"dtype":"F32","shape":[3],"data_offsets":[0,12]}"#),
        "end at byte 12 of 16",
    );
}

#[test]
fn overlapping_ranges() {
    let json = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                   "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    refused(&safetensors(json, &[0; 12]), "tensor `b` begins at byte 4");
    let same = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                   "b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    refused(&safetensors(same, &[0; 8]), "begins at byte 0");
}

#[test]
fn unknown_types() {
    let entry = r#"{"dtype":"F128","shape":[1],"data_offsets":[0,16]}"#;
    refused(&one(entry), "tensor `t` has the unknown type `F128`");
}
