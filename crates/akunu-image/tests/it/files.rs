//! Small files of every kind against Pillow's pixels (`fixtures/make_files.py`).

use akunu_image::{Limits, Picture, Size};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Deserialize)]
struct Expected {
    /// Height and width.
    size: [u32; 2],
    /// The bytes in hexadecimal digits.
    rgb: String,
}

fn expected() -> BTreeMap<String, Expected> {
    serde_json::from_str(include_str!("../fixtures/files.json")).expect("valid JSON")
}

pub fn path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/files");
    folder.join(name)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// The largest difference that was seen. JPEG leaves the rounding of its transform and the interpolation of halved colours
/// to the decoder, and Pillow has another one; everything else is exact.
fn tolerance(name: &str) -> u8 {
    match name {
        "plain.jpg" | "progressive.jpg" => 3,
        "full_colour.jpg" => 2,
        _ if name.starts_with("orientation") => 2,
        _ => 0,
    }
}

/// Fails on another orientation, palette, transparency, depth or frame.
#[test]
fn pixels_are_those_of_pillow() {
    let expected = expected();
    assert!(expected.len() > 30);
    let mut failures = Vec::new();
    for (name, expected) in expected {
        let picture = Picture::open(path(&name), &Limits::default()).expect("a valid file");
        let [height, width] = expected.size;
        assert_eq!(picture.size(), Size { width, height }, "{name}");
        let theirs = bytes_of(&expected.rgb);
        let pairs = picture.rgb().iter().zip(&theirs);
        let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
        if worst > tolerance(&name) {
            failures.push(format!("{name}: {worst}"));
        }
    }
    assert_eq!(failures, Vec::<String>::new());
}
