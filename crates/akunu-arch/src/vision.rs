//! Vision towers: from the pixels of an image to the rows that a language model reads in the place of tokens.

mod check;
mod families;
mod family;
mod file;
mod gemma3;
mod idefics3;
mod lfm2;
mod qwen3vl;
mod read;
mod siglip;
mod tower;

pub use check::MAX_PATCHES;
pub use families::FAMILIES;
pub use family::Family;
pub(crate) use read::CLIP;
pub use tower::{
    DeepProjector, Grids, ImageInput, Join, PatchPositions, PatchTurn, Projector, Resize, Vision,
};
