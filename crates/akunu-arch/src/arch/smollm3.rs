//! SmolLM3: Llama with every fourth layer without RoPE.

use serde_json::Value;

use super::prelude::*;

/// SmolLM3-3B.
pub const ARCH: Architecture = Architecture {
    name: "smollm3",
    model_types: &["smollm3"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// Of so many layers the last has no RoPE. GGUF files do not say it.
const NO_ROPE_INTERVAL: u32 = 4;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let turns = turning_layers(file, parts.n_layers)?;
    Ok(parts.decoder(|at| {
        let plain = parts.attention(at);
        let attention = Attention {
            rope: plain.rope.filter(|_| turns[at]),
            ..plain
        };
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(attention, ffn, parts.input_norms(at))
    }))
}

/// Whether each layer has RoPE: a list of ones and zeros in `config.json`, or all but every so many.
fn turning_layers(file: &ModelFile, n_layers: usize) -> Result<Vec<bool>, ArchError> {
    let (list, key) = ("no_rope_layers", "no_rope_layer_interval");
    let mut interval = NO_ROPE_INTERVAL;
    if let Some(config) = file.config() {
        if let Some(flags) = config.get(list).and_then(Value::as_array) {
            let flags: Vec<bool> = flags.iter().map(|flag| flag.as_u64() == Some(1)).collect();
            let found = format!("a list of {} for {n_layers} layers", flags.len());
            return match flags.len() == n_layers {
                true => Ok(flags),
                false => Err(file.invalid(list, found, "a number for each layer")),
            };
        }
        interval = config.u32(key)?.unwrap_or(interval);
        file.check_size(key, interval, 1 << 12)?;
    }
    let interval = interval as usize;
    Ok((1..=n_layers)
        .map(|n| !n.is_multiple_of(interval))
        .collect())
}
