//! The fixture kernels compile to PTX; what MSL forbids does not.

mod support;

use akunu_kernels::flatten::flatten;
use akunu_kernels::plan::Params;
use akunu_sim::{ConstantValue, SimError, Toolchain, ptx};
use std::path::Path;

#[test]
fn every_fixture_compiles_and_an_unchanged_one_is_not_built_again() {
    let toolchain = Toolchain::find().unwrap();
    let output = tempfile::tempdir().unwrap();
    let mut n_params = 0;
    for built in [true, false] {
        let files = ptx::compile_folder(&toolchain, &support::kernels(), output.path()).unwrap();
        assert!(files.len() >= 3);
        for file in files {
            let path = file.result.unwrap_or_else(|error| panic!("{error}"));
            let text = std::fs::read_to_string(path).unwrap();
            assert_eq!(
                text.matches(".entry").count(),
                file.kernels,
                "{}",
                file.file
            );
            // A launch passes the params in so many bytes, whatever the kernel.
            let params = format!("[{}]", Params::CAPACITY);
            let arguments = text.split(".param").filter(|it| it.contains(".b8"));
            for argument in arguments.filter(|it| it.trim_start().starts_with(".align")) {
                assert!(argument.contains(&params), "{}: {argument}", file.file);
                n_params += 1;
            }
            assert_eq!(file.built, built, "{}", file.file);
        }
    }
    assert!(n_params > 0, "no fixture has params");
}

#[test]
fn function_constants_are_compiled_in() {
    let toolchain = Toolchain::find().unwrap();
    let output = tempfile::tempdir().unwrap();
    let source = flatten(&support::kernels(), "faults.metal").unwrap();
    let text = |constants: &[(u32, ConstantValue)]| {
        let made = ptx::compile(&toolchain, &source, constants, output.path()).unwrap();
        std::fs::read_to_string(made.path).unwrap()
    };
    assert!(!text(&[]).contains("424242"));
    assert!(text(&[(9, ConstantValue::U32(424_242))]).contains("424242"));
}

#[test]
fn a_pointer_in_the_wrong_address_space_does_not_compile() {
    let toolchain = Toolchain::find().unwrap();
    let output = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    for file in ["address_space.metal", "constant_space.metal"] {
        let source = flatten(&folder, file).unwrap();
        let error = ptx::compile(&toolchain, &source, &[], output.path()).unwrap_err();
        let SimError::Compile { messages, .. } = error else {
            panic!("{error}");
        };
        assert!(messages.contains(&format!("{file}:11:")), "{messages}");
        assert!(
            messages.contains("no matching function for call to 'first'"),
            "{messages}"
        );
    }
}

/// Matrices and atomics lie in `device` and `threadgroup` memory only, and atomic floats in `device` memory. Planted: each
/// in memory of another kind.
#[test]
fn matrices_and_atomics_are_refused_in_other_memory() {
    let toolchain = Toolchain::find().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let said = |statements: &str| {
        let text = format!(
            "#include <metal_stdlib>\nusing namespace metal;\n\
             kernel void k(constant float *c [[buffer(0)]], device float *y [[buffer(1)]]) {{\n\
             threadgroup float shared[64];\nthreadgroup atomic_float total;\n\
             float own[64] = {{ 0.0f }};\nsimdgroup_float8x8 m = simdgroup_float8x8(1.0f);\n{statements}\n}}\n"
        );
        std::fs::write(folder.path().join("k.metal"), text).unwrap();
        let source = flatten(folder.path(), "k.metal").unwrap();
        let made = ptx::compile(&toolchain, &source, &[], folder.path());
        made.err().map(|error| error.to_string())
    };
    let right = "simdgroup_load(m, shared); simdgroup_store(m, y); \
                 atomic_store_explicit((device atomic_float *)y, 1.0f, memory_order_relaxed);";
    assert_eq!(said(right), None);
    let planted = [
        (
            "simdgroup_load(m, c); simdgroup_store(m, y);",
            "simdgroup_load",
        ),
        (
            "simdgroup_load(m, own); simdgroup_store(m, y);",
            "simdgroup_load",
        ),
        ("simdgroup_store(m, own); y[0] = own[0];", "simdgroup_store"),
        (
            "atomic_fetch_add_explicit(&total, 1.0f, memory_order_relaxed);",
            "atomic_fetch_add_explicit",
        ),
        (
            "y[0] = float(atomic_load_explicit((constant atomic_uint *)c, memory_order_relaxed));",
            "atomic_load_explicit",
        ),
    ];
    for (statements, function) in planted {
        let said = said(statements).unwrap_or_default();
        let expected = format!("no matching function for call to '{function}'");
        assert!(said.contains(&expected), "{statements}: {said}");
    }
}
