// Atomics on device and threadgroup memory. All are relaxed, which is the only order MSL has for them.
#pragma once

namespace metal {

enum memory_order { memory_order_relaxed };

template <typename T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;


template <typename Atomic> inline auto atomic_load_explicit(Atomic *object, memory_order) {
    return __atomic_load_n(&object->value, __ATOMIC_RELAXED);
}
template <typename Atomic, typename T> inline void atomic_store_explicit(Atomic *object, T value, memory_order) {
    __atomic_store_n(&object->value, (decltype(object->value + 0))value, __ATOMIC_RELAXED);
}
template <typename Atomic, typename T>
inline auto atomic_exchange_explicit(Atomic *object, T value, memory_order) {
    return __atomic_exchange_n(&object->value, (decltype(object->value + 0))value, __ATOMIC_RELAXED);
}
template <typename Atomic, typename Expected, typename T>
inline bool atomic_compare_exchange_weak_explicit(Atomic *object, Expected *expected, T desired, memory_order,
                                                  memory_order) {
    Expected seen = *expected;
    bool done = __atomic_compare_exchange_n(&object->value, &seen, (Expected)desired, true, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED);
    *expected = seen;
    return done;
}

#define AKUNU_FETCH(NAME, BUILTIN)                                                          \
    template <typename Atomic, typename T>                                                  \
    inline auto atomic_fetch_##NAME##_explicit(Atomic *object, T value, memory_order) {     \
        return BUILTIN(&object->value, (decltype(object->value + 0))value, __ATOMIC_RELAXED); \
    }

AKUNU_FETCH(add, __atomic_fetch_add)
AKUNU_FETCH(sub, __atomic_fetch_sub)
AKUNU_FETCH(min, __atomic_fetch_min)
AKUNU_FETCH(max, __atomic_fetch_max)
AKUNU_FETCH(and, __atomic_fetch_and)
AKUNU_FETCH(or, __atomic_fetch_or)
AKUNU_FETCH(xor, __atomic_fetch_xor)

} // namespace metal
