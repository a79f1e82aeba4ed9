//! The report as text: one fact a line, then the tables.

use super::attention::Attention;
use super::report::{Encoder, KvCache, Report, Tensor, Tokenizer, TypeShare};
use crate::units::{bytes, count};
use std::io::{self, Write};

/// Writes the report.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let about = &report.description;
    let known = |text: &Option<String>| text.as_deref().unwrap_or("unknown").to_string();
    let number = |n: Option<u64>| n.map_or("unknown".to_string(), |n| n.to_string());
    let mut fact = |name: &str, value: &str| writeln!(out, "{name:<16}{}", printable(value));
    fact("file", &report.path)?;
    fact("format", &format_line(report))?;
    fact("architecture", &known(&about.architecture))?;
    fact("name", &known(&about.name))?;
    fact("parameters", &count(report.parameters))?;
    if !report.is_tower() {
        fact("context length", &number(about.context_length))?;
    }
    fact("layers", &number(about.layers))?;
    fact("dimension", &number(about.embedding_length))?;
    fact("feed forward", &number(about.feed_forward_length))?;
    if let Some(attention) = &about.attention {
        fact("attention", &attention_line(attention))?;
    }
    for kind in &report.layer_kinds {
        fact("", &format!("{} × {}", kind.layers, kind.layer))?;
    }
    if let Some(tower) = &report.vision {
        fact("images", &tower.line())?;
    }
    if let Some(why) = &report.unsupported {
        fact("images", &format!("cannot be read: {why}"))?;
    }
    if !report.is_tower() {
        match &report.encoder {
            Some(encoder) => fact("gives", &encoder_line(encoder))?,
            None if report.tied_embeddings => fact("output layer", "the token embedding")?,
            None => fact("output layer", "its own weights")?,
        }
        let tokenizer = about.tokenizer.as_ref();
        let tokenizer = tokenizer.map_or("none".to_string(), tokenizer_line);
        fact("tokenizer", &tokenizer)?;
    }
    let weights = if report.weights.types.is_empty() {
        "none: the file has no tensors".to_string()
    } else {
        bytes(report.weights.bytes)
    };
    fact("weights", &weights)?;
    if let Some(active) = &report.weights.active {
        let (size, parameters) = (bytes(active.bytes), count(active.parameters));
        let line = format!("{size} for each token, which uses {parameters} parameters");
        fact("active weights", &line)?;
    }
    if let Some(kv) = &report.kv_cache {
        fact("KV cache", &cache_line(kv))?;
    }
    if let Some(state) = report.state_bytes {
        let line = format!("{} for each sequence, of any length", bytes(state));
        fact("state", &line)?;
    }
    if let Some(floor) = &report.floor {
        let line = format!(
            "at best {:.0} tokens a second on {}, which reads {} for each",
            floor.tokens_per_second,
            floor.chip,
            bytes(floor.bytes_per_token)
        );
        fact("decoding", &line)?;
    }
    if !report.weights.types.is_empty() {
        writeln!(out)?;
        write_types(&report.weights.types, out)?;
    }
    if let Some(tensors) = &report.tensors {
        writeln!(out)?;
        write_tensors(tensors, out)?;
    }
    Ok(())
}

/// Text from the file without control characters, which could play tricks on a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn format_line(report: &Report) -> String {
    let files = match report.files {
        1 => "1 file".to_string(),
        n => format!("{n} files"),
    };
    format!("{}, {}, {files}", report.format, bytes(report.file_bytes))
}

fn encoder_line(encoder: &Encoder) -> String {
    let what = match encoder.scores {
        0 => format!("a vector for each text, by {} pooling", encoder.pooling),
        1 => "a score for a question and a document".to_string(),
        n => format!("{n} scores for a pair of texts"),
    };
    format!("{what}; looks at {} tokens", encoder.max_tokens)
}

fn attention_line(attention: &Attention) -> String {
    let mut line = format!(
        "{} heads, {} for keys and values, {} values each",
        attention.heads, attention.kv_heads, attention.key_length
    );
    if let Some(window) = attention.window {
        line += &match attention.windowed_layers {
            Some(n) => format!(", window {window} in {n} layers"),
            None => format!(", window {window} in some layers"),
        };
    }
    if let Some(distance) = attention.bias_distance {
        line += &format!(", biases for distances up to {distance}");
    }
    line
}

/// For example "45.0 MiB in f16 or 23.9 MiB in q8, for 2048 tokens".
fn cache_line(kv: &KvCache) -> String {
    let sizes = kv.bytes.iter();
    let sizes: Vec<String> = sizes
        .map(|(format, n)| format!("{} in {format}", bytes(*n)))
        .collect();
    format!("{}, for {} tokens", sizes.join(" or "), kv.context)
}

fn tokenizer_line(tokenizer: &Tokenizer) -> String {
    let mut line = tokenizer.model.clone().unwrap_or("unknown".to_string());
    if let Some(pre) = &tokenizer.pre {
        line += &format!("/{pre}");
    }
    if let Some(size) = tokenizer.vocab_size {
        line += &format!(", {size} tokens");
    }
    line + match tokenizer.chat_template {
        true => ", chat template",
        false => ", no chat template",
    }
}

fn write_types(types: &[TypeShare], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<8} {:>8} {:>12} {:>12}",
        "type", "tensors", "parameters", "bytes"
    )?;
    for share in types {
        writeln!(
            out,
            "{:<8} {:>8} {:>12} {:>12}{}",
            share.dtype,
            share.tensors,
            count(share.parameters),
            bytes(share.bytes),
            if share.usable { "" } else { "  not supported" }
        )?;
    }
    Ok(())
}

fn write_tensors(tensors: &[Tensor], out: &mut dyn Write) -> io::Result<()> {
    let width = tensors
        .iter()
        .map(|t| t.name.chars().count())
        .max()
        .unwrap_or(0);
    for tensor in tensors {
        let dims: Vec<String> = tensor.dims.iter().map(usize::to_string).collect();
        writeln!(
            out,
            "{:<width$} {:<8} {:>18} {:>12}",
            printable(&tensor.name),
            tensor.dtype,
            dims.join(" × "),
            bytes(tensor.bytes)
        )?;
    }
    Ok(())
}
