// Atomics on device and threadgroup memory. All are relaxed, which is the only order MSL has for them.
//
// As in MSL, each function takes pointers to atomics of some types only: int and uint everywhere; float in `device` memory,
// to add and subtract; bool to load, store and exchange. Other operands are converted, as for a function of that type.
#pragma once

namespace akunu {

template <typename T> constexpr bool is_counter = metal::is_same_v<T, int> || metal::is_same_v<T, uint>;
template <typename T> constexpr bool is_stored = is_counter<T> || metal::is_same_v<T, bool>;
template <typename T> using operand = typename same_type<T>::type;
// What a value is stored as: clang loads and stores whole numbers only.
template <typename T> using stored_as = metal::conditional_t<metal::is_same_v<T, float>, uint, T>;

} // namespace akunu

namespace metal {

enum memory_order { memory_order_relaxed };

template <typename T> struct atomic {
    static_assert(akunu::is_stored<T> || is_same_v<T, ulong> || is_same_v<T, float>, "MSL has no atomics of this type");
    T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;

#define AKUNU_ATOMICS(SPACE, IS_DEVICE)                                                                              \
    template <typename T>                                                                                           \
    inline enable_if_t<akunu::is_stored<T> || (IS_DEVICE && is_same_v<T, float>), T> atomic_load_explicit(           \
        const SPACE atomic<T> *object, memory_order) {                                                              \
        const auto *place = (const SPACE akunu::stored_as<T> *)&object->value;                                      \
        return __builtin_bit_cast(T, __atomic_load_n(place, __ATOMIC_RELAXED));                                     \
    }                                                                                                               \
    template <typename T>                                                                                           \
    inline enable_if_t<akunu::is_stored<T> || (IS_DEVICE && is_same_v<T, float>), void> atomic_store_explicit(       \
        SPACE atomic<T> *object, akunu::operand<T> value, memory_order) {                                           \
        typedef akunu::stored_as<T> Stored;                                                                         \
        __atomic_store_n((SPACE Stored *)&object->value, __builtin_bit_cast(Stored, value), __ATOMIC_RELAXED);      \
    }                                                                                                               \
    template <typename T>                                                                                           \
    inline enable_if_t<akunu::is_stored<T> || (IS_DEVICE && is_same_v<T, float>), T> atomic_exchange_explicit(       \
        SPACE atomic<T> *object, akunu::operand<T> value, memory_order) {                                           \
        typedef akunu::stored_as<T> Stored;                                                                         \
        auto *place = (SPACE Stored *)&object->value;                                                               \
        return __builtin_bit_cast(                                                                                  \
            T, __atomic_exchange_n(place, __builtin_bit_cast(Stored, value), __ATOMIC_RELAXED));                    \
    }                                                                                                               \
    template <typename T>                                                                                           \
    inline enable_if_t<akunu::is_stored<T>, bool> atomic_compare_exchange_weak_explicit(                             \
        SPACE atomic<T> *object, T *expected, akunu::operand<T> desired, memory_order, memory_order) {              \
        T seen = *expected;                                                                                         \
        bool done = __atomic_compare_exchange_n(&object->value, &seen, desired, true, __ATOMIC_RELAXED,             \
                                                __ATOMIC_RELAXED);                                                  \
        *expected = seen;                                                                                           \
        return done;                                                                                                \
    }                                                                                                               \
    AKUNU_FETCH(SPACE, add, akunu::is_counter<T> || (IS_DEVICE && is_same_v<T, float>))                              \
    AKUNU_FETCH(SPACE, sub, akunu::is_counter<T> || (IS_DEVICE && is_same_v<T, float>))                              \
    AKUNU_FETCH(SPACE, min, akunu::is_counter<T>)                                                                   \
    AKUNU_FETCH(SPACE, max, akunu::is_counter<T>)                                                                   \
    AKUNU_FETCH(SPACE, and, akunu::is_counter<T>)                                                                   \
    AKUNU_FETCH(SPACE, or, akunu::is_counter<T>)                                                                    \
    AKUNU_FETCH(SPACE, xor, akunu::is_counter<T>)

#define AKUNU_FETCH(SPACE, NAME, ALLOWED)                                                                           \
    template <typename T>                                                                                           \
    inline enable_if_t<ALLOWED, T> atomic_fetch_##NAME##_explicit(SPACE atomic<T> *object, akunu::operand<T> value, \
                                                                  memory_order) {                                   \
        return __atomic_fetch_##NAME(&object->value, value, __ATOMIC_RELAXED);                                      \
    }

AKUNU_EACH_MEMORY(AKUNU_ATOMICS)

} // namespace metal
