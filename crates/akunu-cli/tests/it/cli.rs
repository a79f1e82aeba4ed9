//! The built binary: what it prints, how it fails, and with which exit code.

use crate::program::{self, Finished, akunu, assert_error, assert_usage, smollm2, tiny_model};
use std::io::Read;
use std::process::Stdio;

#[test]
fn help_lists_every_command_and_no_command_is_wrong_usage() {
    let help = akunu(["--help"]);
    assert_eq!(help.code, 0);
    for command in [
        "chat",
        "generate",
        "embed",
        "rerank",
        "transcribe",
        "perplexity",
        "bench",
        "devices",
        "pull",
        "list",
        "rm",
        "serve",
        "inspect",
        "quantize",
        "imatrix",
        "tokenize",
        "completions",
    ] {
        assert!(help.stdout.contains(command), "{}", help.stdout);
    }
    assert_eq!(akunu([] as [&str; 0]).code, 2);
    assert_usage(&akunu(["bake"]), "bake");
}

#[test]
fn inspect_shows_what_smollm2_is() {
    let done = akunu(["inspect", &smollm2(), "--ctx", "2048"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let expected = [
        "architecture    llama",
        "parameters      134.5 M",
        "layers          30",
        "dimension       576",
        "attention       9 heads, 3 for keys and values, 64 values each",
        "output layer    the token embedding",
        "tokenizer       gpt2/smollm, 49152 tokens, chat template",
        // 30 layers * 3 heads * (64 + 64) values * 2 bytes * 33 pages of 64 tokens
        "KV cache        46.4 MiB in f16 or 24.7 MiB in q8, for 2048 tokens",
        "q4_1          210",
        "q8_0            1",
        "f32            61",
    ];
    for line in expected {
        assert!(
            done.stdout.contains(line),
            "no {line:?} in\n{}",
            done.stdout
        );
    }
    assert!(
        !done.stdout.contains("blk.0"),
        "tensors only with --tensors"
    );
}

#[test]
fn inspect_prints_the_same_as_json() {
    let done = akunu([
        "inspect",
        &smollm2(),
        "--json",
        "--tensors",
        "--ctx",
        "2048",
    ]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(report["parameters"], 134_515_008);
    assert_eq!(report["file_bytes"], 98_362_432);
    let cache = &report["kv_cache"]["bytes"];
    assert_eq!(cache["f16"], 30 * 3 * 128 * 2 * 64 * 33);
    assert_eq!(cache["q8"], 30 * 3 * (64 + 4) * 2 * 64 * 33);
    assert_eq!(report["description"]["tokenizer"]["chat_template"], true);
    let tensors = report["tensors"].as_array().unwrap();
    assert_eq!(tensors.len(), 272);
    let bytes: u64 = tensors.iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    assert_eq!(report["weights"]["bytes"], bytes);
    let q = tensors.iter().find(|t| t["name"] == "blk.3.attn_q.weight");
    assert_eq!(q.unwrap()["weight"], "layers.3.attention.q.weight");
}

/// Breaks when `inspect` counts the memory of windows by itself again; the engine's tests compare the same number with
/// what is allocated.
#[test]
fn inspect_counts_windows_as_the_engine_does() {
    let file = program::asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    let done = akunu(["inspect", &file, "--json", "--ctx", "4096"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let store = akunu_gguf::WeightStore::open(&file).expect("a model");
    let config = akunu_arch::Model::from_store(&store).expect("a Gemma 3");
    let session = akunu::SessionOptions {
        context: Some(4096),
        ..Default::default()
    };
    for format in akunu::KvFormat::ALL {
        let told = report["kv_cache"]["bytes"][format.name()].as_u64();
        assert_eq!(told, session.kv_bytes(&config, format));
    }
    assert_eq!(report["description"]["attention"]["windowed_layers"], 15);
    let kinds = &report["layer_kinds"];
    assert_eq!([&kinds[0]["layers"], &kinds[1]["layers"]], [15, 3]);
    assert_eq!(
        kinds[0]["layer"],
        "4 heads of 256, 1 for keys and values, RoPE 10000, window 512; gated feed-forward of 2048"
    );
}

#[test]
fn inspect_reads_a_folder_of_safetensors() {
    let folder = program::asset("minilm", "config.json");
    let folder = std::path::Path::new(&folder).parent().unwrap();
    let done = akunu(["inspect", folder.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("architecture    bert"),
        "{}",
        done.stdout
    );
    assert!(
        !done.stdout.contains("KV cache"),
        "an encoder keeps nothing"
    );
    let gives = "gives           a vector for each text, by mean pooling; looks at 256 tokens";
    assert!(done.stdout.contains(gives), "{}", done.stdout);
}

#[test]
fn what_cannot_be_inspected_is_named_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    assert_error(&akunu(["inspect", &path("nothing.gguf")]), "nothing.gguf");
    assert_error(
        &akunu(["inspect", folder.path().to_str().unwrap()]),
        "is a folder without config.json",
    );
    let whole = std::fs::read(tiny_model(folder.path())).unwrap();
    for (name, bytes) in [
        ("empty.gguf", &whole[..0]),
        ("text.gguf", b"hello world, this is no model"),
        ("short.gguf", &whole[..whole.len() / 2]),
        ("shorter.gguf", &whole[..30]),
    ] {
        std::fs::write(path(name), bytes).unwrap();
        assert_error(&akunu(["inspect", &path(name)]), name);
    }
    assert_usage(&akunu(["inspect", &path("x"), "--ctx", "0"]), "--ctx");
}

/// A reader that goes away, as `head` does, is no error: no message, no panic.
#[test]
fn a_closed_output_ends_the_program_quietly() {
    let arguments = ["inspect", &smollm2(), "--json", "--tensors"];
    let mut child = program::command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(stderr, "");
}

/// Metadata of a vision tower.
fn tower(path: &std::path::Path, projector: &str) -> String {
    let mut header = akunu_gguf::GgufHeader::new();
    header.set("general.architecture", "clip");
    header.set("clip.projector_type", projector);
    header.set("clip.use_gelu", &true);
    for (key, number) in [
        ("image_size", 512),
        ("patch_size", 16),
        ("embedding_length", 768),
        ("feed_forward_length", 3072),
        ("block_count", 12),
        ("attention.head_count", 12),
        ("projection_dim", 576),
        ("projector.scale_factor", 4),
    ] {
        header.set(&format!("clip.vision.{key}"), &number);
    }
    header.set("clip.vision.attention.layer_norm_epsilon", &1e-6f32);
    for key in ["image_mean", "image_std"] {
        header.set(&format!("clip.vision.{key}"), &[0.5f32; 3][..]);
    }
    header.create(path).unwrap().finish().unwrap();
    path.to_str().unwrap().to_string()
}

/// Fails if a tower is shown with a vocabulary and an output layer, or if an unsupported one is refused instead of described.
#[test]
fn inspect_shows_what_a_vision_tower_reads_and_gives() {
    let folder = tempfile::tempdir().unwrap();
    let file = tower(&folder.path().join("mmproj.gguf"), "idefics3");
    let done = akunu(["inspect", &file]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let line = "512 × 512 pixels in patches of 16 become 64 rows of 576 (idefics3)";
    for fact in [line, "layers          12", "12 × 12 heads of 64"] {
        assert!(done.stdout.contains(fact), "{fact}: {}", done.stdout);
    }
    for other in ["tokenizer", "output layer", "context"] {
        assert!(!done.stdout.contains(other), "{other}: {}", done.stdout);
    }
    let done = akunu(["inspect", &file, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(report["vision"]["rows"], 64);
    let file = tower(&folder.path().join("other.gguf"), "resampler");
    let done = akunu(["inspect", &file]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("`resampler` are not supported"),
        "{}",
        done.stdout
    );
}

/// Names in a file are not ours: escape sequences must not reach the terminal.
#[test]
fn control_characters_in_names_are_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evil.gguf");
    let mut header = akunu_gguf::GgufHeader::new();
    header.set("general.architecture", "llama");
    header.set("general.name", "\u{1b}[2Jgone");
    header.create(&path).unwrap().finish().unwrap();
    let Finished {
        stdout,
        code,
        stderr,
    } = akunu(["inspect", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("[2Jgone"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "{stdout:?}");
}

/// 98 MB at 200 GB/s: about 2000 tokens a second, and never more.
#[test]
fn a_chip_gives_the_floor_of_decoding() {
    let run = akunu(["inspect", &smollm2(), "--json", "--chip", "Apple M2 Pro"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let floor = &report["floor"];
    assert_eq!(
        floor["bytes_per_token"], report["weights"]["bytes"],
        "tied: all weights"
    );
    let rate = floor["tokens_per_second"].as_f64().unwrap();
    assert!((1500.0..2500.0).contains(&rate), "{rate}");
    let wrong = akunu(["inspect", &smollm2(), "--chip", "Apple M9"]);
    assert_usage(&wrong, "Apple M2 Pro");
}
