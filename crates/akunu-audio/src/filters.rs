//! The mel filter bank, by Slaney's formula.
//!
//! A mel is 200/3 Hz up to 1000 Hz, and above a step of `ln(6.4) / 27` in the logarithm of the frequency. `n + 2` points
//! at equal distances in mel, from 0 to half the sample rate, are the corners of `n` triangles; each is divided by half
//! its width in Hz, so that all have the same area:
//!
//! ```text
//! weight[m][f] = 2 / (hz[m+2] - hz[m]) * max(0, min((f - hz[m]) / (hz[m+1] - hz[m]), (hz[m+2] - f) / (hz[m+2] - hz[m+1])))
//! ```

use crate::SAMPLE_RATE;
use crate::spectrum::{N_BINS, WINDOW};

/// Filters that a bank may have: with more of them the lowest would fall between two frequencies.
pub const MAX_MELS: usize = 128;

const HZ_A_MEL: f64 = 200.0 / 3.0;
const BREAK_HZ: f64 = 1000.0;
const BREAK_MEL: f64 = BREAK_HZ / HZ_A_MEL;

/// The weights of `n_mels` filters for the 201 frequencies of a spectrum, (n_mels, 201).
pub fn mel_filters(n_mels: usize) -> Vec<f32> {
    let top = mel(f64::from(SAMPLE_RATE) / 2.0);
    let corner = |i: usize| hz(top * i as f64 / (n_mels + 1) as f64);
    let mut weights = Vec::with_capacity(n_mels * N_BINS);
    for m in 0..n_mels {
        let [low, peak, high] = [corner(m), corner(m + 1), corner(m + 2)];
        for bin in 0..N_BINS {
            let f = bin as f64 * f64::from(SAMPLE_RATE) / WINDOW as f64;
            let rise = (f - low) / (peak - low);
            let fall = (high - f) / (high - peak);
            weights.push((rise.min(fall).max(0.0) * 2.0 / (high - low)) as f32);
        }
    }
    weights
}

fn log_step() -> f64 {
    6.4f64.ln() / 27.0
}

fn mel(hz: f64) -> f64 {
    if hz < BREAK_HZ {
        hz / HZ_A_MEL
    } else {
        BREAK_MEL + (hz / BREAK_HZ).ln() / log_step()
    }
}

fn hz(mel: f64) -> f64 {
    if mel < BREAK_MEL {
        mel * HZ_A_MEL
    } else {
        BREAK_HZ * ((mel - BREAK_MEL) * log_step()).exp()
    }
}
