//! What the compiler refuses in kernels: C++ that is newer than MSL, and whatever it warns of.

use akunu_sim::Simulator;

/// What is said of a kernel with these statements.
fn complaint(statements: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "#include <metal_stdlib>\nusing namespace metal;\n\
         kernel void k(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {{\n{statements}\n}}\n"
    );
    std::fs::write(folder.path().join("k.metal"), text).expect("written");
    let simulator = Simulator::new(folder.path(), folder.path()).expect("clang is there");
    simulator.kernel("k").err().map(|error| error.to_string())
}

/// Planted, one for each: a feature of C++17, a value that nobody uses, a comparison of signed and unsigned numbers, a value
/// that may not be there.
#[test]
fn newer_cpp_and_warnings_are_refused() {
    assert_eq!(complaint("y[i] = 1.0f;"), None);
    let planted = [
        (
            "if constexpr (sizeof(float) == 4) { y[i] = 1.0f; }",
            "C++17",
        ),
        ("float unused = 2.0f; y[i] = 1.0f;", "unused variable"),
        ("int n = 3; y[i] = i < n ? 1.0f : 0.0f;", "different signs"),
        (
            "float x; if (i == 0) { x = 1.0f; } y[i] = x;",
            "uninitialized",
        ),
    ];
    for (statements, expected) in planted {
        let said = complaint(statements).unwrap_or_default();
        assert!(said.contains(expected), "{statements}: {said}");
        assert!(said.contains("k.metal:4"), "{said}");
    }
}

/// Planted, one for each function: a call that MSL does not have, which a template that takes anything would let pass.
#[test]
fn calls_that_msl_does_not_have_are_refused() {
    let right = "simdgroup_float8x8 m; simdgroup_half8x8 h = simdgroup_half8x8(half(1)); simdgroup_load(m, y); \
                 simdgroup_multiply_accumulate(m, h, m, m); simdgroup_store(m, y); \
                 device atomic_uint *a = (device atomic_uint *)y; \
                 atomic_fetch_max_explicit(a, i, memory_order_relaxed); \
                 y[i] = simd_shuffle(y[i], 3) + float(simd_or(i));";
    assert_eq!(complaint(right), None);
    let planted = [
        // Memory of another type than the matrix.
        (
            "simdgroup_half8x8 m; simdgroup_load(m, y);",
            "simdgroup_load",
        ),
        (
            "simdgroup_half8x8 m = simdgroup_half8x8(half(1)); simdgroup_store(m, y);",
            "simdgroup_store",
        ),
        // A sum of another type than what it is added to.
        (
            "simdgroup_half8x8 h = simdgroup_half8x8(half(1)); simdgroup_float8x8 m = simdgroup_float8x8(1.0f); \
             simdgroup_multiply_accumulate(m, h, h, h); simdgroup_store(m, y);",
            "simdgroup_multiply_accumulate",
        ),
        (
            "simdgroup_matrix<int, 8, 8> m; y[i] = float(m.thread_elements()[0]);",
            "half, bfloat or float",
        ),
        // What is no atomic, and atomics that have no such operation.
        (
            "atomic_store_explicit(y, 1.0f, memory_order_relaxed);",
            "atomic_store_explicit",
        ),
        (
            "struct Own { uint value; }; device Own *a = (device Own *)y; \
             atomic_fetch_add_explicit(a, 1u, memory_order_relaxed);",
            "atomic_fetch_add_explicit",
        ),
        (
            "device atomic_float *a = (device atomic_float *)y; \
             atomic_fetch_max_explicit(a, 1.0f, memory_order_relaxed);",
            "atomic_fetch_max_explicit",
        ),
        (
            "device atomic_ulong *a = (device atomic_ulong *)y; \
             atomic_fetch_add_explicit(a, 1ul, memory_order_relaxed);",
            "atomic_fetch_add_explicit",
        ),
        (
            "device atomic<short> *a = (device atomic<short> *)y; y[i] = sizeof(*a);",
            "no atomics",
        ),
        // What lanes do not hand each other.
        (
            "y[i] = simd_shuffle(i == 0, 3) ? 1.0f : 0.0f;",
            "simd_shuffle",
        ),
        (
            "y[i] = float(simd_shuffle_xor(ulong(i), 1));",
            "simd_shuffle_xor",
        ),
        (
            "struct Two { float a; float b; }; Two t = { 1.0f, 2.0f }; y[i] = simd_broadcast(t, 0).a;",
            "simd_broadcast",
        ),
        ("y[i] = float(simd_sum(ulong(i)));", "simd_sum"),
        ("y[i] = simd_or(y[i]);", "simd_or"),
        ("y[i] = float(quad_sum(i == 0));", "quad_sum"),
        (
            "y[i] = float(simd_prefix_exclusive_sum(ulong(i)));",
            "simd_prefix_exclusive_sum",
        ),
    ];
    for (statements, expected) in planted {
        let said = complaint(statements).unwrap_or_default();
        assert!(said.contains(expected), "{statements}: {said}");
    }
}
