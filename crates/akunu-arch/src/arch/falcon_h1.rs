//! Falcon-H1: attention and Mamba-2 side by side in every layer, and factors of nearly every product.
//!
//! ```text
//! h = e * embedding;  x = norm(h);  logits = l * Woutput norm(h)
//! h += o_a Wo attention(i_a x);  h += o_s Wout mamba(m * Win (i_s x))
//! h += d Wdown (silu(g Wgate norm(h)) * Wup norm(h))
//! ```
//!
//! m is a factor each for the gate, x, B, C and the time steps, and keys have one, too. GGUF files have all of them in their weights.
//! Those of a folder are multiplied while it is loaded, but for the factors of queries and keys, which scores have instead.

use super::prelude::*;

/// Falcon-H1, 0.5B to 34B.
pub const ARCH: Architecture = Architecture {
    name: "falcon-h1",
    model_types: &["falcon_h1"],
    pairing: Pairing::SplitHalves,
    read: Read::Text(model),
};

const NORM_FIRST: Key = Key::new(&[], &["mamba_norm_before_gate"]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let biases = ["mamba_proj_bias", "projectors_bias", "attention_bias"];
    file.never(&biases)?;
    file.never(&["mlp_bias"])?;
    let parts = Parts::read(file, WindowPattern::None, None)?;
    let sizes = parts.ssd_sizes()?;
    let has_norm = parts.has("layers.0.state.norm.weight");
    if has_norm && file.config().is_some() && file.bool(NORM_FIRST)?.unwrap_or(true) {
        let what = "`mamba_norm_before_gate` in the architecture `falcon-h1`";
        return Err(file.unsupported(what.to_string()));
    }
    let factors = Factors::read(file)?;
    let mut model = parts.decoder(|at| {
        let mamba = parts.ssd(at, &sizes);
        let mamba = if has_norm {
            mamba
        } else {
            mamba.without_norm()
        };
        let both = Both {
            attention: factors.attention(parts.attention(at)),
            ssd: factors.ssd(mamba),
        };
        let ffn = factors.gated(parts.gated(at, Activation::Silu));
        let norms = parts.input_norms_before_ff(at);
        Layer::gated(both.attention.clone(), ffn, norms).with_mixer(Mixer::Both(Box::new(both)))
    });
    model.embedding.scale = factors.embedding;
    if let Output::Logits(logits) = &mut model.output {
        logits.scale = factors.logits;
    }
    Ok(model)
}

/// The factors that a folder says.
struct Factors {
    embedding: Option<f32>,
    logits: Option<f32>,
    /// Of what attention reads, of keys and of its result.
    attention: [f32; 3],
    /// Of what Mamba-2 reads and of its result.
    ssd: [f32; 2],
    /// Of the gate, x, B, C and the time steps.
    ssd_inputs: [f32; 5],
    /// Of the gate of the feed-forward block and of its result.
    ffn: [f32; 2],
}

impl Factors {
    fn read(file: &ModelFile) -> Result<Factors, ArchError> {
        let one = |name: &'static str| match file.config() {
            Some(config) => config.f32(name),
            None => Ok(None),
        };
        let of = |name| Ok::<f32, ArchError>(one(name)?.unwrap_or(1.0));
        Ok(Factors {
            embedding: one("embedding_multiplier")?,
            logits: one("lm_head_multiplier")?,
            attention: [
                of("attention_in_multiplier")?,
                of("key_multiplier")?,
                of("attention_out_multiplier")?,
            ],
            ssd: [of("ssm_in_multiplier")?, of("ssm_out_multiplier")?],
            ssd_inputs: list(file, "ssm_multipliers")?,
            ffn: list(file, "mlp_multipliers")?,
        })
    }

    fn attention(&self, plain: Attention) -> Attention {
        let [read, key, result] = self.attention;
        Attention {
            scale: plain.scale * read * read * key,
            output: plain.output.times(read * result),
            ..plain
        }
    }

    fn ssd(&self, plain: Ssd) -> Ssd {
        let [read, result] = self.ssd;
        let mamba = plain.times_each(self.ssd_inputs.map(|factor| read * factor));
        Ssd {
            output: mamba.output.times(result),
            ..mamba
        }
    }

    fn gated(&self, plain: Gated) -> Gated {
        let [gate, down] = self.ffn;
        Gated {
            gate: plain.gate.times(gate),
            down: plain.down.times(down),
            ..plain
        }
    }
}

/// The factors of a folder's list, or 1 each if the folder has no list.
fn list<const N: usize>(file: &ModelFile, key: &str) -> Result<[f32; N], ArchError> {
    let Some(found) = file.config().and_then(|config| config.get(key)) else {
        return Ok([1.0; N]);
    };
    let numbers = found.as_array().map(|list| {
        let numbers = list.iter().filter_map(|number| number.as_f64());
        numbers.map(|number| number as f32).collect::<Vec<f32>>()
    });
    let numbers = numbers.and_then(|numbers| <[f32; N]>::try_from(numbers).ok());
    let numbers = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
    numbers.ok_or_else(|| {
        file.invalid(
            key,
            found.to_string(),
            "a list of as many numbers as it has products",
        )
    })
}
