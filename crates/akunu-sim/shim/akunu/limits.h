// Constants and numeric_limits.
#pragma once

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
#define HUGE_VALH ((half)__builtin_inff())
#define MAXFLOAT FLT_MAX
#define MAXHALF HALF_MAX

#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define HALF_MAX ((half)65504.0f)
#define HALF_MIN ((half)6.103515625e-5f)
#define HALF_EPSILON ((half)9.765625e-4f)

#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u

#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f

namespace metal {

template <typename T> struct numeric_limits;

#define AKUNU_FLOAT_LIMITS(T, MAX, MIN, EPSILON)                          \
    template <> struct numeric_limits<T> {                                \
        static constexpr T max() { return (T)MAX; }                       \
        static constexpr T lowest() { return (T)(-MAX); }                 \
        static constexpr T min() { return (T)MIN; }                       \
        static constexpr T epsilon() { return (T)EPSILON; }               \
        static constexpr T infinity() { return (T)__builtin_inff(); }     \
        static constexpr T quiet_NaN() { return (T)__builtin_nanf(""); }  \
    };

AKUNU_FLOAT_LIMITS(float, __FLT_MAX__, __FLT_MIN__, __FLT_EPSILON__)
AKUNU_FLOAT_LIMITS(half, 65504.0f, 6.103515625e-5f, 9.765625e-4f)
AKUNU_FLOAT_LIMITS(bfloat, 3.38953139e38f, __FLT_MIN__, 7.8125e-3f)

#define AKUNU_INTEGER_LIMITS(T, MIN, MAX)              \
    template <> struct numeric_limits<T> {             \
        static constexpr T max() { return (T)(MAX); }  \
        static constexpr T lowest() { return (T)(MIN); } \
        static constexpr T min() { return (T)(MIN); }  \
    };

AKUNU_INTEGER_LIMITS(char, CHAR_MIN, CHAR_MAX)
AKUNU_INTEGER_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX)
AKUNU_INTEGER_LIMITS(uchar, 0, UCHAR_MAX)
AKUNU_INTEGER_LIMITS(short, SHRT_MIN, SHRT_MAX)
AKUNU_INTEGER_LIMITS(ushort, 0, USHRT_MAX)
AKUNU_INTEGER_LIMITS(int, INT_MIN, INT_MAX)
AKUNU_INTEGER_LIMITS(uint, 0, UINT_MAX)
AKUNU_INTEGER_LIMITS(long, -0x7fffffffffffffffL - 1, 0x7fffffffffffffffL)
AKUNU_INTEGER_LIMITS(ulong, 0, 0xffffffffffffffffUL)

} // namespace metal
