//! The log-mel spectrogram of Whisper.
//!
//! ```text
//! power[t][f] = |Σ_n hann[n] * x[160 t + n - 200] * exp(-2πi f n / 400)|²      x is mirrored before its beginning
//! mel[t][m]   = log10(max(1e-10, Σ_f filter[m][f] * power[t][f]))
//! input[t][m] = (max(mel[t][m], loudest - 8) + 4) / 4                          silence after the end
//! ```
//!
//! `loudest` is the largest value of the recording. [`MelStream`] knows it only up to where it has come, so that a
//! window is scaled by what was heard until its end.

use crate::SAMPLE_RATE;
use crate::filters::mel_filters;
use crate::spectrum::{N_BINS, Spectrum, WINDOW};

/// Samples from one frame to the next: 10 ms.
pub const HOP: usize = 160;
/// Frames of a second.
pub const FRAMES_A_SECOND: usize = SAMPLE_RATE as usize / HOP;

/// The logarithm of what counts as no sound.
const SILENCE: f32 = -10.0;
/// Levels more than 80 dB below the loudest are raised to that.
const RANGE: f32 = 8.0;

/// Turns samples into frames as they come.
pub struct MelStream {
    n_mels: usize,
    spectrum: Spectrum,
    hann: Vec<f32>,
    filters: Vec<Filter>,
    /// Samples from the beginning of the next frame on; before the first frame, all samples so far.
    waiting: Vec<f32>,
    has_begun: bool,
    n_samples: usize,
    n_frames: usize,
    loudest: f32,
}

/// The weights of one filter that are not zero.
struct Filter {
    first: usize,
    weights: Vec<f32>,
}

impl MelStream {
    /// With this many filters: 80, or 128 for the newest models.
    ///
    /// # Panics
    ///
    /// When there are no filters or more than [`MAX_MELS`](crate::MAX_MELS).
    pub fn new(n_mels: usize) -> MelStream {
        assert!((1..=crate::MAX_MELS).contains(&n_mels), "{n_mels} filters");
        let turn = std::f64::consts::TAU / WINDOW as f64;
        let hann = |n: usize| (0.5 - 0.5 * (turn * n as f64).cos()) as f32;
        let bank = mel_filters(n_mels);
        MelStream {
            n_mels,
            spectrum: Spectrum::new(),
            hann: (0..WINDOW).map(hann).collect(),
            filters: bank.chunks_exact(N_BINS).map(Filter::new).collect(),
            waiting: Vec::new(),
            has_begun: false,
            n_samples: 0,
            n_frames: 0,
            loudest: SILENCE,
        }
    }

    /// The frames that these samples complete, (n, n_mels) of log10.
    pub fn push(&mut self, samples: &[f32]) -> Vec<f32> {
        self.n_samples += samples.len();
        self.take(samples)
    }

    /// The frames that see samples after the end, which are silent. There are as many frames in all as there are whole
    /// hops in the recording.
    pub fn finish(&mut self) -> Vec<f32> {
        let n_frames = self.n_samples / HOP;
        let missing = n_frames.saturating_sub(self.n_frames);
        let mut frames = self.take(&vec![0.0; missing * HOP + WINDOW]);
        frames.truncate(missing * self.n_mels);
        self.n_frames = n_frames;
        frames
    }

    /// The largest value of all frames so far.
    pub fn loudest(&self) -> f32 {
        self.loudest
    }

    fn take(&mut self, samples: &[f32]) -> Vec<f32> {
        self.waiting.extend_from_slice(samples);
        let half = WINDOW / 2;
        if !self.has_begun && self.waiting.len() > half {
            self.has_begun = true;
            let mirrored: Vec<f32> = self.waiting[1..=half].iter().rev().copied().collect();
            self.waiting.splice(0..0, mirrored);
        }
        let mut frames = Vec::new();
        let mut begin = 0;
        if self.has_begun {
            while let Some(window) = self.waiting[begin..].first_chunk() {
                let powers = self.powers(window);
                let mel = self.filters.iter().map(|filter| filter.log_sum(&powers));
                frames.extend(mel);
                begin += HOP;
            }
        }
        self.waiting.drain(..begin);
        self.n_frames += frames.len() / self.n_mels;
        self.loudest = frames.iter().copied().fold(self.loudest, f32::max);
        frames
    }

    fn powers(&self, window: &[f32; WINDOW]) -> [f32; N_BINS] {
        let windowed = std::array::from_fn(|n| window[n] * self.hann[n]);
        self.spectrum.powers(&windowed)
    }
}

impl std::fmt::Debug for MelStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MelStream")
            .field("n_mels", &self.n_mels)
            .field("n_frames", &self.n_frames)
            .finish_non_exhaustive()
    }
}

impl Filter {
    fn new(row: &[f32]) -> Filter {
        let first = row.iter().position(|&weight| weight > 0.0).unwrap_or(0);
        let end = row.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
        Filter {
            first,
            weights: row[first..=end].to_vec(),
        }
    }

    fn log_sum(&self, powers: &[f32; N_BINS]) -> f32 {
        let pairs = self.weights.iter().zip(&powers[self.first..]);
        let sum: f32 = pairs.map(|(weight, power)| weight * power).sum();
        sum.max(1e-10).log10()
    }
}

/// What the encoder reads of `n_frames` frames, (n_frames, n_mels): `frames`, (n, n_mels) of log10, scaled by the
/// loudest, and silence behind them, as the model was trained.
pub fn log_mel(frames: &[f32], loudest: f32, n_mels: usize, n_frames: usize) -> Vec<f32> {
    let scaled = |value: f32| (value.max(loudest - RANGE) + 4.0) / 4.0;
    let heard = frames.iter().take(n_mels * n_frames);
    let mut input: Vec<f32> = heard.map(|&value| scaled(value)).collect();
    input.resize(n_mels * n_frames, scaled(SILENCE));
    input
}
