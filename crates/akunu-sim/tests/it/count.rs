//! What kernels do to memory, at the sizes of real models.

use std::path::{Path, PathBuf};

use akunu_kernels::KernelId;
use akunu_kernels::case::{SIZES, Size};
use akunu_sim::Simulator;
use akunu_sim::count::{Counted, count_case};
use akunu_types::DType;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn count(simulator: &Simulator, size: &Size) -> Counted {
    let counted = count_case(simulator, &size.kernel.row(), &(size.case)(size));
    counted.unwrap_or_else(|error| panic!("{:?}: {error}", size.kernel))
}

/// The kernels that are counted here: the others of [`SIZES`] are made of the same parts, and `cargo xtask kernels --count`
/// counts them all.
fn is_counted(size: &&Size) -> bool {
    matches!(
        size.kernel,
        KernelId::Gemv(DType::Q4_K)
            | KernelId::NormGemv(_)
            | KernelId::SimdGemm(_)
            | KernelId::FlashAttentionDecodeSplit
    )
}

/// Breaks when a kernel begins to read something twice from memory, or to wait for the banks of threadgroup memory.
#[test]
fn sizes_stay_within_their_bounds() {
    let folder = root().join("kernels");
    let simulator = Simulator::counting(&folder, &root().join("target/shaders/count"));
    let sizes: Vec<&Size> = SIZES.iter().filter(is_counted).collect();
    let names: Vec<String> = sizes.iter().map(|size| size.kernel.row().name()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let simulator = simulator.expect("clang is there").only(&names);
    for size in sizes {
        let counted = count(&simulator, size);
        let (excess, conflicts) = (counted.excess(), counted.counts.conflicts());
        let what = format!("{:?}, {}: {counted:?}", size.kernel, size.label);
        assert!(
            excess <= size.max_excess,
            "{excess} times the bytes, {what}"
        );
        assert!(
            conflicts <= size.max_conflicts,
            "{conflicts} cycles, {what}"
        );
        // What is not read at all was not counted.
        assert!(excess > 0.9, "{excess} times the bytes, {what}");
    }
}

/// Planted: rows of the tiles that fall into the same banks, which gives the right numbers all the same.
#[test]
fn planted_bank_conflicts_are_counted() {
    let (right, wrong) = ("TILE_STRIDE = TILE_K + 4", "TILE_STRIDE = TILE_K");
    let size = SIZES
        .iter()
        .find(|size| matches!(size.kernel, KernelId::SimdGemm(_)));
    let size = size.expect("it is counted");
    let copy = tempfile::tempdir().expect("a folder");
    copy_folder(&root().join("kernels"), copy.path());
    let path = copy.path().join("include/gemm.h");
    let text = std::fs::read_to_string(&path).expect("the file is there");
    assert_eq!(text.matches(right).count(), 1, "{right}");
    std::fs::write(&path, text.replace(right, wrong)).expect("written");
    let simulator = Simulator::counting(copy.path(), &root().join("target/shaders/planted"));
    let simulator = simulator.expect("clang is there");
    let counted = count(&simulator.only(&[&size.kernel.row().name()]), size);
    assert!(counted.counts.conflicts() > 1.5, "{counted:?}");
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}
