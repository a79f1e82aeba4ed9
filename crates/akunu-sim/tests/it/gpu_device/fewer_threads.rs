//! Pipelines that allow few threads, as those of Metal's shader validation do: launches become smaller, and give the same.

use akunu_kernels::case::{Case, run_on};
use akunu_kernels::{ChipConfig, KernelId};
use akunu_sim::{Schedule, SimBackend, SimDevice};
use akunu_types::DType;

use super::simulator;

/// What the tiles of products and of prefill attention need.
const LIMIT: u32 = 128;

/// Cases of a kernel: the simulator takes minutes for all of them.
const CASES: usize = 6;

/// Kernels with a thread for each element or pair of a head, which a larger head cannot do without.
const A_THREAD_AN_ELEMENT: [KernelId; 2] = [
    KernelId::FlashAttentionDecode,
    KernelId::FlashAttentionSinks,
];

/// Whether a kernel stands for itself, or for the formats that it is compiled in.
fn is_one_of_its_kind(kernel: KernelId) -> bool {
    let row = kernel.row();
    row.family.is_metal() && row.dtype.is_none_or(|dtype| dtype == DType::Q4_0)
}

/// Fails when a kernel counts on as many threads as it usually has, or is launched with more than its pipeline allows.
#[test]
fn every_launch_shrinks_to_what_its_pipeline_allows() {
    let chip = ChipConfig::m1();
    let few = ChipConfig {
        max_threads: LIMIT,
        ..chip.clone()
    };
    let backend = SimBackend::with_thread_limit(simulator(), Schedule::Ascending, LIMIT);
    let mut device = SimDevice::over(backend, chip.clone());
    let (mut n_shrunk, mut wrong) = (0, Vec::new());
    for kernel in KernelId::all()
        .into_iter()
        .filter(|&k| is_one_of_its_kind(k))
    {
        let row = kernel.row();
        let threads = |case: &Case, chip: &ChipConfig| {
            let args = row.args(case.params.as_bytes(), &case.constants);
            (row.launch)(&args, chip).n_threads()
        };
        let cases = (row.cases)(row.dtype).into_iter();
        let large = cases.filter(|case| threads(case, &chip) > LIMIT.into());
        for case in large.take(CASES) {
            n_shrunk += 1;
            let ran = run_on(&mut device, kernel, &case);
            let cannot =
                threads(&case, &few) > LIMIT.into() && A_THREAD_AN_ELEMENT.contains(&kernel);
            match (ran, cannot) {
                (Ok(_), false) | (Err(_), true) => {}
                (Ok(_), true) => wrong.push(format!("{} {}: it ran", row.name(), case.label)),
                (Err(error), false) => {
                    wrong.push(format!("{} {}: {error}", row.name(), case.label));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_shrunk > 60, "{n_shrunk} cases");
}
