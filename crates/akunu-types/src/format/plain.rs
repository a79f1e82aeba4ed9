//! F32, F16 and BF16: plain numbers, rows of any length.

use bytemuck::Pod;
use half::{bf16, f16};

/// A plain number as a file has it.
pub trait Number: Pod + Into<f32> {
    /// The name in lower case.
    const NAME: &'static str;
    /// GGUF's id.
    const ID: u32;
    /// GGUF's `general.file_type` for a file of such numbers.
    const FILE_TYPE: u32;

    /// The number nearest to a value, of two the even one.
    fn nearest(value: f32) -> Self;
}

/// Values to the bytes of numbers.
pub(crate) type Rounding = fn(&[f32]) -> Vec<u8>;

/// The bytes of the numbers nearest to these values.
pub(super) fn rounded<T: Number>(values: &[f32]) -> Vec<u8> {
    let numbers: Vec<T> = values.iter().map(|&value| T::nearest(value)).collect();
    bytemuck::cast_slice(&numbers).to_vec()
}

impl Number for f32 {
    const NAME: &'static str = "f32";
    const ID: u32 = 0;
    const FILE_TYPE: u32 = 0;

    fn nearest(value: f32) -> Self {
        value
    }
}

impl Number for f16 {
    const NAME: &'static str = "f16";
    const ID: u32 = 1;
    const FILE_TYPE: u32 = 1;

    fn nearest(value: f32) -> Self {
        f16::from_f32(value)
    }
}

impl Number for bf16 {
    const NAME: &'static str = "bf16";
    const ID: u32 = 30;
    const FILE_TYPE: u32 = 32;

    fn nearest(value: f32) -> Self {
        bf16::from_f32(value)
    }
}
