//! RMS norms: `y = x / sqrt(mean(x²) + eps) * weight`, and the residual connection before or after; and layer norms,
//! `y = (x - mean(x)) / sqrt(mean((x - mean(x))²) + eps) * weight + bias`.
//!
//! Parts share the rows. A single row is too short to be worth sharing.

use akunu_kernels::kernel::norm::{layernorm, rmsnorm, rmsnorm_residual};
use akunu_program::Slice;
use akunu_types::params::{LayerNormParams, RMSNormParams};

use crate::body::Body;
use crate::call::Call;
use crate::kept::{Section, UntilBarrier};
use crate::part::Part;
use crate::simd::Lanes;

/// `y = norm(x)`.
pub(crate) struct RmsNorm;

impl Body for RmsNorm {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RMSNormParams = call.params();
        let rmsnorm::Buffers { x, weight, y } = call.buffers();
        let (dim, n_rows) = (p.dim as usize, p.n_rows as usize);
        let (x, weight) = (x.read::<f32>(n_rows * dim), weight.read::<f32>(dim));
        for row in part.range(n_rows) {
            let x = &x[row * dim..][..dim];
            // SAFETY: `own`: each row of y belongs to one part.
            unsafe {
                let y = y.write::<f32>(row * dim, dim);
                y.copy_from_slice(x);
                normalise::<L>(y, weight, p.eps);
            }
        }
    }
}

/// A vector that every part has computed for itself since the plan's last barrier, instead of reading it.
#[derive(Default)]
pub(crate) struct PrivateVector {
    numbers: Vec<f32>,
    stands_for: UntilBarrier<Slice>,
}

impl PrivateVector {
    /// Its numbers, if they are those of a binding; to be given back.
    pub fn take(&mut self, binding: Slice, now: Section) -> Option<Vec<f32>> {
        let is_it = self.stands_for.get(now) == Some(&binding);
        is_it.then(|| std::mem::take(&mut self.numbers))
    }

    /// Takes the numbers back.
    pub fn give_back(&mut self, numbers: Vec<f32>) {
        self.numbers = numbers;
    }
}

/// `y = norm(x)` of a single row, computed by every part for itself instead of waiting for it. Part 0 also stores it.
pub(crate) struct PrivateRmsNorm;

impl Body for PrivateRmsNorm {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RMSNormParams = call.params();
        let rmsnorm::Buffers { x, weight, y } = call.buffers();
        let dim = p.dim as usize;
        let (x, weight) = (x.read::<f32>(dim), weight.read::<f32>(dim));
        let (index, section) = (part.index, part.section());
        let private: &mut PrivateVector = part.kept.get();
        private.numbers.clear();
        private.numbers.extend_from_slice(x);
        normalise::<L>(&mut private.numbers, weight, p.eps);
        if index == 0 {
            // SAFETY: `own`: no other part writes y, or reads it before the next barrier.
            unsafe { y.write::<f32>(0, dim) }.copy_from_slice(&private.numbers);
        }
        private
            .stands_for
            .set(Some(call.slices[rmsnorm::Buffers::PLACES.y]), section);
    }
}

/// `h += norm(x)`.
pub(crate) struct RmsNormResidual;

impl Body for RmsNormResidual {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RMSNormParams = call.params();
        let rmsnorm_residual::Buffers { x, weight, h } = call.buffers();
        let (dim, n_rows) = (p.dim as usize, p.n_rows as usize);
        let (x, weight) = (x.read::<f32>(n_rows * dim), weight.read::<f32>(dim));
        for row in part.range(n_rows) {
            let normal = part.scratch.take::<f32>(dim);
            normal.copy_from_slice(&x[row * dim..][..dim]);
            // SAFETY: `own`: each row of h belongs to one part.
            unsafe {
                normalise::<L>(normal, weight, p.eps);
                add::<L>(h.write::<f32>(row * dim, dim), normal);
            }
        }
    }
}

/// `y = layer_norm(x)`.
pub(crate) struct LayerNorm;

impl Body for LayerNorm {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: LayerNormParams = call.params();
        let layernorm::Buffers { x, weight, bias, y } = call.buffers();
        let (dim, n_rows) = (p.dim as usize, p.n_rows as usize);
        let x = x.read::<f32>(n_rows * dim);
        let (weight, bias) = (weight.read::<f32>(dim), bias.read::<f32>(dim));
        for row in part.range(n_rows) {
            let x = &x[row * dim..][..dim];
            // SAFETY: `own`: each row of y belongs to one part.
            unsafe { layer_norm::<L>(x, [weight, bias], p.eps, y.write::<f32>(row * dim, dim)) };
        }
    }
}

/// `y = layer_norm(x)`, with weight and bias.
#[inline(always)]
fn layer_norm<L: Lanes>(x: &[f32], [weight, bias]: [&[f32]; 2], eps: f32, y: &mut [f32]) {
    let n = y.len();
    assert!(x.len() == n && weight.len() == n && bias.len() == n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    // SAFETY: `reach`: all accesses are below `n`.
    unsafe {
        // A mean far from zero would make the sum large, and the deviations inexact: what is summed is how far from the
        // first number the others are.
        let first = x.first().copied().unwrap_or_default();
        let (first_lanes, mut sum) = (L::splat(first), L::splat(0.0));
        for at in (0..whole).step_by(L::N) {
            sum = sum.add(L::load(x.as_ptr().add(at)).sub(first_lanes));
        }
        let of_rest = x[whole..].iter().map(|x| x - first);
        let mean = first + (sum.sum() + of_rest.sum::<f32>()) / n as f32;
        let (mean_lanes, mut squares) = (L::splat(mean), L::splat(0.0));
        for at in (0..whole).step_by(L::N) {
            let deviation = L::load(x.as_ptr().add(at)).sub(mean_lanes);
            squares = deviation.fma(deviation, squares);
        }
        let of_rest = x[whole..].iter().map(|x| (x - mean) * (x - mean));
        let variance = (squares.sum() + of_rest.sum::<f32>()) / n as f32;
        let inverse = L::splat(1.0 / (variance + eps).sqrt());
        let normal = |x: L, weight: L, bias: L| x.sub(mean_lanes).mul(inverse).fma(weight, bias);
        for at in (0..whole).step_by(L::N) {
            let load = |from: &[f32]| L::load(from.as_ptr().add(at));
            normal(load(x), load(weight), load(bias)).store(y.as_mut_ptr().add(at));
        }
        let load = |from: &[f32]| L::load_part(from.as_ptr().add(whole), rest);
        normal(load(x), load(weight), load(bias)).store_part(y.as_mut_ptr().add(whole), rest);
    }
}

/// `x = x / sqrt(mean(x²) + eps) * weight`.
#[inline(always)]
pub(crate) fn normalise<L: Lanes>(x: &mut [f32], weight: &[f32], eps: f32) {
    let n = x.len();
    assert_eq!(weight.len(), n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    // SAFETY: `reach`: all accesses are below `n`.
    unsafe {
        let mut squares = L::splat(0.0);
        for at in (0..whole).step_by(L::N) {
            let x = L::load(x.as_ptr().add(at));
            squares = x.fma(x, squares);
        }
        let last = L::load_part(x.as_ptr().add(whole), rest);
        let sum = last.fma(last, squares).sum();
        let inverse = L::splat(1.0 / (sum / n as f32 + eps).sqrt());
        for at in (0..whole).step_by(L::N) {
            let (x, weight) = (x.as_mut_ptr().add(at), weight.as_ptr().add(at));
            L::load(x).mul(inverse).mul(L::load(weight)).store(x);
        }
        let weight = L::load_part(weight.as_ptr().add(whole), rest);
        let last = last.mul(inverse).mul(weight);
        last.store_part(x.as_mut_ptr().add(whole), rest);
    }
}

/// `to += x`.
#[inline(always)]
pub(crate) fn add<L: Lanes>(to: &mut [f32], x: &[f32]) {
    let n = to.len();
    assert_eq!(x.len(), n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    // SAFETY: `reach`: all accesses are below `n`.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            let to = to.as_mut_ptr().add(at);
            L::load(to).add(L::load(x.as_ptr().add(at))).store(to);
        }
        let to = to.as_mut_ptr().add(whole);
        let x = L::load_part(x.as_ptr().add(whole), rest);
        L::load_part(to, rest).add(x).store_part(to, rest);
    }
}
