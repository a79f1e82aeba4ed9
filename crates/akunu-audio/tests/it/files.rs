//! Files of every format, and of every way to be wrong. The coded ones are made by `fixtures/make_formats.py`.

use std::path::{Path, PathBuf};

use akunu_audio::{AudioError, AudioProblem, AudioReader};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// All samples, or the first error.
fn read(path: &Path) -> Result<Vec<f32>, AudioError> {
    let mut samples = Vec::new();
    for piece in AudioReader::open(path)? {
        samples.extend(piece?);
    }
    Ok(samples)
}

fn problem(path: &Path) -> AudioProblem {
    let error = read(path).expect_err("cannot be read");
    assert!(error.to_string().contains(path.to_str().expect("UTF-8")));
    error.problem
}

/// A WAV file of 16-bit samples, one height for each channel.
fn wav(rate: u32, heights: &[f32], n_frames: usize) -> Vec<u8> {
    let n_channels = heights.len() as u16;
    let mut data = Vec::new();
    for i in 0..n_frames {
        let tone = (std::f32::consts::TAU * 440.0 * i as f32 / rate as f32).sin();
        for height in heights {
            data.extend(((tone * height * 32767.0) as i16).to_le_bytes());
        }
    }
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    file.extend(n_channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate.wrapping_mul(2 * u32::from(n_channels))).to_le_bytes());
    file.extend((2 * n_channels).to_le_bytes());
    file.extend(16u16.to_le_bytes());
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn written(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("can be written");
    path
}

/// How much of the samples is a tone of 440 Hz, as its height.
fn height(samples: &[f32]) -> f32 {
    let (mut sine, mut cosine) = (0.0f64, 0.0f64);
    for (i, &x) in samples.iter().enumerate() {
        let angle = std::f64::consts::TAU * 440.0 * i as f64 / 16_000.0;
        sine += f64::from(x) * angle.sin();
        cosine += f64::from(x) * angle.cos();
    }
    (2.0 * sine.hypot(cosine) / samples.len() as f64) as f32
}

/// Fails when a format of the list is not built in, or when its tone comes out at another pitch, height or length.
#[test]
fn every_format_gives_its_tone() {
    for name in [
        "tone.flac",
        "tone.mp3",
        "tone.ogg",
        "tone.m4a",
        "talking.mp4",
    ] {
        let samples = read(&fixture(name)).unwrap_or_else(|e| panic!("{e}"));
        // A coder may add a block of silence at either end.
        let n = samples.len();
        assert!((7_500..9_300).contains(&n), "{name}: {n}");
        let middle = height(&samples[2_000..6_000]);
        assert!((middle - 0.5).abs() < 0.03, "{name}: {middle}");
    }
}

/// Fails when a channel is lost, or when rates come out at another pitch or length.
#[test]
fn rates_and_channels_become_16_khz_mono() {
    let folder = tempfile::tempdir().unwrap();
    let eight = [0.8, 0.0, 0.4, 0.0, 0.2, 0.6, 0.0, 0.4];
    for (rate, heights, expected) in [
        (16_000, &[0.5][..], 0.5),
        (8_000, &[0.6, 0.2][..], 0.4),
        (48_000, &eight[..], 0.3),
        (192_000, &[0.5, 0.5][..], 0.5),
    ] {
        let path = written(&folder, "a.wav", &wav(rate, heights, rate as usize / 2));
        let samples = read(&path).unwrap();
        assert_eq!(samples.len(), 8_000, "{rate}");
        let found = height(&samples[1_000..7_000]);
        assert!((found - expected).abs() < 0.01, "{rate}: {found}");
    }
}

/// Fails when a file in memory is read differently from the same file on a disk.
#[test]
fn files_in_memory_are_read_too() {
    for name in ["tone.mp3", "tone.m4a", "tone.ogg"] {
        let path = fixture(name);
        let reader = AudioReader::from_bytes(name, std::fs::read(&path).unwrap()).unwrap();
        let samples: Vec<f32> = reader.flat_map(|piece| piece.unwrap()).collect();
        assert_eq!(samples, read(&path).unwrap(), "{name}");
    }
    let empty = AudioReader::from_bytes("talk.wav", Vec::new()).expect_err("no sound");
    assert_eq!(empty.to_string(), "talk.wav: holds no sound at all");
}

/// Fails when one of these is taken for sound, or is told by another word.
#[test]
fn bad_files_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| written(&folder, name, bytes);
    assert!(matches!(
        problem(&folder.path().join("none.wav")),
        AudioProblem::Io(_)
    ));
    assert!(matches!(
        problem(&write("empty.wav", b"")),
        AudioProblem::Empty
    ));
    let no_samples = write("no_samples.wav", &wav(16_000, &[0.5], 0));
    assert!(matches!(problem(&no_samples), AudioProblem::Empty));
    let text = write("text.wav", &b"All of this is text. ".repeat(500));
    assert!(matches!(problem(&text), AudioProblem::NotAudio));
    assert!(matches!(problem(folder.path()), AudioProblem::NotAudio));
    assert!(matches!(
        problem(&fixture("silent.mp4")),
        AudioProblem::NoTrack
    ));
    assert!(matches!(
        problem(&fixture("tone.opus")),
        AudioProblem::Codec(_)
    ));
    let still = write("still.wav", &wav(0, &[0.5], 100));
    assert!(matches!(
        problem(&still),
        AudioProblem::SampleRate(0) | AudioProblem::NotAudio
    ));
    let mut damaged = std::fs::read(fixture("tone.ogg")).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    let damaged = problem(&write("damaged.ogg", &damaged));
    assert!(matches!(damaged, AudioProblem::Damaged { .. }), "{damaged}");
    let fast = write("fast.wav", &wav(4_000_000_000, &[0.5], 100));
    assert!(matches!(
        problem(&fast),
        AudioProblem::SampleRate(4_000_000_000)
    ));
}

/// Fails when the sound before the cut is lost, or when nobody is told of it.
#[test]
fn a_file_that_was_cut_off_gives_what_is_there_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let whole = wav(16_000, &[0.5], 32_000);
    let path = written(&folder, "cut.wav", &whole[..whole.len() / 2]);
    let mut reader = AudioReader::open(&path).unwrap();
    let n_samples: usize = reader.by_ref().map(|piece| piece.unwrap().len()).sum();
    assert!((15_000..=16_000).contains(&n_samples), "{n_samples}");
    let missing = reader.missing().expect("a second is missing");
    assert!((missing - 1.0).abs() < 0.1, "{missing}");

    let path = written(&folder, "whole.wav", &whole);
    let mut reader = AudioReader::open(&path).unwrap();
    assert!(reader.by_ref().count() > 0);
    assert_eq!(reader.missing(), None);
}

/// Fails when damage of any kind causes a panic or a loop: bytes of the first kilobyte changed in turn, and cuts.
#[test]
fn damage_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tone.flac", "tone.mp3", "tone.ogg", "tone.m4a"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        for at in (0..whole.len().min(1024)).step_by(37) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = read(&written(&folder, name, &damaged));
        }
        for cut in (0..whole.len()).step_by(whole.len() / 8) {
            let _ = read(&written(&folder, name, &whole[..cut]));
        }
    }
}
