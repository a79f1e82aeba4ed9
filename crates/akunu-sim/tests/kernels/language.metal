// The language: constructors, swizzles, conversions, integers, math, atomics. One value a line.
#include <metal_stdlib>
using namespace metal;

constant float TABLE[4] = {0.5f, 1.5f, 2.5f, 3.5f};
constant constexpr uint WIDTH = 4;

template <typename T4> inline float sum4(T4 v) {
    float4 f = float4(v);
    return f.x + f.y + f.z + f.w;
}

template <typename T> struct Pair {
    using pair_t = vec<T, 2>;
    pair_t value;
};

// Fills the array it is handed through a reference with an address space.
inline void fill(thread float (&values)[WIDTH], float x) {
    for (uint i = 0; i < WIDTH; i++) {
        values[i] = x * i;
    }
}

kernel void vectors(device const float *x [[buffer(0)]], device float *y [[buffer(1)]]) {
    float4 v = *(device const float4 *)x;
    uint at = 0;
    y[at++] = float4(v.xy, 7.0f, 8.0f).z;
    y[at++] = sum4(float4(v.wzyx.xy, v.zw));
    y[at++] = float4(int4(-3, 2, 1, 0)).x;
    y[at++] = sum4(uchar4(200, 100, 50, 5));
    y[at++] = float(half(0.1f));
    y[at++] = float(bfloat(1.00390625f));
    y[at++] = as_type<float>(0x40490fdbu);
    y[at++] = as_type<half2>(0x3c003800u).y;
    y[at++] = float(static_cast<int4>(v * 2.0f).y);
    v.xw = float2(10.0f);
    y[at++] = v.x + v.w;
    Pair<float> pair;
    pair.value = vec<float, 2>(1.0f, 2.0f);
    y[at++] = pair.value.y;
    packed_float3 packed = {1.0f, 2.0f, 3.0f};
    y[at++] = float3(packed).z + sizeof(packed_float3) + sizeof(float3);
    y[at++] = TABLE[uint(x[2])];
    float own[WIDTH];
    fill(own, 1.5f);
    y[at++] = own[3];
    half4x4 m;
    m[2] = half4(1.0h, 2.0h, 3.0h, 4.0h);
    y[at++] = m[2][1];
    y[at++] = select(1.0f, 2.0f, x[0] < x[1]);
    y[at++] = select(float4(1.0f), float4(2.0f), v > 5.0f).x;
    y[at++] = dot(float3(1.0f, 2.0f, 3.0f), float3(4.0f, 5.0f, 6.0f));
    y[at++] = any(v > 9.5f) + 2 * all(v > 9.5f);
    y[at++] = half(2048.0f) + half(1.0f);
    y[at++] = sizeof(1.0) + max(v.x, 1.0);
}

kernel void integers(device uint *y [[buffer(0)]]) {
    uint at = 0;
    y[at++] = popcount(0xf0f0u);
    y[at++] = clz(1u);
    y[at++] = clz(ushort(1));
    y[at++] = ctz(8u);
    y[at++] = reverse_bits(1u);
    y[at++] = extract_bits(0xabcdu, 4, 8);
    y[at++] = uint(extract_bits(int(0xf0), 4, 4));
    y[at++] = insert_bits(0u, 0xffu, 8, 4);
    y[at++] = rotate(0x80000001u, 1u);
    y[at++] = mulhi(0x80000000u, 6u);
    y[at++] = mad24(3u, 4u, 5u);
    y[at++] = min(3u, 4u) + max(5u, 6u) + clamp(9u, 1u, 7u);
    y[at++] = uint(abs(int(-5)));
    y[at++] = uint(min(int2(3, -4), int2(1, 9)).x);
    y[at++] = numeric_limits<ushort>::max();
}

kernel void math(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                 uint t [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
    float v = x[t];
    y += t;
    y[0 * n] = exp(v);
    y[1 * n] = exp2(v);
    y[2 * n] = log(abs(v) + 0.01f);
    y[3 * n] = log2(abs(v) + 0.01f);
    y[4 * n] = sqrt(abs(v));
    y[5 * n] = rsqrt(abs(v) + 1.0f);
    y[6 * n] = sin(v * 100.0f);
    y[7 * n] = cos(v * 100.0f);
    y[8 * n] = tanh(v);
    y[9 * n] = pow(abs(v) + 0.5f, 1.7f);
    y[10 * n] = precise::exp(v) - fast::exp(v);
    y[11 * n] = rint(v) + 10.0f * round(v) + 100.0f * floor(v) + 1000.0f * ceil(v) + 10000.0f * trunc(v);
    y[12 * n] = fma(v, v, 1.0f);
    y[13 * n] = clamp(v, -1.0f, 1.0f) + sign(v) + saturate(v);
    y[14 * n] = fmod(v, 3.0f);
    y[15 * n] = atan2(v, 2.0f);
}

kernel void counts(device atomic_uint *counters [[buffer(0)]], device const uint *x [[buffer(1)]],
                   device atomic_float *total [[buffer(2)]], uint t [[thread_position_in_grid]],
                   uint inside [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint own;
    if (inside == 0) {
        atomic_store_explicit(&own, 0, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&own, x[t], memory_order_relaxed);
    atomic_fetch_add_explicit(total, 0.5f, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (inside == 0) {
        uint sum = atomic_load_explicit(&own, memory_order_relaxed);
        atomic_fetch_add_explicit(&counters[0], sum, memory_order_relaxed);
    }
    atomic_fetch_max_explicit(&counters[1], x[t], memory_order_relaxed);
    atomic_fetch_min_explicit(&counters[2], x[t], memory_order_relaxed);
    atomic_fetch_or_explicit(&counters[3], x[t], memory_order_relaxed);
    uint seen = atomic_load_explicit(&counters[4], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&counters[4], &seen, seen + 2, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}
