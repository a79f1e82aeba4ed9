//! Latent attention: quantised matrices of heads that are transposed while they are loaded, and what a token takes.

use std::path::{Path, PathBuf};

use akunu_engine::{KvFormat, Model, SessionOptions};
use akunu_gguf::{GgufFile, GgufHeader, quant};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;

use crate::support::files::{gguf_of, write_gguf};
use crate::support::fixture::Fixture;

/// How the matrices for keys and values of heads are written.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    /// In blocks of 8 bits.
    Blocks,
    /// As the numbers that the blocks have.
    Numbers,
}

/// A copy of a file whose `attn_kv_b` are blocks, or the numbers of those.
fn copy_of(file: &GgufFile, to: PathBuf, written: Written) -> PathBuf {
    let dtype_of = |name: &str| match name.contains("attn_kv_b") && written == Written::Blocks {
        true => DType::Q8_0,
        false => DType::F32,
    };
    let mut header = GgufHeader::new();
    header.copy_metadata(file.metadata());
    for tensor in file.tensors() {
        let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|&n| n as u64).collect();
        header.tensor(&tensor.name, &dims, dtype_of(&tensor.name));
    }
    let mut writer = header.create(&to).expect("a header");
    for tensor in file.tensors() {
        let numbers = file.view(tensor).expect("it is there").bytes.to_vec();
        let bytes = match tensor.name.contains("attn_kv_b") {
            true => in_blocks(&numbers, written),
            false => numbers,
        };
        writer.write(&tensor.name, &bytes).expect("written");
    }
    writer.finish().expect("written");
    to
}

fn in_blocks(numbers: &[u8], written: Written) -> Vec<u8> {
    let words = numbers.chunks_exact(size_of::<f32>());
    let mut numbers: Vec<f32> = words.map(bytemuck::pod_read_unaligned).collect();
    let mut blocks = vec![0; DType::Q8_0.bytes_of(numbers.len()).expect("whole blocks")];
    quant::quantise(DType::Q8_0, &numbers, &mut blocks).expect("finite");
    if written == Written::Blocks {
        return blocks;
    }
    quant::dequantise(DType::Q8_0, &blocks, &mut numbers).expect("whole blocks");
    bytemuck::cast_slice(&numbers).to_vec()
}

fn logits(path: &Path, tokens: &[u32]) -> Vec<f32> {
    let model = Model::load(path, Box::new(TwinDevice::new())).expect("it loads");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    session.feed(tokens).expect("fits");
    session.logits().expect("there are some")
}

/// The transposed keys of heads are the numbers of the blocks, and the values are read from the blocks: only the order of sums differs.
#[test]
fn quantised_matrices_of_heads_mean_the_same() {
    let model = Fixture::read("transformers", "deepseek2-old");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = GgufFile::open(write_gguf(&model, folder.path())).expect("a GGUF file");
    let [blocks, numbers] = [Written::Blocks, Written::Numbers].map(|written| {
        let name = if written == Written::Blocks {
            "blocks.gguf"
        } else {
            "numbers.gguf"
        };
        copy_of(&file, folder.path().join(name), written)
    });
    let [found, wanted] = [&blocks, &numbers].map(|path| logits(path, &model.tokens[..20]));
    let error = nmse(&found, &wanted);
    assert!(error < 1e-9, "NMSE {error:e}");
    let error = nmse(&found, &model.logits[&20]);
    assert!(
        error > 1e-9,
        "the matrices are not quantised: NMSE {error:e}"
    );
}

/// A layer stores one key of 64 elements for all heads, as key and as value.
#[test]
fn a_token_takes_one_key_and_one_value_a_layer() {
    let tiny = gguf_of("deepseek2");
    let model = Model::load(&tiny.path, Box::new(TwinDevice::new())).expect("it loads");
    let config = model.config();
    let layers = config.layers.len() as u64;
    assert_eq!(
        config.kv_bytes_read(10, KvFormat::F16),
        10 * layers * 2 * 64 * 2
    );
}
