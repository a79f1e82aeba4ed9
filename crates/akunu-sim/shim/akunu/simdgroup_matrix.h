// 8×8 matrices that the lanes of a SIMD group hold together.
//
// Lane l holds two neighbours of one row: row (l/2)%4 + (l/16)*4, columns (l%2)*2 + ((l/8)%2)*4 and the
// next one. Code that uses `thread_elements()` depends on this layout.
#pragma once

namespace akunu {

inline uint matrix_row(uint lane) { return (lane / 2) % 4 + (lane / 16) * 4; }
inline uint matrix_column(uint lane) { return (lane % 2) * 2 + ((lane / 8) % 2) * 4; }
// The lane that holds (row, column) and its neighbour; column is even.
inline uint matrix_lane(uint row, uint column) {
    return (column / 2) % 2 + (row % 4) * 2 + (column / 4) * 8 + (row / 4) * 16;
}

} // namespace akunu

namespace metal {

template <typename T, int Columns, int Rows> struct simdgroup_matrix {
    static_assert(Columns == 8 && Rows == 8, "SIMD group matrices are 8 by 8");
    static_assert(akunu::is_floating_element<T>::value, "SIMD group matrices are of half, bfloat or float");
    typedef vec<T, 2> storage_type;
    storage_type elements;

    simdgroup_matrix() = default;
    explicit simdgroup_matrix(T diagonal) {
        uint row = akunu::matrix_row(akunu::backend::lane());
        uint column = akunu::matrix_column(akunu::backend::lane());
        elements[0] = row == column ? diagonal : (T)0;
        elements[1] = row == column + 1 ? diagonal : (T)0;
    }
    storage_type &thread_elements() { return elements; }
    const storage_type &thread_elements() const { return elements; }
};

typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <typename T, int C, int R> inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
    simdgroup_matrix<T, C, R> m;
    m.elements = (vec<T, 2>)value;
    return m;
}

} // namespace metal

namespace akunu {

// Element (row, column) lies at `source[(origin.y + row) * elements_per_row + origin.x + column]`, or
// with row and column swapped when transposed.
template <typename T, typename Pointer>
inline void load_matrix(metal::simdgroup_matrix<T, 8, 8> &m, Pointer source, ulong elements_per_row, ulong2 origin,
                        bool transpose) {
    ulong row = matrix_row(backend::lane());
    ulong column = matrix_column(backend::lane());
    if (!transpose) {
        auto pair = backend::load_pair(source + ((origin.y + row) * elements_per_row + origin.x + column));
        m.elements[0] = (T)pair[0];
        m.elements[1] = (T)pair[1];
        return;
    }
    for (uint i = 0; i < 2; i++) {
        m.elements[i] = source[(origin.y + column + i) * elements_per_row + origin.x + row];
    }
}

template <typename T, typename Pointer>
inline void store_matrix(metal::simdgroup_matrix<T, 8, 8> m, Pointer destination, ulong elements_per_row, ulong2 origin,
                         bool transpose) {
    ulong row = matrix_row(backend::lane());
    ulong column = matrix_column(backend::lane());
    if (!transpose) {
        backend::store_pair(destination + ((origin.y + row) * elements_per_row + origin.x + column), m.elements[0],
                            m.elements[1]);
        return;
    }
    for (uint i = 0; i < 2; i++) {
        destination[(origin.y + column + i) * elements_per_row + origin.x + row] = m.elements[i];
    }
}

} // namespace akunu

namespace metal {

// A matrix of T comes from `device` or `threadgroup` memory of T: no other type is converted, no other memory is read.
#define AKUNU_MATRIX_MEMORY(SPACE, IS_DEVICE)                                                                       \
    template <typename T>                                                                                           \
    inline void simdgroup_load(simdgroup_matrix<T, 8, 8> &m, const SPACE T *source, ulong elements_per_row = 8,     \
                               ulong2 origin = 0, bool transpose = false) {                                         \
        akunu::load_matrix(m, source, elements_per_row, origin, transpose);                                         \
    }                                                                                                               \
    template <typename T>                                                                                           \
    inline void simdgroup_store(simdgroup_matrix<T, 8, 8> m, SPACE T *destination, ulong elements_per_row = 8,      \
                                ulong2 origin = 0, bool transpose = false) {                                        \
        akunu::store_matrix(m, destination, elements_per_row, origin, transpose);                                   \
    }

AKUNU_EACH_MEMORY(AKUNU_MATRIX_MEMORY)

// d = a × b + c, accumulated in float and rounded once to d's type, which is that of c.
template <typename D, typename A, typename B>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                                          simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<D, 8, 8> c,
                                          AKUNU_SITE) {
    float2 sum = {(float)c.elements[0], (float)c.elements[1]};
    float2 left = {(float)a.elements[0], (float)a.elements[1]};
    float2 right = {(float)b.elements[0], (float)b.elements[1]};
    sum = akunu::backend::multiply_accumulate(left, right, sum, AKUNU_HERE);
    d.elements[0] = (D)sum[0];
    d.elements[1] = (D)sum[1];
}

template <typename D, typename A, typename B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8> &d, simdgroup_matrix<A, 8, 8> a,
                               simdgroup_matrix<B, 8, 8> b, AKUNU_SITE) {
    simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>((D)0), AKUNU_HERE);
}

template <typename T>
inline simdgroup_matrix<T, 8, 8> operator*(simdgroup_matrix<T, 8, 8> a, simdgroup_matrix<T, 8, 8> b) {
    simdgroup_matrix<T, 8, 8> d;
    simdgroup_multiply(d, a, b);
    return d;
}

} // namespace metal
