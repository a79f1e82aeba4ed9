//! Every kernel of the table in the simulator: signatures, results and independence of the schedule.

use std::path::Path;
use std::sync::LazyLock;

use akunu_kernels::KernelId;
use akunu_kernels::table::{Family, KernelRow};
use akunu_sim::table::{check_signature, run_case};
use akunu_sim::{Schedule, Simulator};

/// One simulator for all tests: each `.metal` file is compiled once.
static SIMULATOR: LazyLock<Simulator> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim")).expect("clang is there")
});

fn rows(family: Family) -> Vec<KernelRow> {
    KernelId::all()
        .into_iter()
        .map(KernelId::row)
        .filter(|row| row.family == family)
        .collect()
}

/// Runs every case of a family in every schedule, and reports all failures, not only the first.
fn check_family(family: Family) {
    let mut failures = Vec::new();
    for row in rows(family) {
        let cases = (row.cases)(row.dtype);
        assert!(!cases.is_empty(), "{} has no cases", row.name());
        for case in &cases {
            for schedule in Schedule::EACH {
                if let Err(error) = run_case(&SIMULATOR, &row, case, schedule) {
                    failures.push(format!("{schedule}: {error}"));
                }
            }
        }
    }
    let shown: Vec<_> = failures.iter().take(20).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        shown.join("\n")
    );
}

#[test]
fn every_source_can_be_read() {
    assert_eq!(SIMULATOR.unread(), &[] as &[String]);
}

/// Binding parity: index, type, access, params and constants of the source are those of the table.
#[test]
fn signatures_are_those_of_the_table() {
    let rows = KernelId::all().into_iter().map(KernelId::row);
    let failures: Vec<String> = rows
        .filter_map(|row| check_signature(&SIMULATOR, &row).err())
        .map(|error| error.to_string())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_kernel_of_the_sources_is_in_the_table() {
    let known: Vec<String> = KernelId::all()
        .into_iter()
        .map(|id| id.row().name())
        .collect();
    let unknown: Vec<&str> = SIMULATOR
        .kernels()
        .map(|kernel| kernel.name.as_str())
        .filter(|name| !known.iter().any(|known| known == name))
        .collect();
    assert!(unknown.is_empty(), "kernels without a row: {unknown:?}");
}

macro_rules! families {
    ($($name:ident => $family:ident,)*) => {
        $(#[test]
        fn $name() {
            check_family(Family::$family);
        })*

        #[test]
        fn no_family_is_left_out() {
            let tested = [$(Family::$family),*];
            let used = KernelId::all().into_iter().map(|id| id.row().family);
            let missing: Vec<Family> = used.filter(|family| !tested.contains(family)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    };
}

families! {
    activation => Activation,
    attention => Attention,
    common => Common,
    convert => Convert,
    embedding => Embedding,
    experts => Experts,
    fused => Fused,
    kv_cache => KvCache,
    matmul => Matmul,
    norm => Norm,
    rope => Rope,
    nvidia => Nvidia,
    sampling => Sampling,
    state => State,
}
