//! Damaged files, bombs and extreme shapes.

use crate::files::path;
use akunu_image::{Limits, Picture, PictureProblem};

fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).expect("a fixture")
}

fn refuse(bytes: &[u8]) -> String {
    let problem = Picture::decode(bytes, &Limits::default()).expect_err("a problem");
    problem.to_string()
}

/// A PNG whose header promises a size, without the pixels.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = bytes_of("rgb.png");
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let crc = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
    let byte = |crc: u32, &byte: &u8| (0..8).fold(crc ^ u32::from(byte), step);
    !bytes.iter().fold(!0, byte)
}

/// A few bytes that promise billions of pixels are refused before memory is allocated.
#[test]
fn bombs_are_refused_by_their_size() {
    assert_eq!(
        refuse(&png_of(60_000, 60_000)),
        "has 60000 x 60000 pixels; the limit for each side is 16384"
    );
    assert_eq!(
        refuse(&png_of(16_000, 16_000)),
        "has 16000 x 16000 pixels, 256000000 in all; the limit is 67108864"
    );
    assert_eq!(
        refuse(&png_of(1, 20_000)),
        "has 1 x 20000 pixels; the limit for each side is 16384"
    );
}

/// Memory has a limit of its own: a decoder may need more than the pixels.
#[test]
fn memory_is_limited() {
    let limits = Limits {
        max_memory: 100,
        ..Limits::default()
    };
    for name in ["rgb.png", "still.gif", "lossless.webp", "plain.jpg"] {
        let answer = Picture::decode(&bytes_of(name), &limits);
        let problem = answer.expect_err(name);
        assert!(
            matches!(problem, PictureProblem::TooMuchMemory(100)),
            "{name}: {problem}"
        );
    }
}

#[test]
fn other_files_are_refused_in_words() {
    assert_eq!(refuse(b""), "is empty");
    let unknown = "is not an image of a supported format (PNG, JPEG, WebP, GIF)";
    assert_eq!(refuse(b"hello"), unknown);
    assert_eq!(refuse(b"%PDF-1.7 ..."), unknown);
    assert_eq!(
        refuse(b"BM\0\0\0\0\0\0\0\0"),
        "is a BMP image, which is not supported; convert it to PNG, JPEG, WebP or GIF"
    );
    let limits = Limits {
        max_bytes: 10,
        ..Limits::default()
    };
    let problem = Picture::open(path("rgb.png"), &limits).expect_err("too many bytes");
    assert!(
        problem
            .to_string()
            .ends_with("rgb.png: has 11 bytes or more; the limit is 10")
    );
    let problem = Picture::open(path("missing.png"), &limits).expect_err("no such file");
    assert!(matches!(problem.problem, PictureProblem::Io(_)));
}

/// A file that was cut anywhere before its last pixels is refused: a picture half of grey would be believed.
#[test]
fn truncated_files_are_refused() {
    for name in [
        "plain.jpg",
        "progressive.jpg",
        "rgb_16.png",
        "still.gif",
        "lossless.webp",
        "lossy.webp",
    ] {
        let bytes = bytes_of(name);
        for n in [bytes.len() / 2, bytes.len() * 3 / 4, bytes.len() - 20] {
            let problem = Picture::decode(&bytes[..n], &Limits::default()).expect_err(name);
            let is_told = matches!(
                problem,
                PictureProblem::Truncated | PictureProblem::Damaged(_)
            );
            assert!(is_told, "{name} of {n} bytes: {problem}");
        }
        let whole = Picture::decode(&bytes, &Limits::default());
        assert!(whole.is_ok(), "{name}");
    }
    let jpeg = bytes_of("plain.jpg");
    assert_eq!(
        refuse(&jpeg[..jpeg.len() - 2]),
        "is truncated: the file ends in the middle of the image"
    );
}

/// Whatever byte is wrong and wherever a file ends, the answer is a picture of bounded size or a sentence.
#[test]
fn damaged_files_do_not_panic() {
    let mut state = 7u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let limits = Limits {
        max_pixels: 1 << 16,
        max_memory: 1 << 22,
        ..Limits::default()
    };
    for entry in std::fs::read_dir(path("")).expect("fixtures") {
        let valid = std::fs::read(entry.expect("a file").path()).expect("a fixture");
        for _ in 0..200 {
            let mut bytes = valid.clone();
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
            bytes.truncate(1 + random(2 * valid.len()));
            if let Ok(picture) = Picture::decode(&bytes, &limits) {
                assert!(picture.size().n_pixels() <= limits.max_pixels);
            }
        }
    }
}
