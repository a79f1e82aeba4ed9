//! Model files written byte by byte, so that any field can be wrong.

use akunu_gguf::{GgufFile, Value, read_safetensors_header};
use std::path::Path;

pub const U8: u32 = 0;
pub const U32: u32 = 4;
pub const BOOL: u32 = 7;
pub const STRING: u32 = 8;
pub const ARRAY: u32 = 9;

pub const F32: u32 = 0;
pub const Q4_0: u32 = 2;

/// A GGUF file in pieces. Counts follow from the lists unless they are set.
#[derive(Clone)]
pub struct RawGguf {
    pub magic: [u8; 4],
    pub version: u32,
    pub n_tensors: Option<u64>,
    pub n_entries: Option<u64>,
    pub entries: Vec<Vec<u8>>,
    pub tensors: Vec<Vec<u8>>,
    pub padding: usize,
    pub data: Vec<u8>,
}

impl RawGguf {
    pub fn new() -> RawGguf {
        RawGguf {
            magic: *b"GGUF",
            version: 3,
            n_tensors: None,
            n_entries: None,
            entries: Vec::new(),
            tensors: Vec::new(),
            padding: 32,
            data: Vec::new(),
        }
    }

    /// A small file with every kind of thing in it: the one that is truncated and mutated.
    pub fn valid() -> RawGguf {
        let numbers = [1u32, 2, 3].map(u32::to_le_bytes).concat();
        let tokens = ["<s>", "▁a", "b"]
            .map(|token| string(token.as_bytes()))
            .concat();
        let inner = array(U8, 2, &[7, 8]);
        let nested = array(ARRAY, 2, &[inner.clone(), inner].concat());
        RawGguf::new()
            .entry("general.architecture", STRING, &string(b"llama"))
            .entry("llama.block_count", U32, &1u32.to_le_bytes())
            .entry("llama.flag", BOOL, &[1])
            .entry("tokenizer.ggml.tokens", ARRAY, &array(STRING, 3, &tokens))
            .entry("tokenizer.ggml.token_type", ARRAY, &array(U32, 3, &numbers))
            .entry("nested", ARRAY, &nested)
            .tensor("token_embd.weight", &[32, 3], Q4_0, 0)
            .tensor("output_norm.weight", &[8], F32, 64)
            .data(96)
    }

    pub fn entry(mut self, key: &str, kind: u32, value: &[u8]) -> RawGguf {
        self.entries.push(entry(key.as_bytes(), kind, value));
        self
    }

    pub fn tensor(mut self, name: &str, dims: &[u64], kind: u32, offset: u64) -> RawGguf {
        self.tensors
            .push(tensor(name.as_bytes(), dims, kind, offset));
        self
    }

    pub fn data(mut self, len: usize) -> RawGguf {
        self.data = (0..len).map(|i| i as u8).collect();
        self
    }

    pub fn build(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(
            self.n_tensors
                .unwrap_or(self.tensors.len() as u64)
                .to_le_bytes(),
        );
        bytes.extend(
            self.n_entries
                .unwrap_or(self.entries.len() as u64)
                .to_le_bytes(),
        );
        bytes.extend(self.entries.concat());
        bytes.extend(self.tensors.concat());
        bytes.resize(bytes.len().next_multiple_of(self.padding), 0);
        bytes.extend(&self.data);
        bytes
    }
}

pub fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

pub fn array(kind: u32, len: u64, elements: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), elements].concat()
}

pub fn entry(key: &[u8], kind: u32, value: &[u8]) -> Vec<u8> {
    [&string(key)[..], &kind.to_le_bytes(), value].concat()
}

pub fn tensor(name: &[u8], dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend((dims.len() as u32).to_le_bytes());
    bytes.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes
}

/// A safetensors file from the JSON of its header.
pub fn safetensors(json: &str, data: &[u8]) -> Vec<u8> {
    [&(json.len() as u64).to_le_bytes(), json.as_bytes(), data].concat()
}

/// Opens bytes as a GGUF file and looks at every value and every byte of every tensor. The sum keeps
/// the reads from being optimised away.
pub fn walk_gguf(bytes: &[u8]) -> Result<u64, String> {
    let file = GgufFile::parse(bytes.to_vec()).map_err(|error| error.to_string())?;
    let values: u64 = file
        .metadata()
        .iter()
        .map(|(_, value)| walk_value(value))
        .sum();
    let tensors = file.tensors().iter().map(|info| {
        let view = file.tensor(&info.name).expect("a listed tensor is found");
        view.bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>()
    });
    Ok(values.wrapping_add(tensors.sum::<u64>()))
}

fn walk_value(value: Value<'_>) -> u64 {
    match value {
        Value::Str(text) => text.chars().count() as u64,
        Value::Array(array) => {
            assert_eq!(
                array.iter().count(),
                array.len(),
                "a checked array can be walked"
            );
            array.iter().map(walk_value).sum()
        }
        number => number.as_integer().map_or(1, |n| n as u64 & 0xff),
    }
}

/// Reads a safetensors header and looks at every byte of every tensor.
pub fn walk_safetensors(bytes: &[u8]) -> Result<u64, String> {
    let tensors =
        read_safetensors_header(Path::new("x"), bytes).map_err(|error| error.to_string())?;
    let sums = tensors.iter().map(|tensor| {
        let data = bytes
            .get(tensor.range.clone())
            .expect("a checked range is inside of the file");
        data.iter().map(|&byte| u64::from(byte)).sum::<u64>()
    });
    Ok(sums.sum())
}
