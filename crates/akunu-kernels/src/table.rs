//! The kernel table: one line for each kernel, or for a kernel in all weight formats.
//!
//! Every kernel is chosen by some lowering: `tests/it/chosen.rs` compares the two.

use akunu_types::params::{Row, SamplingRule};
use akunu_types::{DType, StructLayout};

use crate::case::Case;
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::cost::Work;
use crate::kernel::{
    activation, attention, common, convert, embedding, fused, kv_cache, matmul, norm, nvidia, rope,
    sampling,
};
use crate::twin::Twin;

/// Defines [`KernelId`] from the table below: a variant for each single kernel, and for each grid a
/// variant that carries the weight format, one of those that the function after `for` names.
macro_rules! kernel_table {
    (single { $($single:ident => $single_path:path,)* } grid { $($grid:ident => $grid_path:path, for $formats:path;)* }) => {
        /// A kernel. Variants that carry a [`DType`] exist for the weight formats that [`KernelId::all`] lists.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the kernel's own file documents it")]
        pub enum KernelId { $($single,)* $($grid(DType),)* }

        impl KernelId {
            /// The kernel's row.
            pub fn row(self) -> KernelRow {
                match self {
                    $(KernelId::$single => $single_path,)*
                    $(KernelId::$grid(dtype) => $grid_path(dtype),)*
                }
            }

            /// Every kernel, singles first, then each grid in the order of formats.
            pub fn all() -> Vec<KernelId> {
                let singles = [$(KernelId::$single),*].into_iter();
                singles$(.chain($formats().map(KernelId::$grid)))*.collect()
            }
        }
    };
}

kernel_table! {
    single {
        AdvanceRows => sampling::advance_rows::ROW,
        Argmax => sampling::argmax::ROW,
        ArgmaxPartial => sampling::argmax_partial::ROW,
        BiasAdd => common::bias_add::ROW,
        Copy => common::copy::ROW,
        CrossAttention => attention::row_attention::CROSS,
        DecodeAttention => nvidia::decode_attention::INTERLEAVED,
        DecodeAttentionNeox => nvidia::decode_attention::NEOX,
        Draw => sampling::draw::ROW,
        EmbeddingScale => embedding::embedding_scale::ROW,
        FlashAttentionDecode => attention::flash_attention_decode::ROW,
        FlashAttentionDecodeFast => attention::flash_attention_decode_fast::ROW,
        FlashAttentionDecodeSplit => attention::flash_attention_decode_split::ROW,
        FlashAttentionJoin => attention::flash_attention_join::ROW,
        FlashAttentionPrefill => attention::flash_attention_prefill::ROW,
        FlashAttentionPrefillV2 => attention::flash_attention_prefill_v2::ROW,
        GatherRows => common::gather_rows::ROW,
        GeluErf => activation::gelu_erf::ROW,
        GeluErfGate => activation::gate::GELU_ERF,
        GeluGate => activation::gate::GELU,
        GrammarBitmask => sampling::grammar_bitmask::ROW,
        GeluHalfRows => convert::half_rows::GELU,
        HalfRows => convert::half_rows::ROW,
        NormHalfRows => convert::half_rows::NORM,
        SiluHalfRows => convert::half_rows::SILU,
        Halves => convert::halves::ROW,
        HeadNormRopeNeoxStore => rope::head_norm_rope_neox_store::ROW,
        KvShift => kv_cache::kv_shift::INTERLEAVED,
        KvShiftNeox => kv_cache::kv_shift::NEOX,
        LayerNorm => norm::layernorm::ROW,
        LogitSoftcap => attention::logit_softcap::ROW,
        MeanRows => common::mean_rows::ROW,
        Penalties => sampling::penalties::ROW,
        PosEmbedAdd => embedding::pos_embed_add::ROW,
        RmsNorm => norm::rmsnorm::ROW,
        RmsNormResidual => norm::rmsnorm_residual::ROW,
        Rope => rope::rope::INTERLEAVED,
        RopeNeox => rope::rope::NEOX,
        RopeNeoxStore => rope::rope_store::NEOX,
        RopeStore => rope::rope_store::INTERLEAVED,
        RowAttention => attention::row_attention::ROW,
        RowAttentionBias => attention::row_attention::BIASED,
        ScaleRows => common::scale_rows::ROW,
        SiluGate => activation::gate::SILU,
        SpeechRules => sampling::speech_rules::ROW,
        TensorAttention => nvidia::tensor_attention::ROW,
        TokenScores => sampling::token_scores::ROW,
    }
    grid {
        Gemv => matmul::gemv::row, for weight_formats;
        GemvWide => matmul::gemv_wide::row, for weight_formats;
        GemvBatched => matmul::gemv_batched::row, for weight_formats;
        GemvSilu => matmul::gemv_gated::silu_row, for weight_formats;
        GemvGelu => matmul::gemv_gated::gelu_row, for weight_formats;
        SimdGemm => matmul::simd_gemm::row, for weight_formats;
        SimdGemmSmall => matmul::simd_gemm_small::row, for weight_formats;
        EmbeddingLookup => embedding::embedding_lookup::row, for weight_formats;
        NormGemv => fused::norm_gemv::row, for weight_formats;
        DecodeGemv => nvidia::decode_gemv::row, for weight_formats;
        DecodeGemm => nvidia::decode_gemm::row, for nvidia::decode_gemm::formats;
        DecodeGemmDouble => nvidia::decode_gemm::double_row, for nvidia::decode_gemm::formats;
        DecodeGemmWide => nvidia::shared_gemm::wide_row, for nvidia::shared_gemm::formats;
        DecodeGemmWidest => nvidia::shared_gemm::widest_row, for nvidia::shared_gemm::formats;
        AsyncGemm32 => nvidia::async_gemm::row_32, for nvidia::shared_gemm::formats;
        AsyncGemm64 => nvidia::async_gemm::row_64, for nvidia::shared_gemm::formats;
        AsyncGemm128 => nvidia::async_gemm::row_128, for nvidia::shared_gemm::formats;
        DecodeNormGemv => nvidia::decode_gemv::norm_row, for weight_formats;
        TensorGemm => nvidia::tensor_gemm::row, for nvidia::tensor_gemm::common_formats;
        TensorGemmMedium => nvidia::tensor_gemm::medium_row, for nvidia::tensor_gemm::formats;
        TensorGemmSmall => nvidia::tensor_gemm::small_row, for nvidia::tensor_gemm::small_formats;
    }
}

/// The weight formats that have kernels, in the order of the grids.
pub fn weight_formats() -> impl Iterator<Item = DType> {
    DType::all().filter(|dtype| dtype.is_usable())
}

/// A family: a folder of `kernels/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is the name of a folder")]
pub enum Family {
    Activation,
    Attention,
    Common,
    Convert,
    Embedding,
    Fused,
    KvCache,
    Matmul,
    Norm,
    Nvidia,
    Rope,
    Sampling,
}

impl Family {
    /// Whether Metal can compile its kernels.
    pub const fn is_metal(self) -> bool {
        !matches!(self, Family::Nvidia)
    }

    /// The folder below `kernels/`.
    pub const fn folder(self) -> &'static str {
        match self {
            Family::Activation => "activation",
            Family::Attention => "attention",
            Family::Common => "common",
            Family::Convert => "convert",
            Family::Embedding => "embedding",
            Family::Fused => "fused",
            Family::KvCache => "kv_cache",
            Family::Matmul => "matmul",
            Family::Norm => "norm",
            Family::Nvidia => "nvidia",
            Family::Rope => "rope",
            Family::Sampling => "sampling",
        }
    }
}

/// The element type of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `float`.
    F32,
    /// `half`.
    F16,
    /// `uint`.
    U32,
    /// `ushort`.
    U16,
    /// Weights in the kernel's format: blocks, or plain numbers.
    Weight,
    /// [`akunu_types::params::Row`].
    Row,
    /// [`akunu_types::params::SamplingRule`].
    Rule,
}

impl Element {
    /// Size in bytes; of weights, that of the words they are made of.
    pub const fn size(self) -> usize {
        match self {
            Element::F32 | Element::U32 | Element::Weight => 4,
            Element::F16 | Element::U16 => 2,
            Element::Row => size_of::<Row>(),
            Element::Rule => size_of::<SamplingRule>(),
        }
    }

    /// What a binding's offset is a multiple of, in bytes. Kernels read ids one by one, everything else in vectors.
    pub const fn alignment(self) -> usize {
        match self {
            Element::F32 | Element::F16 | Element::Weight | Element::Row | Element::Rule => 16,
            Element::U32 => 4,
            Element::U16 => 2,
        }
    }
}

/// What a kernel does with a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads; `const` in MSL.
    Read,
    /// Writes every element that it requires, reads none.
    Write,
    /// Reads and writes, or leaves some elements as they were.
    ReadWrite,
}

impl Access {
    /// Whether the kernel changes the buffer.
    pub const fn writes(self) -> bool {
        !matches!(self, Access::Read)
    }
}

/// One buffer of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Index, `[[buffer(index)]]`.
    pub index: u8,
    /// Name in MSL.
    pub name: &'static str,
    /// Element type.
    pub element: Element,
    /// Read or write.
    pub access: Access,
}

/// A binding that the kernel reads.
pub const fn read(index: u8, name: &'static str, element: Element) -> Binding {
    Binding {
        index,
        name,
        element,
        access: Access::Read,
    }
}

/// A binding that the kernel overwrites.
pub const fn write(index: u8, name: &'static str, element: Element) -> Binding {
    Binding {
        index,
        name,
        element,
        access: Access::Write,
    }
}

/// A binding that the kernel reads and changes.
pub const fn read_write(index: u8, name: &'static str, element: Element) -> Binding {
    Binding {
        index,
        name,
        element,
        access: Access::ReadWrite,
    }
}

/// Threadgroups, threads in each, and bytes of dynamic threadgroup memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Threadgroups in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a threadgroup in x, y, z.
    pub threads: [u32; 3],
    /// Bytes bound to `[[threadgroup(0)]]`; 0 when the kernel declares its own.
    pub threadgroup_bytes: u32,
}

impl Launch {
    /// A launch without dynamic threadgroup memory.
    pub const fn new(grid: [u32; 3], threads: [u32; 3]) -> Launch {
        Launch {
            grid,
            threads,
            threadgroup_bytes: 0,
        }
    }

    /// Threads of a threadgroup.
    pub fn n_threads(&self) -> u64 {
        self.threads.iter().map(|&n| u64::from(n)).product()
    }

    /// One thread for each of `n` elements, in threadgroups of 256.
    pub const fn elementwise(n: u32) -> Launch {
        Launch::new([n.div_ceil(256), 1, 1], [256, 1, 1])
    }

    /// One thread for each four of `n` elements, in threadgroups of 256.
    pub const fn elementwise4(n: u32) -> Launch {
        Launch::elementwise(n.div_ceil(4))
    }
}

/// The arguments of a launch: the weight format, the params and the constants.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The weight format of a grid kernel.
    pub dtype: Option<DType>,
    /// The bytes of the params struct.
    pub params: &'a [u8],
    /// The function constants that are set.
    pub constants: &'a Constants,
}

impl Args<'_> {
    /// The params as their struct. The plan check has compared the sizes.
    pub fn params<P: akunu_types::SharedStruct>(&self) -> P {
        bytemuck::pod_read_unaligned(&self.params[..size_of::<P>()])
    }

    /// The weight format of a grid kernel.
    pub fn format(&self) -> DType {
        match self.dtype {
            Some(dtype) => dtype,
            None => unreachable!("only kernels of a grid ask for their format"),
        }
    }
}

/// One kernel: all that devices, plans, tests and documentation need to know about it.
#[derive(Clone, Copy)]
pub struct KernelRow {
    /// The name before and after the weight format: `("gemv_", "_silu")`. A kernel without a format
    /// has its whole name in the first.
    pub name: (&'static str, &'static str),
    /// The weight format, for kernels of a grid.
    pub dtype: Option<DType>,
    /// The folder.
    pub family: Family,
    /// The `.metal` file in that folder, without the ending.
    pub source: &'static str,
    /// The buffers, in the order of their indices.
    pub bindings: &'static [Binding],
    /// Index of the params binding.
    pub params_index: u8,
    /// Layout of the params.
    pub params: StructLayout,
    /// The function constants that the kernel uses.
    pub constants: &'static [Constant],
    /// The launch geometry, from the params and the chip.
    pub launch: fn(&Args, &ChipConfig) -> Launch,
    /// Bytes that each binding must hold, in the order of `bindings`.
    pub required: fn(&Args) -> Vec<usize>,
    /// What a launch moves and computes, given the work of a launch that touches each binding once.
    pub work: fn(&Args, Work) -> Work,
    /// The specification, as a scalar function.
    pub twin: fn(&mut Twin),
    /// The test cases, for a weight format.
    pub cases: fn(Option<DType>) -> Vec<Case>,
}

impl KernelRow {
    /// The kernel's name in MSL.
    pub fn name(&self) -> String {
        let (before, after) = self.name;
        match self.dtype {
            Some(dtype) => format!("{before}{dtype}{after}"),
            None => before.to_string(),
        }
    }

    /// The `.metal` file below `kernels/`.
    pub fn source_path(&self) -> String {
        format!("{}/{}.metal", self.family.folder(), self.source)
    }

    /// The arguments of a launch with these params and constants.
    pub fn args<'a>(&self, params: &'a [u8], constants: &'a Constants) -> Args<'a> {
        Args {
            dtype: self.dtype,
            params,
            constants,
        }
    }

    /// Place of the binding with this index.
    pub fn binding_at(&self, index: u8) -> Option<usize> {
        self.bindings
            .iter()
            .position(|binding| binding.index == index)
    }
}
