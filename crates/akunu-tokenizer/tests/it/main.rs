//! The tests of tokenizers and chat templates, one module a subject.

#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod bpe_matches;
mod fixtures_match;
mod hostile_json;
mod hostile_metadata;
mod hostile_templates;
mod json_files;
mod llama_cpp_vectors;
mod support;
mod template_fixtures;
mod trusted_prompts;
mod unigram_matches;
