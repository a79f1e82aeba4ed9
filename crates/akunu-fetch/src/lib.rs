#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod catalogue;
mod digest;
mod error;
mod hub;
mod hub_file;
mod install;
mod lock;
mod model;
mod recognise;
mod registry;
mod space;
mod staging;
mod stored;
mod tool;
mod unpack;
mod watch;

pub use catalogue::{
    Archive, Asset, AssetModel, Catalogue, File, HubModel, ModelEntry, Registry, SamplingValues,
    Tree,
};
pub use error::FetchError;
pub use hub::{DEFAULT_ENDPOINT, Hub};
pub use hub_file::HubFile;
pub use install::{Installed, Order, install};
pub use model::ModelName;
pub use registry::{Source, Sources};
pub use stored::{Stored, listed_as, remove, stored};
pub use watch::{Watch, megabytes};
