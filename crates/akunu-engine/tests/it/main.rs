//! The tests of the engine, one module a subject. What needs clang is in `simulator`, what measures the whole process
//! in `memory_growth`, and what runs real models against llama.cpp in `parity`.

#[path = "../support/mod.rs"]
mod support;

mod adapters;
mod agreement;
mod batch;
mod cached_pages;
mod contradictions;
mod cost;
mod encoders;
mod experts;
mod failures;
mod flaky;
mod folders;
mod four_bits;
mod guided;
mod hostile_folders;
mod images;
#[cfg(unix)]
mod killed_saves;
mod kv_format;
mod latent;
mod loading;
mod long_rope;
mod memory_limit;
#[cfg(target_os = "macos")]
mod metal;
mod mixture;
mod names;
mod overflow;
mod pages;
mod peft;
mod penalties;
mod real_model;
mod reference;
mod saved_session;
mod schedules;
mod score;
mod states;
mod tiny_model;
mod vision;
mod watched_reading;
