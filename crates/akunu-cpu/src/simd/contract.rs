//! What every implementation of [`Lanes`] does, on each level of instructions that the machine has.

use half::{bf16, f16};

use super::{Lanes, WithLanes, exp, gelu, silu, tanh};
use crate::isa::{Isa, Level};

/// Does something on every level that has vectors.
fn on_every_level<W: WithLanes<Output = ()> + Default>() {
    let levels = Level::available().into_iter();
    for level in levels.filter(|level| level.isa() != Isa::Scalar) {
        super::run(level, W::default());
    }
}

/// The lanes of a vector.
#[inline(always)]
fn lanes<L: Lanes>(vector: L) -> Vec<f32> {
    let mut lanes = vec![0.0; L::N];
    // SAFETY: `reach`: there is room for `N`.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    lanes
}

/// 1, 2, 3, …
fn counted(n: usize) -> Vec<f32> {
    (1..=n).map(|i| i as f32).collect()
}

#[derive(Default)]
struct Memory;

impl WithLanes for Memory {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let source = counted(2 * L::N);
        let n = L::N;
        // SAFETY: `reach`: all places are within the vectors.
        unsafe {
            assert_eq!(lanes(L::load(source.as_ptr().add(1))), source[1..=n]);
            for part in 0..n {
                let some = L::load_part(source.as_ptr(), part);
                let mut expected = source[..part].to_vec();
                expected.resize(n, 0.0);
                assert_eq!(lanes(some), expected);
                let mut to = vec![-1.0; n];
                L::load(source.as_ptr()).store_part(to.as_mut_ptr(), part);
                expected[part..].fill(-1.0);
                assert_eq!(to, expected);
            }
            // A third is no half: it is rounded as the reference does.
            let thirds: Vec<f32> = source[..n].iter().map(|x| x / 3.0).collect();
            let mut halves = vec![f16::ZERO; n];
            L::load(thirds.as_ptr()).store_halves(halves.as_mut_ptr());
            let expected: Vec<f16> = thirds.iter().map(|&x| f16::from_f32(x)).collect();
            assert_eq!(halves, expected);
            let widened: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
            assert_eq!(lanes(L::load_halves(halves.as_ptr())), widened);
            let bytes: Vec<i8> = (0..L::N).map(|i| (17 * i) as i8).collect();
            let widened: Vec<f32> = bytes.iter().map(|&x| x.into()).collect();
            assert_eq!(lanes(L::load_bytes(bytes.as_ptr())), widened);
            let narrow: Vec<bf16> = thirds.iter().map(|&x| bf16::from_f32(x)).collect();
            let widened: Vec<f32> = narrow.iter().map(|x| x.to_f32()).collect();
            assert_eq!(lanes(L::load_bf16(narrow.as_ptr())), widened);
        }
    }
}

#[derive(Default)]
struct Arithmetic;

impl WithLanes for Arithmetic {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (x, n) = (counted(L::N), L::N);
        let each = |f: fn(f32) -> f32| x.iter().map(|&x| f(x)).collect::<Vec<f32>>();
        // SAFETY: `reach`: there are `N` of them.
        unsafe {
            let (v, two) = (L::load(x.as_ptr()), L::splat(2.0));
            assert_eq!(lanes(v.add(two)), each(|x| x + 2.0));
            assert_eq!(lanes(v.sub(two)), each(|x| x - 2.0));
            assert_eq!(lanes(v.mul(two)), each(|x| x * 2.0));
            assert_eq!(lanes(v.div(two)), each(|x| x / 2.0));
            assert_eq!(lanes(v.fma(two, v)), each(|x| 3.0 * x));
            assert_eq!(lanes(v.max(two)), each(|x| x.max(2.0)));
            assert_eq!(lanes(v.min(two)), each(|x| x.min(2.0)));
            assert_eq!(lanes(L::splat(f32::NAN).max(two)), vec![2.0; n]);
            assert_eq!(lanes(L::splat(f32::NAN).min(two)), vec![2.0; n]);
            let quarters = v.mul(L::splat(0.3));
            assert_eq!(
                lanes(quarters.round()),
                each(|x| (x * 0.3).round_ties_even())
            );
            let less = v.if_less(two, L::splat(-1.0), v);
            assert_eq!(lanes(less), each(|x| if x < 2.0 { -1.0 } else { x }));
            let swapped: Vec<f32> = (0..n).map(|i| x[i ^ 1]).collect();
            assert_eq!(lanes(v.swap_pairs()), swapped);
            let total = (n * (n + 1) / 2) as f32;
            assert_eq!((v.sum(), v.largest()), (total, n as f32));
            let four = [v, v.mul(two), v.sub(v), L::splat(1.0)];
            assert_eq!(L::sums(four), [total, 2.0 * total, 0.0, n as f32]);
            for (power, expected) in [
                (-150.0, 0.0),
                (-149.0, 1e-45),
                (3.0, 8.0),
                (130.0, f32::INFINITY),
            ] {
                assert_eq!(
                    lanes(L::splat(1.0).scale(L::splat(power))),
                    vec![expected; n]
                );
            }
        }
    }
}

#[derive(Default)]
struct Functions;

impl WithLanes for Functions {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let mut worst = [0f64; 4];
        for step in -8700..=8800 {
            let x = step as f32 / 100.0 + 0.001;
            let v = L::splat(x);
            let exact = f64::from(x);
            let u = (2.0 / std::f64::consts::PI).sqrt() * (exact + 0.044_715 * exact.powi(3));
            let pairs = [
                (exp(v), exact.exp()),
                (tanh(v), exact.tanh()),
                (silu(v), exact / (1.0 + (-exact).exp())),
                (gelu(v), exact / (1.0 + (-2.0 * u).exp())),
            ];
            for (worst, (found, exact)) in worst.iter_mut().zip(pairs) {
                // Around the smallest normal number, 1e-38, digits are lost.
                if exact.abs() > 1e-36 {
                    let found = f64::from(lanes(found)[0]);
                    *worst = worst.max((found / exact - 1.0).abs());
                }
            }
        }
        assert_eq!(lanes(exp(L::splat(f32::NEG_INFINITY)))[0], 0.0);
        assert_eq!(lanes(exp(L::splat(f32::INFINITY)))[0], f32::INFINITY);
        assert_eq!(lanes(exp(L::splat(0.0)))[0], 1.0);
        assert!(lanes(tanh(L::splat(f32::NAN)))[0].is_nan());
        for large in [89.0, 1e4, 1e30] {
            assert_eq!(lanes(silu(L::splat(large)))[0], large);
            assert_eq!(lanes(gelu(L::splat(-large)))[0], 0.0);
            assert_eq!(lanes(tanh(L::splat(-large)))[0], -1.0);
        }
        // Three units in the last place, 3 * 2^-23. GELU's exponent, up to 87, is rounded four times by
        // 2^-24, and exp makes that a part of the result.
        let bounds = [3.6e-7, 3.6e-7, 3.6e-7, 2.1e-5];
        for (worst, bound) in worst.into_iter().zip(bounds) {
            assert!(worst < bound, "{worst:e} of {bound:e}");
        }
    }
}

#[test]
fn loads_and_stores_touch_what_they_say() {
    on_every_level::<Memory>();
}

#[test]
fn arithmetic_is_that_of_single_floats() {
    on_every_level::<Arithmetic>();
}

#[test]
fn functions_are_good_to_the_last_digits() {
    on_every_level::<Functions>();
}
