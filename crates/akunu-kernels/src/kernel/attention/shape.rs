//! Shapes that the params and the constants give.

use akunu_types::params::AttentionParams;

use crate::constant::Constant;
use crate::table::Args;

/// Elements of a head: the constant, or the params.
pub fn head_dim(args: &Args, p: &AttentionParams) -> u32 {
    args.constants.u32(Constant::HeadDim).unwrap_or(p.head_dim)
}
