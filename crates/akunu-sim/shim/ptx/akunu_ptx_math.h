// Functions of one float, from the few that the hardware has. Errors are relative unless said otherwise.
#pragma once

namespace akunu {
namespace backend {

inline float fabs(float x) { return __builtin_fabsf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float fmin(float x, float y) { return __builtin_fminf(x, y); }
inline float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
inline float copysign(float x, float y) { return __builtin_copysignf(x, y); }
inline float sqrt(float x) { return __nvvm_sqrt_rn_f(x); }
inline float rsqrt(float x) { return 1.0f / __nvvm_sqrt_rn_f(x); }

// Half away from zero.
inline float round(float x) { return copysign(floor(fabs(x) + 0.5f), x); }

// The hardware's: 2 ulp.
inline float exp2(float x) { return __nvvm_ex2_approx_f(x); }
// Denormal results are zeros.
inline float fast_exp2(float x) { return __nvvm_ex2_approx_ftz_f(x); }
inline float log2(float x) { return __nvvm_lg2_approx_f(x); }
// 2 ulp; 0 where y is larger than 2^126.
inline float fast_divide(float x, float y) { return __nvvm_div_approx_f(x, y); }

// 2^(x log2 e), with the rounding error of the product put back in: exp would otherwise lose as many
// bits as the exponent has. From 2^128 on the power is infinite, and has no error to put back.
inline float exp(float x) {
    float high = x * 1.44269502f;
    float low = __builtin_fmaf(x, 1.44269502f, -high) + x * 1.92596299e-8f;
    float base = exp2(high);
    return fabs(high) < 128.0f ? __builtin_fmaf(base, low * 0.693147181f, base) : base;
}
inline float exp10(float x) { return exp(x * 2.30258509f); }
inline float log(float x) { return log2(x) * 0.693147181f; }
inline float log10(float x) { return log2(x) * 0.301029996f; }

inline float powr(float x, float y) { return exp2(y * log2(x)); }
// A negative base has a power when the exponent is whole.
inline float pow(float x, float y) {
    if (y == 0.0f) return 1.0f;
    float size = powr(fabs(x), y);
    if (x >= 0.0f) return size;
    if (floor(y) != y) return __builtin_nanf("");
    return floor(y * 0.5f) * 2.0f == y ? size : -size;
}

// x - n π/2 with π/2 in three parts, exact for |n| below 2^15; then the polynomials of ±π/4.
inline float reduce_angle(float x, int &quadrant) {
    float n = rint(x * 0.636619772f);
    quadrant = (int)n;
    float r = __builtin_fmaf(n, -1.57079601e+00f, x);
    r = __builtin_fmaf(n, -3.13916473e-07f, r);
    return __builtin_fmaf(n, -5.39030253e-15f, r);
}
inline float sin_small(float x) {
    float s = x * x;
    float p = __builtin_fmaf(s, 2.71831149e-6f, -1.98393348e-4f);
    p = __builtin_fmaf(p, s, 8.33332930e-3f);
    p = __builtin_fmaf(p, s, -1.66666672e-1f);
    return __builtin_fmaf(p * s, x, x);
}
inline float cos_small(float x) {
    float s = x * x;
    float p = __builtin_fmaf(s, 2.44331571e-5f, -1.38873163e-3f);
    p = __builtin_fmaf(p, s, 4.16666456e-2f);
    p = __builtin_fmaf(p, s, -0.5f);
    return __builtin_fmaf(p, s, 1.0f);
}
inline float sin(float x) {
    int quadrant;
    float r = reduce_angle(x, quadrant);
    float value = quadrant & 1 ? cos_small(r) : sin_small(r);
    return quadrant & 2 ? -value : value;
}
inline float cos(float x) {
    int quadrant;
    float r = reduce_angle(x, quadrant);
    float value = quadrant & 1 ? sin_small(r) : cos_small(r);
    return (quadrant + 1) & 2 ? -value : value;
}
inline float tan(float x) { return sin(x) / cos(x); }

inline float sinh(float x) {
    float e = exp(fabs(x));
    return fabs(x) < 0.1f ? x * __builtin_fmaf(x * x, 0.166666672f, 1.0f) : copysign(0.5f * (e - 1.0f / e), x);
}
inline float cosh(float x) {
    float e = exp(fabs(x));
    return 0.5f * (e + 1.0f / e);
}
// Near zero the difference of exponentials cancels: a series instead.
inline float tanh(float x) {
    float size = fabs(x);
    if (size < 0.25f) {
        float s = x * x;
        float p = __builtin_fmaf(s, -5.39682540e-2f, 1.33333333e-1f);
        p = __builtin_fmaf(p, s, -3.33333333e-1f);
        return __builtin_fmaf(p * s, x, x);
    }
    float e = exp(-2.0f * size);
    return copysign((1.0f - e) / (1.0f + e), x);
}

// By the half-angle formula, which brings the argument below 0.42, and a series: absolute error 1e-6.
inline float atan(float x) {
    float size = fabs(x);
    float y = size > 1.0f ? 1.0f / size : size;
    y = y / (1.0f + sqrt(__builtin_fmaf(y, y, 1.0f)));
    float s = y * y;
    float p = __builtin_fmaf(s, 0.0769230769f, -0.0909090909f);
    p = __builtin_fmaf(p, s, 0.111111111f);
    p = __builtin_fmaf(p, s, -0.142857143f);
    p = __builtin_fmaf(p, s, 0.2f);
    p = __builtin_fmaf(p, s, -0.333333333f);
    float angle = 2.0f * __builtin_fmaf(p * s, y, y);
    return copysign(size > 1.0f ? 1.57079633f - angle : angle, x);
}
inline float atan2(float y, float x) {
    float angle = atan(fabs(y) / fabs(x));
    if (x == 0.0f) angle = y == 0.0f ? 0.0f : 1.57079633f;
    if (x < 0.0f) angle = 3.14159265f - angle;
    return copysign(angle, y);
}
inline float asin(float x) { return atan2(x, sqrt(__builtin_fmaf(-x, x, 1.0f))); }
inline float acos(float x) { return 1.57079633f - asin(x); }

inline float fmod(float x, float y) { return __builtin_fmaf(-trunc(x / y), y, x); }
inline float ldexp(float x, int n) {
    // Two steps, so that the factor itself stays finite.
    int half_n = n / 2;
    return x * exp2((float)half_n) * exp2((float)(n - half_n));
}

} // namespace backend
} // namespace akunu
