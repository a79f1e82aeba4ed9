//! Reading and writing model files: valid, damaged, hostile and real ones.

mod bytes;
mod folders;
mod four_bits;
mod hostile_gguf;
mod hostile_safetensors;
mod mlx_parity;
mod mutations;
mod names;
mod real_files;
mod round_trip;
mod speech;
mod splits;
