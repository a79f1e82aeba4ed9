#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod config;
mod data_url;
mod decode;
mod error;
mod geometry;
mod jpeg_end;
mod layout;
mod limits;
mod picture;
mod processor;
mod resize;

pub use data_url::{decode_base64, decode_data_url};
pub use error::{ConfigError, ImageError, ImageProblem};
pub use geometry::{
    Aligned, Budget, Cropped, Geometry, NaFlex, SoftTokens, Split, Squares, Stretched,
};
pub use layout::{Grid, Layout, Prepared, Tile};
pub use limits::Limits;
pub use picture::{Picture, Size};
pub use processor::{Normalisation, Processor};
pub use resize::Filter;
