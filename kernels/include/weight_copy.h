// Rows of a weight matrix as plain numbers, one thread a run of 8.
#pragma once

#include "include/format/all.h"

inline void store_4(device float *y, float4 values) { *(device packed_float4 *)y = values; }
inline void store_4(device half *y, float4 values) { *(device packed_half4 *)y = half4(values); }

// Writes run `index` of a row of `row_len` values to y, which is aligned as its element is.
template <typename F, typename T>
inline void copy_run(typename F::Row row, uint index, uint row_len, device T *y) {
    if (index < whole_runs<F>(row_len)) {
        const Run w = F::run(row, index);
        store_4(y + RUN * index, low_values(w));
        store_4(y + RUN * index + 4, high_values(w));
    } else {
        for (uint i = RUN * index; i < min(RUN * index + RUN, row_len); i++) {
            y[i] = T(F::value(row, i));
        }
    }
}
