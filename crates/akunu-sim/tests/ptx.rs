//! The fixture kernels compile to PTX; what MSL forbids does not.

mod support;

use akunu_kernels::flatten::flatten;
use akunu_sim::{ConstantValue, SimError, Toolchain, ptx};
use std::path::Path;

#[test]
fn every_fixture_compiles_and_an_unchanged_one_is_not_built_again() {
    let toolchain = Toolchain::find().unwrap();
    let output = tempfile::tempdir().unwrap();
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
            assert_eq!(file.built, built, "{}", file.file);
        }
    }
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
