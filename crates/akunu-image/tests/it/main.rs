//! Decoding and preprocessing, from the outside.

mod files;
mod hostile;
mod pictures;
mod processors;
mod urls;
mod wordings;
