//! CTranslate2's `model.bin`.
//!
//! ```text
//! u32 version (4 to 6)   string spec   u32 revision
//! u32 n_variables    n × { string name   u8 n_dims   u32 dims[n_dims]   u8 type   u32 n_bytes   bytes }
//! u32 n_aliases      n × { string alias   string name }
//! string = u16 length, characters, 0 (counted)
//! ```
//!
//! All numbers are little-endian. Nothing is aligned: a tensor begins where the one before ends.

use crate::mmap::FileBytes;
use akunu_types::DType;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// Versions of the container in which tensors are written so.
const VERSIONS: std::ops::RangeInclusive<u32> = 4..=6;
/// Real tensors have up to three dimensions.
const MAX_RANK: u8 = 8;
/// Tensors, and second names of them, at most; Whisper's largest has some 1,500.
const MAX_TENSORS: u32 = 1 << 16;

/// An open `model.bin`: the tensors and where their bytes lie.
#[derive(Debug)]
pub struct Ct2File {
    bytes: FileBytes,
    spec: String,
    tensors: Vec<Ct2Tensor>,
}

/// One tensor of a `model.bin`.
#[derive(Clone, Debug)]
pub struct Ct2Tensor {
    /// Its name, such as `decoder/layer_0/ffn/linear_0/weight`.
    pub name: String,
    /// Its dimensions, the slowest first; a single number has none.
    pub dims: Vec<u32>,
    /// The type of its elements.
    pub dtype: DType,
    /// Where its bytes lie in the file.
    pub range: Range<usize>,
}

/// What is wrong with a `model.bin`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ct2Fault {
    /// The operating system refused to read it.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Another version of the container, or another kind of file.
    #[error("is no CTranslate2 model of version 4 to 6 (its first number is {0})")]
    Version(u32),
    /// It ends too early.
    #[error("ends within {0}: it was cut off or is damaged")]
    Truncated(&'static str),
    /// More tensors or second names than any model has.
    #[error("has {0} {1}, and at most {MAX_TENSORS} are possible: it is damaged")]
    Count(u32, &'static str),
    /// A name is not UTF-8.
    #[error("has a name that is no UTF-8 at byte {0}")]
    Name(usize),
    /// A type that the container does not have.
    #[error("tensor `{name}` has the unknown type {id}")]
    Type {
        /// The tensor.
        name: String,
        /// The number of the type.
        id: u8,
    },
    /// The dimensions do not fit the number of bytes.
    #[error("tensor `{name}` has {n_bytes} bytes, which are not those of its dimensions {dims:?}")]
    Size {
        /// The tensor.
        name: String,
        /// Its bytes.
        n_bytes: u32,
        /// Its dimensions.
        dims: Vec<u32>,
    },
}

impl Ct2File {
    /// Opens a file and reads the list of its tensors. The tensors themselves stay where they are.
    pub fn open(path: &Path) -> Result<Ct2File, Ct2Fault> {
        Ct2File::read(FileBytes::map(path)?)
    }

    /// The same with bytes that are in memory.
    pub fn read(bytes: FileBytes) -> Result<Ct2File, Ct2Fault> {
        let mut cursor = Cursor {
            bytes: &bytes,
            at: 0,
        };
        let version = cursor.u32("the header")?;
        if !VERSIONS.contains(&version) {
            return Err(Ct2Fault::Version(version));
        }
        let spec = cursor.string("the header")?;
        cursor.u32("the header")?;
        let mut tensors = Vec::new();
        for _ in 0..cursor.count("the header", "tensors")? {
            tensors.push(cursor.tensor()?);
        }
        let mut places = HashMap::new();
        for (place, tensor) in tensors.iter().enumerate() {
            places.entry(tensor.name.clone()).or_insert(place);
        }
        for _ in 0..cursor.count("the list of aliases", "second names")? {
            let alias = cursor.string("the list of aliases")?;
            let name = cursor.string("the list of aliases")?;
            let meant = places.get(&name).and_then(|&place| tensors.get(place));
            if let Some(tensor) = meant.cloned() {
                places.entry(alias.clone()).or_insert(tensors.len());
                tensors.push(Ct2Tensor {
                    name: alias,
                    ..tensor
                });
            }
        }
        Ok(Ct2File {
            spec,
            tensors,
            bytes,
        })
    }

    /// The kind of model, such as `WhisperSpec`.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// All tensors, in the order of the file; then those that have a second name.
    pub fn tensors(&self) -> &[Ct2Tensor] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Ct2Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The bytes of one of its tensors.
    pub fn bytes(&self, tensor: &Ct2Tensor) -> &[u8] {
        self.bytes.get(tensor.range.clone()).unwrap_or_default()
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take(&mut self, n: usize, what: &'static str) -> Result<Range<usize>, Ct2Fault> {
        let end = self.at.checked_add(n);
        let end = end.filter(|&end| end <= self.bytes.len());
        let range = self.at..end.ok_or(Ct2Fault::Truncated(what))?;
        self.at = range.end;
        Ok(range)
    }

    fn number<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Ct2Fault> {
        let range = self.take(N, what)?;
        let bytes = self.bytes.get(range).and_then(|b| b.try_into().ok());
        bytes.ok_or(Ct2Fault::Truncated(what))
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, Ct2Fault> {
        Ok(self.number::<1>(what)?[0])
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, Ct2Fault> {
        Ok(u32::from_le_bytes(self.number(what)?))
    }

    /// How many there are of something.
    fn count(&mut self, what: &'static str, of: &'static str) -> Result<u32, Ct2Fault> {
        match self.u32(what)? {
            n if n > MAX_TENSORS => Err(Ct2Fault::Count(n, of)),
            n => Ok(n),
        }
    }

    fn string(&mut self, what: &'static str) -> Result<String, Ct2Fault> {
        let length = u16::from_le_bytes(self.number(what)?);
        let range = self.take(length.into(), what)?;
        let bytes = self.bytes.get(range.clone()).unwrap_or_default();
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|_| Ct2Fault::Name(range.start))?;
        Ok(text.to_string())
    }

    fn tensor(&mut self) -> Result<Ct2Tensor, Ct2Fault> {
        let what = "the list of tensors";
        let name = self.string(what)?;
        let n_dims = self.u8(what)?;
        let mut dims = Vec::new();
        for _ in 0..n_dims.min(MAX_RANK) {
            dims.push(self.u32(what)?);
        }
        let id = self.u8(what)?;
        let n_bytes = self.u32(what)?;
        let dtype = match id {
            0 => DType::F32,
            1 => DType::I8,
            2 => DType::I16,
            3 => DType::I32,
            4 => DType::F16,
            5 => DType::BF16,
            _ => return Err(Ct2Fault::Type { name, id }),
        };
        let element = dtype.block_bytes() as u64;
        let size = dims.iter().try_fold(element, |size: u64, &dim| {
            size.checked_mul(dim.into()).filter(|_| dim > 0)
        });
        if n_dims > MAX_RANK || size != Some(n_bytes.into()) {
            return Err(Ct2Fault::Size {
                name,
                n_bytes,
                dims,
            });
        }
        let range = self.take(n_bytes as usize, "a tensor")?;
        Ok(Ct2Tensor {
            name,
            dims,
            dtype,
            range,
        })
    }
}
