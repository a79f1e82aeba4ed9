// Small column-major matrices in thread memory: `half4x4 m; m[column][row]`.
#pragma once

namespace metal {

template <typename T, int Columns, int Rows> struct matrix {
    typedef vec<T, Rows> column;
    column columns[Columns];

    matrix() = default;
    explicit matrix(T diagonal) {
        for (int c = 0; c < Columns; c++) {
            for (int r = 0; r < Rows; r++) columns[c][r] = c == r ? diagonal : (T)0;
        }
    }
    column &operator[](int c) { return columns[c]; }
    const column &operator[](int c) const { return columns[c]; }
};

template <typename T, int C, int R> inline vec<T, R> operator*(const matrix<T, C, R> &m, vec<T, C> v) {
    vec<T, R> sum = m[0] * v[0];
    for (int c = 1; c < C; c++) sum += m[c] * v[c];
    return sum;
}
template <typename T, int C, int R> inline matrix<T, C, R> operator*(const matrix<T, C, R> &m, T scale) {
    matrix<T, C, R> out;
    for (int c = 0; c < C; c++) out[c] = m[c] * scale;
    return out;
}

#define AKUNU_MATRICES(T)          \
    typedef matrix<T, 2, 2> T##2x2; \
    typedef matrix<T, 2, 4> T##2x4; \
    typedef matrix<T, 3, 3> T##3x3; \
    typedef matrix<T, 4, 2> T##4x2; \
    typedef matrix<T, 4, 4> T##4x4;

AKUNU_MATRICES(float)
AKUNU_MATRICES(half)
AKUNU_MATRICES(bfloat)

} // namespace metal
