//! `quantize` from the outside: the file it writes, and what it refuses.
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod program;

use akunu_gguf::GgufFile;
use akunu_gguf::quant::{dequantise, supported};
use akunu_types::DType;
use program::{akunu, assert_error, assert_usage, command, smollm2, tiny_model};
use std::path::Path;
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
        let done = akunu(["quantize", text(&input), text(&output), dtype.name()]);
        assert_eq!(done.code, 0, "{}", done.stderr);
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
    assert_eq!(
        akunu(["quantize", text(&input), text(&output), "Q4_K"]).code,
        0
    );
    let after = GgufFile::open(&output).unwrap();
    assert_eq!(dtype_of(&after, "blk.0.ffn_up.weight"), DType::Q5_0);
    assert_eq!(after.metadata().u32("general.file_type").unwrap(), Some(14));
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
    for dtype in supported() {
        assert!(
            wrong.stderr.contains(dtype.name()),
            "{dtype} is not listed: {}",
            wrong.stderr
        );
    }
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
