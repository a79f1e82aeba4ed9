//! Filters and spectrograms against openai-whisper's (`fixtures/make_mel.py`).

use akunu_audio::{MelStream, log_mel, mel_filters};
use serde_json::Value;

fn recorded() -> Value {
    serde_json::from_str(include_str!("../fixtures/mel.json")).expect("valid JSON")
}

fn floats(values: &Value) -> Vec<f32> {
    let values = values.as_array().expect("an array");
    values
        .iter()
        .map(|v| v.as_f64().expect("a number") as f32)
        .collect()
}

/// The sound of the script: a rising tone and noise that fades in.
fn sound(n_samples: usize) -> Vec<f32> {
    let mut state = 1u32;
    let sample = |i: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state) / 4_294_967_296.0 - 0.5;
        let t = i as f64 / 16_000.0;
        let tone = (std::f64::consts::TAU * (100.0 * t + 0.5 * 3900.0 * t * t)).sin();
        (0.4 * tone + 0.1 * t * noise) as f32
    };
    (0..n_samples).map(sample).collect()
}

/// Fails on another mel scale (HTK's), other corners or another norm.
#[test]
fn filters_are_those_of_the_file() {
    for n_mels in [80, 128] {
        let recorded = recorded()["filters"][n_mels.to_string()].take();
        let bank = mel_filters(n_mels);
        let sum: f64 = bank.iter().map(|&w| f64::from(w)).sum();
        assert!((sum - recorded["sum"].as_f64().unwrap()).abs() < 1e-5);
        for (row, expected) in recorded["rows"].as_object().unwrap() {
            let row: usize = row.parse().unwrap();
            let first = expected["first"].as_u64().unwrap() as usize;
            let expected = floats(&expected["weights"]);
            let row = &bank[row * 201..][..201];
            let total: f32 = row.iter().sum();
            assert!((total - expected.iter().sum::<f32>()).abs() < 1e-6);
            for (ours, theirs) in row[first..].iter().zip(expected) {
                // Six digits are recorded.
                assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
            }
        }
    }
}

/// Fails on another window, hop, mirroring or clamping; on frames that depend on how samples come in; and on frames
/// too many or too few at the end.
#[test]
fn frames_are_those_of_openai_whisper() {
    for n_mels in [80, 128] {
        let recorded = recorded()["spectra"][n_mels.to_string()].take();
        let mut stream = MelStream::new(n_mels);
        let mut frames = Vec::new();
        for piece in sound(32_123).chunks(777) {
            frames.extend(stream.push(piece));
        }
        frames.extend(stream.finish());
        let n_frames = frames.len() / n_mels;
        assert_eq!(n_frames as u64, recorded["n_frames"].as_u64().unwrap());
        let input = log_mel(&frames, stream.loudest(), n_mels, 3000);
        let silence = (stream.loudest() - 8.0 + 4.0) / 4.0;
        assert!(input[200 * n_mels..].iter().all(|&value| value == silence));
        for (t, expected) in recorded["frames"].as_object().unwrap() {
            let t: usize = t.parse().unwrap();
            for (m, expected) in floats(expected).into_iter().enumerate() {
                let ours = input[t * n_mels + m];
                // Six digits are recorded, and the transforms round differently where there is hardly any sound.
                let tolerance = 2e-4;
                let difference = (ours - expected).abs();
                assert!(difference < tolerance, "{t} {m}: {ours} {expected}");
            }
        }
    }
}

/// Fails when a recording shorter than the mirrored beginning breaks something.
#[test]
fn the_shortest_recordings_have_frames() {
    for n_samples in [0, 1, 159, 160, 200, 201, 399, 400, 401] {
        let mut stream = MelStream::new(80);
        let mut frames = stream.push(&vec![0.5; n_samples]);
        frames.extend(stream.finish());
        assert_eq!(frames.len() / 80, n_samples / 160, "{n_samples}");
        assert!(frames.iter().all(|value| value.is_finite()));
    }
}
