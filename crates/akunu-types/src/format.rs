//! Weight formats: one file each, and the one table of them.
//!
//! A format of blocks is a struct, laid out byte for byte as files have it, with its name, its ids and its [cells](Cell):
//! all that decoding, the CPU's panels, the generated header and the lists of what is supported are made from. A new one
//! is a file in this folder and a line of the table below. Names follow ggml.

mod bits;
mod block;
mod cell;
mod decode;
mod grid;
mod iq1_m;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4_nl;
mod iq4_xs;
mod mlx;
mod mxfp4;
mod plain;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

pub use bits::scale_and_min;
pub use block::{Block, QK, QK_K};
pub use cell::{CELL, Cell, CellFormat, Codes, Numbers, Scales};
pub use decode::Decoder;
pub use grid::GRIDS;
pub use iq1_m::BlockIQ1M;
pub use iq1_s::BlockIQ1S;
pub use iq2_s::BlockIQ2S;
pub use iq2_xs::BlockIQ2XS;
pub use iq2_xxs::BlockIQ2XXS;
pub use iq3_s::BlockIQ3S;
pub use iq3_xxs::BlockIQ3XXS;
pub use iq4_nl::{BlockIQ4NL, IQ4_NL_NUMBERS};
pub use iq4_xs::BlockIQ4XS;
pub use mxfp4::{BlockMXFP4, MXFP4_NUMBERS};
pub use plain::Number;
pub use q2_k::BlockQ2K;
pub use q3_k::BlockQ3K;
pub use q4_0::BlockQ4_0;
pub use q4_1::BlockQ4_1;
pub use q4_k::BlockQ4K;
pub use q5_0::BlockQ5_0;
pub use q5_1::BlockQ5_1;
pub use q5_k::BlockQ5K;
pub use q6_k::BlockQ6K;
pub use q8_0::BlockQ8_0;

use crate::layout::{SharedStruct, StructLayout};
use half::{bf16, f16};

/// Calls a macro with the table of all tensor types, in the order of their ids.
///
/// | entry | |
/// |---|---|
/// | `number(type)` | plain numbers |
/// | `block(type)` | a format of blocks, a [`Block`](crate::format::Block) of this module |
/// | `read(type)` | the same, of which there is no quantiser |
/// | `mlx(bits, name)` | a format of MLX |
/// | `listed(name, id, values, bytes)` | a type of GGUF that no kernel reads: its block's values and bytes |
#[macro_export]
macro_rules! for_each_format {
    ($callback:ident) => {
        $callback! {
            F32 => number(f32);
            F16 => number(f16);
            Q4_0 => block(BlockQ4_0);
            Q4_1 => block(BlockQ4_1);
            Q5_0 => block(BlockQ5_0);
            Q5_1 => block(BlockQ5_1);
            Q8_0 => block(BlockQ8_0);
            Q8_1 => listed("q8_1", 9, 32, 36);
            Q2_K => block(BlockQ2K);
            Q3_K => block(BlockQ3K);
            Q4_K => block(BlockQ4K);
            Q5_K => block(BlockQ5K);
            Q6_K => block(BlockQ6K);
            Q8_K => listed("q8_k", 15, 256, 292);
            IQ2_XXS => read(BlockIQ2XXS);
            IQ2_XS => read(BlockIQ2XS);
            IQ3_XXS => read(BlockIQ3XXS);
            IQ1_S => read(BlockIQ1S);
            IQ4_NL => block(BlockIQ4NL);
            IQ3_S => read(BlockIQ3S);
            IQ2_S => read(BlockIQ2S);
            IQ4_XS => block(BlockIQ4XS);
            I8 => listed("i8", 24, 1, 1);
            I16 => listed("i16", 25, 1, 2);
            I32 => listed("i32", 26, 1, 4);
            I64 => listed("i64", 27, 1, 8);
            F64 => listed("f64", 28, 1, 8);
            IQ1_M => read(BlockIQ1M);
            BF16 => number(bf16);
            TQ1_0 => listed("tq1_0", 34, 256, 54);
            TQ2_0 => listed("tq2_0", 35, 256, 66);
            MXFP4 => block(BlockMXFP4);
            NVFP4 => listed("nvfp4", 40, 64, 36);
            Q1_0 => listed("q1_0", 41, 128, 18);
            MLX_Q2 => mlx(2, "mlx_q2");
            MLX_Q3 => mlx(3, "mlx_q3");
            MLX_Q4 => mlx(4, "mlx_q4");
            MLX_Q5 => mlx(5, "mlx_q5");
            MLX_Q6 => mlx(6, "mlx_q6");
            MLX_Q8 => mlx(8, "mlx_q8");
        }
    };
}

/// How the values of a type are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain floating-point numbers.
    Numbers,
    /// Blocks with scales of their own.
    Blocks(CellFormat),
    /// MLX: packed codes, with scales and biases in arrays of their own.
    Mlx(CellFormat),
    /// Not read by any kernel: recognised, listed and refused by name.
    Listed,
}

/// What the table says of one type.
pub(crate) struct Format {
    pub name: &'static str,
    pub file_type: Option<u32>,
    pub block_len: usize,
    pub block_bytes: usize,
    pub kind: Kind,
    pub decoder: Option<Decoder>,
    pub rounded: Option<plain::Rounding>,
}

/// What is done with the block of a format, whichever it is: [`DType::with_block`].
pub trait WithBlock {
    /// What it gives.
    type Out;

    /// Does it with one block type.
    fn run<B: Block>(self) -> Self::Out;
}

macro_rules! define {
    ($($name:ident => $kind:ident $spec:tt;)*) => {
        /// The type of a tensor's elements.
        ///
        /// A GGUF type has the id that GGUF gives it. MLX types are not in GGUF; theirs are `1000 + bits`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        #[allow(missing_docs, reason = "each variant is ggml's own name for the type")]
        #[allow(
            non_camel_case_types,
            reason = "each variant is ggml's own name for the type"
        )]
        pub enum DType {
            $($name = define!(@id $kind $spec),)*
        }

        /// Every type, in the order of ids.
        pub(crate) const ALL: &[DType] = &[$(DType::$name),*];

        impl DType {
            pub(crate) fn format(self) -> &'static Format {
                match self {
                    $(DType::$name => const { &define!(@format $kind $spec) },)*
                }
            }

            /// Does something with the type's block; `None` where it has none.
            pub fn with_block<F: WithBlock>(self, f: F) -> Option<F::Out> {
                match self {
                    $(DType::$name => define!(@block $kind $spec f),)*
                }
            }
        }

        /// The layouts of all blocks, in the order of the generated header.
        pub fn layouts() -> Vec<StructLayout> {
            [$(define!(@layout $kind $spec)),*].into_iter().flatten().collect()
        }
    };

    (@id number ($number:ty)) => { <$number as Number>::ID };
    (@id read ($block:ty)) => { define!(@id block ($block)) };
    (@id block ($block:ty)) => { <$block as Block>::ID };
    (@id mlx ($bits:literal, $name:literal)) => { mlx::FIRST_ID + $bits };
    (@id listed ($name:literal, $id:literal, $len:literal, $bytes:literal)) => { $id };

    (@format number ($number:ty)) => {
        Format {
            name: <$number as Number>::NAME,
            file_type: Some(<$number as Number>::FILE_TYPE),
            block_len: 1,
            block_bytes: size_of::<$number>(),
            kind: Kind::Numbers,
            decoder: Some(decode::numbers::<$number>),
            rounded: Some(plain::rounded::<$number>),
        }
    };
    (@format read ($block:ty)) => { define!(@format block ($block)) };
    (@format block ($block:ty)) => {
        Format {
            name: <$block as Block>::NAME,
            file_type: <$block as Block>::FILE_TYPE,
            block_len: <$block as Block>::LEN,
            block_bytes: size_of::<$block>(),
            kind: Kind::Blocks(<$block as Block>::FORMAT),
            decoder: Some(decode::blocks::<$block>),
            rounded: None,
        }
    };
    (@format mlx ($bits:literal, $name:literal)) => {
        Format {
            name: $name,
            file_type: None,
            block_len: mlx::run($bits).0,
            block_bytes: mlx::run($bits).1,
            kind: Kind::Mlx(mlx::cells($bits)),
            decoder: None,
            rounded: None,
        }
    };
    (@format listed ($name:literal, $id:literal, $len:literal, $bytes:literal)) => {
        Format {
            name: $name,
            file_type: None,
            block_len: $len,
            block_bytes: $bytes,
            kind: Kind::Listed,
            decoder: None,
            rounded: None,
        }
    };

    (@block read ($block:ty) $f:ident) => { Some($f.run::<$block>()) };
    (@block block ($block:ty) $f:ident) => { Some($f.run::<$block>()) };
    (@block $other:ident $spec:tt $f:ident) => { None };

    (@layout read ($block:ty)) => { define!(@layout block ($block)) };
    (@layout block ($block:ty)) => { Some(<$block as SharedStruct>::LAYOUT) };
    (@layout $other:ident $spec:tt) => { None };
}

for_each_format!(define);
