//! Llama 2 and 3, Mistral, Ministral 8B, Mixtral, InternLM 3, SmolLM2, TinyLlama and many others; SmolVLM and LLaVA, which read images.

use super::prelude::*;

/// The plain decoder.
pub const ARCH: Architecture = Architecture {
    name: "llama",
    model_types: &[
        "llama",
        "mistral",
        "ministral",
        "mixtral",
        "internlm3",
        "smolvlm",
        "idefics3",
    ],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// Mixtral says it as a softmax of the chosen logits, which is the same.
const ROUTING: Routing = Routing {
    gating: Gating::Softmax,
    normalise: true,
};

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let parts = Parts::read(file, WindowPattern::All, None)?;
    let experts = match file.has_experts()? {
        true => Some(ExpertParts::read(&parts, ROUTING)?),
        false => None,
    };
    let decoder = parts.decoder(|at| {
        let ffn = match &experts {
            Some(experts) => experts.ffn(at, |experts| experts),
            None => Ffn::Gated(parts.gated(at, Activation::Silu)),
        };
        Layer::new(parts.attention(at), ffn, parts.input_norms(at))
    });
    Ok(decoder.with_images(ImageInput::PLAIN))
}
