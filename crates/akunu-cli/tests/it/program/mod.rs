//! Running the built binary, and models to run it on.

#![allow(dead_code, reason = "each test binary uses its part")]

use akunu_gguf::GgufHeader;
use akunu_types::DType;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left.
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn command<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_akunu-cli"));
    command.args(arguments);
    command
}

pub fn akunu<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Finished {
    finish(&mut command(arguments))
}

/// Runs a command with this on its standard input.
pub fn akunu_reads<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Finished {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read its input: that is not what is tested.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Finished {
    let output = command.output().unwrap();
    Finished {
        code: output
            .status
            .code()
            .expect("ended by itself, not by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// An error: exit code 1, nothing on stdout, one line on stderr that names what is wrong.
pub fn assert_error(done: &Finished, names: &str) {
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.starts_with("error: "), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    assert!(
        done.stderr.contains(names),
        "no {names:?} in {}",
        done.stderr
    );
}

/// Wrong usage: exit code 2 and a hint.
pub fn assert_usage(done: &Finished, names: &str) {
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(
        done.stderr.contains(names),
        "no {names:?} in {}",
        done.stderr
    );
}

/// A downloaded file.
pub fn asset(name: &str, file: &str) -> String {
    let path = akunu_assets::path(name, file);
    path.to_str().unwrap().to_string()
}

pub fn smollm2() -> String {
    asset("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
}

/// A model of four tensors: a matrix with rows of 512, one with rows of 96, a vector, and a table that
/// is never quantised.
pub fn tiny_model(folder: &Path) -> PathBuf {
    let path = folder.join("tiny.gguf");
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    header.set("general.name", "tiny");
    header.set("tokenizer.ggml.tokens", &["a", "b", "c"][..]);
    let tensors: [(&str, &[u64]); 4] = [
        ("blk.0.ffn_down.weight", &[512, 8]),
        ("blk.0.ffn_up.weight", &[96, 8]),
        ("blk.0.attn_norm.weight", &[512]),
        ("position_embd.weight", &[512, 4]),
    ];
    for (name, dims) in tensors {
        header.tensor(name, dims, DType::F32);
    }
    let mut writer = header.create(&path).unwrap();
    for (name, dims) in tensors {
        let n: u64 = dims.iter().product();
        let values = (0..n).map(|i| ((i * 7919) % 1009) as f32 / 500.0 - 1.0);
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        writer.write(name, &bytes).unwrap();
    }
    writer.finish().unwrap();
    path
}
