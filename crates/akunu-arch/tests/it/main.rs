//! The tests of the descriptions of architectures, one module a subject.

mod descriptions;
mod real_models;
mod scalings;
