//! C programs against the library, compiled with gcc and clang. With gcc they are watched by the address and undefined
//! behaviour sanitizers: an access outside of memory, a leak or a second free ends them with an error.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::classifier::minilm_with_labels;

const WARNINGS: [&str; 6] = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-g",
];
/// Only with gcc, which brings what these need; clang's are a package of their own.
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The compilers of this machine, by family: names of the same one, best first.
fn compilers() -> Vec<&'static str> {
    let families: [&[&str]; 2] = [&["gcc"], &["clang", "clang-21", "clang-20", "clang-19"]];
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let found: Vec<&str> = families
        .iter()
        .filter_map(|names| names.iter().find(runs).copied())
        .collect();
    let n_wanted = if std::env::var_os("CI").is_some() {
        2
    } else {
        1
    };
    assert!(
        found.len() >= n_wanted,
        "a C compiler is wanted, gcc or clang, and in CI both; on Debian: apt-get install gcc clang-19"
    );
    found
}

/// The folder of the library that cargo has built for this test: beside it, or one above.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let mut folders = test.ancestors().skip(1).take(2);
    let name = format!(
        "{}akunu_c{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let found = folders.find(|folder| folder.join(&name).is_file());
    found
        .expect("cargo builds the library with its tests")
        .to_path_buf()
}

/// Compiles a program of this crate, watched by sanitizers where the compiler has them.
fn compile(compiler: &str, source: &str, folder: &Path) -> PathBuf {
    let has_sanitizers = compiler == "gcc";
    let sanitizers = if has_sanitizers { &SANITIZERS[..] } else { &[] };
    compile_with(sanitizers, compiler, source, folder)
}

fn compile_with(sanitizers: &[&str], compiler: &str, source: &str, folder: &Path) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(format!("{compiler}-program"));
    let library = library_folder();
    let output = Command::new(compiler)
        .args(WARNINGS)
        .args(sanitizers)
        .arg("-I")
        .arg(package.join("include"))
        .arg(package.join(source))
        .arg("-L")
        .arg(&library)
        .args(["-lakunu_c", "-lpthread", "-lm"])
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{compiler} {source}: {}",
        said(&output)
    );
    program
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn model() -> PathBuf {
    akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
}

/// The second question makes sense only with the first. Breaks when the header does not fit the library, text is lost on
/// the way, or memory is mishandled on either side.
#[test]
fn the_example_holds_a_conversation_with_every_compiler() {
    for compiler in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(compiler, "examples/chat.c", folder.path());
        let output = Command::new(&program)
            .arg(model())
            .args(["What is the capital of France?", "And of Italy?"])
            .output()
            .unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{compiler}: {said}");
        assert!(
            said.contains("Paris") && said.contains("Rome"),
            "{compiler}: {said}"
        );

        let missing = Command::new(&program)
            .arg("no-such-model.gguf")
            .output()
            .unwrap();
        assert_eq!(missing.status.code(), Some(1));
        let complaint = String::from_utf8_lossy(&missing.stderr);
        assert!(
            complaint.contains("no-such-model.gguf"),
            "{compiler}: {complaint}"
        );
    }
}

/// `misuse.c` says what it expects. Breaks when a mistake of the caller's is a crash, or is not told.
#[test]
fn misuse_is_answered_by_a_status() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(compilers()[0], "tests/it/misuse.c", folder.path());
    let mut misuse = Command::new(&program);
    let output = misuse
        .arg(model())
        .arg(akunu_assets::folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// The arguments of `features.c`; the folders are for a reranker and for files of its own.
fn of_features(reranker: &Path, empty: &Path) -> Vec<PathBuf> {
    let folder_of = |name, file| {
        akunu_assets::path(name, file)
            .parent()
            .unwrap()
            .to_path_buf()
    };
    let adapter = "../akunu/tests/fixtures/smollm2-lora.gguf";
    vec![
        model(),
        Path::new(env!("CARGO_MANIFEST_DIR")).join(adapter),
        folder_of("minilm", "config.json"),
        reranker.to_path_buf(),
        folder_of("whisper-tiny.en", "model.bin"),
        akunu_assets::path("jfk", "jfk.wav"),
        empty.to_path_buf(),
    ]
}

/// `features.c` prints each row of the table in `docs/library.md` that works, which `cargo xtask features` reads. Breaks when one
/// does not.
#[test]
fn every_feature_works() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(compilers()[0], "tests/it/features.c", folder.path());
    let reranker = minilm_with_labels(1);
    let mut features = Command::new(&program);
    let output = features
        .args(of_features(reranker.path(), folder.path()))
        .output()
        .unwrap();
    println!("\n{}", said(&output));
    assert!(output.status.success(), "{}", said(&output));
}

/// The rows that compute little: valgrind takes a hundred times as long.
const SHORT: [&str; 6] = [
    "cancelling_from_another_thread",
    "length_of_the_context",
    "maximum_length_of_an_answer",
    "json_by_a_schema",
    "documents_by_a_question",
    "kinds_of_errors",
];

/// The same program without sanitizers, which valgrind cannot run. Breaks when memory is read before it is written, on either side,
/// or is lost.
#[test]
#[ignore = "takes minutes, and needs valgrind: cargo test -p akunu-c --test it -- --ignored"]
fn valgrind_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile_with(&[], compilers()[0], "tests/it/features.c", folder.path());
    let reranker = minilm_with_labels(1);
    let output = Command::new("valgrind")
        .args(["--error-exitcode=9", "--leak-check=full"])
        .args([
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
        ])
        .arg(&program)
        .args(of_features(reranker.path(), folder.path()))
        .args(SHORT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// `hearing.c` says what it expects. Breaks when a vector or a segment comes over changed, too late or not at all, or when a
/// mistake of the caller's is a crash.
#[test]
fn texts_become_vectors_and_speech_becomes_text() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(compilers()[0], "tests/it/hearing.c", folder.path());
    let minilm = akunu_assets::path("minilm", "config.json");
    let whisper = akunu_assets::path("whisper-tiny.en", "model.bin");
    let output = Command::new(&program)
        .args([minilm.parent().unwrap(), whisper.parent().unwrap()])
        .arg(akunu_assets::path("jfk", "jfk.wav"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
