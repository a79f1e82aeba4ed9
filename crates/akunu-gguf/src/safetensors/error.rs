//! What can be wrong with a model folder.

use ::safetensors::Dtype as ElementType;
use std::path::{Path, PathBuf};

/// A model folder, or a file in it, that cannot be read, and why: a sentence that names the file and, where there is one, the
/// tensor.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FolderError {
    path: PathBuf,
    #[source]
    problem: FolderProblem,
}

impl FolderError {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Why a model folder is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderProblem {
    /// The operating system refused.
    #[error("cannot be opened: {0}")]
    Io(#[from] std::io::Error),
    /// A folder that is no model.
    #[error(
        "is a folder without config.json: give a GGUF file, or a folder with config.json and safetensors"
    )]
    NotAModel,
    /// A JSON file that is larger than any real one.
    #[error("is {size} bytes long: at most {limit} are accepted")]
    JsonSize {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A JSON file that cannot be parsed.
    #[error("is not valid JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The folder holds no weights.
    #[error("holds neither `model.safetensors` nor `model.safetensors.index.json`")]
    NoWeights,
    /// The header of a safetensors file is damaged.
    #[error("safetensors header: {0}")]
    Header(#[from] HeaderFault),
    /// A tensor is described wrongly.
    #[error("tensor `{name}` {fault}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        fault: EntryFault,
    },
    /// Two tensors have the same name.
    #[error("tensor `{name}` occurs twice")]
    DuplicateTensor {
        /// The name.
        name: String,
    },
    /// The index names a file outside of the folder.
    #[error("the index names the file `{file}`: only plain file names are accepted")]
    IndexedName {
        /// The name found.
        file: String,
    },
    /// The index names a tensor that its file does not have.
    #[error("the index says that `{file}` holds tensor `{name}`, but it does not")]
    IndexedTensor {
        /// The tensor.
        name: String,
        /// The file.
        file: String,
    },
    /// The quantisation is described wrongly or is not one of ours.
    #[error("`{key}`: {fault}")]
    Quantization {
        /// The key in the config, with its path.
        key: String,
        /// What is wrong.
        fault: QuantizationFault,
    },
    /// A quantised weight whose parts do not fit together.
    #[error("quantised weight `{name}` {fault}")]
    Quantized {
        /// The weight.
        name: String,
        /// What is wrong.
        fault: TripleFault,
    },
}

/// What is wrong with the header of a safetensors file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderFault {
    /// The file is shorter than the header's length, or than the header.
    #[error("the file ends inside of it: the download is incomplete")]
    Truncated,
    /// The header is longer than the format allows.
    #[error("it claims {length} bytes, and {limit} are the most that the format allows")]
    Length {
        /// The length found.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// More values than the entries of the most tensors have.
    #[error("it has more than {limit} tensors, or too long shapes or metadata for as many")]
    TooMany {
        /// The most tensors.
        limit: usize,
    },
    /// The header is not what it should be.
    #[error("not valid: {0}")]
    Invalid(String),
    /// The tensors do not fill the file.
    #[error("the tensors end at byte {end} of {available} bytes of data")]
    Uncovered {
        /// Where the last tensor ends.
        end: u64,
        /// Bytes of the data section.
        available: usize,
    },
}

/// What is wrong with one entry of a safetensors header.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryFault {
    /// An element type that we do not know.
    #[error("has the unknown type `{found}`")]
    UnknownType {
        /// The name found.
        found: String,
    },
    /// Dimensions that are zero, too many, or overflow.
    #[error("has the shape {shape}: a dimension is zero, or they are too many or too large")]
    Shape {
        /// The shape.
        shape: String,
    },
    /// Offsets that do not describe a range of the data.
    #[error("lies at {begin}..{end} of {available} bytes of data: the download is incomplete")]
    BeyondFile {
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
        /// Bytes of the data section.
        available: usize,
    },
    /// A range of another size than the shape needs.
    #[error("has {found} bytes, but its shape needs {needed}")]
    Size {
        /// Bytes of the range.
        found: u64,
        /// Bytes of the shape.
        needed: u64,
    },
    /// A tensor that overlaps its neighbour, or leaves a gap.
    #[error("begins at byte {begin}, where the tensor before it ends at {previous_end}")]
    Order {
        /// Where it begins.
        begin: u64,
        /// Where it should begin.
        previous_end: u64,
    },
}

/// What is wrong with the description of the quantisation in `config.json`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantizationFault {
    /// Something that is not an object.
    #[error("must be an object, or `false` for one layer")]
    NotAnObject,
    /// A number is missing or is not one that MLX writes.
    #[error("`{field}` is {found}: {allowed} are supported")]
    Number {
        /// The field.
        field: &'static str,
        /// What the config says.
        found: String,
        /// What it may say.
        allowed: &'static str,
    },
    /// A kind of quantisation that is none of ours.
    #[error(
        "`{found}` quantisation is not supported: {known} are; or fetch a GGUF file of the model"
    )]
    Mode {
        /// Its name.
        found: String,
        /// Those of ours.
        known: String,
    },
}

/// What is wrong with a quantised weight.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TripleFault {
    /// The config does not describe a quantisation for it.
    #[error("has scales, but `config.json` describes no quantisation for it")]
    NotDescribed,
    /// A part is missing.
    #[error("lacks its `{part}`")]
    Missing {
        /// The name of the missing tensor.
        part: String,
    },
    /// The packed values are not 32-bit words.
    #[error("has packed values of type {}, expected U32", .0)]
    PackedType(ElementType),
    /// Scales and biases are not of one type of floats.
    #[error(
        "has scales of type {scales} and biases of type {biases}: both must be F16, BF16 or F32"
    )]
    ScaleType {
        /// Type of the scales.
        scales: ElementType,
        /// Type of the biases.
        biases: ElementType,
    },
    /// Codes and scales of 4-bit floats do not belong together.
    #[error(
        "has {parts}, which do not fit {format}: a byte of scale for each {group_size} values of a row"
    )]
    Floats {
        /// Types and dimensions of both, in ggml's order.
        parts: String,
        /// The format.
        format: &'static str,
        /// Values in a group.
        group_size: usize,
    },
    /// A tensor has another type or shape than its method says.
    #[error(transparent)]
    Part(Box<PartFault>),
    /// Rows that no format has.
    #[error("has rows of {cols} values: only multiples of {block} are supported")]
    Columns {
        /// Values of a row.
        cols: usize,
        /// Values of the smallest group.
        block: usize,
    },
    /// The shapes do not belong together.
    #[error("has {shapes}, which do not fit {bits} bits in groups of {group_size}")]
    Shapes {
        /// The dimensions of the three parts, in ggml's order.
        shapes: String,
        /// Bits of a value.
        bits: u32,
        /// Values in a group.
        group_size: u32,
    },
}

/// A tensor of a weight that has another type or shape than its method says.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("has `{part}` of type {element} and shape {shape:?}: {wanted} is wanted")]
pub(crate) struct PartFault {
    /// The end of its name.
    pub part: &'static str,
    /// The type found.
    pub element: ElementType,
    /// The shape found, the outermost dimension first.
    pub shape: Vec<usize>,
    /// A description of a tensor that fits.
    pub wanted: String,
}

impl FolderProblem {
    /// The problem of one file.
    pub(crate) fn in_file(self, path: impl Into<PathBuf>) -> FolderError {
        FolderError {
            path: path.into(),
            problem: self,
        }
    }

    pub(crate) fn tensor(name: &str, fault: EntryFault) -> FolderProblem {
        FolderProblem::Tensor {
            name: name.to_string(),
            fault,
        }
    }
}
