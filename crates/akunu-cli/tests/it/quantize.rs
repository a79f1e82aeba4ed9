//! `quantize` from the outside: the file it writes, and what it refuses.

use crate::program::{akunu, assert_error, assert_usage, command, finish, smollm2, tiny_model};
use akunu_gguf::quant::{dequantise, supported};
use akunu_gguf::{GgufFile, GgufHeader, ImportanceMatrix};
use akunu_types::DType;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn dtype_of(file: &GgufFile, tensor: &str) -> DType {
    file.tensor(tensor).unwrap().info.dtype
}

fn values(file: &GgufFile, tensor: &str) -> Vec<f32> {
    let view = file.tensor(tensor).unwrap();
    let mut values = vec![0.0; view.info.dims.n_elements()];
    dequantise(view.info.dtype, view.bytes, &mut values).unwrap();
    values
}

#[test]
fn every_type_can_be_written_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let before = GgufFile::open(&input).unwrap();
    for dtype in supported() {
        let output = folder.path().join(format!("{dtype}.gguf"));
        let (from, to) = (text(&input), text(&output));
        let done = akunu(["quantize", from, to, dtype.name(), "--pure"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(done.stderr, "", "no warning for an f32 model");
        assert!(done.stdout.contains(text(&output)), "{}", done.stdout);
        let after = GgufFile::open(&output).unwrap();
        assert_eq!(dtype_of(&after, "blk.0.ffn_down.weight"), dtype);
        assert_eq!(dtype_of(&after, "blk.0.attn_norm.weight"), DType::F32);
        assert_eq!(dtype_of(&after, "position_embd.weight"), DType::F32);
        assert_eq!(
            after.metadata().string("general.name").unwrap(),
            Some("tiny")
        );
        let name = "blk.0.ffn_down.weight";
        let (x, y) = (values(&before, name), values(&after, name));
        // The values reach from -1 to 1, and two bits leave steps of a third: half of that, and as much
        // again for a scale that serves other groups too.
        let worst = x
            .iter()
            .zip(&y)
            .map(|(x, y)| (x - y).abs())
            .fold(0.0, f32::max);
        assert!(worst < 0.67, "{dtype}: {worst}");
    }
}

#[test]
fn rows_that_do_not_fit_get_the_documented_type_and_the_file_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let output = folder.path().join("out.gguf");
    let done = akunu(["quantize", text(&input), text(&output), "Q4_K"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("1 of 4 tensors"), "{}", done.stdout);
    let after = GgufFile::open(&output).unwrap();
    assert_eq!(dtype_of(&after, "blk.0.ffn_up.weight"), DType::Q5_0);
    assert_eq!(after.metadata().u32("general.file_type").unwrap(), Some(15));
}

#[test]
fn nothing_is_overwritten_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let output = folder.path().join("out.gguf");
    std::fs::write(&output, "precious").unwrap();
    let arguments = ["quantize", text(&input), text(&output), "q8_0"];
    assert_error(&akunu(arguments), "--force");
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
    assert_eq!(akunu(arguments.iter().copied().chain(["--force"])).code, 0);
    GgufFile::open(&output).unwrap();

    let before = std::fs::read(&input).unwrap();
    let roundabout = folder.path().join(".").join("tiny.gguf");
    let same = akunu([
        "quantize",
        text(&input),
        text(&roundabout),
        "q8_0",
        "--force",
    ]);
    assert_error(&same, "input");
    assert_eq!(std::fs::read(&input).unwrap(), before);
}

#[test]
fn wrong_arguments_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let output = folder.path().join("out.gguf");
    let wrong = akunu(["quantize", text(&input), text(&output), "q4_9"]);
    assert_usage(&wrong, "q4_9");
    for name in ["F16", "BF16", "Q8_0", "Q4_0", "Q4_K_M", "Q3_K_L", "Q2_K"] {
        assert!(
            wrong.stderr.contains(name),
            "{name} is not listed: {}",
            wrong.stderr
        );
    }
    let flag = ["quantize", text(&input), text(&output), "q8_0"];
    for option in ["--output-type", "--embedding-type"] {
        let wrong = akunu(flag.iter().copied().chain([option, "q4_k_m"]));
        assert_usage(&wrong, "q4_k_m");
        assert!(wrong.stderr.contains("q4_k,"), "{}", wrong.stderr);
    }
    assert_error(
        &akunu(["quantize", "no-such-model", text(&output), "q8_0"]),
        "smollm2",
    );
    assert_error(
        &akunu(["quantize", text(&input), text(&output), "Q2_K_S"]),
        "akunu-cli imatrix",
    );
    let missing = folder.path().join("missing.gguf");
    assert_error(
        &akunu(["quantize", text(&missing), text(&output), "q8_0"]),
        "missing.gguf",
    );
    assert_error(
        &akunu(["quantize", text(folder.path()), text(&output), "q8_0"]),
        "folder",
    );
    assert!(!output.exists());
}

/// A folder in which nobody may write, not even root.
#[cfg(target_os = "linux")]
#[test]
fn a_target_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let done = akunu(["quantize", text(&input), "/proc/out.gguf", "q8_0"]);
    assert_error(&done, "/proc/out.gguf");
    let nowhere = folder.path().join("no/such/folder/out.gguf");
    assert_error(
        &akunu(["quantize", text(&input), text(&nowhere), "q8_0"]),
        "out.gguf",
    );
}

/// A NaN in a tensor is found, and half a file is not left behind.
#[test]
fn a_value_that_cannot_be_stored_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let mut bytes = std::fs::read(&input).unwrap();
    let range = {
        let file = GgufFile::open(&input).unwrap();
        file.tensor("blk.0.ffn_up.weight")
            .unwrap()
            .info
            .range
            .clone()
    };
    bytes[range][40..44].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&input, bytes).unwrap();
    let output = folder.path().join("out.gguf");
    let done = akunu(["quantize", text(&input), text(&output), "q8_0"]);
    assert_error(&done, "blk.0.ffn_up.weight: value 10 is NaN");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "only the input"
    );
}

/// Ctrl-C while a file is being written: exit code 130, and no file, not even a temporary one.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.gguf");
    let mut child = command([
        "quantize",
        &smollm2(),
        text(&output),
        "q2_k",
        "--threads",
        "1",
    ])
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let started = Instant::now();
    while files() == 0 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "no temporary file appeared"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(files(), 0);
}

/// A name of the catalogue is a model, as after `-m`. F16 holds all that the file does: no warning.
#[cfg(unix)]
#[test]
fn a_model_of_the_catalogue_can_be_named() {
    let home = tempfile::tempdir().unwrap();
    let caches = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    let folder = home.path().join(caches).join("akunu/models/smollm2");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    let asset = std::fs::canonicalize(smollm2()).unwrap();
    std::os::unix::fs::symlink(asset, file).unwrap();
    let output = home.path().join("out.gguf");
    let mut command = command(["quantize", "smollm2", text(&output), "F16"]);
    command
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME");
    let done = finish(&mut command);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let after = GgufFile::open(&output).unwrap();
    assert_eq!(dtype_of(&after, "token_embd.weight"), DType::F16);
}

#[test]
fn what_is_quantised_already_is_quantised_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let (once, twice) = (
        folder.path().join("once.gguf"),
        folder.path().join("twice.gguf"),
    );
    let quantize = |from: &Path, to: &Path, recipe: &str| {
        let done = akunu(["quantize", text(from), text(to), recipe, "--force"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr
    };
    assert_eq!(quantize(&input, &once, "Q8_0"), "");
    let warned = quantize(&once, &twice, "Q4_0");
    let expected = format!("warning: {} is quantised already", text(&once));
    assert!(warned.starts_with(&expected), "{warned}");
    assert_eq!(warned.lines().count(), 1, "{warned}");
    assert_eq!(quantize(&once, &twice, "F16"), "", "nothing is lost");
    assert_eq!(quantize(&once, &twice, "Q8_0"), "", "nothing is changed");
}

#[test]
fn embedding_and_output_get_the_types_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.gguf");
    let names = ["token_embd.weight", "output.weight", "blk.0.ffn_up.weight"];
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    for name in names {
        header.tensor(name, &[256, 2], DType::F32);
    }
    let mut writer = header.create(&input).unwrap();
    for name in names {
        writer.write(name, &[0; 2048]).unwrap();
    }
    writer.finish().unwrap();
    let output = folder.path().join("out.gguf");
    let types = |options: &[&str]| {
        let arguments = ["quantize", text(&input), text(&output), "q4_0", "--force"];
        let done = akunu(arguments.iter().chain(options));
        assert_eq!(done.code, 0, "{}", done.stderr);
        let file = GgufFile::open(&output).unwrap();
        names.map(|name| dtype_of(&file, name))
    };
    use DType::{Q3_K, Q4_0, Q5_K, Q6_K};
    assert_eq!(types(&[]), [Q4_0, Q6_K, Q4_0]);
    assert_eq!(types(&["--pure"]), [Q4_0, Q4_0, Q4_0]);
    let both = ["--output-type", "q5_k", "--embedding-type", "Q3_K"];
    assert_eq!(types(&both), [Q3_K, Q5_K, Q4_0]);
}

/// An importance matrix with an entry for the large matrix: 0 in even columns and 1 in odd ones.
fn importances(folder: &Path, cols: usize) -> PathBuf {
    let path = folder.join("imatrix.gguf");
    let mut matrix = ImportanceMatrix::new("text.txt", 512);
    let row: Vec<f32> = (0..cols).map(|i| (i % 2) as f32).collect();
    matrix.add("blk.0.ffn_down.weight", cols, &row);
    matrix.end_chunk();
    matrix.write(&path).unwrap();
    path
}

/// Fails when importances are not used, or belong to other columns.
#[test]
fn important_columns_lose_less() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let (output, name) = (folder.path().join("out.gguf"), "blk.0.ffn_down.weight");
    let matrix = importances(folder.path(), 512);
    let before = values(&GgufFile::open(&input).unwrap(), name);
    // The squared errors of even and of odd columns.
    let errors = |dtype: &str, options: &[&str]| {
        let arguments = [
            "quantize",
            text(&input),
            text(&output),
            dtype,
            "--pure",
            "--force",
        ];
        let done = akunu(arguments.iter().chain(options));
        assert_eq!(done.code, 0, "{}", done.stderr);
        let after = GgufFile::open(&output).unwrap();
        let mut errors = [0.0; 2];
        for (i, (x, y)) in before.iter().zip(values(&after, name)).enumerate() {
            errors[i % 2] += (x - y) * (x - y);
        }
        errors
    };
    for dtype in [
        "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
    ] {
        let plain = errors(dtype, &[]);
        let weighted = errors(dtype, &["--imatrix", text(&matrix)]);
        // Odd columns against even ones; without importances they are alike.
        let ratio = |[even, odd]: [f32; 2]| odd / even;
        assert!(
            ratio(weighted) < 0.9 * ratio(plain),
            "{dtype}: {weighted:?} {plain:?}"
        );
    }
    let after = GgufFile::open(&output).unwrap();
    let note = |key: &str| after.metadata().u32(key).unwrap();
    assert_eq!(note("quantize.imatrix.entries_count"), Some(1));
    assert_eq!(note("quantize.imatrix.chunks_count"), Some(1));
}

#[test]
fn an_importance_matrix_that_does_not_fit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let input = tiny_model(folder.path());
    let output = folder.path().join("out.gguf");
    let quantize = |matrix: &Path| {
        let arguments = ["quantize", text(&input), text(&output), "q4_k", "--imatrix"];
        akunu(arguments.iter().copied().chain([text(matrix)]))
    };
    let other = importances(folder.path(), 256);
    assert_error(
        &quantize(&other),
        "blk.0.ffn_down.weight: there are 256 importances",
    );
    assert_error(&quantize(&input), ".in_sum2");
    let empty = folder.path().join("empty.dat");
    std::fs::write(&empty, "").unwrap();
    assert_error(&quantize(&empty), "empty.dat");
    assert_error(
        &quantize(&folder.path().join("missing.gguf")),
        "missing.gguf",
    );
    assert!(!output.exists());
}
