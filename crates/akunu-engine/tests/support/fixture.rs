//! What `fixtures/make_model_fixtures.py` and its like recorded of a model, and
//! the formula of its weights.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// A model as `transformers` computes it.
#[derive(Deserialize)]
pub struct Fixture {
    /// The name in GGUF's `general.architecture`.
    pub arch: String,
    /// `config.json`.
    pub config: Value,
    /// Metadata of a GGUF file.
    pub metadata: BTreeMap<String, Value>,
    pub weights: Vec<Weight>,
    /// The weight of that name in a GGUF file.
    pub rope_freqs: Option<Vec<f32>>,
    /// The weights of long-rope in a GGUF file.
    #[serde(default)]
    pub rope_factors: BTreeMap<String, Vec<f32>>,
    /// Vectors that only a GGUF file has.
    #[serde(default)]
    pub gguf_only: BTreeMap<String, Vec<f32>>,
    /// Error of the logits from rounding keys and values to 16 bits, as a share of their power; 0 if it was not measured.
    #[serde(default)]
    pub rounding: f64,
    #[serde(default)]
    pub tokens: Vec<u32>,
    /// The logits after so many tokens.
    #[serde(default)]
    pub logits: BTreeMap<usize, Vec<f32>>,
    /// The logits of the block for multi-token prediction after so many tokens: after the next one, and after two guesses.
    #[serde(default)]
    pub mtp: BTreeMap<usize, Vec<Vec<f32>>>,
    /// What an encoder makes of some texts.
    #[serde(default)]
    pub texts: Vec<Text>,
    /// Images among the tokens, or those that a vision tower sees.
    #[serde(default)]
    pub images: Vec<Image>,
    /// Feature maps of an image that are added after layers.
    #[serde(default)]
    pub deep: usize,
}

/// An image, and the rows that a vision tower makes of it.
#[derive(Clone, Default, Deserialize)]
pub struct Image {
    /// Where it begins among the tokens.
    #[serde(default)]
    pub start: usize,
    /// Lines of patches, or of rows among the tokens.
    pub height: u32,
    /// Patches or rows of a line.
    pub width: u32,
    /// (squares of patches, width of the language model).
    #[serde(default)]
    pub rows: Vec<f32>,
    /// Rows for the first layers of the language model, each of the same shape.
    #[serde(default)]
    pub deep: Vec<Vec<f32>>,
}

/// A text, and what an encoder makes of it.
#[derive(Deserialize)]
pub struct Text {
    pub tokens: Vec<u32>,
    /// Tokens of the first text of a pair.
    pub n_first: usize,
    /// The mean of the vectors of all tokens, and those of the first and the last one.
    #[serde(default)]
    pub mean: Vec<f32>,
    #[serde(default)]
    pub first: Vec<f32>,
    #[serde(default)]
    pub last: Vec<f32>,
    /// The scores of a classifier.
    #[serde(default)]
    pub scores: Vec<f32>,
}

/// How a weight is computed, and what a conversion to GGUF does to it.
#[derive(Clone, Deserialize)]
pub struct Weight {
    /// Name in safetensors.
    pub name: String,
    /// Name in a folder, if it is part of a larger model there.
    #[serde(default)]
    pub stored: Option<String>,
    /// Name in GGUF.
    pub gguf: String,
    /// What GGUF has of it, if it has parts.
    #[serde(default)]
    pub gguf_parts: Vec<Part>,
    /// Where GGUF has the second half of the rows of each matrix, if it has halves.
    #[serde(default)]
    pub gguf_half: Option<String>,
    /// Rows and columns, or the length of a vector; first the number of matrices that lie one behind the other.
    pub shape: Vec<u64>,
    pub scale: f32,
    pub offset: f32,
    gguf_adds: f32,
    /// The heads of a matrix whose rows are interleaved in GGUF; 0 for others.
    interleaved_heads: usize,
    /// The heads of values, if GGUF has them in a different order.
    #[serde(default)]
    tiled: Option<Tiled>,
    /// Rows of a vector that is a matrix in GGUF.
    #[serde(default)]
    pub gguf_rows: Option<u64>,
    /// Tensors that GGUF has instead of it: names, and their rows, as the first of each piece and their number.
    #[serde(default)]
    pub gguf_pieces: Vec<(String, Vec<[usize; 2]>)>,
    /// Tensors that GGUF has for each image, if the weight has the kernels of several: (outputs, channels, images, side, side).
    #[serde(default)]
    pub gguf_frames: Vec<String>,
    /// Pixels on a side of the kernel that the weight, (outputs, side * side * 3), is in GGUF, (outputs, 3, side, side); 0 for
    /// others.
    #[serde(default)]
    pub gguf_kernel: usize,
    /// If GGUF has keys and values of latent attention apart: the heads, and the rows of each head that are of keys.
    #[serde(default)]
    pub latent: Option<LatentHeads>,
    /// Whether GGUF has `-e^w`.
    #[serde(default)]
    pub minus_exp: bool,
    /// What GGUF multiplies rows by: how many rows have each factor.
    #[serde(default)]
    pub gguf_factors: Vec<(usize, f32)>,
    /// Whether it has ones on its diagonal and zeros elsewhere, instead of what the formula gives.
    #[serde(default)]
    pub is_identity: bool,
}

/// The heads of a matrix that has the rows for keys and those for values of each head one behind the other.
#[derive(Clone, Copy, Deserialize)]
pub struct LatentHeads {
    pub heads: usize,
    pub plain: usize,
}

impl LatentHeads {
    /// The dimensions and the numbers of each head's keys, transposed, and of its values.
    pub fn split(self, whole: &[f32], cols: usize) -> [(Vec<u64>, Vec<f32>); 2] {
        let LatentHeads { heads, plain } = self;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for head in whole.chunks_exact(whole.len() / heads) {
            let (of_keys, of_values) = head.split_at(plain * cols);
            let transposed = |at: usize| of_keys[at % plain * cols + at / plain];
            keys.extend((0..of_keys.len()).map(transposed));
            values.extend_from_slice(of_values);
        }
        let rows = values.len() / heads / cols;
        let dims = |inner: [usize; 3]| inner.map(|n| n as u64).to_vec();
        [
            (dims([plain, cols, heads]), keys),
            (dims([cols, rows, heads]), values),
        ]
    }
}

/// Some rows of a matrix, which are a tensor of their own in GGUF.
#[derive(Clone, Deserialize)]
pub struct Part {
    pub gguf: String,
    first: usize,
    /// Rows that lie together, and those from there to the next.
    run: usize,
    step: usize,
    interleaved_heads: usize,
}

impl Part {
    /// Its rows of the whole matrix.
    pub fn values(&self, whole: &[f32], cols: usize) -> Vec<f32> {
        let runs = whole.chunks_exact(self.step * cols);
        let own = self.first * cols..(self.first + self.run) * cols;
        let rows: Vec<f32> = runs.flat_map(|run| &run[own.clone()]).copied().collect();
        interleaved(rows, cols, self.interleaved_heads)
    }
}

/// Rows of as many heads, the halves of each of which are interleaved; as they are for 0 heads.
fn interleaved(values: Vec<f32>, cols: usize, heads: usize) -> Vec<f32> {
    if heads == 0 {
        return values;
    }
    let n_rows = values.len() / cols;
    let head = n_rows / heads;
    let rows = (0..n_rows).flat_map(|row| {
        let (first, within) = (row / head * head, row % head);
        let from = first + within % 2 * (head / 2) + within / 2;
        &values[from * cols..][..cols]
    });
    rows.copied().collect()
}

/// Heads of values, grouped by key head in folders; GGUF has the first of each group, then the second of each, and so on.
#[derive(Clone, Deserialize)]
struct Tiled {
    keys: usize,
    values: usize,
    /// Rows before them.
    before: usize,
    /// Rows, or columns, of a head.
    head: usize,
    /// Whether they are columns.
    columns: bool,
}

impl Tiled {
    /// The rows, or columns, in GGUF's order.
    fn order(&self) -> impl Iterator<Item = usize> {
        let share = self.values / self.keys;
        let heads = (0..self.values).map(move |head| head % self.keys * share + head / self.keys);
        let own = heads.flat_map(|head| head * self.head..(head + 1) * self.head);
        (0..self.before).chain(own.map(|at| self.before + at))
    }
}

impl Fixture {
    /// The model of this name in a folder of `fixtures`.
    pub fn read(folder: &str, name: &str) -> Fixture {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
        Fixture::open(format!("{fixtures}/{folder}/{name}.json").as_ref())
    }

    /// The model of a file.
    pub fn open(path: &Path) -> Fixture {
        let text = std::fs::read_to_string(path).expect("a fixture");
        serde_json::from_str(&text).expect("a whole fixture")
    }
}

impl Weight {
    /// The values in safetensors.
    pub fn values(&self) -> Vec<f32> {
        let n: u64 = self.shape.iter().product();
        if self.is_identity {
            let diagonal = |i: u64| i / self.shape[1] == i % self.shape[1];
            return (0..n).map(|i| f32::from(u8::from(diagonal(i)))).collect();
        }
        let value = |i| uniform(&self.name, i) * self.scale + self.offset;
        (1..=n).map(value).collect()
    }

    /// The values in GGUF: norms of Gemma count from 0 and are stored from 1, and the halves of
    /// Llama's heads are interleaved row by row.
    pub fn gguf_values(&self) -> Vec<f32> {
        let changed = |value: &f32| match self.minus_exp {
            true => -value.exp(),
            false => value + self.gguf_adds,
        };
        let mut values: Vec<f32> = self.values().iter().map(changed).collect();
        let cols: u64 = self.shape.iter().skip(1).product();
        let mut rest = &mut values[..];
        for &(rows, factor) in &self.gguf_factors {
            let (own, others) = rest.split_at_mut(rows * cols as usize);
            own.iter_mut().for_each(|value| *value *= factor);
            rest = others;
        }
        self.gguf_rows(values, cols as usize)
    }

    /// The values of the halves of each matrix in GGUF.
    pub fn gguf_halves(&self) -> [Vec<f32>; 2] {
        let n: u64 = self.shape.iter().rev().take(2).product();
        let (values, half) = (self.gguf_values(), n as usize / 2);
        [0, half].map(|first| {
            let matrices = values.chunks_exact(2 * half);
            matrices
                .flat_map(|matrix| &matrix[first..first + half])
                .copied()
                .collect()
        })
    }

    /// The kernel that GGUF has of it, (outputs, 3, side, side).
    pub fn gguf_kernel(&self) -> Vec<f32> {
        let (values, plane) = (self.values(), self.gguf_kernel * self.gguf_kernel);
        let of_output = |pixels: &[f32]| {
            let at = (0..3 * plane).map(|at| pixels[at % plane * 3 + at / plane]);
            at.collect::<Vec<f32>>()
        };
        values.chunks_exact(3 * plane).flat_map(of_output).collect()
    }

    /// The kernels of each image, (outputs, channels, side, side), and their names in GGUF.
    pub fn gguf_kernels(&self) -> impl Iterator<Item = (&str, Vec<f32>)> {
        let (values, plane) = (self.values(), self.shape[3] * self.shape[4]);
        let n_frames = self.gguf_frames.len();
        self.gguf_frames
            .iter()
            .enumerate()
            .map(move |(frame, name)| {
                let planes = values.chunks_exact(plane as usize);
                let own = planes.skip(frame).step_by(n_frames);
                (name.as_str(), own.flatten().copied().collect())
            })
    }

    /// The tensors that GGUF has instead of it, with their rows and values.
    pub fn gguf_pieced(&self) -> impl Iterator<Item = (&str, u64, Vec<f32>)> {
        let (values, cols) = (self.values(), self.shape[1] as usize);
        self.gguf_pieces.iter().map(move |(name, pieces)| {
            let piece = |&[first, rows]: &[usize; 2]| &values[first * cols..][..rows * cols];
            let rows = pieces.iter().map(|[_, rows]| *rows as u64).sum();
            let found = pieces.iter().flat_map(piece).copied().collect();
            (name.as_str(), rows, found)
        })
    }

    /// Rows of as many numbers, one for each row of the weight, in the order that they have in GGUF.
    pub fn gguf_rows(&self, values: Vec<f32>, cols: usize) -> Vec<f32> {
        if let Some(tiled) = &self.tiled {
            let order: Vec<usize> = tiled.order().collect();
            return match tiled.columns {
                true => {
                    let rows = values.chunks_exact(cols);
                    rows.flat_map(|row| order.iter().map(|&at| row[at]))
                        .collect()
                }
                false => order
                    .iter()
                    .flat_map(|&at| &values[at * cols..][..cols])
                    .copied()
                    .collect(),
            };
        }
        interleaved(values, cols, self.interleaved_heads)
    }
}

/// Number `i` of a sequence from -1 to 1 that the name begins, exact in 24 bits.
pub fn uniform(name: &str, i: u64) -> f32 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    let mut x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    (x >> 40) as f32 / (1 << 23) as f32 - 1.0
}
