#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod config;
mod data_url;
mod decode;
mod error;
mod family;
mod geometry;
mod jpeg_end;
mod layout;
mod lengths;
mod limits;
mod picture;
mod processor;
mod resize;
mod wording;

pub use data_url::{decode_base64, decode_data_url};
pub use error::{ConfigError, PictureError, PictureProblem};
pub use family::TowerNumbers;
pub use geometry::{
    Aligned, Budget, Cropped, Geometry, NaFlex, SoftTokens, Split, Squares, Stretched,
};
pub use layout::{Grid, Layout, Prepared, Tile};
pub use limits::Limits;
pub use picture::{Picture, Size};
pub use processor::{Normalisation, Processor};
pub use resize::Filter;
pub use wording::{Piece, Wording};
