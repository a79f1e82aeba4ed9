// Scalars and vectors. Vectors are clang's: swizzles, element-wise operators and natural alignment.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef _Float16 half;
typedef __bf16 bfloat;

// The literal suffix of half: 1.5h.
constexpr half operator""h(long double value) { return (half)(float)value; }

namespace metal {
template <typename T, int N> using vec = T __attribute__((ext_vector_type(N)));
}

#define AKUNU_VECTORS(T)                               \
    typedef T T##2 __attribute__((ext_vector_type(2))); \
    typedef T T##3 __attribute__((ext_vector_type(3))); \
    typedef T T##4 __attribute__((ext_vector_type(4)));

AKUNU_VECTORS(bool)
AKUNU_VECTORS(char)
AKUNU_VECTORS(uchar)
AKUNU_VECTORS(short)
AKUNU_VECTORS(ushort)
AKUNU_VECTORS(int)
AKUNU_VECTORS(uint)
AKUNU_VECTORS(long)
AKUNU_VECTORS(ulong)
AKUNU_VECTORS(half)
AKUNU_VECTORS(bfloat)
AKUNU_VECTORS(float)

// Packed vectors are aligned as their element is. Those of 3 have no padding, so they are structs.
#define AKUNU_PACKED(T)                                                            \
    typedef T packed_##T##2 __attribute__((ext_vector_type(2), aligned(sizeof(T)))); \
    typedef T packed_##T##4 __attribute__((ext_vector_type(4), aligned(sizeof(T)))); \
    struct packed_##T##3 {                                                         \
        T x, y, z;                                                                 \
        operator T##3() const { return T##3{x, y, z}; }                            \
    };

AKUNU_PACKED(char)
AKUNU_PACKED(uchar)
AKUNU_PACKED(short)
AKUNU_PACKED(ushort)
AKUNU_PACKED(int)
AKUNU_PACKED(uint)
AKUNU_PACKED(half)
AKUNU_PACKED(bfloat)
AKUNU_PACKED(float)

// Where a lane operation or a barrier was called from: the caller's, for the simulator's messages.
#define AKUNU_SITE const char *file = __builtin_FILE(), uint line = __builtin_LINE()
#define AKUNU_HERE file, line

namespace akunu {

template <typename T> struct same_type { typedef T type; };
template <typename T> struct remove_cv { typedef T type; };
template <typename T> struct remove_cv<const T> { typedef T type; };
template <typename T> struct remove_cv<volatile T> { typedef T type; };
template <typename T> struct remove_cv<const volatile T> { typedef T type; };

// Element type and length of a scalar (1) or vector.
template <typename T> struct shape {
    typedef T element;
    static constexpr int size = 1;
    static constexpr bool is_vector = false;
};
template <typename T, int N> struct shape<T __attribute__((ext_vector_type(N)))> {
    typedef T element;
    static constexpr int size = N;
    static constexpr bool is_vector = true;
};
template <typename T> using element_of = typename shape<T>::element;

template <typename T> struct is_floating_element { static constexpr bool value = false; };
template <> struct is_floating_element<float> { static constexpr bool value = true; };
template <> struct is_floating_element<half> { static constexpr bool value = true; };
template <> struct is_floating_element<bfloat> { static constexpr bool value = true; };
template <typename T> constexpr bool is_floating = is_floating_element<element_of<T>>::value;

// What lanes can hand each other: numbers of up to 32 bits, alone or in vectors. No bool, no 64 bits, no struct.
template <typename T> struct is_integer_element { static constexpr bool value = false; };
template <> struct is_integer_element<char> { static constexpr bool value = true; };
template <> struct is_integer_element<signed char> { static constexpr bool value = true; };
template <> struct is_integer_element<uchar> { static constexpr bool value = true; };
template <> struct is_integer_element<short> { static constexpr bool value = true; };
template <> struct is_integer_element<ushort> { static constexpr bool value = true; };
template <> struct is_integer_element<int> { static constexpr bool value = true; };
template <> struct is_integer_element<uint> { static constexpr bool value = true; };

template <bool Condition, typename T> struct enable_if {};
template <typename T> struct enable_if<true, T> { typedef T type; };
// T, when it is a floating scalar or vector; otherwise the overload does not exist.
template <typename T> using if_floating = typename enable_if<is_floating<T>, T>::type;
template <typename T> using if_integer = typename enable_if<!is_floating<T>, T>::type;
template <typename T> using if_bits = typename enable_if<is_integer_element<element_of<T>>::value, T>::type;
template <typename T>
using if_shared = typename enable_if<is_integer_element<element_of<T>>::value || is_floating<T>, T>::type;

} // namespace akunu

namespace metal {
template <typename A, typename B> struct is_same { static constexpr bool value = false; };
template <typename A> struct is_same<A, A> { static constexpr bool value = true; };
template <typename A, typename B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool Condition, typename A, typename B> struct conditional { typedef A type; };
template <typename A, typename B> struct conditional<false, A, B> { typedef B type; };
template <bool Condition, typename A, typename B>
using conditional_t = typename conditional<Condition, A, B>::type;
template <bool Condition, typename T = void> using enable_if_t = typename akunu::enable_if<Condition, T>::type;
template <bool Condition, typename T = void> using enable_if = akunu::enable_if<Condition, T>;
} // namespace metal
