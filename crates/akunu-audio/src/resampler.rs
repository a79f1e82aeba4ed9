//! From any sample rate to 16 kHz, a piece at a time.
//!
//! `rubato` transforms blocks of about a thousand samples, cuts the spectrum at the lower of the two half rates and
//! transforms back, which delays everything by half a block. What is given here is on time: the delay is dropped at
//! the beginning, silence pushes the rest out at the end, and `n` samples become `ceil(n * 16000 / rate)`.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, WindowFunction};

use crate::SAMPLE_RATE;

/// Samples of a block, about.
const BLOCK: usize = 1024;

/// Turns mono samples of one rate into 16 kHz.
pub(crate) struct Resampler {
    rate: u32,
    /// `None` when the rate is right already.
    fft: Option<Fft<f32>>,
    /// Samples that do not fill a block yet.
    waiting: Vec<f32>,
    /// What a block gives.
    block: Vec<f32>,
    /// Samples of the delay that are still to be dropped.
    to_drop: usize,
    n_in: u64,
    n_out: u64,
}

impl Resampler {
    /// From `rate` samples a second. `None` for a rate that cannot be turned into 16 kHz.
    pub fn new(rate: u32) -> Option<Resampler> {
        let fft = if rate == SAMPLE_RATE {
            None
        } else {
            let (from, to) = (rate as usize, SAMPLE_RATE as usize);
            let window = WindowFunction::BlackmanHarris2;
            let block = block_length(from, to);
            let fft = Fft::new_custom(from, to, block, 1, 1, window, FixedSync::Both);
            Some(fft.ok()?)
        };
        let max = fft.as_ref().map_or(0, |fft| fft.output_frames_max());
        Some(Resampler {
            rate,
            to_drop: fft.as_ref().map_or(0, |fft| fft.output_delay()),
            fft,
            waiting: Vec::new(),
            block: vec![0.0; max],
            n_in: 0,
            n_out: 0,
        })
    }

    /// What these samples give; a few of them stay here until more come.
    pub fn push(&mut self, samples: &[f32]) -> Vec<f32> {
        self.n_in += samples.len() as u64;
        if self.fft.is_none() {
            self.n_out = self.n_in;
            return samples.to_vec();
        }
        self.waiting.extend_from_slice(samples);
        let mut out = Vec::new();
        self.run(&mut out);
        self.n_out += out.len() as u64;
        out
    }

    /// The last samples: as many as the length of what came in asks for.
    pub fn finish(&mut self) -> Vec<f32> {
        let wanted = (self.n_in * u64::from(SAMPLE_RATE)).div_ceil(u64::from(self.rate));
        let mut out = Vec::new();
        while self.fft.is_some() && self.n_out + (out.len() as u64) < wanted {
            let silence = self.waiting.len() + BLOCK;
            self.waiting.resize(silence, 0.0);
            self.run(&mut out);
        }
        out.truncate((wanted - self.n_out) as usize);
        self.n_out = wanted;
        out
    }

    /// Every full block of what waits.
    fn run(&mut self, out: &mut Vec<f32>) {
        let Some(fft) = &mut self.fft else { return };
        let mut done = 0;
        loop {
            let n_in = fft.input_frames_next();
            let Some(input) = self.waiting.get(done..done + n_in) else {
                break;
            };
            let n_out = self.block.len();
            let (Ok(input), Ok(mut output)) = (
                InterleavedSlice::new(input, 1, n_in),
                InterleavedSlice::new_mut(&mut self.block, 1, n_out),
            ) else {
                break;
            };
            let Ok((_, n_out)) = fft.process_into_buffer(&input, &mut output, None) else {
                break;
            };
            let drop = self.to_drop.min(n_out);
            self.to_drop -= drop;
            out.extend_from_slice(&self.block[drop..n_out]);
            done += n_in;
        }
        self.waiting.drain(..done);
    }
}

/// The length of a block: a multiple of what makes a whole number of samples at both rates, and an even one, so that
/// the middle of a block, which is what comes out late, is a sample.
fn block_length(from: usize, to: usize) -> usize {
    let (mut a, mut b) = (from, to);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let unit = from / a;
    let n = BLOCK.div_ceil(unit);
    unit * n.next_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    fn sine(rate: u32, hz: f64, seconds: f64) -> Vec<f32> {
        let sample = |i: usize| (TAU * hz * i as f64 / f64::from(rate)).sin() as f32;
        (0..(f64::from(rate) * seconds) as usize)
            .map(sample)
            .collect()
    }

    fn resample(rate: u32, samples: &[f32], piece: usize) -> Vec<f32> {
        let mut resampler = Resampler::new(rate).expect("a rate of this range");
        let mut out: Vec<f32> = Vec::new();
        for piece in samples.chunks(piece) {
            out.extend(resampler.push(piece));
        }
        out.extend(resampler.finish());
        out
    }

    /// Fails when the delay is not dropped (the sine would be shifted), when the end is missing, or when the pieces in
    /// which samples come change what comes out.
    #[test]
    fn a_tone_keeps_its_place_its_height_and_its_length() {
        for rate in [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 192_000] {
            let input = sine(rate, 440.0, 1.0);
            let out = resample(rate, &input, 777);
            assert_eq!(out.len(), 16_000, "{rate}");
            assert_eq!(out, resample(rate, &input, 100_000), "{rate}");
            let expected = sine(16_000, 440.0, 1.0);
            // The filter rings where the tone begins and ends.
            let middle = 1_000..15_000;
            let pairs = middle.clone().map(|i| (out[i] - expected[i]).abs());
            let worst = pairs.fold(0.0f32, f32::max);
            assert!(worst < 2e-3, "{rate}: {worst}");
        }
    }

    /// Fails when nothing keeps a tone above half the new rate from coming back as a lower one.
    #[test]
    fn what_16_khz_cannot_hold_becomes_silence() {
        let out = resample(48_000, &sine(48_000, 12_000.0, 1.0), 4096);
        let loudest = out[1_000..15_000]
            .iter()
            .fold(0.0f32, |max, x| max.max(x.abs()));
        assert!(loudest < 1e-3, "{loudest}");
    }
}
