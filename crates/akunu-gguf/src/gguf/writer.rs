//! Writing GGUF files.
//!
//! A tensor's place follows from the sizes of those before it, so the header can be written before
//! any data exists: declare everything in a [`GgufHeader`], then stream the tensors through a
//! [`GgufWriter`] in the same order. The file appears under its name when it is complete.

use super::encode::MetadataValue;
use super::error::{GgufError, Problem, TensorFault, WriteFault};
use super::metadata::{Metadata, check_name};
use super::parse::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, NEWEST_VERSION};
use super::tensor::{checked_dims, tensor_bytes};
use crate::whole_file::WholeFile;
use akunu_types::DType;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The metadata and the tensor list of a file to be written.
///
/// ```
/// use akunu_gguf::{GgufFile, GgufHeader};
/// use akunu_types::DType;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("tiny.gguf");
/// let mut header = GgufHeader::new();
/// header.set("general.architecture", "llama");
/// header.set("tokenizer.ggml.tokens", &["a", "b"][..]);
/// header.tensor("token_embd.weight", &[4, 2], DType::F32);
/// let mut writer = header.create(&path)?;
/// writer.write("token_embd.weight", &[0; 32])?;
/// writer.finish()?;
///
/// let file = GgufFile::open(&path)?;
/// assert_eq!(file.metadata().string("general.architecture")?, Some("llama"));
/// assert_eq!(file.tensors()[0].dims.as_slice(), [4, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct GgufHeader {
    entries: Vec<Entry>,
    tensors: Vec<Declared>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: String,
    /// Type and value.
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Declared {
    name: String,
    dims: Vec<u64>,
    dtype: DType,
}

impl GgufHeader {
    /// A header without entries.
    pub fn new() -> GgufHeader {
        GgufHeader::default()
    }

    /// Sets a metadata entry, in place of one with the same key.
    pub fn set<T: MetadataValue + ?Sized>(&mut self, key: &str, value: &T) {
        let mut bytes = T::TYPE.id().to_le_bytes().to_vec();
        value.encode(&mut bytes);
        self.set_bytes(key, bytes);
    }

    /// Takes over the metadata of another file. The alignment and the split stay behind: they
    /// describe that file, not the model.
    pub fn copy_metadata(&mut self, from: &Metadata) {
        for (key, bytes) in from.iter_raw() {
            if key != ALIGNMENT_KEY && !key.starts_with("split.") {
                self.set_bytes(key, bytes.to_vec());
            }
        }
    }

    fn set_bytes(&mut self, key: &str, bytes: Vec<u8>) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.bytes = bytes,
            None => self.entries.push(Entry {
                key: key.to_string(),
                bytes,
            }),
        }
    }

    /// Declares the next tensor; dimensions in ggml's order, the length of a row first.
    pub fn tensor(&mut self, name: &str, dims: &[u64], dtype: DType) {
        self.tensors.push(Declared {
            name: name.to_string(),
            dims: dims.to_vec(),
            dtype,
        });
    }

    /// Writes the header to a temporary file beside `path` and waits for the tensors.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<GgufWriter, GgufError> {
        let path = path.as_ref();
        let start = || -> Result<GgufWriter, Problem> {
            let (header, slots) = self.layout()?;
            let mut out = WholeFile::create(path)?;
            out.write_all(&header)?;
            Ok(GgufWriter {
                path: path.to_path_buf(),
                out,
                slots,
                slot: 0,
                written: 0,
            })
        };
        start().map_err(|problem| problem.in_file(path))
    }

    /// The bytes up to the data section, and what is to be written into that.
    fn layout(&self) -> Result<(Vec<u8>, Vec<Slot>), WriteFault> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&NEWEST_VERSION.to_le_bytes());
        (self.tensors.len() as u64).encode(&mut bytes);
        (self.entries.len() as u64).encode(&mut bytes);
        for entry in &self.entries {
            encode_name(&entry.key, &mut bytes)?;
            bytes.extend_from_slice(&entry.bytes);
        }
        let mut slots: Vec<Slot> = Vec::with_capacity(self.tensors.len());
        let mut names = std::collections::HashSet::new();
        let mut offset = 0usize;
        for tensor in &self.tensors {
            if !names.insert(&tensor.name) {
                let name = tensor.name.clone();
                return Err(WriteFault::DuplicateTensor { name });
            }
            encode_name(&tensor.name, &mut bytes)?;
            let slot = tensor.encode(offset as u64, &mut bytes)?;
            offset = slot.end_after(offset).ok_or_else(|| tensor.too_large())?;
            slots.push(slot);
        }
        bytes.resize(bytes.len().next_multiple_of(DEFAULT_ALIGNMENT), 0);
        Ok((bytes, slots))
    }
}

impl Declared {
    /// Appends all of the entry but the name.
    fn encode(&self, offset: u64, out: &mut Vec<u8>) -> Result<Slot, WriteFault> {
        let size = self.size().map_err(|fault| WriteFault::Tensor {
            name: self.name.clone(),
            fault,
        })?;
        (self.dims.len() as u32).encode(out);
        for dim in &self.dims {
            dim.encode(out);
        }
        self.dtype.id().encode(out);
        offset.encode(out);
        Ok(Slot {
            name: self.name.clone(),
            size,
        })
    }

    fn size(&self) -> Result<usize, TensorFault> {
        let id = self.dtype.id();
        DType::from_gguf_id(id).ok_or(TensorFault::UnknownType { id })?;
        tensor_bytes(&checked_dims(&self.dims)?, self.dtype)
    }

    fn too_large(&self) -> WriteFault {
        let dims = self.dims.clone();
        WriteFault::Tensor {
            name: self.name.clone(),
            fault: TensorFault::TooLarge { dims },
        }
    }
}

/// One tensor's place in the data section.
#[derive(Debug)]
struct Slot {
    name: String,
    size: usize,
}

impl Slot {
    /// Where the next tensor starts when this one starts at `offset`.
    fn end_after(&self, offset: usize) -> Option<usize> {
        offset
            .checked_add(self.size)?
            .checked_next_multiple_of(DEFAULT_ALIGNMENT)
    }
}

/// A file whose header is written and whose tensors are coming.
///
/// The data goes to a [`WholeFile`]: [`GgufWriter::finish`] gives it its name, and dropped before that, it leaves
/// nothing behind.
#[derive(Debug)]
pub struct GgufWriter {
    path: PathBuf,
    out: WholeFile,
    slots: Vec<Slot>,
    /// The slot that is being filled, and how many of its bytes came.
    slot: usize,
    written: usize,
}

impl GgufWriter {
    /// Appends bytes to a tensor. Tensors come in the order in which they were declared; one tensor
    /// may come in several calls.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), GgufError> {
        self.append(name, bytes)
            .map_err(|problem| problem.in_file(&*self.path))
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), Problem> {
        let slot = self.slots.get(self.slot);
        let Some(slot) = slot.filter(|slot| slot.name == name) else {
            return Err(Problem::from(WriteFault::OutOfTurn {
                found: name.to_string(),
                due: slot.map(|slot| slot.name.clone()),
            }));
        };
        if bytes.len() > slot.size - self.written {
            return Err(Problem::from(WriteFault::TooMuchData {
                name: name.to_string(),
                size: slot.size,
            }));
        }
        self.out.write_all(bytes)?;
        self.written += bytes.len();
        if self.written == slot.size {
            let padding = slot.size.next_multiple_of(DEFAULT_ALIGNMENT) - slot.size;
            self.out.write_all(&[0; DEFAULT_ALIGNMENT][..padding])?;
            self.slot += 1;
            self.written = 0;
        }
        Ok(())
    }

    /// Gives the complete file its name, in place of a file that had it before.
    pub fn finish(self) -> Result<(), GgufError> {
        let path = self.path.clone();
        self.persist().map_err(|problem| problem.in_file(path))
    }

    fn persist(self) -> Result<(), Problem> {
        if let Some(slot) = self.slots.get(self.slot) {
            let name = slot.name.clone();
            return Err(Problem::from(WriteFault::Unfinished { name }));
        }
        Ok(self.out.finish()?)
    }
}

fn encode_name(name: &str, out: &mut Vec<u8>) -> Result<(), WriteFault> {
    check_name(name).map_err(|fault| WriteFault::Name {
        name: name.to_string(),
        fault,
    })?;
    name.encode(out);
    Ok(())
}
