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
