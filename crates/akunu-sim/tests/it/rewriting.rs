//! What the rewriter makes of MSL that C++ would read differently.

use akunu_kernels::flatten::FlatSource;
use akunu_sim::rewrite::{Target, rewrite};

fn source(text: &str) -> FlatSource {
    FlatSource {
        file: "k.metal".to_owned(),
        text: format!("#line 1 \"k.metal\"\n{text}\n"),
    }
}

#[track_caller]
fn rewritten(text: &str, target: Target) -> String {
    rewrite(&source(text), target, &[])
        .unwrap_or_else(|error| panic!("{error}"))
        .text
}

/// Fails if a constructor is missed, or something that is none is taken for one.
#[test]
fn constructors_of_vectors_and_only_those() {
    let cases = [
        ("x = float4(a, b);", "x = akunu::make<float4>(a, b);"),
        ("x = metal::half2(1);", "x = akunu::make<half2>(1);"),
        ("x = vec<T, 4>(a);", "x = akunu::make<vec<T, 4>>(a);"),
        ("x = static_cast<int4>(v);", "x = akunu::make<int4>(v);"),
        (
            "template <typename T> T f() { return T(1); }",
            "{ return akunu::make<T>(1); }",
        ),
        (
            "using v_t = vec<half, 4>; v_t f() { return v_t(1); }",
            "{ return akunu::make<v_t>(1); }",
        ),
        ("float4 f(float4 x);", "float4 f(float4 x);"),
        (
            "template <typename T, T (*F)(T)> struct S {};",
            "T (*F)(T)> struct S {};",
        ),
        ("void f(float4 (&tile)[8]);", "void f(float4 (&tile)[8]);"),
        ("x = sizeof(float4) * (n);", "x = sizeof(float4) * (n);"),
        ("x = float(y);", "x = float(y);"),
    ];
    for (before, after) in cases {
        let text = rewritten(before, Target::Simulator);
        assert!(text.contains(after), "{before}\nbecame\n{text}");
    }
}

#[test]
fn attributes_and_instantiations_leave_their_lines_behind() {
    let text = "template <typename T>\nkernel void f(device T *x [[buffer(0)]],\n uint t \
                [[thread_position_in_grid]]) { x[t] = 1; }\ntemplate [[host_name(\"f_u\")]]\n kernel \
                decltype(f<uint>) f<uint>;\nint after;";
    for target in [Target::Simulator, Target::Ptx] {
        let out = rewritten(text, target);
        assert!(!out.contains("[[buffer"), "{out}");
        let line = out.lines().position(|line| line == "int after;").unwrap();
        assert_eq!(line, 6, "{out}");
        assert!(
            out.contains("f<uint>(akunu::Pointer{AKUNU_BUFFER(0)}"),
            "{out}"
        );
    }
}

#[test]
fn threadgroup_variables_are_shared_and_pointers_are_not() {
    let text = "kernel void f(device float *y [[buffer(0)]]) {\n  threadgroup float a[4], b[2][N * 3];\n  \
                threadgroup simdgroup_matrix<half, 8, 8> m;\n  threadgroup float *p = a;\n}";
    let out = rewritten(text, Target::Simulator);
    assert!(out.contains("typedef float akunu_type_b[2][N*3];"), "{out}");
    assert!(
        out.contains("akunu_type_b &b = akunu::threadgroup_variable<akunu_type_b>(1);"),
        "{out}"
    );
    assert!(
        out.contains("typedef simdgroup_matrix<half, 8, 8> akunu_type_m;"),
        "{out}"
    );
    assert!(out.contains("threadgroup float *p = a;"), "{out}");
    let out = rewritten(text, Target::Ptx);
    assert!(
        out.contains("akunu_bytes_a[sizeof(akunu_type_a)];"),
        "{out}"
    );
}

#[test]
fn constants_computed_from_function_constants_are_computed_late() {
    let text = "constant uint FC_N [[function_constant(7)]];\nconstant bool WIDE = FC_N > 64;\nconstant bool \
                TWICE = WIDE && true;\nconstant float HALF = 0.5f;";
    let out = rewritten(text, Target::Simulator);
    for part in [
        "akunu::read_constant<uint>(0, \"FC_N\", __LINE__)",
        "static inline bool akunu_constant_WIDE() { return FC_N > 64; }",
        "#define WIDE akunu_constant_WIDE()",
        "static inline bool akunu_constant_TWICE() { return WIDE && true; }",
        "constant float HALF = 0.5f;",
    ] {
        assert!(out.contains(part), "`{part}` is not in\n{out}");
    }
    let given = rewrite(&source(text), Target::Ptx, &[(7, "128u".to_owned())])
        .unwrap()
        .text;
    assert!(
        given.contains("akunu_constant_FC_N() { return (uint)128u; }"),
        "{given}"
    );
}

#[test]
fn forms_that_would_mean_something_else_are_refused() {
    let cases = [
        (
            "void f() {\n float4 v = (float4)x; }",
            "k.metal:2: write `float4(x)` for the cast `(float4)x`",
        ),
        (
            "using v_t = vec<T, 4>; void f() { y = (v_t)(x); }",
            "write `v_t(x)` for the cast `(v_t)x`",
        ),
        (
            "void f() { threadgroup float a[4]; }",
            "declared in kernel functions only",
        ),
    ];
    for (text, message) in cases {
        let said = rewrite(&source(text), Target::Simulator, &[])
            .expect_err(text)
            .to_string();
        assert!(said.contains(message), "{said}");
    }
}

/// Fails if what only a Metal compiler would refuse gets through, or if MSL does not.
#[test]
fn cpp_that_is_not_msl_is_refused() {
    let cases = [
        (
            "void f(thread float *x) {\n double y = 1; }",
            "k.metal:2: MSL has no `double`",
        ),
        (
            "float f(const float *x) { return x[0]; }",
            "k.metal:1: `const float*x`: a pointer or reference needs",
        ),
        (
            "float f(int n, vec<float, 4> &x) { return n; }",
            "`vec<float, 4>&x`: a pointer",
        ),
        (
            "void f(device float *x) {\n  float *y = x; }",
            "k.metal:2: `float*y`: a pointer",
        ),
        (
            "void f(device float4 *x) {\n  const float4 &y = x[0]; }",
            "`const float4&y`: a pointer",
        ),
        (
            "struct S {\n  float *x;\n};",
            "k.metal:2: `float*x`: a pointer",
        ),
        (
            "void f(uint n) {\n  float a[4];\n  for (uint i = 0; i < n; i++) { a[i] = 0.0f; } }",
            "k.metal:3: `a[i]`: an array of a thread that is indexed at run time",
        ),
        (
            "kernel void f(uint lane [[thread_index_in_simdgroup]]) { float a[4]; a[lane % 4] = 0.0f; }",
            "`a[lane%4]`: an array of a thread",
        ),
        (
            "void f(thread float (&a)[4]) { uint n = 0; n++; a[n] = 0.0f; }",
            "`a[n]`: an array of a thread",
        ),
    ];
    for (text, message) in cases {
        let said = rewrite(&source(text), Target::Simulator, &[])
            .expect_err(text)
            .to_string();
        assert!(said.contains(message), "{said}");
    }
    for fine in [
        "void f(device const float *x, thread float (&y)[4]) { device const float &z = x[0]; y[0] = z * z; }",
        "template <typename T, void (*F)(device const T *, thread float4 &)> void f(device const T *x) { F(x); }",
        "float f(float x, float y) { x = y; if (x * y == x) { return x & y; } return x * y; }",
        "// double *x\n#define POINTER float *\nconstant float HALF = 0.5f;",
        "struct S { device float *x; };",
        "void f(uint n) { float a[4]; for (uint i = 0; i < 4; i++) { if (i < n) { a[i] = 0.0f; } } }",
        "template <uint N> void f(thread float (&a)[N], uint r) { for (uint i = r; i < 4; i++) {} a[2 * r + 1] = a[N - 1]; }",
        "void f(device float *x, uint n) { threadgroup_barrier(mem_flags::mem_none); x[n] = x[n + 1]; }",
        "void f() { auto x = 1; for (uint i = 0; i < 4 && x; i++) {} }",
    ] {
        rewrite(&source(fine), Target::Simulator, &[]).unwrap_or_else(|error| panic!("{error}"));
    }
}
