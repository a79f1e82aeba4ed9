//! The matrix products, and the weights as they read them.
//!
//! Quantised weights are laid out anew when a plan is prepared: as panels of sixteen rows ([`format`]), which decoding
//! reads from front to back ([`dots`]) and which become tiles ([`gemm`]) or 16-bit integers ([`pairs`]) for the products
//! of a prompt. Floating-point weights are read as they are ([`rows`]), and become tiles ([`float_gemm`]) or columns of
//! f32 ([`columns`]) for a prompt.

mod activation;
mod dots;
mod format;
mod matrix;
mod pack;
mod product;
mod row;
mod rows;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod blocked;
#[cfg(target_arch = "x86_64")]
mod cells256;
#[cfg(target_arch = "x86_64")]
mod cells512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod columns;
#[cfg(target_arch = "x86_64")]
mod expand;
#[cfg(target_arch = "x86_64")]
mod float_gemm;
#[cfg(target_arch = "x86_64")]
mod gemm;
#[cfg(target_arch = "x86_64")]
mod kind;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod pairs;
#[cfg(target_arch = "x86_64")]
mod pairs256;
#[cfg(target_arch = "x86_64")]
mod pairs512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tiled;
#[cfg(target_arch = "x86_64")]
mod words;

use std::sync::Arc;

use akunu_kernels::kernel::matmul::product::Product;
use akunu_kernels::plan::Slice;
use akunu_kernels::{DeviceError, KernelId, Plan};

pub(crate) use activation::Activations;
#[cfg(target_arch = "x86_64")]
pub(crate) use blocked::Group;
pub(crate) use dots::Dots;
pub(crate) use product::Quantised;
pub(crate) use rows::Rows;

use crate::call::Kernel;
use crate::isa::Isa;
use crate::kernel::attention;
use crate::memory::{Buffers, Pages};
use crate::pool::ThreadPool;
use crate::simd::kernel as simd;
use matrix::Matrix;
use pack::Source;

/// The fast form of a product, where there is one.
pub(crate) fn select(kernel: KernelId, isa: Isa) -> Option<Kernel> {
    if isa == Isa::Scalar {
        return None;
    }
    match kernel {
        KernelId::Gemv(_)
        | KernelId::GemvWide(_)
        | KernelId::GemvBatched(_)
        | KernelId::SimdGemm(_)
        | KernelId::SimdGemmSmall(_) => Some(product::product),
        KernelId::GemvSilu(_) => Some(simd::<product::Gated<false>>(isa)),
        KernelId::GemvGelu(_) => Some(simd::<product::Gated<true>>(isa)),
        _ => None,
    }
}

/// Where the weight stands among the bindings of a product that reads panels.
fn weight_binding(kernel: KernelId, isa: Isa) -> Option<usize> {
    select(kernel, isa)?;
    match kernel {
        KernelId::GemvSilu(_) | KernelId::GemvGelu(_) => Some(2),
        _ => Some(1),
    }
}

/// Weights that were laid out for the products, ordered by their place, and memory that all threads share in a
/// dispatch: the tiles of x in a product, the sums of runs of keys in attention.
#[derive(Default)]
pub(crate) struct Panels {
    matrices: Vec<((u32, usize), Matrix)>,
    tiles: Option<Pages>,
    sums: Option<Pages>,
}

/// Bytes of the file that all parts together read between two times that they give pages back.
const BYTES_AT_ONCE: usize = 16 << 20;

/// A weight that has no panels yet.
struct Wanted<'a> {
    weight: Slice,
    source: Source<'a>,
    plan: matrix::Plan,
}

fn key(weight: Slice) -> (u32, usize) {
    (weight.buffer.id, weight.offset)
}

impl Panels {
    /// The panels of the weight at a place.
    pub fn find(&self, weight: Slice) -> Option<&Matrix> {
        let at = self
            .matrices
            .binary_search_by_key(&key(weight), |(key, _)| *key);
        at.ok().map(|at| &self.matrices[at].1)
    }

    /// Memory for `bytes` bytes of tiles, if as many were prepared.
    #[cfg(target_arch = "x86_64")]
    pub fn tiles(&self, bytes: usize) -> Option<*mut u8> {
        let tiles = self.tiles.as_ref()?;
        (bytes <= tiles.bytes().len()).then(|| tiles.pointer())
    }

    /// Memory for `n` sums, if as many were prepared.
    pub fn sums(&self, n: usize) -> Option<*mut f32> {
        let sums = self.sums.as_ref()?;
        (n * size_of::<f32>() <= sums.bytes().len()).then(|| sums.pointer().cast())
    }

    /// Forgets what was made of a buffer that no longer exists.
    pub fn release(&mut self, buffer: u32) {
        self.matrices.retain(|((of, _), _)| *of != buffer);
    }

    /// Lays out the weights of a plan's products that are not laid out yet, and makes room for tiles.
    pub fn prepare(
        &mut self,
        plan: &Plan,
        buffers: &Buffers,
        isa: Isa,
        pool: &mut ThreadPool,
    ) -> Result<(), DeviceError> {
        let mut wanted: Vec<Wanted> = Vec::new();
        let (mut tiles, mut sums) = (0, 0);
        for dispatch in plan.dispatches() {
            if attention::is_attention(dispatch.kernel) {
                let row = dispatch.kernel.row();
                let args = row.args(dispatch.params.as_bytes(), &dispatch.constants);
                sums = sums.max(attention::shared_len(&args) * size_of::<f32>());
            }
            let Some(at) = weight_binding(dispatch.kernel, isa) else {
                continue;
            };
            let slice = dispatch.bindings[at];
            let row = dispatch.kernel.row();
            let product = Product::of(&row.args(dispatch.params.as_bytes(), &dispatch.constants));
            tiles = tiles.max(tile_bytes(isa, &product));
            let known = self.find(slice).is_some() || wanted.iter().any(|w| w.weight == slice);
            if !known && !slice.buffer.writable {
                wanted.extend(Wanted::of(&product, slice, buffers));
            }
        }
        self.lay_out(&wanted, buffers, pool)?;
        grow(&mut self.tiles, tiles, "tiles")?;
        grow(&mut self.sums, sums, "sums of attention")
    }

    /// Fills the panels of all weights that are wanted. Each part fills those that it will multiply, in memory beside
    /// its core if there are several, and gives the pages of the file back as it goes.
    fn lay_out(
        &mut self,
        wanted: &[Wanted],
        buffers: &Buffers,
        pool: &mut ThreadPool,
    ) -> Result<(), DeviceError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let bytes = wanted.iter().map(|w| w.plan.bytes()).sum();
        let memory = Arc::new(pages(bytes, "weights in panels")?);
        let mut first = 0;
        let mut matrices = Vec::with_capacity(wanted.len());
        for w in wanted {
            matrices.push(Matrix::new(w.plan, Arc::clone(&memory), first));
            first += w.plan.bytes();
        }
        let job = |part: &mut crate::part::Part| {
            for (w, matrix) in wanted.iter().zip(&matrices) {
                let at_once = (BYTES_AT_ONCE / part.count / w.source.panel_bytes()).max(1);
                let own = part.range(w.plan.count());
                for from in own.clone().step_by(at_once) {
                    let range = from..own.end.min(from + at_once);
                    // SAFETY: each part has panels of its own, and nobody reads them before the job ends.
                    unsafe { matrix.fill(&w.source, range.clone()) };
                    let read = w.source.bytes_of_panels(range);
                    buffers.forget(w.weight.buffer, w.weight.offset + read.start, read.len());
                }
            }
        };
        pool.run(&job).map_err(|why| DeviceError::Dispatch {
            index: 0,
            kernel: "panels".into(),
            why,
        })?;
        // What is left: scales behind the rows, and pages that belong to two parts.
        for w in wanted {
            buffers.forget(w.weight.buffer, w.weight.offset, w.source.bytes.len());
        }
        memory.prefer_large();
        self.matrices
            .extend(wanted.iter().map(|w| key(w.weight)).zip(matrices));
        self.matrices.sort_by_key(|(key, _)| *key);
        Ok(())
    }
}

impl<'a> Wanted<'a> {
    /// The weight of a product; `None` when it cannot be laid out in panels.
    fn of(product: &Product, weight: Slice, buffers: &'a Buffers) -> Option<Wanted<'a>> {
        let [_, bytes, _] = product.bytes();
        let bytes = buffers.place(weight.buffer, weight.offset).read(bytes);
        let source = Source::new(product.weight, bytes);
        let plan = matrix::Plan::of(&source)?;
        Some(Wanted {
            weight,
            source,
            plan,
        })
    }
}

/// Bytes of the tiles that a product makes of x.
fn tile_bytes(isa: Isa, product: &Product) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let of_rows = rows::Float::of(product.weight.dtype).is_some();
        tiled::bytes(isa, product, of_rows)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (isa, product);
        0
    }
}

/// Makes room for `bytes` bytes, where there are fewer. Nothing that was there is kept.
fn grow(memory: &mut Option<Pages>, bytes: usize, label: &str) -> Result<(), DeviceError> {
    let has = memory.as_ref().map_or(0, |has| has.bytes().len());
    if has < bytes {
        *memory = Some(pages(bytes, label)?);
    }
    Ok(())
}

fn pages(bytes: usize, label: &str) -> Result<Pages, DeviceError> {
    Pages::zeroed(bytes).ok_or_else(|| DeviceError::Memory {
        bytes,
        label: label.into(),
    })
}
