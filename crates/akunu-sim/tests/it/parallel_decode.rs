//! The parallel attention kernel with fewer SIMD groups than it would like: a pipeline may allow fewer
//! than 1024 threads.

use std::path::Path;

use akunu_kernels::table::{Args, KernelRow, Launch};
use akunu_kernels::{ChipConfig, KernelId};
use akunu_sim::table::run_case;
use akunu_sim::{Schedule, Simulator};

/// The launch for a chip that allows `N` threads.
fn launch<const N: u32>(args: &Args, chip: &ChipConfig) -> Launch {
    let small = ChipConfig {
        max_threads: N,
        ..chip.clone()
    };
    (KernelId::FlashAttentionDecodeParallel.row().launch)(args, &small)
}

fn with_threads<const N: u32>() -> KernelRow {
    KernelRow {
        launch: launch::<N>,
        ..KernelId::FlashAttentionDecodeParallel.row()
    }
}

/// A kernel that counts on 32 streams would sum what no SIMD group wrote.
#[test]
fn any_number_of_simd_groups_gives_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"))
        .expect("clang is there");
    for row in [
        with_threads::<32>(),
        with_threads::<96>(),
        with_threads::<448>(),
    ] {
        for case in (row.cases)(None) {
            if let Err(error) = run_case(&simulator, &row, &case, Schedule::EACH[0]) {
                panic!("{error}");
            }
        }
    }
}
