// embedding_lookup_<format>: y[t][i] = table[token[t]][i], dequantised.
//
// Launch:  one thread a run of 8 values, grid (ceil(runs / 128), tokens), 128 threads.
// Memory:  a row is read and written once. An id beyond the table reads its last row.

#include "include/format/all.h"

// Writes run `index` of a row of `row_len` values to y, which is aligned as its element is.
template <typename F>
inline void copy_run(typename F::Row row, uint index, uint row_len, device float *y) {
    if (index < whole_runs<F>(row_len)) {
        const Run w = F::run(row, index);
        *(device packed_float4 *)(y + RUN * index) = low_values(w);
        *(device packed_float4 *)(y + RUN * index + 4) = high_values(w);
    } else {
        for (uint i = RUN * index; i < min(RUN * index + RUN, row_len); i++) {
            y[i] = F::value(row, i);
        }
    }
}

template <typename F, typename P>
kernel void embedding_lookup(
    device const uint *token     [[buffer(0)]],  // (tokens)
    device const uchar *table    [[buffer(1)]],  // (vocabulary, dim)
    device float *y              [[buffer(2)]],  // (tokens, dim)
    constant P &params           [[buffer(3)]],
    uint2 at                     [[thread_position_in_grid]]
) {
    const WeightLayout layout = weight_layout(params);
    if (at.x < (layout.row_len + RUN - 1) / RUN) {
        const typename F::Row row = F::row(table, layout, min(token[at.y], layout.n_rows - 1));
        copy_run<F>(row, at.x, layout.row_len, y + ulong(at.y) * layout.row_len);
    }
}

// for each format: embedding_lookup_<format> is embedding_lookup<Format, EmbeddingParams>
template [[host_name("embedding_lookup_f32")]] kernel decltype(embedding_lookup<FormatF32, EmbeddingParams>) embedding_lookup<FormatF32, EmbeddingParams>;
template [[host_name("embedding_lookup_f16")]] kernel decltype(embedding_lookup<FormatF16, EmbeddingParams>) embedding_lookup<FormatF16, EmbeddingParams>;
template [[host_name("embedding_lookup_q4_0")]] kernel decltype(embedding_lookup<FormatQ4_0, EmbeddingParams>) embedding_lookup<FormatQ4_0, EmbeddingParams>;
template [[host_name("embedding_lookup_q4_1")]] kernel decltype(embedding_lookup<FormatQ4_1, EmbeddingParams>) embedding_lookup<FormatQ4_1, EmbeddingParams>;
template [[host_name("embedding_lookup_q5_0")]] kernel decltype(embedding_lookup<FormatQ5_0, EmbeddingParams>) embedding_lookup<FormatQ5_0, EmbeddingParams>;
template [[host_name("embedding_lookup_q5_1")]] kernel decltype(embedding_lookup<FormatQ5_1, EmbeddingParams>) embedding_lookup<FormatQ5_1, EmbeddingParams>;
template [[host_name("embedding_lookup_q8_0")]] kernel decltype(embedding_lookup<FormatQ8_0, EmbeddingParams>) embedding_lookup<FormatQ8_0, EmbeddingParams>;
template [[host_name("embedding_lookup_q2_k")]] kernel decltype(embedding_lookup<FormatQ2K, EmbeddingParams>) embedding_lookup<FormatQ2K, EmbeddingParams>;
template [[host_name("embedding_lookup_q3_k")]] kernel decltype(embedding_lookup<FormatQ3K, EmbeddingParams>) embedding_lookup<FormatQ3K, EmbeddingParams>;
template [[host_name("embedding_lookup_q4_k")]] kernel decltype(embedding_lookup<FormatQ4K, EmbeddingParams>) embedding_lookup<FormatQ4K, EmbeddingParams>;
template [[host_name("embedding_lookup_q5_k")]] kernel decltype(embedding_lookup<FormatQ5K, EmbeddingParams>) embedding_lookup<FormatQ5K, EmbeddingParams>;
template [[host_name("embedding_lookup_q6_k")]] kernel decltype(embedding_lookup<FormatQ6K, EmbeddingParams>) embedding_lookup<FormatQ6K, EmbeddingParams>;
template [[host_name("embedding_lookup_iq2_xxs")]] kernel decltype(embedding_lookup<FormatIQ2XXS, EmbeddingParams>) embedding_lookup<FormatIQ2XXS, EmbeddingParams>;
template [[host_name("embedding_lookup_iq2_xs")]] kernel decltype(embedding_lookup<FormatIQ2XS, EmbeddingParams>) embedding_lookup<FormatIQ2XS, EmbeddingParams>;
template [[host_name("embedding_lookup_iq3_xxs")]] kernel decltype(embedding_lookup<FormatIQ3XXS, EmbeddingParams>) embedding_lookup<FormatIQ3XXS, EmbeddingParams>;
template [[host_name("embedding_lookup_iq1_s")]] kernel decltype(embedding_lookup<FormatIQ1S, EmbeddingParams>) embedding_lookup<FormatIQ1S, EmbeddingParams>;
template [[host_name("embedding_lookup_iq4_nl")]] kernel decltype(embedding_lookup<FormatIQ4NL, EmbeddingParams>) embedding_lookup<FormatIQ4NL, EmbeddingParams>;
template [[host_name("embedding_lookup_iq3_s")]] kernel decltype(embedding_lookup<FormatIQ3S, EmbeddingParams>) embedding_lookup<FormatIQ3S, EmbeddingParams>;
template [[host_name("embedding_lookup_iq2_s")]] kernel decltype(embedding_lookup<FormatIQ2S, EmbeddingParams>) embedding_lookup<FormatIQ2S, EmbeddingParams>;
template [[host_name("embedding_lookup_iq4_xs")]] kernel decltype(embedding_lookup<FormatIQ4XS, EmbeddingParams>) embedding_lookup<FormatIQ4XS, EmbeddingParams>;
template [[host_name("embedding_lookup_iq1_m")]] kernel decltype(embedding_lookup<FormatIQ1M, EmbeddingParams>) embedding_lookup<FormatIQ1M, EmbeddingParams>;
template [[host_name("embedding_lookup_bf16")]] kernel decltype(embedding_lookup<FormatBF16, EmbeddingParams>) embedding_lookup<FormatBF16, EmbeddingParams>;
template [[host_name("embedding_lookup_mxfp4")]] kernel decltype(embedding_lookup<FormatMXFP4, EmbeddingParams>) embedding_lookup<FormatMXFP4, EmbeddingParams>;
template [[host_name("embedding_lookup_mlx_q2")]] kernel decltype(embedding_lookup<FormatMlxQ2, MLXParams>) embedding_lookup<FormatMlxQ2, MLXParams>;
template [[host_name("embedding_lookup_mlx_q3")]] kernel decltype(embedding_lookup<FormatMlxQ3, MLXParams>) embedding_lookup<FormatMlxQ3, MLXParams>;
template [[host_name("embedding_lookup_mlx_q4")]] kernel decltype(embedding_lookup<FormatMlxQ4, MLXParams>) embedding_lookup<FormatMlxQ4, MLXParams>;
template [[host_name("embedding_lookup_mlx_q5")]] kernel decltype(embedding_lookup<FormatMlxQ5, MLXParams>) embedding_lookup<FormatMlxQ5, MLXParams>;
template [[host_name("embedding_lookup_mlx_q6")]] kernel decltype(embedding_lookup<FormatMlxQ6, MLXParams>) embedding_lookup<FormatMlxQ6, MLXParams>;
template [[host_name("embedding_lookup_mlx_q8")]] kernel decltype(embedding_lookup<FormatMlxQ8, MLXParams>) embedding_lookup<FormatMlxQ8, MLXParams>;
// end of formats
