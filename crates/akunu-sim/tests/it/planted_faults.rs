//! A deliberately broken kernel of each family is caught by the harness that all kernels pass.
//!
//! Each fault is one edit of a copy of the real sources: what a person could get wrong, and what a C++
//! compiler lets pass.

use std::fs;
use std::path::{Path, PathBuf};

use akunu_kernels::KernelId;
use akunu_kernels::table::KernelRow;
use akunu_sim::table::{check_signature, run_case};
use akunu_sim::{Schedule, Simulator};

/// One edit, and a kernel that it breaks.
pub struct Fault {
    pub what: &'static str,
    pub file: &'static str,
    pub right: &'static str,
    pub wrong: &'static str,
    pub kernel: &'static str,
}

const FAULTS: &[Fault] = &[
    Fault {
        what: "a dropped barrier",
        file: "include/reduce.h",
        right: "    threadgroup_barrier(mem_flags::mem_threadgroup);\n    const float total = simd_sum(",
        wrong: "    const float total = simd_sum(",
        kernel: "rmsnorm_f32",
    },
    Fault {
        what: "a swapped binding",
        file: "activation/gate.metal",
        right: "gate            [[buffer(0)]],\n    device const float *up              [[buffer(1)]]",
        wrong: "gate            [[buffer(1)]],\n    device const float *up              [[buffer(0)]]",
        kernel: "silu_gate_f32",
    },
    Fault {
        what: "an off-by-one tail",
        file: "include/elementwise.h",
        right: "for (uint i = first; i < count; ++i) {\n            y[i]",
        wrong: "for (uint i = first; i + 1 < count; ++i) {\n            y[i]",
        kernel: "silu_gate_f32",
    },
    Fault {
        what: "a wrong nibble order",
        file: "include/format/q4_0.h",
        right: "block->qs + 8 * (r % 2)) >> (4 * (r / 2))",
        wrong: "block->qs + 8 * (r % 2)) >> (4 - 4 * (r / 2))",
        kernel: "gemv_q4_0",
    },
    Fault {
        what: "tiles that are read before the last products have read theirs",
        file: "include/tensor_gemm.h",
        right: "            team_barrier<TEAM>();\n        }\n    }\n\n    // Adds the sums of the other teams",
        wrong: "        }\n    }\n\n    // Adds the sums of the other teams",
        kernel: "tensor_gemm_medium_q4_0",
    },
    Fault {
        what: "x that is copied to where asynchronous products still read",
        file: "include/async_gemm.h",
        right: "ahead % Step::QUADS, left_x_stage, bulk);",
        wrong: "ahead % Step::QUADS, x_stage, bulk);",
        kernel: "async_gemm_32_q4_0",
    },
    Fault {
        what: "sums that are read before their products are waited for",
        file: "include/async_gemm.h",
        right: "                    products.wait<0>(mine.sums[0]);",
        wrong: "                    products.wait<1>(mine.sums[0]);",
        kernel: "async_gemm_64_q8_0",
    },
    Fault {
        what: "a branch that sees the others",
        file: "include/attention_mask.h",
        right: " && !is_hidden;",
        wrong: ";",
        kernel: "flash_attention_decode_fast_f16",
    },
    Fault {
        what: "a wrong lane layout",
        file: "include/attention_tile.h",
        right: "return value + simd_shuffle_xor(value, 8);",
        wrong: "return value + simd_shuffle_xor(value, 2);",
        kernel: "flash_attention_prefill_v2_f16",
    },
    Fault {
        what: "a rotation in the wrong direction",
        file: "include/rope.h",
        right: "x.x * cosine - x.y * sine, x.x * sine + x.y * cosine",
        wrong: "x.x * cosine + x.y * sine, x.y * cosine - x.x * sine",
        kernel: "rope_neox_f32",
    },
    Fault {
        what: "pages without the table",
        file: "include/pages.h",
        right: "ulong(pages[slot >> page_shift])",
        wrong: "ulong(slot >> page_shift)",
        kernel: "kv_shift_f16",
    },
    Fault {
        what: "a key stored at its position",
        file: "rope/rope_store.metal",
        right: ".at(row.slot)",
        wrong: ".at(row.position)",
        kernel: "rope_store_f16",
    },
    Fault {
        what: "an idle row that attends",
        file: "include/attention_mask.h",
        right: "is_active(row) ? row.length : 0",
        wrong: "row.length",
        kernel: "flash_attention_decode_f16",
    },
    Fault {
        what: "a tile that reads beyond the last key",
        file: "include/attention_tile.h",
        right: "first.after(min(i, n_keys - 1), head_dim)",
        wrong: "first.after(i, head_dim)",
        kernel: "flash_attention_prefill_f16",
    },
    Fault {
        what: "a window that begins a key too late",
        file: "include/attention_mask.h",
        right: "n_before > WINDOW ? n_before - WINDOW : 0",
        wrong: "n_before >= WINDOW ? n_before - WINDOW + 1 : 0",
        kernel: "flash_attention_decode_fast_f16",
    },
    Fault {
        what: "a group of experts that counts by its best alone",
        file: "experts/route_experts.metal",
        right: "sum = best + second;",
        wrong: "sum = best;",
        kernel: "route_experts_f32",
    },
    Fault {
        what: "a row of another expert's matrix",
        file: "include/experts.h",
        right: "return { expert * params.stride,",
        wrong: "return { expert * params.N,",
        kernel: "expert_down_q4_0",
    },
    Fault {
        what: "results of an expert among those of the ones before",
        file: "experts/sort_experts.metal",
        right: "uint place = first + own.x;",
        wrong: "uint place = own.x;",
        kernel: "sort_experts_u32",
    },
    Fault {
        what: "a grouped result that is stored where it was sorted to",
        file: "include/expert_gemm.h",
        right: "y[ulong(result_at(order, tile, place, params)) *",
        wrong: "y[ulong(tile.first + place) *",
        kernel: "expert_gemm_small_q4_0",
    },
    Fault {
        what: "a state that is not stored where the next row writes another",
        file: "include/states.h",
        right: "state_to(rows[next], n_blocks) == to ?",
        wrong: "true ?",
        kernel: "short_conv_f32",
    },
    Fault {
        what: "a state that is loaded though it was not stored",
        file: "state/delta_rule.metal",
        right: "from == NO_STATE || from != held",
        wrong: "true",
        kernel: "delta_rule_f32",
    },
    Fault {
        what: "groups that take turns",
        file: "state/ssd.metal",
        right: "head / (n_heads / params.groups) * size",
        wrong: "head % params.groups * size",
        kernel: "ssd_f32",
    },
    Fault {
        what: "a history that does not begin again",
        file: "include/choice.h",
        right: "row.length % history_stride",
        wrong: "min(row.length, history_stride - 1)",
        kernel: "draw_f32",
    },
    Fault {
        what: "a carry that is forgotten",
        file: "include/candidates.h",
        right: "before > KEY_MAX - of_low ? 1 : 0",
        wrong: "0",
        kernel: "draw_f32",
    },
    Fault {
        what: "a token that is penalised twice",
        file: "sampling/penalties.metal",
        right: "if (recent.back(j) == id) {\n            return 0;",
        wrong: "if (recent.back(j) == id && j + 5 < i) {\n            return 0;",
        kernel: "penalties_f32",
    },
    Fault {
        what: "a tie won by the last",
        file: "include/choice.h",
        right: "value == best.value && place < best.place",
        wrong: "value == best.value && place > best.place",
        kernel: "argmax_f32",
    },
    Fault {
        what: "an id beyond the table",
        file: "embedding/embedding_lookup.metal",
        right: "min(token[at.y], layout.n_rows - 1)",
        wrong: "token[at.y]",
        kernel: "embedding_lookup_q8_0",
    },
    Fault {
        what: "a forgotten offset",
        file: "include/format/q4_0.h",
        right: "-24.0f * d };\n    }\n};\n\ntypedef",
        wrong: "-23.0f * d };\n    }\n};\n\ntypedef",
        kernel: "embedding_lookup_q4_0",
    },
    Fault {
        what: "the sum of one SIMD group alone",
        file: "include/norm_gemv.h",
        right: "sum += shares[s * STRIDE + which];",
        wrong: "sum = shares[s * STRIDE + which];",
        kernel: "norm_gemv_q8_0",
    },
    Fault {
        what: "a bias whose last element is left out",
        file: "common/bias_add.metal",
        right: "c < min(first + 4, cols)",
        wrong: "c + 1 < min(first + 4, cols)",
        kernel: "bias_add_f32",
    },
    Fault {
        what: "a row that does not end with zeros",
        file: "convert/half_rows.metal",
        right: "= i < params.cols ? half(",
        wrong: "= i <= params.cols ? half(",
        kernel: "half_rows_f32",
    },
    Fault {
        what: "a copy that nobody has waited for",
        file: "include/decode_gemm.h",
        right: "copies.wait<STAGES - 1>();",
        wrong: "copies.wait<STAGES>();",
        kernel: "decode_gemm_q4_0",
    },
    Fault {
        what: "outputs that the weight does not have",
        file: "include/lane_sums.h",
        right: "if (output(j, lower) < n_outputs) {\n                                to[",
        wrong: "if (output(j, 0) < n_outputs) {\n                                to[",
        kernel: "decode_gemm_q8_0",
    },
    Fault {
        what: "a quad of x that nobody has waited for",
        file: "include/shared_gemm.h",
        right: "copies.wait<X_AHEAD - 1>();",
        wrong: "copies.wait<X_AHEAD>();",
        kernel: "decode_gemm_wide_q4_0",
    },
    Fault {
        what: "a part that is added twice",
        file: "include/shared_sums.h",
        right: "all + part * part_stride",
        wrong: "all + part / 2 * part_stride",
        kernel: "decode_gemm_widest_q4_k",
    },
    Fault {
        what: "the first row's queries for every row",
        file: "nvidia/decode_attention.metal",
        right: "q + (first_head + batch.first_head",
        wrong: "q + (batch.first_head",
        kernel: "decode_attention_f16",
    },
    Fault {
        what: "a query less the centre of the keys",
        file: "include/own_heads.h",
        right: "changed.subtract(centre, is_key);",
        wrong: "changed.subtract(centre, is_query);",
        kernel: "decode_attention_f16",
    },
    Fault {
        what: "a moved key without its centre",
        file: "kv_cache/kv_shift.metal",
        right: "rotation.apply(stored + centre_of_pair) - centre_of_pair",
        wrong: "rotation.apply(stored)",
        kernel: "kv_shift_neox_f16",
    },
    Fault {
        what: "a row of halves in the place of another row of its tile",
        file: "nvidia/decode_attention.metal",
        right: "factors + row_index, in_tile, params.order",
        wrong: "factors + row_index, in_tile / 2, params.order",
        kernel: "decode_attention_neox_f16",
    },
    Fault {
        what: "keys of an encoder read as those of another sequence",
        file: "attention/row_attention.metal",
        right: "uint2(row.sequence * params.n_keys, params.n_keys)",
        wrong: "uint2(0, params.n_keys)",
        kernel: "cross_attention_f16",
    },
    Fault {
        what: "rows beyond the reach",
        file: "attention/row_attention.metal",
        right: "behind = min(row.length - 1 - row.position, reach)",
        wrong: "behind = row.length - 1 - row.position",
        kernel: "row_attention_f32",
    },
    Fault {
        what: "the bias of the opposite distance",
        file: "attention/row_attention.metal",
        right: "clamp(int(at - key), -reach, reach)",
        wrong: "clamp(int(key - at), -reach, reach)",
        kernel: "row_attention_bias_f32",
    },
    Fault {
        what: "halves whose last ones are left out",
        file: "convert/halves.metal",
        right: "i < params.count",
        wrong: "i + 1 < params.count",
        kernel: "halves_f32",
    },
];

/// Barriers that name the wrong memory. Everything meets where it should, so that no order of threads shows them; the schedule
/// that delays stores does.
const WRONG_MEMORY: &[Fault] = &[
    Fault {
        what: "a barrier for device memory before threadgroup memory is read",
        file: "include/reduce.h",
        right: "    threadgroup_barrier(mem_flags::mem_threadgroup);\n    const float total = simd_sum(",
        wrong: "    threadgroup_barrier(mem_flags::mem_device);\n    const float total = simd_sum(",
        kernel: "rmsnorm_f32",
    },
    Fault {
        what: "a barrier for threadgroup memory before device memory is read",
        file: "sampling/penalties.metal",
        right: "        threadgroup_barrier(mem_flags::mem_device);\n",
        wrong: "        threadgroup_barrier(mem_flags::mem_threadgroup);\n",
        kernel: "penalties_f32",
    },
    Fault {
        what: "a barrier that orders no memory",
        file: "include/choice.h",
        right: "    threadgroup_barrier(mem_flags::mem_threadgroup);\n    Candidate other",
        wrong: "    threadgroup_barrier(mem_flags::mem_none);\n    Candidate other",
        kernel: "argmax_f32",
    },
    Fault {
        what: "a barrier of a SIMD group for the wrong memory",
        file: "include/dot_spans.h",
        right: "        simdgroup_barrier(mem_flags::mem_threadgroup);\n        if (at.lane < count)",
        wrong: "        simdgroup_barrier(mem_flags::mem_device);\n        if (at.lane < count)",
        kernel: "norm_gemv_q8_0",
    },
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A simulator of a broken copy, with the broken kernel alone.
fn broken(fault: &Fault) -> Simulator {
    let copy = broken_copy(fault);
    let simulator = Simulator::new(copy.path(), &root().join("target/shaders/planted"));
    simulator.expect("clang is there").only(&[fault.kernel])
}

/// A copy of the kernels with one edit.
pub fn broken_copy(fault: &Fault) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_folder(&root().join("kernels"), copy.path());
    let path = copy.path().join(fault.file);
    let source = fs::read_to_string(&path).expect("the file is there");
    let places = source.matches(fault.right).count();
    assert_eq!(
        places, 1,
        "{}: the place to break in {} is gone",
        fault.what, fault.file
    );
    fs::write(&path, source.replace(fault.right, fault.wrong)).expect("written");
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

pub fn row(name: &str) -> KernelRow {
    let rows = KernelId::all().into_iter().map(KernelId::row);
    rows.into_iter()
        .find(|row| row.name() == name)
        .expect("the kernel is in the table")
}

/// The first complaint of the harness about a kernel.
fn complaint(simulator: &Simulator, row: &KernelRow) -> Option<String> {
    if let Err(error) = check_signature(simulator, row) {
        return Some(error.to_string());
    }
    complaint_in(&Schedule::EACH, simulator, row)
}

/// The first complaint in these schedules.
fn complaint_in(schedules: &[Schedule], simulator: &Simulator, row: &KernelRow) -> Option<String> {
    let cases = (row.cases)(row.dtype);
    let runs = cases
        .iter()
        .flat_map(|case| schedules.iter().map(move |&schedule| (case, schedule)));
    runs.into_iter().find_map(|(case, schedule)| {
        run_case(simulator, row, case, schedule)
            .err()
            .map(|error| error.to_string())
    })
}

#[test]
fn each_planted_fault_is_caught() {
    for fault in FAULTS {
        let complaint = complaint(&broken(fault), &row(fault.kernel));
        assert!(
            complaint.is_some(),
            "{} in {} is not seen",
            fault.what,
            fault.kernel
        );
    }
}

/// Fails when barriers order more than their flags name, or when these faults are seen in other ways too and show nothing.
#[test]
fn a_barrier_that_names_the_wrong_memory_is_caught_by_delayed_stores() {
    let orders = [
        Schedule::Ascending,
        Schedule::Descending,
        Schedule::Random(1),
    ];
    for fault in WRONG_MEMORY {
        let simulator = broken(fault);
        let row = row(fault.kernel);
        let seen = complaint_in(&orders, &simulator, &row);
        assert_eq!(seen, None, "{}", fault.what);
        let seen = complaint_in(&[Schedule::Delayed(1)], &simulator, &row);
        assert!(
            seen.is_some(),
            "{} in {} is not seen",
            fault.what,
            fault.kernel
        );
    }
}

/// The harness is not simply always unhappy: the same kernels pass without an edit.
#[test]
fn the_same_kernels_pass_unbroken() {
    let root = root();
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"));
    let simulator = simulator.expect("clang is there");
    for fault in FAULTS.iter().chain(WRONG_MEMORY) {
        assert_eq!(
            complaint(&simulator, &row(fault.kernel)),
            None,
            "{}",
            fault.kernel
        );
    }
}

/// Every family has a fault of its own.
#[test]
fn no_family_is_spared() {
    let broken: Vec<_> = FAULTS
        .iter()
        .map(|fault| row(fault.kernel).family)
        .collect();
    let families = KernelId::all().into_iter().map(|id| id.row().family);
    let spared: Vec<_> = families.filter(|family| !broken.contains(family)).collect();
    assert!(spared.is_empty(), "{spared:?}");
}
