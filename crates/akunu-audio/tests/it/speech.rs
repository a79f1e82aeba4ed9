//! Silence and noise are silent, syllables are heard.

use akunu_audio::{MelStream, SpeechDetector};

/// Noise between -0.5 and 0.5.
fn noise(n_samples: usize) -> Vec<f32> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    (0..n_samples).map(|_| next()).collect()
}

/// Four seconds with syllables of a fifth of a second in the second and third: harmonics of 140 Hz.
fn syllables(height: f32) -> Vec<f32> {
    let sample = |i: usize| {
        let t = i as f32 / 16_000.0;
        let speaks = (1.0..3.0).contains(&t) && (t * 2.5).fract() < 0.5;
        let tone = |k: usize| (std::f32::consts::TAU * 140.0 * k as f32 * t).sin() / k as f32;
        height * f32::from(speaks) * (1..12).map(tone).sum::<f32>()
    };
    (0..64_000).map(sample).collect()
}

fn heard(samples: &[f32]) -> bool {
    let mut stream = MelStream::new(80);
    let mut frames = stream.push(samples);
    frames.extend(stream.finish());
    SpeechDetector::new(80).hears(&frames)
}

/// Fails when steady sounds count as speech, at any loudness.
#[test]
fn silence_noise_and_hum_are_not_speech() {
    assert!(!heard(&[]));
    assert!(!heard(&vec![0.0; 64_000]));
    let noise = noise(64_000);
    for height in [1.0, 0.1, 0.003] {
        let noise: Vec<f32> = noise.iter().map(|x| x * height).collect();
        assert!(!heard(&noise), "noise of {height}");
        // Low noise: the sum of neighbours.
        let low: Vec<f32> = noise.windows(16).map(|w| w.iter().sum()).collect();
        assert!(!heard(&low), "low noise of {height}");
    }
    let hum = |i: usize| 0.3 * (std::f32::consts::TAU * 50.0 * i as f32 / 16_000.0).sin();
    assert!(!heard(&(0..64_000).map(hum).collect::<Vec<_>>()));
}

/// Fails when quiet voices, or voices in noise, are lost.
#[test]
fn syllables_are_speech() {
    assert!(heard(&syllables(0.2)));
    assert!(heard(&syllables(0.003)), "a quiet voice");
    let noise = noise(64_000);
    let in_noise = syllables(0.1)
        .into_iter()
        .zip(noise)
        .map(|(v, n)| v + 0.02 * n);
    assert!(heard(&in_noise.collect::<Vec<_>>()), "a voice in noise");
}

/// Fails when a last word without a pause is lost, at the end of a recording or as all of it.
#[test]
fn a_word_without_a_pause_is_speech() {
    let syllable = &syllables(0.1)[19_200..22_400];
    assert!(heard(syllable), "a recording of one syllable");
    let frames = |samples: &[f32]| {
        let mut stream = MelStream::new(80);
        let mut frames = stream.push(samples);
        frames.extend(stream.finish());
        frames
    };
    let mut detector = SpeechDetector::new(80);
    assert!(detector.hears(&frames(&syllables(0.1))));
    assert!(detector.hears(&frames(syllable)), "the last syllable");
    assert!(
        !detector.hears(&frames(&vec![0.0; 16_000])),
        "the silence after it"
    );
}
