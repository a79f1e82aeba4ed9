//! The power spectrum of the samples of a frame.
//!
//! ```text
//! X[f] = Σ_n x[n] w^(f n)          n below N = 400, w = exp(-2πi / N)
//! ```
//!
//! Neighbouring samples are one complex number, `z[n] = x[2n] + i x[2n + 1]`, whose spectrum Z of half the length has both:
//!
//! ```text
//! X[f] = (Z[f] + Z*[N/2 - f]) / 2 - i w^f (Z[f] - Z*[N/2 - f]) / 2
//! ```
//!
//! Z is computed in steps, one for each factor r of its length. After steps whose factors multiply to L, the spectra of all
//! interleaved parts of L numbers are known, each `A[s][k]`; the next step joins r of them:
//!
//! ```text
//! A'[s][k + L p] = Σ_q A[s + m q][k] exp(-2πi q k / (L r)) exp(-2πi p q / r)          m = N / 2 / (L r)
//! ```

use std::ops::{Add, Mul, Sub};

/// Samples that a frame sees: 25 ms.
pub(crate) const WINDOW: usize = 400;
/// Frequencies of a frame.
pub(crate) const N_BINS: usize = WINDOW / 2 + 1;
/// Complex numbers of a frame.
const HALF: usize = WINDOW / 2;
/// The factors of their number.
const FACTORS: [usize; 4] = [5, 5, 4, 2];
const MAX_FACTOR: usize = 5;
const _: () = assert!(FACTORS[0] * FACTORS[1] * FACTORS[2] * FACTORS[3] == HALF);

/// A complex number.
#[derive(Clone, Copy, Debug, Default)]
struct Complex {
    re: f32,
    im: f32,
}

impl Complex {
    fn conjugate(self) -> Complex {
        Complex {
            re: self.re,
            im: -self.im,
        }
    }
}

impl Add for Complex {
    type Output = Complex;

    fn add(self, other: Complex) -> Complex {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

impl Sub for Complex {
    type Output = Complex;

    fn sub(self, other: Complex) -> Complex {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

impl Mul for Complex {
    type Output = Complex;

    fn mul(self, other: Complex) -> Complex {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

/// What all frames share.
pub(crate) struct Spectrum {
    /// `w^n` for all n below [`WINDOW`].
    turns: Vec<Complex>,
}

impl Spectrum {
    pub fn new() -> Spectrum {
        let turn = |n: usize| {
            let angle = -std::f64::consts::TAU * n as f64 / WINDOW as f64;
            Complex {
                re: angle.cos() as f32,
                im: angle.sin() as f32,
            }
        };
        Spectrum {
            turns: (0..WINDOW).map(turn).collect(),
        }
    }

    /// `|X[f]|²` of [`N_BINS`] frequencies, from none to half the sample rate.
    pub fn powers(&self, samples: &[f32; WINDOW]) -> [f32; N_BINS] {
        let pairs = samples.as_chunks::<2>().0;
        let mut from: [Complex; HALF] = std::array::from_fn(|n| Complex {
            re: pairs[n][0],
            im: pairs[n][1],
        });
        let mut to = [Complex::default(); HALF];
        let mut len = 1;
        for factor in FACTORS {
            self.join(factor, len, &from, &mut to);
            std::mem::swap(&mut from, &mut to);
            len *= factor;
        }
        std::array::from_fn(|f| {
            let (z, mirrored) = (from[f % HALF], from[(HALF - f) % HALF].conjugate());
            let (sum, difference) = (z + mirrored, self.turns[f] * (z - mirrored));
            // -i times a number turns it by a quarter.
            let (re, im) = (sum.re + difference.im, sum.im - difference.re);
            (re * re + im * im) / 4.0
        })
    }

    /// Joins `factor` spectra of `len` numbers each to one.
    fn join(&self, factor: usize, len: usize, from: &[Complex; HALF], to: &mut [Complex; HALF]) {
        let n_spectra = HALF / (len * factor);
        for s in 0..n_spectra {
            for k in 0..len {
                let mut parts = [Complex::default(); MAX_FACTOR];
                for (q, part) in parts[..factor].iter_mut().enumerate() {
                    let turn = self.turns[2 * n_spectra * q * k];
                    *part = from[(s + n_spectra * q) * len + k] * turn;
                }
                for p in 0..factor {
                    let mut sum = parts[0];
                    for (q, &part) in parts[..factor].iter().enumerate().skip(1) {
                        sum = sum + part * self.turns[p * q % factor * (WINDOW / factor)];
                    }
                    to[(s * factor + p) * len + k] = sum;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a factor is joined in the wrong order, or a turn is that of another number.
    #[test]
    fn powers_are_those_of_the_formula() {
        let samples: [f32; WINDOW] =
            std::array::from_fn(|n| ((n * n * 7 + 3 * n) % 101) as f32 / 50.0 - 1.0);
        let found = Spectrum::new().powers(&samples);
        for (f, found) in found.into_iter().enumerate() {
            let (mut re, mut im) = (0.0, 0.0);
            for (n, x) in samples.iter().enumerate() {
                let angle = -std::f64::consts::TAU * (f * n) as f64 / WINDOW as f64;
                re += f64::from(*x) * angle.cos();
                im += f64::from(*x) * angle.sin();
            }
            let exact = re * re + im * im;
            // Sums of 400 numbers of about 1, each rounded to 24 bits.
            let error = (f64::from(found) - exact).abs();
            assert!(error < 1e-4 + 1e-5 * exact, "{f}: {found}, not {exact}");
        }
    }
}
