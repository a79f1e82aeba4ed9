//! Kernels that rely on separate rounding or on denormal numbers, which no GPU promises, are found by the fused run. All
//! kernels are run so by `cargo xtask kernels --fused`; here are some whose files compile quickly.

use crate::planted_faults::{Fault, broken_copy, root, row};
use akunu_sim::table::run_case;
use akunu_sim::{Schedule, Simulator};
use std::path::Path;

/// The first complaint about a kernel.
fn complaint(simulator: &Simulator, kernel: &str) -> Option<String> {
    let row = row(kernel);
    let cases = (row.cases)(row.dtype);
    let run = |case| run_case(simulator, &row, case, Schedule::Ascending).err();
    cases.iter().find_map(run).map(|error| error.to_string())
}

fn fused(kernels: &Path) -> Simulator {
    Simulator::fused(kernels, &root().join("target/shaders/fused")).expect("clang is there")
}

/// A number that is taken for zero if it is flushed, and one that is zero only if a product is rounded before it is
/// subtracted from. Both kernels are right where everything is rounded by itself.
const RELYING: [Fault; 2] = [
    Fault {
        what: "denormal numbers",
        file: "norm/rmsnorm.metal",
        right: "const float inverse = inverse_rms(square, dim, params.eps);",
        wrong: "const float once = inverse_rms(square, dim, params.eps);\n    \
                const float inverse = once * 1e-37f > 0.0f ? once : 0.0f;",
        kernel: "rmsnorm_f32",
    },
    Fault {
        what: "separate rounding",
        file: "norm/rmsnorm.metal",
        right: "const float inverse = inverse_rms(square, dim, params.eps);",
        wrong: "const float once = inverse_rms(square, dim, params.eps);\n    \
                const float rounded = simd_broadcast_first(once * once);\n    \
                const float inverse = once + 1e6f * ((once + once) * once - 2.0f * rounded);",
        kernel: "rmsnorm_f32",
    },
];

/// Fails when fused libraries are compiled as the others are, or denormal numbers are not flushed: then nothing is found.
#[test]
fn what_relies_on_rounding_is_found_by_the_fused_run_only() {
    for fault in &RELYING {
        let copy = broken_copy(fault);
        let cache = root().join("target/shaders/planted");
        let plain = Simulator::new(copy.path(), &cache).expect("clang is there");
        assert_eq!(complaint(&plain, fault.kernel), None, "{}", fault.what);
        let found = complaint(&fused(copy.path()), fault.kernel);
        assert!(found.is_some(), "{} are relied on", fault.what);
    }
}

/// Fails when one of these kernels does not hold its tolerances in the fused run.
#[test]
fn some_kernels_hold_their_tolerances_fused() {
    let simulator = fused(&root().join("kernels"));
    for kernel in [
        "rmsnorm_f32",
        "layernorm_f32",
        "rope_neox_f32",
        "silu_gate_f32",
    ] {
        assert_eq!(complaint(&simulator, kernel), None, "{kernel}");
    }
}
