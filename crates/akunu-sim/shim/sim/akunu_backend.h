// The simulator's backend: lanes meet through calls into the host, arithmetic is the C library's.
//
// The structs are mirrored in src/executor/abi.rs.
#pragma once

#define AKUNU_DEVICE
#define AKUNU_CONSTANT const
#define AKUNU_KERNEL
#define AKUNU_THREADGROUP
// DO(address space, whether it is `device`) for each memory that functions of MSL take pointers to: here there is one for all.
#define AKUNU_EACH_MEMORY(DO) DO(AKUNU_DEVICE, true)

namespace akunu {

struct Constant {
    ulong bits;
    ulong defined;
};

// Where this GPU thread stands. The host sets `current` before it lets a thread run.
struct Thread {
    uint position_in_grid[3];
    uint position_in_threadgroup[3];
    uint threadgroup_position[3];
    uint threads_per_threadgroup[3];
    uint threadgroups_per_grid[3];
    uint index;
    uint lane;
    uint simdgroup;
    uint simdgroups;
    uint active_lanes;
    // Whether the host wants to know of accesses.
    uint reports_accesses;
    // Those of the launch.
    const Constant *constants;
};

struct Arguments {
    void *buffers[31];
    void *shared[31];
};

// Operations that all lanes of a SIMD group must reach together.
enum Operation : uint { Shuffle, Reduce, Scan, Ballot, MatrixMultiply };
enum Fault : uint { Misaligned, Shift, Bounds, Division, UndefinedConstant };

struct Callbacks {
    // Leaves `value` for the other lanes; returns the values of all lanes, one behind the other.
    const void *(*exchange)(const void *value, uint size, Operation operation, const char *file, uint line);
    // The flags are those of MSL's `mem_flags`: the memories that the barrier orders.
    void (*simdgroup_barrier)(uint flags, const char *file, uint line);
    void (*threadgroup_barrier)(uint flags, const char *file, uint line);
    // The address of a `threadgroup` variable, the same for all threads of the threadgroup.
    void *(*threadgroup_variable)(uint id, ulong size, ulong align);
    // Ends the launch; does not return.
    void (*fault)(Fault fault, const char *file, uint line);
    // A store, or a load in libraries that were compiled for counting, that is about to happen.
    void (*access)(ulong address, ulong bytes, uint is_store, ulong instruction);
};

static const Callbacks *callbacks;
// The only one: there is little memory for such variables in a process that loads many libraries.
static thread_local const Thread *current;

inline bool has_constant(uint slot) { return current->constants[slot].defined; }

template <typename T> inline T read_constant(uint slot, const char *name, uint line) {
    const Constant &constant = current->constants[slot];
    if (__builtin_expect(!constant.defined, 0)) callbacks->fault(UndefinedConstant, name, line);
    T value;
    __builtin_memcpy(&value, &constant.bits, sizeof(T));
    return value;
}

template <typename T> inline T &threadgroup_variable(uint id) {
    return *(T *)callbacks->threadgroup_variable(id, sizeof(T), alignof(T));
}

inline uint3 triple(const uint (&values)[3]) { return uint3{values[0], values[1], values[2]}; }

namespace builtin {
inline uint3 thread_position_in_grid() { return triple(current->position_in_grid); }
inline uint3 thread_position_in_threadgroup() { return triple(current->position_in_threadgroup); }
inline uint thread_index_in_threadgroup() { return current->index; }
inline uint3 threadgroup_position_in_grid() { return triple(current->threadgroup_position); }
inline uint3 threads_per_threadgroup() { return triple(current->threads_per_threadgroup); }
inline uint3 threadgroups_per_grid() { return triple(current->threadgroups_per_grid); }
inline uint thread_index_in_simdgroup() { return current->lane; }
inline uint simdgroup_index_in_threadgroup() { return current->simdgroup; }
inline uint simdgroups_per_threadgroup() { return current->simdgroups; }
} // namespace builtin

namespace backend {

inline uint lane() { return current->lane; }
inline ulong active_lanes() { return current->active_lanes; }

template <typename T> inline const T *exchange(T value, Operation operation, const char *file, uint line) {
    static_assert(sizeof(T) <= 32, "a lane hands over 32 bytes at most");
    return (const T *)callbacks->exchange(&value, sizeof(T), operation, file, line);
}

inline void threadgroup_barrier(uint flags, const char *file, uint line) {
    callbacks->threadgroup_barrier(flags, file, line);
}
inline void simdgroup_barrier(uint flags, const char *file, uint line) { callbacks->simdgroup_barrier(flags, file, line); }
inline void inputs_are_ready(const char *file, uint line) { simdgroup_barrier(0, file, line); }

// A lane that does not exist has no value: reading it is the reader's own, as if it kept its value.
template <typename T> inline T shuffle(T x, uint source, const char *file, uint line) {
    const T *values = exchange(x, Shuffle, file, line);
    return (current->active_lanes >> source) & 1 ? values[source] : x;
}

// A tree over 32 lanes; a partial group goes from lane to lane.
template <typename Op, typename T> inline T reduce(T x, const char *file, uint line) {
    const T *values = exchange(x, Reduce, file, line);
    if (current->active_lanes == 0xffffffffu) {
        T half_tree[16];
        for (int i = 0; i < 16; i++) half_tree[i] = Op::apply(values[i], values[i + 16]);
        for (int width = 8; width > 0; width /= 2) {
            for (int i = 0; i < width; i++) half_tree[i] = Op::apply(half_tree[i], half_tree[i + width]);
        }
        return half_tree[0];
    }
    T total = values[0];
    for (uint i = 1; i < 32 && (current->active_lanes >> i) & 1; i++) total = Op::apply(total, values[i]);
    return total;
}

template <typename Op, typename T> inline T scan(T x, const char *file, uint line) {
    const T *values = exchange(x, Scan, file, line);
    T total = values[0];
    for (uint i = 1; i <= lane(); i++) total = Op::apply(total, values[i]);
    return total;
}

inline ulong ballot(bool x, const char *file, uint line) {
    const bool *values = exchange(x, Ballot, file, line);
    ulong bits = 0;
    for (uint i = 0; i < 32; i++) {
        if ((current->active_lanes >> i) & 1 && values[i]) bits |= 1ul << i;
    }
    return bits;
}

// Two neighbours, by one access: a matrix is loaded and stored by rows.
template <typename E> using Pair = E __attribute__((ext_vector_type(2), aligned(sizeof(E))));
template <typename E> inline Pair<E> load_pair(const E *from) { return *(const Pair<E> *)from; }
template <typename E, typename T> inline void store_pair(E *to, T first, T second) {
    *(Pair<E> *)to = Pair<E>{(E)first, (E)second};
}

struct MatrixPair {
    float2 left, right;
};

inline uint row_of(uint lane) { return (lane / 2) % 4 + (lane / 16) * 4; }
inline uint column_of(uint lane) { return (lane % 2) * 2 + ((lane / 8) % 2) * 4; }
inline uint lane_of(uint row, uint column) {
    return (column / 2) % 2 + (row % 4) * 2 + (column / 4) * 8 + (row / 4) * 16;
}

inline float2 multiply_accumulate(float2 a, float2 b, float2 c, const char *file, uint line) {
    const MatrixPair *pairs = exchange(MatrixPair{a, b}, MatrixMultiply, file, line);
    uint row = row_of(lane()), column = column_of(lane());
    for (uint k = 0; k < 8; k++) {
        float left = pairs[lane_of(row, k & ~1u)].left[k & 1];
        float2 right = pairs[lane_of(k, column)].right;
        c[0] = __builtin_fmaf(left, right[0], c[0]);
        c[1] = __builtin_fmaf(left, right[1], c[1]);
    }
    return c;
}

struct TensorPair {
    uint4 left;
    uint2 right;
};

inline float2 halves_of(uint bits) { return __builtin_convertvector(__builtin_bit_cast(half2, bits), float2); }

// c[i] is summed in the order of k; the sums of the four i wait for themselves and not for each other.
inline float4 tensor_multiply(uint4 a, uint2 b, float4 c, const char *file, uint line) {
    const TensorPair *pairs = exchange(TensorPair{a, b}, MatrixMultiply, file, line);
    const uint row = lane() / 4, column = lane() % 4 * 2;
    for (uint k = 0; k < 16; k += 2) {
        const uint place = k % 8 / 2, upper = k / 8;
        const uint4 lefts = pairs[row * 4 + place].left;
        const float2 left[2] = {halves_of(lefts[upper * 2]), halves_of(lefts[upper * 2 + 1])};
        const float2 right[2] = {halves_of(pairs[column * 4 + place].right[upper]),
                                 halves_of(pairs[(column + 1) * 4 + place].right[upper])};
        for (uint i = 0; i < 4; i++) {
            c[i] = __builtin_fmaf(left[i / 2][0], right[i % 2][0], c[i]);
            c[i] = __builtin_fmaf(left[i / 2][1], right[i % 2][1], c[i]);
        }
    }
    return c;
}

inline uint4 tensor_load(const uint4 *row, const char *file, uint line) {
    const uint4 *const *rows = exchange(row, MatrixMultiply, file, line);
    uint4 out;
    for (uint i = 0; i < 4; i++) out[i] = (*rows[8 * i + lane() / 4])[lane() % 4];
    return out;
}

inline uint4 tensor_load_transposed(const uint4 *row, const char *file, uint line) {
    const uint4 *const *rows = exchange(row, MatrixMultiply, file, line);
    uint4 out;
    for (uint i = 0; i < 4; i++) {
        half2 pair;
        for (uint r = 0; r < 2; r++) {
            uint word = (*rows[8 * i + lane() % 4 * 2 + r])[lane() / 4 / 2];
            pair[r] = __builtin_bit_cast(half2, word)[lane() / 4 % 2];
        }
        out[i] = __builtin_bit_cast(uint, pair);
    }
    return out;
}

// Nothing is copied before somebody waits for it.
struct AsyncCopies {
    static constexpr uint CAPACITY = 64;
    struct Copy {
        uint4 *to;
        const uint4 *from;
        uint group;
    };
    Copy copies[CAPACITY];
    uint n_copies = 0;
    uint n_groups = 0;

    void copy(uint4 *to, const uint4 *from) {
        if (n_copies == CAPACITY) callbacks->fault(Bounds, "more copies than the simulator keeps", 0);
        copies[n_copies++] = Copy{to, from, n_groups};
    }
    void commit() { n_groups++; }
    template <uint N> void wait() {
        uint n_left = 0;
        for (uint i = 0; i < n_copies; i++) {
            const Copy &copy = copies[i];
            if (copy.group + N < n_groups) {
                *copy.to = *copy.from;
            } else {
                copies[n_left++] = copy;
            }
        }
        n_copies = n_left;
    }
};

// Nothing is copied before the thread that has asked for it waits. The memory of an arrival is only its name.
struct BulkCopies {
    static constexpr uint CAPACITY = 64;
    struct Copy {
        uint4 *to;
        const uint4 *from;
        uint n_vectors;
        ulong *arrival;
    };
    Copy copies[CAPACITY];
    uint n_copies = 0;
    // Vectors that were announced and not asked for.
    uint n_announced = 0;

    void prepare(ulong *, uint) {}
    void begin() {}
    void announce(ulong *, uint n_vectors) { n_announced += n_vectors; }
    void copy(uint4 *to, const uint4 *from, uint n_vectors, ulong *arrival) {
        if (n_copies == CAPACITY) callbacks->fault(Bounds, "more copies than the simulator keeps", 0);
        if (n_vectors > n_announced) callbacks->fault(Bounds, "a copy that was not announced", 0);
        n_announced -= n_vectors;
        copies[n_copies++] = Copy{to, from, n_vectors, arrival};
    }
    void wait(ulong *arrival, uint) {
        uint n_left = 0;
        for (uint i = 0; i < n_copies; i++) {
            const Copy copy = copies[i];
            if (copy.arrival != arrival) {
                copies[n_left++] = copy;
                continue;
            }
            for (uint v = 0; v < copy.n_vectors; v++) copy.to[v] = copy.from[v];
        }
        n_copies = n_left;
    }
};

// Nothing is multiplied before somebody waits for it: B is read then.
struct AsyncProducts {
    static constexpr uint CAPACITY = 16;
    struct Product {
        float4 *sums;
        uint n_tiles;
        uint stride;
        uint4 a;
        const uint4 *b;
        uint group;
    };
    Product products[CAPACITY];
    uint n_products = 0;
    uint n_groups = 0;

    void begin() {}
    template <uint STRIDE, uint TILES> void multiply(float4 (&sums)[TILES], uint4 a, const uint4 *b, uint at) {
        if (n_products == CAPACITY) callbacks->fault(Bounds, "more products than the simulator keeps", 0);
        products[n_products++] = Product{sums, TILES, STRIDE, a, b + at, n_groups};
    }
    void commit() { n_groups++; }
    template <uint N, uint TILES> void wait(float4 (&)[TILES], const char *file, uint line) {
        uint n_left = 0;
        for (uint i = 0; i < n_products; i++) {
            const Product product = products[i];
            if (product.group + N >= n_groups) {
                products[n_left++] = product;
                continue;
            }
            for (uint tile = 0; tile < product.n_tiles; tile++) {
                const uint4 *column = product.b + tile * product.stride + lane() / 4;
                const uint2 b = {column[0][lane() % 4], column[8][lane() % 4]};
                product.sums[tile] = tensor_multiply(product.a, b, product.sums[tile], file, line);
            }
        }
        n_products = n_left;
    }
};

template <uint N> inline void small_threadgroups() {}

// 2 is MSL's flag of threadgroup memory.
inline void team_barrier(uint, uint, const char *file, uint line) { threadgroup_barrier(2, file, line); }

inline void next_may_begin() {}

inline uint arrive(uint *counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL); }

inline int dot4(uint a, uint b, int c) {
    const char4 left = __builtin_bit_cast(char4, a), right = __builtin_bit_cast(char4, b);
    for (uint i = 0; i < 4; i++) c += (int)left[i] * (int)right[i];
    return c;
}

inline int dot4_unsigned(uint a, uint b, int c) {
    const uchar4 left = __builtin_bit_cast(uchar4, a);
    const char4 right = __builtin_bit_cast(char4, b);
    for (uint i = 0; i < 4; i++) c += (int)left[i] * (int)right[i];
    return c;
}

inline uint permute(uint a, uint b, uint which) {
    const ulong bytes = (ulong)b << 32 | a;
    uint out = 0;
    for (uint i = 0; i < 4; i++) out |= (uint)(bytes >> (which >> (4 * i) & 7) * 8 & 255) << (8 * i);
    return out;
}

inline uint shift_pair(uint low, uint high, uint bits) { return (uint)(((ulong)high << 32 | low) >> (bits & 31)); }

inline float exp(float x) { return __builtin_expf(x); }
inline float exp2(float x) { return __builtin_exp2f(x); }
inline float fast_exp2(float x) { return exp2(x); }
inline float fast_divide(float x, float y) { return x / y; }
inline float exp10(float x) { return __builtin_powf(10.0f, x); }
inline float log(float x) { return __builtin_logf(x); }
inline float log2(float x) { return __builtin_log2f(x); }
inline float log10(float x) { return __builtin_log10f(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float sin(float x) { return __builtin_sinf(x); }
inline float cos(float x) { return __builtin_cosf(x); }
inline float tan(float x) { return __builtin_tanf(x); }
inline float tanh(float x) { return __builtin_tanhf(x); }
inline float sinh(float x) { return __builtin_sinhf(x); }
inline float cosh(float x) { return __builtin_coshf(x); }
inline float asin(float x) { return __builtin_asinf(x); }
inline float acos(float x) { return __builtin_acosf(x); }
inline float atan(float x) { return __builtin_atanf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float round(float x) { return __builtin_roundf(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline float pow(float x, float y) { return __builtin_powf(x, y); }
inline float powr(float x, float y) { return __builtin_powf(x, y); }
inline float fmod(float x, float y) { return __builtin_fmodf(x, y); }
inline float atan2(float x, float y) { return __builtin_atan2f(x, y); }
inline float fmin(float x, float y) { return __builtin_fminf(x, y); }
inline float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
inline float copysign(float x, float y) { return __builtin_copysignf(x, y); }
inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }

} // namespace backend
} // namespace akunu

// Where an entry point finds its bindings.
#define AKUNU_BUFFER(INDEX) akunu_arguments->buffers[INDEX]
#define AKUNU_THREADGROUP_BUFFER(INDEX) akunu_arguments->shared[INDEX]

#define AKUNU_EXPORT extern "C" __attribute__((visibility("default")))

// No thread runs yet to which their stores could be reported.
#define AKUNU_SETUP AKUNU_EXPORT __attribute__((no_sanitize("address")))

AKUNU_SETUP void akunu_sim_install(const akunu::Callbacks *table) { akunu::callbacks = table; }
AKUNU_EXPORT const akunu::Thread **akunu_sim_current() { return &akunu::current; }

// What clang's undefined-behaviour checks call. Each gets the place first.
namespace akunu {
struct Place {
    const char *file;
    uint line;
    uint column;
};
} // namespace akunu

#define AKUNU_CHECK(NAME, FAULT)                                                              \
    extern "C" void __ubsan_handle_##NAME(akunu::Place *place, ...) {                         \
        akunu::callbacks->fault(akunu::FAULT, place->file, place->line);                      \
    }

AKUNU_CHECK(type_mismatch_v1, Misaligned)
AKUNU_CHECK(shift_out_of_bounds, Shift)
AKUNU_CHECK(out_of_bounds, Bounds)
AKUNU_CHECK(divrem_overflow, Division)

#include <akunu_access.h>
