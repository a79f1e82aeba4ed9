// The PTX backend: real address spaces, warp shuffles, and arithmetic without CUDA's libraries.
//
// AKUNU_STRICT gives `constant` an address space of its own, which the check of address spaces needs.
// When code is made, `constant` is memory of any kind: params are arguments of the entry point.
//
// A kernel is a part of its entry point, and nothing else calls it.
#pragma once

#define AKUNU_DEVICE __attribute__((address_space(1)))
#define AKUNU_THREADGROUP __attribute__((address_space(3)))
// DO(address space, whether it is `device`) for each memory that functions of MSL take pointers to.
#define AKUNU_EACH_MEMORY(DO) DO(AKUNU_DEVICE, true) DO(AKUNU_THREADGROUP, false)
#ifdef AKUNU_STRICT
#define AKUNU_CONSTANT __attribute__((address_space(4))) const
#else
#define AKUNU_CONSTANT const
#endif
#define AKUNU_KERNEL static __attribute__((always_inline))

namespace akunu {

struct Constant {
    ulong bits;
    ulong defined;
};

// A params struct of any kind, as an argument: as many bytes as the largest has, of which the kernel reads its own.
struct __attribute__((aligned(8))) Params {
    uint words[AKUNU_PARAMS_BYTES / 4];
};

// Function constants that were not compiled in, by index. Whoever loads the PTX replaces the reads of this array by
// values.
extern "C" __attribute__((used)) AKUNU_DEVICE Constant akunu_constants[AKUNU_CONSTANT_COUNT];
extern "C" __attribute__((used)) AKUNU_DEVICE Constant akunu_constants[AKUNU_CONSTANT_COUNT] = {};

inline bool has_constant(uint slot) { return akunu_constants[slot].defined; }

template <typename T> inline T read_constant(uint slot, const char *, uint) {
    static_assert(sizeof(T) <= 4, "function constants have four bytes at most");
    uint bits = (uint)akunu_constants[slot].bits;
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

namespace builtin {
inline uint3 thread_position_in_threadgroup() {
    return uint3{(uint)__nvvm_read_ptx_sreg_tid_x(), (uint)__nvvm_read_ptx_sreg_tid_y(),
                 (uint)__nvvm_read_ptx_sreg_tid_z()};
}
inline uint3 threadgroup_position_in_grid() {
    return uint3{(uint)__nvvm_read_ptx_sreg_ctaid_x(), (uint)__nvvm_read_ptx_sreg_ctaid_y(),
                 (uint)__nvvm_read_ptx_sreg_ctaid_z()};
}
inline uint3 threads_per_threadgroup() {
    return uint3{(uint)__nvvm_read_ptx_sreg_ntid_x(), (uint)__nvvm_read_ptx_sreg_ntid_y(),
                 (uint)__nvvm_read_ptx_sreg_ntid_z()};
}
inline uint3 threadgroups_per_grid() {
    return uint3{(uint)__nvvm_read_ptx_sreg_nctaid_x(), (uint)__nvvm_read_ptx_sreg_nctaid_y(),
                 (uint)__nvvm_read_ptx_sreg_nctaid_z()};
}
inline uint3 thread_position_in_grid() {
    return threadgroup_position_in_grid() * threads_per_threadgroup() + thread_position_in_threadgroup();
}
inline uint thread_index_in_threadgroup() {
    uint3 at = thread_position_in_threadgroup(), size = threads_per_threadgroup();
    return (at.z * size.y + at.y) * size.x + at.x;
}
inline uint thread_index_in_simdgroup() { return thread_index_in_threadgroup() % 32; }
inline uint simdgroup_index_in_threadgroup() { return thread_index_in_threadgroup() / 32; }
inline uint simdgroups_per_threadgroup() {
    uint3 size = threads_per_threadgroup();
    return (size.x * size.y * size.z + 31) / 32;
}
} // namespace builtin

namespace backend {

inline uint lane() { return (uint)__nvvm_read_ptx_sreg_laneid(); }
inline ulong active_lanes() { return 0xffffffffu; }

inline void threadgroup_barrier(uint, const char *, uint) { __syncthreads(); }
inline void simdgroup_barrier(uint, const char *, uint) { __nvvm_bar_warp_sync(0xffffffffu); }
// Whoever loads the PTX lets a kernel that overlaps with the one before it wait here.
inline void inputs_are_ready(const char *, uint) { asm volatile("// akunu_inputs_are_ready" ::: "memory"); }

// 32 bits go in one shuffle, wider values word by word.
template <typename T> inline T shuffle(T x, uint source, const char *, uint) {
    constexpr int words = (sizeof(T) + 3) / 4;
    int bits[words] = {};
    __builtin_memcpy(bits, &x, sizeof(T));
    for (int i = 0; i < words; i++) {
        bits[i] = __nvvm_shfl_sync_idx_i32(0xffffffffu, bits[i], (int)source, 31);
    }
    T out;
    __builtin_memcpy(&out, bits, sizeof(T));
    return out;
}

template <typename Op, typename T> inline T reduce(T x, const char *file, uint line) {
    for (uint mask = 16; mask > 0; mask /= 2) x = Op::apply(x, shuffle(x, lane() ^ mask, file, line));
    return x;
}

template <typename Op, typename T> inline T scan(T x, const char *file, uint line) {
    for (uint delta = 1; delta < 32; delta *= 2) {
        T other = shuffle(x, lane() >= delta ? lane() - delta : lane(), file, line);
        if (lane() >= delta) x = Op::apply(other, x);
    }
    return x;
}

inline ulong ballot(bool x, const char *, uint) { return (uint)__nvvm_vote_ballot_sync(0xffffffffu, x); }

// Two neighbours.
template <typename From> inline float2 load_pair(From from) { return float2{(float)from[0], (float)from[1]}; }
template <typename To, typename T> inline void store_pair(To to, T first, T second) {
    to[0] = first;
    to[1] = second;
}

inline float2 multiply_accumulate(float2 a, float2 b, float2 c, const char *file, uint line) {
    uint row = (lane() / 2) % 4 + (lane() / 16) * 4;
    uint column = (lane() % 2) * 2 + ((lane() / 8) % 2) * 4;
    for (uint k = 0; k < 8; k++) {
        uint left_lane = (k / 2) % 2 + (row % 4) * 2 + (k / 4) * 8 + (row / 4) * 16;
        uint right_lane = (column / 2) % 2 + (k % 4) * 2 + (column / 4) * 8 + (k / 4) * 16;
        float left = shuffle(a[k & 1], left_lane, file, line);
        float2 right = shuffle(b, right_lane, file, line);
        c[0] = __builtin_fmaf(left, right[0], c[0]);
        c[1] = __builtin_fmaf(left, right[1], c[1]);
    }
    return c;
}

// Compute capability 6.1 and above.
inline int dot4(uint a, uint b, int c) {
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
    return c;
}

inline int dot4_unsigned(uint a, uint b, int c) {
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
    return c;
}

inline uint permute(uint a, uint b, uint which) {
    uint out;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(which));
    return out;
}

inline uint shift_pair(uint low, uint high, uint bits) {
    uint out;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(bits));
    return out;
}

// Compute capability 7.0 and above.
inline uint arrive(AKUNU_DEVICE uint *counter) {
    uint before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

// Compute capability 8.0 and above; whoever loads the PTX says so.
inline float4 tensor_multiply(uint4 a, uint2 b, float4 c, const char *, uint) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    return c;
}

// Memory is read: the asm is not moved across stores and barriers.
inline uint4 tensor_load(const AKUNU_THREADGROUP uint4 *row, const char *, uint) {
    uint4 out;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((uint)(ulong)row)
                 : "memory");
    return out;
}

inline uint4 tensor_load_transposed(const AKUNU_THREADGROUP uint4 *row, const char *, uint) {
    uint4 out;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((uint)(ulong)row)
                 : "memory");
    return out;
}

// Compute capability 8.0 and above.
template <uint N> inline void small_threadgroups() { asm volatile("// akunu_small_threadgroups %0" : : "n"(N)); }

// Barrier 0 is that of the whole threadgroup. With a number that is not a constant a kernel would take all barriers there are.
inline void team_barrier(uint team, uint n_threads, const char *, uint) {
    if (team == 0) {
        asm volatile("barrier.sync.aligned 1, %0;" : : "r"(n_threads) : "memory");
    } else {
        asm volatile("barrier.sync.aligned 2, %0;" : : "r"(n_threads) : "memory");
    }
}

inline void next_may_begin() { asm volatile("// akunu_next_may_begin" : : : "memory"); }

struct AsyncCopies {
    void copy(AKUNU_THREADGROUP uint4 *to, const AKUNU_DEVICE uint4 *from) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" : : "r"((uint)(ulong)to), "l"(from) : "memory");
    }
    void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
    template <uint N> void wait() { asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory"); }
};

// Compute capability 9.0 alone; whoever loads the PTX says so.
struct BulkCopies {
    static uint place(const AKUNU_THREADGROUP void *at) { return (uint)(ulong)at; }

    void prepare(AKUNU_THREADGROUP ulong *arrival, uint n_threads) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;"
                     : : "r"(place(arrival)), "r"(n_threads) : "memory");
    }
    void begin() { asm volatile("fence.proxy.async;" ::: "memory"); }
    void announce(AKUNU_THREADGROUP ulong *arrival, uint n_vectors) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(place(arrival)), "r"(n_vectors * 16) : "memory");
    }
    void copy(AKUNU_THREADGROUP uint4 *to, const AKUNU_DEVICE uint4 *from, uint n_vectors, AKUNU_THREADGROUP ulong *arrival) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     : : "r"(place(to)), "l"(from), "r"(n_vectors * 16), "r"(place(arrival)) : "memory");
    }
    void wait(AKUNU_THREADGROUP ulong *arrival, uint phase) {
        uint has_happened;
        do {
            asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                         : "=r"(has_happened) : "r"(place(arrival)), "r"(phase) : "memory");
        } while (has_happened == 0);
    }
};

// The sums of an asynchronous product as operands of an instruction, and what they are called in it: four for each tile.
#define AKUNU_SUM(I) "+f"(sums[I][0]), "+f"(sums[I][1]), "+f"(sums[I][2]), "+f"(sums[I][3])
#define AKUNU_SUMS_4 AKUNU_SUM(0), AKUNU_SUM(1), AKUNU_SUM(2), AKUNU_SUM(3)
#define AKUNU_SUMS_8 AKUNU_SUMS_4, AKUNU_SUM(4), AKUNU_SUM(5), AKUNU_SUM(6), AKUNU_SUM(7)
#define AKUNU_SUMS_12 AKUNU_SUMS_8, AKUNU_SUM(8), AKUNU_SUM(9), AKUNU_SUM(10), AKUNU_SUM(11)
#define AKUNU_SUMS_16 AKUNU_SUMS_12, AKUNU_SUM(12), AKUNU_SUM(13), AKUNU_SUM(14), AKUNU_SUM(15)
#define AKUNU_NAMES_4 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define AKUNU_NAMES_8 AKUNU_NAMES_4 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define AKUNU_NAMES_12 AKUNU_NAMES_8 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define AKUNU_NAMES_16 AKUNU_NAMES_12 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// A product of TILES tiles, SHAPE: after the sums come the four registers of A, where B lies, and a 1: that sums are added to.
#define AKUNU_GROUP_PRODUCT(TILES, SHAPE, A, B, ONE)                                                                 \
    template <> struct GroupProduct<TILES> {                                                                         \
        static void multiply(float4 (&sums)[TILES], uint4 a, ulong b) {                                              \
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " ONE ", 0;\n\t"                                       \
                         "wgmma.mma_async.sync.aligned." SHAPE ".f32.f16.f16 {" AKUNU_NAMES_##TILES "}, {" A "}, " B \
                         ", p, 1, 1, 0;\n\t}"                                                                        \
                         : AKUNU_SUMS_##TILES                                                                        \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)                                \
                         : "memory");                                                                                \
        }                                                                                                            \
        template <uint N> static void wait(float4 (&sums)[TILES]) {                                                  \
            asm volatile("wgmma.wait_group.sync.aligned %[n];" : AKUNU_SUMS_##TILES : [n] "n"(N) : "memory");        \
        }                                                                                                            \
    };

template <uint TILES> struct GroupProduct;
AKUNU_GROUP_PRODUCT(4, "m64n32k16", "%16, %17, %18, %19", "%20", "%21")
AKUNU_GROUP_PRODUCT(8, "m64n64k16", "%32, %33, %34, %35", "%36", "%37")
AKUNU_GROUP_PRODUCT(16, "m64n128k16", "%64, %65, %66, %67", "%68", "%69")

struct AsyncProducts {
    // Where B lies, in units of 16 bytes: from one eight of K to the next (the eight vectors of a matrix), and from one tile to the next.
    // What is added to the place does not reach the next field, so that one sum for each product is enough.
    template <uint STRIDE> static ulong matrix(const AKUNU_THREADGROUP uint4 *b, uint at) {
        return (ulong)(((uint)(ulong)b >> 4 & 0x3fff | 8 << 16) + at) | (ulong)STRIDE << 32;
    }

    template <uint STRIDE, uint TILES>
    void multiply(float4 (&sums)[TILES], uint4 a, const AKUNU_THREADGROUP uint4 *b, uint at) {
        GroupProduct<TILES>::multiply(sums, a, matrix<STRIDE>(b, at));
    }
    void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
    void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
    template <uint N, uint TILES> void wait(float4 (&sums)[TILES], const char *, uint) { GroupProduct<TILES>::template wait<N>(sums); }
};

} // namespace backend
} // namespace akunu

#include <akunu_ptx_math.h>

// Where an entry point finds its bindings.
#define AKUNU_BUFFER(INDEX) akunu_buffer_##INDEX
#define AKUNU_PARAMS(INDEX) ((void *)&akunu_params_##INDEX)
#define AKUNU_THREADGROUP_BUFFER(INDEX) ((void *)(akunu_dynamic + akunu_offset_##INDEX))

extern "C" __attribute__((address_space(3), aligned(16))) uchar akunu_dynamic[];
