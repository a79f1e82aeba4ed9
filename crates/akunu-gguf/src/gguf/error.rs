//! What can be wrong with a GGUF file.

use std::path::{Path, PathBuf};

/// A GGUF file that cannot be opened, read or written, and why: a sentence that names the file and, where there is one, the
/// metadata key or the tensor.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct GgufError {
    path: PathBuf,
    #[source]
    problem: Problem,
}

impl GgufError {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Why a GGUF file is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The operating system would not let the file be read.
    #[error("cannot be opened: {0}")]
    Open(#[source] std::io::Error),
    /// The operating system would not let the file be written.
    #[error("cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// One of the files of a model that is kept in a folder.
    #[error("is one file of a safetensors model: give the folder that it is in")]
    OneOfAFolder,
    /// The file ends in the list of its metadata or tensors, or something in it claims to be longer than
    /// the file.
    #[error(
        "the download is incomplete, or the file is damaged: it ends after {found} bytes ({inside})"
    )]
    EndsEarly { found: usize, inside: Box<Problem> },
    /// The file ends before the data of its last tensor does.
    #[error("the download is incomplete: the file has {found} bytes of {wanted}; fetch it again")]
    Incomplete { found: usize, wanted: usize },
    /// The file does not begin with `GGUF`.
    #[error("not a GGUF file: {}", begins_with(.found))]
    Magic {
        /// The first bytes, at most four.
        found: Vec<u8>,
    },
    /// The version is that of a big-endian file.
    #[error("a big-endian GGUF file (version {version}): convert it to little endian first")]
    BigEndian {
        /// The version, bytes swapped.
        version: u32,
    },
    /// A version that we do not read.
    #[error("GGUF version {version} is not supported (2 and 3 are): convert the model again")]
    Version { version: u32 },
    /// A field of the header is damaged.
    #[error("header field `{field}`: {fault}")]
    Header { field: &'static str, fault: Fault },
    /// The key or the value of a metadata entry is damaged.
    #[error("metadata {}: {fault}", described(*.index, .key.as_deref()))]
    Metadata {
        /// Position of the entry, from 0.
        index: usize,
        /// Its key, when that could be read.
        key: Option<String>,
        fault: Fault,
    },
    /// Two metadata entries have the same key.
    #[error("metadata key `{key}` occurs twice")]
    DuplicateKey { key: String },
    /// A metadata entry that is needed is not there.
    #[error("metadata key `{key}` is missing: the model was not fully converted")]
    MissingKey { key: String },
    /// A metadata entry has another type than its reader wants.
    #[error("metadata key `{key}` is {found}, expected {wanted}")]
    WrongType {
        key: String,
        found: String,
        wanted: &'static str,
    },
    /// `general.alignment` cannot be used.
    #[error(
        "general.alignment is {alignment}: it must be a power of two from {min} to {max}",
        min = super::parse::MIN_ALIGNMENT,
        max = super::parse::MAX_ALIGNMENT
    )]
    Alignment { alignment: u64 },
    /// The file says it has more tensors than any model has.
    #[error("{count} tensors are more than the {limit} that are supported")]
    TooManyTensors { count: usize, limit: usize },
    /// An entry of the tensor list is damaged.
    #[error("tensor {}: {fault}", described(*.index, .name.as_deref()))]
    Tensor {
        /// Position in the tensor list, from 0.
        index: usize,
        /// Its name, when that could be read.
        name: Option<String>,
        fault: TensorFault,
    },
    /// Two tensors have the same name.
    #[error("tensor `{name}` occurs twice")]
    DuplicateTensor { name: String },
    /// The parts of a split model do not fit together.
    #[error("split model: {0}")]
    Split(#[from] SplitFault),
    /// A file cannot be written as asked.
    #[error("cannot write: {0}")]
    Write(#[from] WriteFault),
}

/// What is wrong with a value or a count.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The file ends inside of it.
    #[error("the file ends inside of it")]
    Truncated,
    /// A count or a length that the rest of the file cannot hold.
    #[error("claims {count} elements where the rest of the file holds at most {limit}")]
    CountBeyondFile { count: u64, limit: usize },
    /// Text that is not UTF-8.
    #[error("is not valid UTF-8")]
    InvalidUtf8,
    /// A key or name without characters, or longer than GGUF allows.
    #[error("is {length} bytes long: 1 to {limit} are allowed")]
    NameLength { length: usize, limit: usize },
    /// A value type that GGUF does not define.
    #[error("has the unknown value type {id}")]
    UnknownValueType { id: u32 },
    /// A bool that is neither 0 nor 1.
    #[error("is a bool with the value {byte}: only 0 and 1 are allowed")]
    InvalidBool { byte: u8 },
    /// Arrays inside arrays, too deep.
    #[error("has arrays nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    /// An element of an array is damaged.
    #[error("element {index} {fault}")]
    Element { index: usize, fault: Box<Fault> },
}

/// What is wrong with an entry of the tensor list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TensorFault {
    /// The entry cannot be read.
    #[error("{0}")]
    Entry(#[from] Fault),
    /// No dimension, or more than four.
    #[error("has {n_dims} dimensions: 1 to 4 are allowed")]
    DimCount { n_dims: u32 },
    /// A dimension of zero elements.
    #[error("has the dimensions {dims:?}: none may be zero")]
    ZeroDim { dims: Vec<u64> },
    /// More elements or bytes than can be counted.
    #[error("has the dimensions {dims:?}: their product overflows")]
    TooLarge { dims: Vec<u64> },
    /// A tensor type that ggml does not define, or that is newer than this program.
    #[error("has the unknown tensor type {id}: convert it to a supported type")]
    UnknownType { id: u32 },
    /// A row does not consist of whole blocks.
    #[error("has rows of {row} values, which is not a multiple of the block of {block} of {dtype}")]
    PartialBlock {
        row: usize,
        block: usize,
        dtype: akunu_types::DType,
    },
    /// An offset that is not a multiple of the alignment.
    #[error("starts at offset {offset}, which is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// Offset in the data section.
        offset: u64,
        alignment: usize,
    },
    /// Data beyond the end of the file.
    #[error(
        "needs {size} bytes at offset {offset} of a data section of {available}: \
         the download is incomplete"
    )]
    BeyondFile {
        /// Offset in the data section.
        offset: u64,
        size: usize,
        /// Bytes of the data section.
        available: usize,
    },
    /// A tensor that begins before the end of the one listed before it.
    #[error("starts at offset {offset}, before the end ({previous_end}) of the tensor before it")]
    Order {
        /// Offset in the data section.
        offset: u64,
        previous_end: usize,
    },
}

/// What is wrong with the parts of a split model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitFault {
    /// The file is a part of several but is not named like one.
    #[error(
        "the file is one of {count} parts, but its name does not end in `-00001-of-{count:05}.gguf`: \
         give the parts their original names"
    )]
    Name { count: u32 },
    /// The name and the metadata disagree.
    #[error("`{key}` is {found}, but the file's name says {expected}")]
    Disagrees {
        key: &'static str,
        /// What the metadata says; `-1` when the key is missing.
        found: i64,
        expected: u32,
    },
    /// A part is not there.
    #[error("part {part} of {count} is missing: put `{name}` into the same folder")]
    MissingPart {
        /// The part, from 1.
        part: u32,
        count: u32,
        name: String,
    },
    /// The parts together do not hold the announced number of tensors.
    #[error("`split.tensors.count` is {expected}, but the parts hold {found} tensors")]
    TensorCount { expected: u32, found: usize },
}

/// What is wrong with a file to be written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteFault {
    /// A tensor that a reader would refuse.
    #[error("tensor `{name}` {fault}")]
    Tensor { name: String, fault: TensorFault },
    /// A tensor declared twice.
    #[error("tensor `{name}` was declared twice")]
    DuplicateTensor { name: String },
    /// A key or a name that a reader would refuse.
    #[error("the key or name `{name}` {fault}")]
    Name { name: String, fault: Fault },
    /// Data for another tensor than the one that is due.
    #[error("data came for tensor `{found}` when {} was due", due.as_deref().unwrap_or("none"))]
    OutOfTurn {
        /// The tensor that the data is for.
        found: String,
        due: Option<String>,
    },
    /// More data than the tensor holds.
    #[error("tensor `{name}` holds {size} bytes, and more came")]
    TooMuchData { name: String, size: usize },
    /// The file was finished before all of its data came.
    #[error("finished before the data of tensor `{name}` was complete")]
    Unfinished {
        /// The first tensor that lacks data.
        name: String,
    },
}

/// `3 (`key`)`, or `3` where there is no readable key.
fn described(index: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{index} (`{name}`)"),
        None => index.to_string(),
    }
}

/// The bytes in place of the magic, readable if they are text: a web page or a note that was saved
/// instead of the model is then recognised.
fn begins_with(found: &[u8]) -> String {
    match found {
        [] => "the file is empty".to_string(),
        _ if super::parse::MAGIC.starts_with(found) => {
            let n = found.len();
            format!("it has only {n} bytes, the download is incomplete")
        }
        _ => format!(
            "it begins with \"{}\" instead of \"GGUF\"",
            found.escape_ascii()
        ),
    }
}

impl Problem {
    /// The problem of one file.
    pub(crate) fn in_file(self, path: impl Into<PathBuf>) -> GgufError {
        GgufError {
            path: path.into(),
            problem: self,
        }
    }

    /// The same; if it is that the file ends too early, then with the length of the file.
    pub(crate) fn in_bytes(self, found: usize) -> Problem {
        let fault = match &self {
            Problem::Header { fault, .. } | Problem::Metadata { fault, .. } => fault,
            Problem::Tensor {
                fault: TensorFault::Entry(fault),
                ..
            } => fault,
            _ => return self,
        };
        if !fault.is_early_end() {
            return self;
        }
        let inside = Box::new(self);
        Problem::EndsEarly { found, inside }
    }

    pub(crate) fn wrong_type(key: &str, found: impl ToString, wanted: &'static str) -> Problem {
        Problem::WrongType {
            key: key.to_string(),
            found: found.to_string(),
            wanted,
        }
    }
}

impl Fault {
    /// Whether more bytes would help.
    fn is_early_end(&self) -> bool {
        match self {
            Fault::Truncated | Fault::CountBeyondFile { .. } => true,
            Fault::Element { fault, .. } => fault.is_early_end(),
            _ => false,
        }
    }

    /// The fault of one element of an array.
    pub(crate) fn at_element(self, index: usize) -> Fault {
        Fault::Element {
            index,
            fault: Box::new(self),
        }
    }
}
