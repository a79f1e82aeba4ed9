//! The tests of the descriptions of architectures, one module a subject.

mod descriptions;
mod images;
mod real_models;
mod scalings;
