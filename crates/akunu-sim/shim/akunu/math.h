// Floating-point functions, on scalars and vectors of float, half and bfloat.
//
// A half or bfloat is computed as float and rounded once. Integers are refused, as in MSL, where such a
// call is ambiguous.
#pragma once

namespace metal {

#define AKUNU_UNARY(NAME)                                                                        \
    template <typename T> inline akunu::if_floating<T> NAME(T x) {                               \
        return akunu::map(x, [](float e) { return akunu::backend::NAME(e); });                   \
    }

AKUNU_UNARY(exp)
AKUNU_UNARY(exp2)
AKUNU_UNARY(exp10)
AKUNU_UNARY(log)
AKUNU_UNARY(log2)
AKUNU_UNARY(log10)
AKUNU_UNARY(sqrt)
AKUNU_UNARY(rsqrt)
AKUNU_UNARY(sin)
AKUNU_UNARY(cos)
AKUNU_UNARY(tan)
AKUNU_UNARY(tanh)
AKUNU_UNARY(sinh)
AKUNU_UNARY(cosh)
AKUNU_UNARY(asin)
AKUNU_UNARY(acos)
AKUNU_UNARY(atan)
AKUNU_UNARY(floor)
AKUNU_UNARY(ceil)
AKUNU_UNARY(trunc)
AKUNU_UNARY(rint)
AKUNU_UNARY(round)
AKUNU_UNARY(fabs)

#define AKUNU_BINARY(NAME)                                                                           \
    template <typename T> inline akunu::if_floating<T> NAME(T x, T y) {                              \
        return akunu::map(x, y, [](float a, float b) { return akunu::backend::NAME(a, b); });        \
    }

AKUNU_BINARY(pow)
AKUNU_BINARY(powr)
AKUNU_BINARY(fmod)
AKUNU_BINARY(atan2)
AKUNU_BINARY(fmin)
AKUNU_BINARY(fmax)
AKUNU_BINARY(copysign)

// One rounding for float. A half's product is exact in float, so its sum is rounded twice at most.
template <typename T> inline akunu::if_floating<T> fma(T x, T y, T z) {
    return akunu::map(x, y, z, [](float a, float b, float c) { return __builtin_fmaf(a, b, c); });
}

template <typename T> inline akunu::if_floating<T> ldexp(T x, int n) {
    return akunu::map(x, [n](float e) { return akunu::backend::ldexp(e, n); });
}

template <typename T> inline akunu::if_floating<T> abs(T x) { return fabs(x); }
template <typename T> inline akunu::if_floating<T> min(T x, T y) { return fmin(x, y); }
template <typename T> inline akunu::if_floating<T> max(T x, T y) { return fmax(x, y); }
template <typename T> inline akunu::if_floating<T> min(T x, T y, T z) { return fmin(fmin(x, y), z); }
template <typename T> inline akunu::if_floating<T> max(T x, T y, T z) { return fmax(fmax(x, y), z); }
template <typename T> inline akunu::if_floating<T> clamp(T x, T low, T high) {
    return fmin(fmax(x, low), high);
}
template <typename T> inline akunu::if_floating<T> saturate(T x) { return clamp(x, (T)0.0f, (T)1.0f); }
template <typename T> inline akunu::if_floating<T> mix(T x, T y, T a) { return x + (y - x) * a; }
template <typename T> inline akunu::if_floating<T> fract(T x) { return x - floor(x); }
template <typename T> inline akunu::if_floating<T> sign(T x) {
    return akunu::map(x, [](float e) { return e > 0.0f ? 1.0f : (e < 0.0f ? -1.0f : e * 0.0f); });
}
template <typename T> inline akunu::if_floating<T> divide(T x, T y) { return x / y; }
template <typename T> inline akunu::if_floating<T> recip(T x) { return (T)1.0f / x; }

template <typename T> inline akunu::element_of<akunu::if_floating<T>> dot(T x, T y) {
    akunu::element_of<T> sum = x[0] * y[0];
    for (int i = 1; i < akunu::shape<T>::size; i++) sum += x[i] * y[i];
    return sum;
}
template <typename T> inline akunu::element_of<akunu::if_floating<T>> length_squared(T x) {
    return dot(x, x);
}
template <typename T> inline akunu::element_of<akunu::if_floating<T>> length(T x) {
    return sqrt(dot(x, x));
}

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }

// b where the condition holds, else a, element by element.
template <typename T, typename C> inline T select(T a, T b, C condition) {
    if constexpr (akunu::shape<T>::is_vector) {
        T out;
        for (int i = 0; i < akunu::shape<T>::size; i++) out[i] = condition[i] ? b[i] : a[i];
        return out;
    } else {
        return condition ? b : a;
    }
}
template <typename C> inline bool any(C condition) {
    if constexpr (akunu::shape<C>::is_vector) {
        bool found = false;
        for (int i = 0; i < akunu::shape<C>::size; i++) found |= condition[i] != 0;
        return found;
    } else {
        return condition;
    }
}
template <typename C> inline bool all(C condition) {
    if constexpr (akunu::shape<C>::is_vector) {
        bool found = true;
        for (int i = 0; i < akunu::shape<C>::size; i++) found &= condition[i] != 0;
        return found;
    } else {
        return condition;
    }
}

#define AKUNU_MATH_NAMES                                                                            \
    using metal::exp;                                                                               \
    using metal::exp10;                                                                             \
    using metal::log;                                                                               \
    using metal::log2;                                                                              \
    using metal::log10;                                                                             \
    using metal::sqrt;                                                                              \
    using metal::rsqrt;                                                                             \
    using metal::sin;                                                                               \
    using metal::cos;                                                                               \
    using metal::tan;                                                                               \
    using metal::tanh;                                                                              \
    using metal::sinh;                                                                              \
    using metal::cosh;                                                                              \
    using metal::pow;                                                                               \
    using metal::powr;                                                                              \
    using metal::fmod;                                                                              \
    using metal::floor;                                                                             \
    using metal::ceil;                                                                              \
    using metal::trunc;                                                                             \
    using metal::rint;                                                                              \
    using metal::round;                                                                             \
    using metal::fabs;                                                                              \
    using metal::abs;                                                                               \
    using metal::fmin;                                                                              \
    using metal::fmax;                                                                              \
    using metal::min;                                                                               \
    using metal::max;                                                                               \
    using metal::clamp;                                                                             \
    using metal::recip;

namespace fast {
AKUNU_MATH_NAMES
template <typename T> inline akunu::if_floating<T> exp2(T x) {
    return akunu::map(x, [](float e) { return akunu::backend::fast_exp2(e); });
}
template <typename T> inline akunu::if_floating<T> divide(T x, T y) {
    return akunu::map(x, y, [](float a, float b) { return akunu::backend::fast_divide(a, b); });
}
}
namespace precise {
AKUNU_MATH_NAMES
using metal::exp2;
using metal::divide;
}

} // namespace metal
