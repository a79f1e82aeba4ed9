//! Memory of a file's header that was given back.

use akunu_gguf::{GgufFile, GgufHeader};
use akunu_types::DType;
use std::path::Path;

/// Kilobytes of a mapped file that are in this process's memory.
fn resident(path: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the maps of this process");
    let name = path.to_str().expect("a plain path");
    let mut lines = maps.lines().skip_while(|line| !line.ends_with(name));
    let line = lines.find(|line| line.starts_with("Rss:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words
        .expect("the file is mapped")
        .parse()
        .expect("a number")
}

/// Fails when the vocabulary stays in memory beside the tokenizer that was made of it.
#[test]
fn a_header_that_was_given_back_takes_no_memory_and_can_still_be_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("large-vocabulary.gguf");
    let words: Vec<String> = (0..100_000)
        .map(|i| format!("a long token, number {i}"))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut header = GgufHeader::new();
    header.set("general.architecture", "llama");
    header.set("tokenizer.ggml.tokens", &words[..]);
    header.tensor("one", &[4], DType::F32);
    let mut writer = header.create(&path).expect("a file");
    writer.write("one", &[0; 16]).expect("written");
    writer.finish().expect("complete");

    let file = GgufFile::open(&path).expect("a valid file");
    let tokens = || {
        let tokens = file.metadata().strings("tokenizer.ggml.tokens");
        tokens.expect("strings").expect("there").collect::<Vec<_>>()
    };
    assert_eq!(tokens(), words);
    let before = resident(&path);
    assert!(before > 2000, "{before} kB");
    file.forget_header();
    let after = resident(&path);
    assert!(after < 100, "{before} kB before, {after} kB after");
    assert_eq!(tokens(), words);
}
