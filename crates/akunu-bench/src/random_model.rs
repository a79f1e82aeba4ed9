//! `cargo measure random-model`: a GGUF file of a real model's shape, with random weights.
//!
//! How fast a model runs depends on its shapes and types, not on its values. So speed can be measured
//! for models that cannot be fetched. The weights are random bits in valid blocks with small scales,
//! written tensor by tensor: memory use does not grow with the file. The command needs nothing of the
//! workspace, so that the program can be copied to another machine.

mod fill;
mod mix;
mod shape;
mod vocabulary;

use akunu_gguf::{GgufError, GgufHeader};
use akunu_repo::Failure;
use akunu_types::DType;
use fill::Filler;
pub use mix::Mix;
pub use shape::Shape;
use std::path::{Path, PathBuf};

/// Bytes that are made and written at a time.
const CHUNK: usize = 1 << 20;

/// Arguments of `cargo measure random-model`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The model whose shapes to take
    #[arg(value_enum, ignore_case = true)]
    shape: Shape,
    /// The types of the matrices, mixed as llama-quantize mixes them
    #[arg(value_enum, value_name = "TYPE", ignore_case = true)]
    mix: Mix,
    /// The GGUF file to write; one that exists is replaced
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    write(args.shape, args.mix, &args.out)?;
    let size = std::fs::metadata(&args.out).map_err(|source| Failure::io(&args.out, source))?;
    println!("{}: {} bytes", args.out.display(), size.len());
    Ok(())
}

/// Writes the model: a whole file or none.
pub fn write(shape: Shape, mix: Mix, path: &Path) -> Result<(), Failure> {
    write_weights(shape, mix, path).map_err(|error| Failure::Found(error.to_string()))
}

fn write_weights(shape: Shape, mix: Mix, path: &Path) -> Result<(), GgufError> {
    let mut header = GgufHeader::new();
    shape.describe(&mut header);
    header.set("general.file_type", &mix.file_type());
    header.set("general.quantization_version", &2_u32);
    vocabulary::describe(shape.dims().n_vocab, &mut header);
    let tensors = typed_tensors(shape, mix);
    for (tensor, dtype) in &tensors {
        header.tensor(&tensor.name, &tensor.dims, *dtype);
    }
    let mut writer = header.create(path)?;
    let mut filler = Filler::new();
    let mut chunk = vec![0; CHUNK];
    for (tensor, dtype) in &tensors {
        let blocks = tensor.n_values() / dtype.block_len() as u64;
        let per_chunk = (CHUNK / dtype.block_bytes()) as u64;
        let mut left = blocks;
        while left > 0 {
            let n = left.min(per_chunk);
            let bytes = &mut chunk[..n as usize * dtype.block_bytes()];
            match (tensor.is_norm(), tensor.is_rate()) {
                (true, _) => fill::fill_with(1.0, bytes),
                (false, true) => fill::fill_with(-1.0, bytes),
                (false, false) => filler.fill(*dtype, bytes),
            }
            writer.write(&tensor.name, bytes)?;
            left -= n;
        }
    }
    writer.finish()
}

/// Every tensor with the type that this mix gives it.
fn typed_tensors(shape: Shape, mix: Mix) -> Vec<(shape::Tensor, DType)> {
    let tensors = shape.tensors().into_iter();
    let typed = |tensor: shape::Tensor| {
        let dtype = mix.dtype(&tensor, shape.dims());
        (tensor, dtype)
    };
    tensors.map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_gguf::GgufFile;

    /// Fails when a shape lacks a tensor, or has one twice: the counts are those of the real models.
    #[test]
    fn shapes_have_the_parameters_of_their_models() {
        let count = |shape: Shape| -> u64 { shape.tensors().iter().map(|t| t.n_values()).sum() };
        assert_eq!(count(Shape::Smollm2_135m), 134_515_008);
        assert_eq!(count(Shape::Llama3_2_1b), 1_235_814_400);
        // The real Qwen2.5-Coder-1.5B has 28 times biases of 1536 and twice 256 more.
        assert_eq!(count(Shape::Qwen2_5_1_5b), 1_543_714_304 - 28 * 2048);
        assert_eq!(count(Shape::Llama3_8b), 8_030_261_248);
        // The real Qwen1.5-0.5B has 24 times three biases of 1024 more, which a llama has not.
        assert_eq!(count(Shape::Qwen1_5_0_5b), 463_987_712 - 24 * 3 * 1024);
        // The real Qwen3-0.6B has 28 pairs of norms of 128 more, which a llama has not.
        assert_eq!(count(Shape::Qwen3_0_6b), 596_049_920 - 28 * 256);
        assert_eq!(count(Shape::Olmoe7b), 6_919_161_856);
        assert_eq!(count(Shape::GptOss20b), 20_914_757_184);
        assert_eq!(count(Shape::Qwen3_30b), 30_532_122_624);
        // Of all layers feed-forward blocks and two norms, in 18 delta rules, in 6 and the block attention.
        let ffn = 25 * (3 * 1024 * 3584 + 2 * 1024);
        let delta = 1024 * (8192 + 32 + 2048) + 4 * 6144 + 32 + 128;
        let attention = 1024 * (4096 + 2 * 512 + 2048) + 2 * 256;
        let rest = 248_320 * 1024 + 1024 + (2 * 1024 + 3) * 1024;
        let all = ffn + 18 * delta + 7 * attention + rest;
        assert_eq!(count(Shape::Qwen35_0_8b), all);
    }

    /// Fails when a file cannot be read back, or lacks what a reader asks for.
    #[test]
    fn a_file_can_be_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("random.gguf");
        write(Shape::Smollm2_135m, Mix::Q4KM, &path).expect("written");
        let file = GgufFile::open(&path).expect("a valid file");
        let metadata = file.metadata();
        let architecture = metadata.string("general.architecture").expect("text");
        assert_eq!(architecture, Some("llama"));
        let types: std::collections::BTreeSet<&str> =
            file.tensors().iter().map(|t| t.dtype.name()).collect();
        assert_eq!(
            types.into_iter().collect::<Vec<_>>(),
            ["f32", "q4_k", "q5_0", "q6_k", "q8_0"],
            "rows of 576 do not hold blocks of 256"
        );
    }
}
