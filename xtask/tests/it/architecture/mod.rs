//! The invariants of the workspace's structure, each a function over data and a test over the tree.
//!
//! Each rule is also fed a planted violation, to show that it can fail.

mod arrows;
mod circles;
mod growing;
mod links;
mod manifests;
mod paths;
mod reexports;
mod rust_text;
mod safety_notes;
mod tree;
mod unsafe_code;
