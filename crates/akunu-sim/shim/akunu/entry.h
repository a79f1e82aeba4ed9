// What the generated entry points use to hand bindings and thread positions to a kernel.
#pragma once

namespace akunu {

// Converts to whatever pointer, or reference, the kernel's parameter is.
struct Pointer {
    void *address;
    template <typename T> operator T *() const { return (T *)address; }
};
struct Reference {
    void *address;
    template <typename T> operator T &() const { return *(T *)address; }
};

// A three-dimensional position as `uint`, `uint2`, `ushort3`, …: the leading dimensions.
template <typename T> inline T position(uint3 value) {
    if constexpr (!shape<T>::is_vector) {
        return (T)value.x;
    } else {
        T out;
        for (int i = 0; i < shape<T>::size; i++) out[i] = (element_of<T>)value[i];
        return out;
    }
}
template <typename T> inline T position(uint value) { return (T)value; }

namespace builtin {
inline uint3 threads_per_grid() { return threads_per_threadgroup() * threadgroups_per_grid(); }
inline uint threads_per_simdgroup() { return 32; }
inline uint thread_index_in_quadgroup() { return thread_index_in_simdgroup() % 4; }
inline uint quadgroup_index_in_threadgroup() { return thread_index_in_threadgroup() / 4; }
inline uint quadgroups_per_threadgroup() {
    uint3 threads = threads_per_threadgroup();
    return (threads.x * threads.y * threads.z + 3) / 4;
}
} // namespace builtin

} // namespace akunu

// Whether the host gave the function constant a value.
#define is_function_constant_defined(NAME) akunu_defined_##NAME()
