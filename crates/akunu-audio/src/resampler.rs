//! From any sample rate to 16 kHz, a piece at a time.
//!
//! A sample is the sum of its neighbours at the old rate, weighted by a sinc in a Kaiser window, whose middle is the time of the
//! sample:
//!
//! ```text
//! y[n] = Σ_i x[i] * h(n * rate / 16000 - i)
//! h(d) = c * sinc(c * d) * kaiser(d / half)          c = min(1, 16000 / rate)
//! ```
//!
//! So nothing is late, and silence before the beginning and after the end is all that is missing. What lies below 94 % of the lower
//! of the two half rates is kept, what lies above 106 % is 80 dB lower.
//!
//! The weights depend on how far the time is from the sample before it, its *phase*. Usual rates have at most [`MAX_PHASES`];
//! for others the sums of both neighbouring phases are interpolated.

use crate::SAMPLE_RATE;

/// Phases whose weights are kept, at most.
const MAX_PHASES: u64 = 1024;
/// How much lower is what cannot be kept, in decibels.
const ATTENUATION: f64 = 80.0;
/// The width of the transition, as a share of the lower half rate.
const TRANSITION: f64 = 0.125;
/// Sums that are added side by side.
const LANES: usize = 8;

/// Turns mono samples of one rate into 16 kHz.
pub(crate) struct Resampler {
    rate: u64,
    /// `None` when the rate is right already.
    filter: Option<Filter>,
    /// The samples that further ones of 16 kHz are made of, from sample `first` of the input on; silence before the beginning counts.
    waiting: Vec<f32>,
    first: u64,
    n_in: u64,
    n_out: u64,
}

/// The weights of all phases.
struct Filter {
    n_phases: u64,
    /// Weights of a phase, a multiple of [`LANES`].
    taps: usize,
    /// (n_phases + 1, taps): the last phase is the first one, a sample later.
    weights: Vec<f32>,
}

impl Resampler {
    /// From `rate` samples a second, at least one.
    pub fn new(rate: u32) -> Resampler {
        let filter = (rate != SAMPLE_RATE).then(|| Filter::new(rate));
        let before = filter.as_ref().map_or(0, |filter| filter.taps / 2 - 1);
        Resampler {
            rate: rate.into(),
            filter,
            waiting: vec![0.0; before],
            first: 0,
            n_in: 0,
            n_out: 0,
        }
    }

    /// What these samples give; a few of them stay here until more come.
    pub fn push(&mut self, samples: &[f32]) -> Vec<f32> {
        self.n_in += samples.len() as u64;
        if self.filter.is_none() {
            self.n_out = self.n_in;
            return samples.to_vec();
        }
        self.waiting.extend_from_slice(samples);
        self.run(u64::MAX)
    }

    /// The last samples: as many as the length of what came in asks for.
    pub fn finish(&mut self) -> Vec<f32> {
        let wanted = (self.n_in * u64::from(SAMPLE_RATE)).div_ceil(self.rate);
        if let Some(filter) = &self.filter {
            let silence = self.waiting.len() + filter.taps / 2;
            self.waiting.resize(silence, 0.0);
        }
        self.run(wanted)
    }

    /// Every sample before `end` whose neighbours are there.
    fn run(&mut self, end: u64) -> Vec<f32> {
        let Some(filter) = &self.filter else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let at = |n: u64| {
            let time = n * self.rate;
            let rate = u64::from(SAMPLE_RATE);
            (time / rate, time % rate)
        };
        while self.n_out < end {
            let (sample, phase) = at(self.n_out);
            let begin = (sample - self.first) as usize;
            let Some(neighbours) = self.waiting.get(begin..begin + filter.taps) else {
                break;
            };
            out.push(filter.sum(neighbours, phase));
            self.n_out += 1;
        }
        let (next, _) = at(self.n_out);
        let done = ((next - self.first) as usize).min(self.waiting.len());
        self.waiting.drain(..done);
        self.first += done as u64;
        out
    }
}

impl Filter {
    fn new(rate: u32) -> Filter {
        let cut = f64::from(rate.min(SAMPLE_RATE)) / f64::from(rate);
        // Kaiser's formulas for a window of this attenuation.
        let n = (ATTENUATION - 8.0) / (2.285 * std::f64::consts::PI * TRANSITION * cut);
        let taps = (n.ceil() as usize).next_multiple_of(2 * LANES);
        let half = (taps / 2) as f64;
        let beta = 0.1102 * (ATTENUATION - 8.7);
        let n_phases = u64::from(SAMPLE_RATE / gcd(rate, SAMPLE_RATE)).min(MAX_PHASES);
        let mut weights = Vec::with_capacity((n_phases as usize + 1) * taps);
        for phase in 0..=n_phases {
            let time = half - 1.0 + phase as f64 / n_phases as f64;
            let weight = |tap: usize| {
                let distance = tap as f64 - time;
                sinc(cut * distance) * kaiser(distance / half, beta)
            };
            let all: Vec<f64> = (0..taps).map(weight).collect();
            let sum: f64 = all.iter().sum();
            weights.extend(all.iter().map(|weight| (weight / sum) as f32));
        }
        Filter {
            n_phases,
            taps,
            weights,
        }
    }

    /// The sample that is `phase` 16000ths after the one in the middle of its neighbours.
    fn sum(&self, neighbours: &[f32], phase: u64) -> f32 {
        let (rate, scaled) = (u64::from(SAMPLE_RATE), phase * self.n_phases);
        let (before, rest) = ((scaled / rate) as usize, scaled % rate);
        let dot = |phase: usize| dot(neighbours, &self.weights[phase * self.taps..][..self.taps]);
        match rest {
            0 => dot(before),
            _ => {
                let share = rest as f32 / rate as f32;
                (1.0 - share) * dot(before) + share * dot(before + 1)
            }
        }
    }
}

/// The sum of all products.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a
        .as_chunks::<LANES>()
        .0
        .iter()
        .zip(b.as_chunks::<LANES>().0)
    {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum()
}

fn sinc(x: f64) -> f64 {
    let angle = std::f64::consts::PI * x;
    if angle == 0.0 {
        1.0
    } else {
        angle.sin() / angle
    }
}

/// The window at `x` of its half, zero outside of it.
fn kaiser(x: f64, beta: f64) -> f64 {
    let inside = 1.0 - x * x;
    if inside < 0.0 {
        return 0.0;
    }
    bessel(beta * inside.sqrt()) / bessel(beta)
}

/// The modified Bessel function of the first kind and order 0: `Σ ((x / 2)^k / k!)²`.
fn bessel(x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..64 {
        let factor = x / (2.0 * f64::from(k));
        term *= factor * factor;
        sum += term;
    }
    sum
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// 11,025 Hz has 640 phases; of 44,056 Hz they are interpolated.
    const RATES: [u32; 8] = [1_000, 8_000, 11_025, 22_050, 44_056, 44_100, 48_000, 96_000];

    fn sine(rate: u32, hz: f64, seconds: f64) -> Vec<f32> {
        let sample = |i: usize| (TAU * hz * i as f64 / f64::from(rate)).sin() as f32;
        (0..(f64::from(rate) * seconds) as usize)
            .map(sample)
            .collect()
    }

    fn resample(rate: u32, samples: &[f32], piece: usize) -> Vec<f32> {
        let mut resampler = Resampler::new(rate);
        let mut out: Vec<f32> = Vec::new();
        for piece in samples.chunks(piece) {
            out.extend(resampler.push(piece));
        }
        out.extend(resampler.finish());
        out
    }

    /// How loud a second of a tone is after resampling, and how loud is everything else that is heard then; where it begins and ends
    /// the filter rings.
    fn heard(rate: u32, hz: f64) -> (f64, f64) {
        let out = resample(rate, &sine(rate, hz, 1.0), 4096);
        assert_eq!(out.len(), 16_000, "{rate}");
        let middle = 4_000..12_000;
        let n = middle.len() as f64;
        // The part of both the sine and the cosine: half a second has whole turns of even frequencies.
        let tone = |phase: f64| move |i: usize| (TAU * hz * i as f64 / 16_000.0 + phase).sin();
        let part = |tone: &dyn Fn(usize) -> f64| -> f64 {
            let products = middle.clone().map(|i| f64::from(out[i]) * tone(i));
            2.0 * products.sum::<f64>() / n
        };
        let (sine, cosine) = (tone(0.0), tone(TAU / 4.0));
        let (of_sine, of_cosine) = (part(&sine), part(&cosine));
        let rest = middle.clone().map(|i| {
            let rest = f64::from(out[i]) - of_sine * sine(i) - of_cosine * cosine(i);
            rest * rest
        });
        let noise = (2.0 * rest.sum::<f64>() / n).sqrt();
        (of_sine.hypot(of_cosine), noise)
    }

    /// Fails when a tone is shifted, when the end is missing, or when the pieces in which samples come change what comes out.
    #[test]
    fn a_tone_keeps_its_place_its_height_and_its_length() {
        for rate in RATES {
            let input = sine(rate, 440.0, 1.0);
            let out = resample(rate, &input, 777);
            assert_eq!(out.len(), 16_000, "{rate}");
            assert_eq!(out, resample(rate, &input, 100_000), "{rate}");
            let expected = sine(16_000, 440.0, 1.0);
            // The filter rings where the tone begins and ends.
            let middle = 1_000..15_000;
            let pairs = middle.clone().map(|i| (out[i] - expected[i]).abs());
            let worst = pairs.fold(0.0f32, f32::max);
            assert!(worst < 1e-3, "{rate}: {worst}");
        }
    }

    /// The spectrum of tones up to 92 % of the lower half rate is one line of the same height: others are 70 dB lower. A filter that
    /// is too short, or phases that are too few, would let mirrored frequencies through.
    #[test]
    fn what_both_rates_can_hold_is_one_line_of_the_spectrum() {
        for rate in RATES {
            let highest = f64::from(rate.min(16_000)) / 2.0;
            for share in [0.1, 0.5, 0.8, 0.92] {
                let hz = 2.0 * (share * highest / 2.0).round();
                let (height, noise) = heard(rate, hz);
                assert!((height - 1.0).abs() < 2e-3, "{rate}, {hz} Hz: {height}");
                assert!(noise < 3e-4, "{rate}, {hz} Hz: {noise}");
            }
        }
    }

    /// Fails when nothing keeps a tone above half the new rate from coming back as a lower one.
    #[test]
    fn what_16_khz_cannot_hold_becomes_silence() {
        for rate in RATES.into_iter().filter(|&rate| rate > 20_000) {
            for hz in [8_600.0, 9_000.0, 10_000.0] {
                let out = resample(rate, &sine(rate, hz, 1.0), 4096);
                let middle = out[2_000..14_000].iter();
                let loudest = middle.fold(0.0f32, |max, x| max.max(x.abs()));
                assert!(loudest < 3e-4, "{rate}, {hz} Hz: {loudest}");
            }
        }
    }
}
