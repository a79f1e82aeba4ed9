//! Valid files with some bytes changed: whatever comes of it, nothing panics.

use super::bytes::{RawGguf, safetensors, walk_gguf, walk_safetensors};
use proptest::prelude::*;

const JSON: &str = r#"{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}"#;

/// What is done to one place of a file.
#[derive(Clone, Debug)]
enum Change {
    Set(u8),
    Add(u8),
    Word(u64),
    Remove(usize),
    Repeat(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let edges = [0, 1, 255, 1 << 31, 1 << 32, 1 << 40, u64::MAX / 2, u64::MAX];
    prop_oneof![
        any::<u8>().prop_map(Change::Set),
        any::<u8>().prop_map(Change::Add),
        prop::sample::select(edges.to_vec()).prop_map(Change::Word),
        (1usize..40).prop_map(Change::Remove),
        (1usize..40).prop_map(Change::Repeat),
    ]
}

fn mutate(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, Change)]) -> Vec<u8> {
    for (at, change) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        let end = |n: usize| (at + n).min(bytes.len());
        match *change {
            Change::Set(byte) => bytes[at] = byte,
            Change::Add(byte) => bytes[at] = bytes[at].wrapping_add(byte),
            Change::Word(word) => {
                let to = end(8);
                bytes[at..to].copy_from_slice(&word.to_le_bytes()[..to - at]);
            }
            Change::Remove(n) => drop(bytes.drain(at..end(n))),
            Change::Repeat(n) => {
                let run = bytes[at..end(n)].to_vec();
                bytes.splice(at..at, run);
            }
        }
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, Change)>> {
    prop::collection::vec((any::<prop::sample::Index>(), change()), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_mutated_gguf_file_is_read_or_refused(changes in changes()) {
        let _outcome = walk_gguf(&mutate(RawGguf::valid().build(), &changes));
    }

    #[test]
    fn a_mutated_safetensors_file_is_read_or_refused(changes in changes()) {
        let _outcome = walk_safetensors(&mutate(safetensors(JSON, &[1; 19]), &changes));
    }
}
