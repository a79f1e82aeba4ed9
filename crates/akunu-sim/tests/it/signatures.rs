//! What the reader finds in MSL, and what it refuses, with file and line.

use crate::support;
use akunu_kernels::flatten::flatten;
use akunu_sim::msl::{AddressSpace, BufferAccess, Builtin, Kernel, ParameterKind, Unit, read};

fn unit(source: &str) -> Unit {
    read(&format!("#line 1 \"k.metal\"\n{source}")).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(source: &str) -> String {
    let error = read(&format!("#line 1 \"k.metal\"\n{source}")).expect_err("it must be refused");
    error.to_string()
}

fn builtins(kernel: &Kernel) -> Vec<(Builtin, &str)> {
    let kinds = kernel.parameters.iter().map(|parameter| &parameter.kind);
    kinds
        .filter_map(|kind| match kind {
            ParameterKind::Builtin { builtin, ty } => Some((*builtin, ty.as_str())),
            _ => None,
        })
        .collect()
}

#[test]
fn a_plain_kernel() {
    let unit = unit(
        "// kernel void not_this(device float *x [[buffer(0)]]) {}
         kernel void f(const device half4 *x [[buffer(2)]], device float *y [[ buffer(0) ]],
                       constant Params &p [[buffer(1)]], threadgroup half *tile [[threadgroup(3)]],
                       uint2 at [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {}",
    );
    let [kernel] = &unit.kernels[..] else {
        panic!("one kernel: {unit:?}");
    };
    assert_eq!(
        (kernel.name.as_str(), kernel.file.as_str(), kernel.line),
        ("f", "k.metal", 2)
    );
    let buffers: Vec<_> = kernel.buffers().collect();
    assert_eq!(
        buffers,
        [
            (2, "half4", AddressSpace::Device, BufferAccess::Read),
            (0, "float", AddressSpace::Device, BufferAccess::ReadWrite),
            (1, "Params", AddressSpace::Constant, BufferAccess::Read),
        ]
    );
    assert!(matches!(
        kernel.parameters[2].kind,
        ParameterKind::Buffer {
            reference: true,
            ..
        }
    ));
    assert_eq!(
        kernel.threadgroup_bindings().collect::<Vec<_>>(),
        [(3, "half")]
    );
    assert_eq!(
        builtins(kernel),
        [
            (Builtin::ThreadPositionInGrid, "uint2"),
            (Builtin::ThreadIndexInSimdgroup, "ushort")
        ]
    );
    assert!(!kernel.uses_device_atomics());
}

#[test]
fn the_three_forms_of_instantiation() {
    let unit = unit(
        "template <typename block_t, short N, typename T = half>
         [[kernel, max_total_threads_per_threadgroup(64)]]
         void f(device const block_t *w [[buffer(0)]], device vec<T, 4> *y [[buffer(1)]]) { if (N < 3) {} }
         template [[host_name(\"f_a\")]] [[kernel]] void f<block_q4_0, 2>(device const block_q4_0 *, device vec<half, 4> *);
         typedef decltype(f<block_q8_0, 4, float>) f_t;
         template [[host_name(\"f_b\")]] kernel f_t f<block_q8_0, 4, float>;
         template [[host_name(\"f_c\")]] kernel decltype(f<float, (1 > 0 ? 2 : 3)>) f<float, (1 > 0 ? 2 : 3)>;",
    );
    let rows: Vec<_> = unit
        .kernels
        .iter()
        .map(|kernel| {
            let elements: Vec<_> = kernel.buffers().map(|(_, element, ..)| element).collect();
            (
                kernel.name.as_str(),
                kernel.function.as_str(),
                elements.join(" | "),
                kernel.line,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (
                "f_a",
                "f<block_q4_0, 2>",
                "block_q4_0 | vec<half, 4>".to_owned(),
                4
            ),
            (
                "f_b",
                "f<block_q8_0, 4, float>",
                "block_q8_0 | vec<float, 4>".to_owned(),
                6
            ),
            (
                "f_c",
                "f<float, (1>0?2:3)>",
                "float | vec<half, 4>".to_owned(),
                7
            ),
        ]
    );
    assert!(
        unit.kernels
            .iter()
            .all(|kernel| kernel.max_threads == Some(64))
    );
}

#[test]
fn function_constants_and_atomics() {
    let unit = unit(
        "constant uint FC_DIM [[function_constant(3)]];
         constant bool FC_CAUSAL [[function_constant(17)]];
         constant bool WIDE = FC_DIM > 64;
         kernel void f(device atomic_uint *n [[buffer(0)]]) {}",
    );
    let constants: Vec<_> = unit
        .constants
        .iter()
        .map(|c| (c.name.as_str(), c.index, c.ty.as_str(), c.line))
        .collect();
    assert_eq!(
        constants,
        [("FC_DIM", 3, "uint", 1), ("FC_CAUSAL", 17, "bool", 2)]
    );
    assert!(unit.kernels[0].uses_device_atomics());
}

#[test]
fn includes_keep_their_own_lines() {
    let source = flatten(&support::kernels(), "gemv.metal").unwrap();
    let unit = read(&source.text).unwrap();
    let text = std::fs::read_to_string(support::kernels().join("gemv.metal")).unwrap();
    let line = text
        .lines()
        .position(|line| line.contains("host_name"))
        .unwrap() as u32
        + 1;
    assert_eq!(unit.kernels[0].name, "gemv_q4_0");
    assert_eq!(
        (unit.kernels[0].file.as_str(), unit.kernels[0].line),
        ("gemv.metal", line)
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    let cases = [
        (
            "\nkernel void f(device float *x) {}",
            "k.metal:2: `x`: a buffer parameter needs [[buffer(n)]]",
        ),
        (
            "kernel void f(device float *x [[buffer(N)]]) {}",
            "k.metal:1: buffer(N): write the index as a plain number",
        ),
        (
            "kernel void f(uint x [[thread_position_in_gird]]) {}",
            "`x`: not a buffer, a threadgroup pointer or a known built-in",
        ),
        (
            "kernel void f(threadgroup float *x) {}",
            "a pointer with [[threadgroup(n)]]",
        ),
        (
            "kernel void f(device float *x [[buffer(0)]]);",
            "a kernel needs a body",
        ),
        ("kernel int f() {}", "a kernel is `kernel void name(…)`"),
        (
            "kernel void f() {}\nkernel void f() {}",
            "k.metal:2: kernel `f` is already defined at k.metal:1",
        ),
        (
            "template [[host_name(\"g\")]] kernel void f<int>();",
            "no kernel template `f` in this source",
        ),
        ("template kernel void f<int>();", "needs [[host_name"),
        (
            "#define I(n) template [[host_name(n)]] kernel f_t f<int>;",
            "not in a macro",
        ),
        ("kernel void f(", "`(` is never closed"),
        (
            "constant uint A, B [[function_constant(1)]];",
            "write `constant TYPE NAME [[function_constant(n)]];`",
        ),
    ];
    for (source, message) in cases {
        let said = refused(source);
        assert!(said.contains(message), "{said}\nfor {source}");
    }
}
