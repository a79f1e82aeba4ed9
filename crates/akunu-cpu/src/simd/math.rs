//! Functions of whole vectors.
//!
//! `exp(x) = 2^n * exp(r)` with `n = round(x / ln 2)` and `|r| <= ln 2 / 2`, where a polynomial of
//! degree 7, the Taylor series, is good to 5e-9. The two parts of ln 2 make `r` exact.
//! `silu(x) = x / (1 + exp(-x))`, and the tanh form of GELU is `x / (1 + exp(-2u))`, which does not
//! cancel anywhere.

use super::lanes::Lanes;

/// ln 2 as a number with few bits, so that its products with whole numbers are exact, and the rest.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// Beyond this `exp` is 0 or infinite.
const EXP_LIMIT: f32 = 104.0;

/// `exp(x)`.
#[inline(always)]
pub(crate) fn exp<L: Lanes>(x: L) -> L {
    let limit = L::splat(EXP_LIMIT);
    let x = x.min(limit).max(L::splat(-EXP_LIMIT));
    let n = x.mul(L::splat(std::f32::consts::LOG2_E)).round();
    let r = n.fma(L::splat(-LN2_HIGH), x);
    let r = n.fma(L::splat(-LN2_LOW), r);
    let mut sum = L::splat(1.0 / 5040.0);
    for coefficient in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = sum.fma(r, L::splat(coefficient));
    }
    sum.scale(n)
}

/// `x * sigmoid(x)`.
#[inline(always)]
pub(crate) fn silu<L: Lanes>(x: L) -> L {
    let negative = L::splat(0.0).sub(x);
    x.div(exp(negative).add(L::splat(1.0)))
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub(crate) fn sigmoid<L: Lanes>(x: L) -> L {
    let (zero, one) = (L::splat(0.0), L::splat(1.0));
    one.div(exp(zero.sub(x)).add(one))
}

/// The tanh form of GELU.
#[inline(always)]
pub(crate) fn gelu<L: Lanes>(x: L) -> L {
    const SQRT_8_OVER_PI: f32 = 1.595_769;
    let cubic = x.mul(x).fma(L::splat(0.044_715), L::splat(1.0));
    let twice_u = x.mul(cubic).mul(L::splat(-SQRT_8_OVER_PI));
    x.div(exp(twice_u).add(L::splat(1.0)))
}

/// The exact GELU, `x Φ(x)`: `x erfc(z) / 2` where x is negative, and `x - x erfc(z) / 2` elsewhere, with
/// `z = |x| / √2`. So nothing cancels, and small results are as good as large ones.
///
/// `erfc(z) = t exp(-z² + P(t))` with `t = 1 / (1 + z / 2)`, where P is a polynomial fitted so that the relative error is
/// at most 1.2e-7 for every z (Numerical Recipes in C, section 6.2).
#[inline(always)]
pub(crate) fn gelu_erf<L: Lanes>(x: L) -> L {
    const P: [f32; 9] = [
        -0.822_152_2,
        1.488_515_9,
        -1.135_204,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_7,
        -1.265_512_2,
    ];
    let (zero, one, half) = (L::splat(0.0), L::splat(1.0), L::splat(0.5));
    let z = x
        .max(zero.sub(x))
        .mul(L::splat(std::f32::consts::FRAC_1_SQRT_2));
    let t = one.div(z.fma(half, one));
    let mut p = L::splat(0.170_872_77);
    for coefficient in P {
        p = p.fma(t, L::splat(coefficient));
    }
    let tail = t.mul(exp(p.sub(z.mul(z)))).mul(half);
    x.if_less(zero, x.mul(tail), x.sub(x.mul(tail)))
}

/// `tanh(x)`: `1 - 2 / (exp(2x) + 1)`, and near 0, where that cancels, a continued fraction:
/// `x / (1 + y / (3 + y / (5 + y / (7 + y / 9))))` with `y = x²`.
#[inline(always)]
pub(crate) fn tanh<L: Lanes>(x: L) -> L {
    let (one, two) = (L::splat(1.0), L::splat(2.0));
    let far = one.sub(two.div(exp(x.mul(two)).add(one)));
    let y = x.mul(x);
    let mut fraction = L::splat(9.0);
    for odd in [7.0, 5.0, 3.0, 1.0] {
        fraction = y.div(fraction).add(L::splat(odd));
    }
    L::splat(0.25).if_less(y, far, x.div(fraction))
}
