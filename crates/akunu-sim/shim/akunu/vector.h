// Building and reinterpreting vectors.
//
// In MSL `float4(a, b)` converts values; in C++ a vector has no constructors, and a cast between vectors
// of one size keeps the bits. The rewriter therefore writes every constructor call `T(…)` as
// `akunu::make<T>(…)`.
#pragma once

namespace akunu {

template <typename V, typename A> inline void append(V &out, int &at, A value) {
    if constexpr (shape<A>::is_vector) {
        for (int i = 0; i < shape<A>::size; i++) out[at++] = (element_of<V>)value[i];
    } else {
        out[at++] = (element_of<V>)value;
    }
}

template <typename V> inline V make() { return V(); }

// From a vector element by element, from a scalar in every element, from a packed vector as it converts.
template <typename V, typename A> inline V convert(A value) {
    if constexpr (shape<A>::is_vector) {
        return __builtin_convertvector(value, V);
    } else if constexpr (__is_class(A)) {
        return (V)value;
    } else {
        return (V)(element_of<V>)value;
    }
}

template <typename V, typename... A> inline V make(A... values) {
    if constexpr (__is_aggregate(V) && !shape<V>::is_vector) {
        return V{values...};
    } else if constexpr (!shape<V>::is_vector) {
        return V(values...);
    } else if constexpr (sizeof...(A) == 1) {
        return convert<V>(values...);
    } else {
        static_assert((shape<A>::size + ...) == shape<V>::size, "as many values as the vector has");
        V out;
        int at = 0;
        (append(out, at, values), ...);
        return out;
    }
}

// f on each element.
template <typename T, typename F> inline T map(T x, F f) {
    if constexpr (shape<T>::is_vector) {
        T out;
        for (int i = 0; i < shape<T>::size; i++) out[i] = (element_of<T>)f(x[i]);
        return out;
    } else {
        return (T)f(x);
    }
}

template <typename T, typename F> inline T map(T x, T y, F f) {
    if constexpr (shape<T>::is_vector) {
        T out;
        for (int i = 0; i < shape<T>::size; i++) out[i] = (element_of<T>)f(x[i], y[i]);
        return out;
    } else {
        return (T)f(x, y);
    }
}

template <typename T, typename F> inline T map(T x, T y, T z, F f) {
    if constexpr (shape<T>::is_vector) {
        T out;
        for (int i = 0; i < shape<T>::size; i++) out[i] = (element_of<T>)f(x[i], y[i], z[i]);
        return out;
    } else {
        return (T)f(x, y, z);
    }
}

} // namespace akunu

// The same bits, as another type of the same size.
template <typename To, typename From> inline To as_type(From value) {
    static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
    return __builtin_bit_cast(To, value);
}
