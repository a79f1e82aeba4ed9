//! Memory in proportion to the file: a counting allocator around the readers.

use akunu_gguf::{GgufFile, GgufHeader, WeightStore, read_safetensors_header};
use akunu_types::DType;
use std::path::Path;

/// What the work returns, and how many bytes it asked for on this thread; what it gave back is not
/// subtracted.
fn requested_by<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let mut result = None;
    let counted = allocation_counter::measure(|| result = Some(work()));
    let result = result.expect("the work was done");
    (result, counted.bytes_total as usize)
}

/// Error messages, paths, and what the standard library allocates to open a file.
const FIXED: usize = 16 << 10;
/// Bytes that the smallest metadata entry (14 bytes) or tensor entry (33 bytes) may cost per byte of
/// the file. The lists are sized once, so there is no doubling in it.
const GGUF_FACTOR: usize = 10;
/// The same for a safetensors header, of which the package `safetensors` keeps each value for a while, in lists that grow by
/// doubling. A value of two bytes, as in a long shape, costs the most.
const SAFETENSORS_FACTOR: usize = 64;

#[test]
fn a_file_of_the_smallest_entries_costs_its_own_size_times_a_constant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let mut header = GgufHeader::new();
    for i in 0..3000 {
        header.set(&format!("{i}"), &0u8);
        header.tensor(&format!("{i}"), &[1], DType::I8);
    }
    let mut writer = header.create(&path).unwrap();
    for i in 0..3000 {
        writer.write(&format!("{i}"), &[0]).unwrap();
    }
    writer.finish().unwrap();
    // The data is 32 bytes a tensor; only what stands before it is read.
    let header_bytes = std::fs::metadata(&path).unwrap().len() as usize - 3000 * 32;
    let (file, requested) = requested_by(|| GgufFile::open(&path));
    assert_eq!(file.unwrap().tensors().len(), 3000);
    let limit = GGUF_FACTOR * header_bytes + FIXED;
    assert!(
        requested <= limit,
        "{requested} bytes for a header of {header_bytes}"
    );
}

/// A vocabulary stays in the file: 100,000 tokens cost as much as ten.
#[test]
fn a_vocabulary_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let tokens: Vec<String> = (0..100_000).map(|i| format!("token {i}")).collect();
    let mut header = GgufHeader::new();
    header.set("tokenizer.ggml.tokens", &tokens);
    header.create(&path).unwrap().finish().unwrap();
    let (length, requested) = requested_by(|| {
        let store = WeightStore::open(&path).unwrap();
        let akunu_gguf::Container::Gguf(file) = store.container() else {
            panic!("a GGUF file");
        };
        let tokens = file.metadata().strings("tokenizer.ggml.tokens");
        tokens.unwrap().unwrap().map(str::len).sum::<usize>()
    });
    assert_eq!(length, tokens.iter().map(String::len).sum::<usize>());
    assert!(requested <= FIXED, "{requested} bytes");
}

/// Counts that claim more than the file holds are refused before anything is allocated for them.
#[test]
fn claims_cost_nothing() {
    let claims = [u64::MAX, 1 << 40, 1 << 30, 1 << 20];
    for claim in claims {
        let counts = [*b"GGUF\x03\0\0\0", claim.to_le_bytes(), claim.to_le_bytes()].concat();
        let key = [&1u64.to_le_bytes()[..], b"k", &9u32.to_le_bytes()].concat();
        let array = [&8u32.to_le_bytes()[..], &claim.to_le_bytes()].concat();
        let one_entry = [*b"GGUF\x03\0\0\0", 0u64.to_le_bytes(), 1u64.to_le_bytes()].concat();
        for bytes in [counts, [one_entry, key, array].concat()] {
            let (result, requested) = requested_by(|| GgufFile::parse(bytes));
            assert!(result.is_err());
            assert!(
                requested <= FIXED,
                "{requested} bytes for a claim of {claim}"
            );
        }
    }
}

#[test]
fn a_safetensors_header_costs_its_own_size_times_a_constant() {
    let entry = |i| {
        format!(
            r#""{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#,
            i + 1
        )
    };
    let entries: Vec<String> = (0..20_000).map(entry).collect();
    let many = format!("{{{}}}", entries.join(","));
    let dims = "1,".repeat(100_000);
    let long = format!(r#"{{"a":{{"dtype":"U8","shape":[{dims}1],"data_offsets":[0,1]}}}}"#);
    for (json, data) in [(many, 20_000), (long, 1)] {
        let file = [
            &(json.len() as u64).to_le_bytes()[..],
            json.as_bytes(),
            &vec![0; data],
        ]
        .concat();
        let (_result, requested) =
            requested_by(|| read_safetensors_header(Path::new("x"), &file).is_ok());
        let limit = SAFETENSORS_FACTOR * file.len() + FIXED;
        assert!(
            requested <= limit,
            "{requested} bytes for a file of {}",
            file.len()
        );
    }
}
