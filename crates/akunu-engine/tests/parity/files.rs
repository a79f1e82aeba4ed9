//! The model files: as they were fetched, or made from them as `akunu-cli quantize` does.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use akunu_gguf::quant::{Source, convert};
use akunu_gguf::{GgufFile, GgufHeader};
use akunu_types::DType;
use sha2::{Digest, Sha256};

/// The file with its matrices in another type, kept between runs.
pub fn converted(from: &Path, dtype: DType, sha256: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("parity-{dtype}.gguf"));
    if !path.is_file() || hash(&path) != sha256 {
        convert_file(from, dtype, &path);
        check_hash(&path, sha256);
    }
    path
}

/// The file is the one that was recorded.
pub fn check_hash(path: &Path, sha256: &str) {
    assert_eq!(hash(path), sha256, "{}", path.display());
}

/// SHA-256 in hexadecimal.
fn hash(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("a readable file");
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn convert_file(from: &Path, dtype: DType, to: &Path) {
    let file = GgufFile::open(from).expect("a whole file");
    let mut header = GgufHeader::new();
    header.copy_metadata(file.metadata());
    let file_type: u32 = match dtype {
        DType::F16 => 1,
        DType::Q4_0 => 2,
        DType::Q8_0 => 7,
        other => panic!("{other} has no number here"),
    };
    header.set("general.file_type", &file_type);
    header.set("general.quantization_version", &2_u32);
    let target = |n_dims: usize| if n_dims == 1 { DType::F32 } else { dtype };
    for tensor in file.tensors() {
        let dims: Vec<u64> = tensor.dims.as_slice().iter().map(|&n| n as u64).collect();
        header.tensor(&tensor.name, &dims, target(dims.len()));
    }
    let mut writer = header.create(to).expect("a header");
    for tensor in file.tensors() {
        let bytes = file.view(tensor).expect("one of its own").bytes;
        let dtype = target(tensor.dims.as_slice().len());
        let n = tensor.dims.n_elements();
        let converted = convert(
            Source::new(tensor.dtype, bytes),
            n,
            dtype,
            NonZeroUsize::MIN,
        );
        writer
            .write(&tensor.name, &converted.expect("finite"))
            .expect("written");
    }
    writer.finish().expect("written");
}
