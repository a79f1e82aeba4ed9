use std::path::Path;
use std::process::{Command, Output};

fn measure(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_akunu-bench"));
    command.args(arguments);
    command
}

fn run(command: &mut Command) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("akunu-bench starts");
    let text = [stdout, stderr].concat();
    (
        status.code().expect("no signal"),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn an_unknown_command_gets_the_list_and_exit_2() {
    let (code, said) = run(&mut measure(&["bogus"]));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("bogus") && said.contains("answers, compare, gpu, load, mac-report, plots"),
        "{said}"
    );
}

/// Fails if `--table` measures, or if figures below the bar make the command fail.
#[test]
fn the_table_is_printed_without_measuring() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let into = folder.path().to_string_lossy().into_owned();
    let arguments = ["compare", "--table", "--into", &into];
    let (code, said) = run(&mut measure(&arguments));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("performance.json"), "{said}");

    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.json");
    std::fs::copy(docs, folder.path().join("performance.json")).expect("copied");
    let (code, said) = run(measure(&arguments).env("PATH", folder.path()));
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("| q4_1 | 2 |") && said.contains("the bar"),
        "{said}"
    );
    assert!(folder.path().join("performance.svg").exists());
}

/// A program of those that print what Akunu and llama.cpp print on a machine with a GPU.
fn gpu_program(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/gpu_programs");
    folder.join(name).to_string_lossy().into_owned()
}

/// A folder for PATH with nothing but what those programs call: neither cmake nor nvcc.
fn path_without_compilers(folder: &Path) {
    for name in ["cat", "dirname"] {
        let real = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name));
        let real = real.into_iter().find(|path| path.exists()).expect(name);
        std::os::unix::fs::symlink(real, folder.join(name)).expect("linked");
    }
}

/// Fails if a comparison on a GPU begins without one, or does not say what is missing: the driver, the GPU of that
/// number, the peer's programs, or what builds them.
#[test]
fn a_comparison_on_a_gpu_says_what_is_missing() {
    let folder = || tempfile::tempdir().expect("a temporary folder");
    let (path, empty, sources) = (folder(), folder(), folder());
    path_without_compilers(path.path());
    std::fs::write(sources.path().join("CMakeLists.txt"), "").expect("written");
    let empty = empty.path().to_string_lossy().into_owned();
    let sources = sources.path().to_string_lossy().into_owned();
    let (ours, peer) = (gpu_program("akunu-cli"), gpu_program(""));
    let no_driver = gpu_program("no-driver/akunu-cli");
    for (device, ours, peer, expected) in [
        ("cuda", &no_driver, &peer, "cuda: there is no NVIDIA driver"),
        (
            "cuda:3",
            &no_driver,
            &peer,
            "cuda:3: there is no NVIDIA driver",
        ),
        ("cuda:3", &ours, &peer, "cuda:3: there is no such GPU"),
        (
            "cuda:1",
            &ours,
            &peer,
            "compute capability 7.0 is below 7.5",
        ),
        ("cuda", &ours, &empty, "nor the sources of llama.cpp"),
        ("cuda", &ours, &sources, "there is no cmake on PATH; --peer"),
    ] {
        let arguments = [
            "compare", "--device", device, "--ours", ours, "--peer", peer,
        ];
        let mut command = measure(&arguments);
        command.args(["--into", &empty]).env("PATH", path.path());
        let (code, said) = run(&mut command);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// Fails if what only a CPU has is taken on a GPU, or a type without a shape on a CPU.
#[test]
fn a_comparison_refuses_what_the_device_has_no_use_for() {
    for (arguments, expected) in [
        (
            ["--device", "cuda", "--threads", "2"],
            "are for --device cpu",
        ),
        (
            ["--device", "cuda", "--models", "q4_0"],
            "are for --device cpu",
        ),
        (
            ["--device", "cpu", "--types", "Q8_0"],
            "--types needs --shapes",
        ),
        (["--device", "gpu", "--rounds", "1"], "cpu, cuda and cuda:N"),
    ] {
        let (code, said) = run(measure(&["compare"]).args(arguments));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// Fails if the table of the GPU needs figures of a CPU, or is not made from its own.
#[test]
fn the_table_of_the_gpu_is_printed_without_measuring() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let into = folder.path().to_string_lossy().into_owned();
    let arguments = ["compare", "--device", "cuda", "--table", "--into", &into];
    let (code, said) = run(&mut measure(&arguments));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nvidia.json"), "{said}");
    let record = r#"{
        "sizes": {"decode": 128, "depths": [0, 4096], "prompts": [512, 4096], "sequences": [16, 64]},
        "comparisons": [{
            "model": "1B Q4_0", "gpu": {"name": "NVIDIA H200", "driver": "13.0"}, "date": "2026-11-17",
            "weight_bytes": 700000000,
            "ours": [{"depths": [300.0, 200.0], "prompts": [1000.0, 900.0], "sequences": [2000.0, 4000.0]}],
            "peer": [{"depths": [150.0, 100.0], "prompts": [500.0, 450.0], "sequences": [1000.0, 2000.0]}]
        }]
    }"#;
    std::fs::write(folder.path().join("nvidia.json"), record).expect("written");
    let (code, said) = run(measure(&arguments).env("PATH", folder.path()));
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("| 1B Q4_0 | 700 | 300 / 150, **2.00** |"),
        "{said}"
    );
    assert!(
        said.contains("NVIDIA H200, 13.0 | 1, 2026-11-17 |"),
        "{said}"
    );
    assert!(folder.path().join("nvidia.svg").exists());
}

/// Fails when the parts of a report cannot be started in separate processes, when their records are lost on the way into the
/// file, or when a prediction cannot be made from it.
#[test]
fn a_report_of_the_simulator_is_written_and_predicts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("report.json.gz");
    let path = file.to_string_lossy().into_owned();
    let only = ["machine", "pipelines", "cases-norm", "micro"].map(|part| ["--only", part]);
    let mut report = measure(&["mac-report", "--device", "sim", "--into", &path]);
    let (code, said) = run(report.args(["--filter", "norm"]).args(only.as_flattened()));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("6 cases, 0 failures"), "{said}");
    assert!(said.contains("; 0 crashes"), "{said}");
    let size = std::fs::metadata(&file).expect("it was written").len();
    assert!((100..1_000_000).contains(&size), "{size} bytes");

    let (code, said) = run(&mut measure(&["predict", "--from", &path]));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Apple M1: Apple(7), 8 cores"), "{said}");
    assert!(said.contains("| 8B (Llama 3) |"), "{said}");
}

/// Fails when a machine without a Mac's GPU writes an empty report instead of saying what it lacks.
#[cfg(not(target_os = "macos"))]
#[test]
fn a_report_of_metal_needs_a_mac() {
    let (code, said) = run(&mut measure(&["mac-report"]));
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("--device sim"), "{said}");
}
