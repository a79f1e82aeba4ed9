//! Small models of each architecture against `transformers`, or against their formulas in numpy, from both containers, on
//! two devices.

mod zoo;

use std::path::Path;

use akunu_engine::{EngineError, Model, SessionOptions};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;

use crate::support::exact_cpu::cpu;
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::Fixture;
use crate::support::saved_experts::{Numbers, write_saved_experts};

fn devices() -> [Box<dyn Device>; 2] {
    [Box::new(TwinDevice::new()), cpu()]
}

/// The largest error after any of the recorded beginnings, as a share of the logits' power.
fn worst_error(model: &Fixture, path: &Path, device: Box<dyn Device>) -> Result<f64, EngineError> {
    let loaded = Model::load(path, device)?;
    // Windowed layers keep a ring of 8 + 7 positions, which 40 tokens fill more than twice.
    let options = SessionOptions {
        context: Some(64),
        chunk: 7,
        ..SessionOptions::default()
    };
    let mut session = loaded.session(options).expect("memory");
    let mut worst: f64 = 0.0;
    for (&n, wanted) in &model.logits {
        session.feed(&model.tokens[..n]).expect("fits");
        let found = session.logits().expect("there are some");
        worst = worst.max(nmse(&found, wanted));
    }
    Ok(worst)
}

/// Weights and sums are f32 on both sides, and both round keys and values to halves: without more,
/// logits agree to a share of 1e-12. But sums in another order may put a value on the other side of
/// such a rounding, 2^-10 of it away: 1e-6 times its share of its layer's power, some 1e-8 each. The
/// deepest model has the most of them, 1.3e-7 together. A mistake in a formula gives 1e-4 and more.
const BOUND: f64 = 5e-7;

fn agrees(name: &str) {
    agrees_with("transformers", name);
}

/// With the logits that a folder of the fixtures has.
fn agrees_with(reference: &str, name: &str) {
    let model = Fixture::read(reference, name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = [
        write_gguf(&model, folder.path()),
        write_folder(&model, folder.path()),
    ];
    for path in &paths {
        for device in devices() {
            let what = format!("{name}, {}, {}", path.display(), device.name());
            let error = worst_error(&model, path, device).expect("it runs");
            assert!(error < BOUND, "{what}: NMSE {error:e}");
        }
    }
}

/// RoPE with Llama 3's scaling, rows of q and k interleaved in GGUF, an output matrix of its own.
#[test]
fn llama3() {
    agrees("llama3");
}

/// Convolutions over three tokens in all layers but one.
#[test]
fn lfm2() {
    agrees("lfm2");
}

/// The delta rule, in both orders of heads, and attention with a gate and partial positions.
#[test]
fn qwen35() {
    agrees("qwen35");
}

/// The same beside the block for multi-token prediction, which changes no logits.
#[test]
fn qwen35_mtp() {
    agrees("qwen35-mtp");
}

/// Experts beside such a block.
#[test]
fn glm4moe_mtp() {
    agrees("glm4moe-mtp");
}

/// Attention beside Mamba-2, with the factors of all products, which GGUF files have in their weights.
#[test]
fn falcon_h1() {
    agrees("falcon-h1");
}

/// The same with a norm behind the gate.
#[test]
fn falcon_h1_with_a_norm() {
    agrees("falcon-h1-norm");
}

/// Convolutions and experts that a bias chooses.
#[test]
fn lfm2moe() {
    agrees("lfm2moe");
}

/// The delta rule and experts, with one of all tokens that has a gate.
#[test]
fn qwen35moe() {
    agrees("qwen35moe");
}

/// The delta rule whose products are merged, in folders all and in GGUF files two of them.
#[test]
fn qwen3next() {
    agrees("qwen3next");
}

/// Mamba-2 in every layer, and neither attention nor feed-forward blocks.
#[test]
fn mamba2() {
    agrees("mamba2");
}

/// Layers of one block each: Mamba-2, attention without positions, or the square of a ReLU.
#[test]
fn nemotron_h() {
    agrees("nemotron_h");
}

/// Mamba-2, attention whose keys do not turn, and experts beside one of all tokens.
#[test]
fn granitehybrid() {
    agrees("granitehybrid");
}

/// A window in every layer.
#[test]
fn mistral() {
    agrees("mistral");
}

/// Biases on q, k and v.
#[test]
fn qwen2() {
    agrees("qwen2");
}

/// QK norm.
#[test]
fn qwen3() {
    agrees("qwen3");
}

/// Experts, one tensor of each in a folder and one of all in GGUF.
#[test]
fn qwen3moe() {
    agrees("qwen3moe");
}

/// Experts that nobody normalises, beside one of all tokens with a gate.
#[test]
fn qwen2moe() {
    agrees("qwen2moe");
}

/// Experts in Llama.
#[test]
fn mixtral() {
    agrees("mixtral");
}

/// Both first products of an expert in one tensor, an expert of all tokens without a gate, Granite's factors.
#[test]
fn granitemoe() {
    agrees("granitemoe");
}

/// A bias that only chooses, layers without experts before and between, interleaved rows in both containers.
#[test]
fn ernie4_5_moe() {
    agrees("ernie4_5-moe");
}

/// Sigmoids, groups of experts, a factor of their weights.
#[test]
fn dots1() {
    agrees("dots1");
}

/// Half of a head turns; biases of q, k and v; groups of experts.
#[test]
fn glm4moe() {
    agrees("glm4moe");
}

/// Three quarters of a head turn; q, k and v in one tensor; groups of experts.
#[test]
fn bailingmoe2() {
    agrees("bailingmoe2");
}

/// Norms of heads after they turn, a larger base of RoPE.
#[test]
fn hunyuan_dense() {
    agrees("hunyuan-dense");
}

/// The same with experts and a shared one; layers use different numbers of them.
#[test]
fn hunyuan_moe() {
    agrees("hunyuan-moe");
}

/// Blocks that read the same norm by mean and variance, RoPE only where there is a window, a factor of the logits.
#[test]
fn cohere2() {
    agrees("cohere2");
}

/// The same with experts, the mean of whose result and that of shared ones counts, after a layer without experts and window that
/// has RoPE.
#[test]
fn cohere2moe() {
    agrees("cohere2moe");
}

/// One matrix of queries, keys and values, another of gate and up, a window in every layer.
#[test]
fn phi3() {
    agrees("phi3");
}

/// Long-rope in a session that is longer than the original context.
#[test]
fn phi3_long() {
    agrees("phi3-long");
}

/// Long-rope in a session that is not, of heads of which three quarters turn.
#[test]
fn phi4_mini() {
    agrees("phi4-mini");
}

/// YaRN with two scales, a temperature of attention.
#[test]
fn mistral3() {
    agrees("mistral3");
}

/// Norms of the results of the blocks instead of their inputs, and of all queries and all keys of a token.
#[test]
fn olmo2() {
    agrees("olmo2");
}

/// The same with YaRN in the layers without a window.
#[test]
fn olmo3() {
    agrees("olmo3");
}

/// YaRN with its own magnitude, which replaces that of its factor in both containers.
#[test]
fn yarn_factor() {
    agrees("yarn-factor");
}

/// No gates, the squared ReLU.
#[test]
fn arcee() {
    agrees("arcee");
}

/// The same with norms of 1 + w by mean and variance, of heads of which half turns.
#[test]
fn nemotron() {
    agrees("nemotron");
}

/// No gates, GELU by the tanh form, biases everywhere.
#[test]
fn starcoder2() {
    agrees("starcoder2");
}

/// Norms by mean and variance with biases, biases of q, k and v, a quarter of a head turns.
#[test]
fn stablelm() {
    agrees("stablelm");
}

/// Both blocks read the same norm.
#[test]
fn stablelm_parallel() {
    agrees("stablelm-parallel");
}

/// Both blocks read the same norm, RoPE in every layer, a factor of the logits.
#[test]
fn command_r() {
    agrees("command-r");
}

/// Granite's factors under other names.
#[test]
fn minicpm() {
    agrees("minicpm");
}

/// In folders, the heads of a key head lie together in one matrix.
#[test]
fn internlm2() {
    agrees("internlm2");
}

/// Different names in folders.
#[test]
fn exaone() {
    agrees("exaone");
}

/// Norms of the results of the blocks, norms of heads, RoPE only where there is a window.
#[test]
fn exaone4() {
    agrees("exaone4");
}

/// RoPE everywhere in a model without windows.
#[test]
fn exaone4_without_windows() {
    agrees("exaone4-full");
}

/// Biases of q, k and v; the norm before the feed-forward block is called otherwise in GGUF.
#[test]
fn seed_oss() {
    agrees("seed_oss");
}

/// Interleaved rows in both containers.
#[test]
fn ernie4_5() {
    agrees("ernie4_5");
}

/// Half of a head turns, by pairs of neighbours in both containers; biases; gate and up in one matrix.
#[test]
fn chatglm() {
    agrees("chatglm");
}

/// The same with norms around both blocks.
#[test]
fn glm4() {
    agrees("glm4");
}

/// Norms without weights, a gate of attention, a factor and a cap of the logits, no RoPE in the first and the last of five layers.
#[test]
fn muse_glimmer() {
    agrees("muse-glimmer");
}

/// Norms of all queries and all keys of a token.
#[test]
fn olmoe() {
    agrees("olmoe");
}

/// Windows with a different RoPE base, and experts in every layer.
#[test]
fn mellum() {
    agrees("mellum");
}

/// A gate of attention, norms around both blocks, experts by sigmoids and a bias.
#[test]
fn afmoe() {
    agrees("afmoe");
}

/// Latent keys and values, YaRN whose factor scores have twice, experts by a softmax.
#[test]
fn deepseek2_lite() {
    agrees("deepseek2-lite");
}

/// Queries of two products, experts by sigmoids, a bias and groups.
#[test]
fn deepseek2() {
    agrees("deepseek2");
}

/// The same with keys and values of heads in one tensor in GGUF, too.
#[test]
fn deepseek2_in_old_files() {
    agrees("deepseek2-old");
}

/// GLM-4.7-Flash.
#[test]
fn glm4_moe_lite() {
    agrees("glm4moelite");
}

/// Sinks, YaRN, biases everywhere, a window in every other layer, a clamped gate, a softmax of the chosen experts.
#[test]
fn gpt_oss() {
    agrees("gpt-oss");
}

/// gpt-oss as `transformers` saves it: gate and up are alternate rows of one tensor, and matrices are transposed.
#[test]
fn gpt_oss_as_transformers_saves_it() {
    let mut model = Fixture::read("transformers", "gpt-oss");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_saved_experts(&mut model, folder.path(), Numbers::Exact);
    for device in devices() {
        let name = device.name();
        let error = worst_error(&model, &path, device).expect("it runs");
        assert!(error < BOUND, "{name}: NMSE {error:e}");
    }
}

/// GELU gate, scaled embeddings, norms of 1 + w.
#[test]
fn gemma() {
    agrees("gemma");
}

/// Soft caps, norms after the blocks, a window in every other layer.
#[test]
fn gemma2() {
    agrees("gemma2");
}

/// Two kinds of RoPE, QK norm of 1 + w, a window in five of six layers.
#[test]
fn gemma3() {
    agrees("gemma3");
}

/// Heads of 512 in every other layer, whose keys are the values too; normalised values; a factor after each layer.
#[test]
fn gemma4() {
    agrees("gemma4");
}

/// Embeddings of each layer; three layers that read the keys of earlier ones, with wider blocks.
#[test]
fn gemma4_with_shared_keys() {
    agrees("gemma4-shared");
}

/// Experts next to a plain block, each with its own norms, and a router that reads a different norm.
#[test]
fn gemma4_experts() {
    agrees("gemma4-experts");
}

/// No RoPE in the fourth of five layers.
#[test]
fn smollm3() {
    agrees_with("numpy", "smollm3");
}

/// Factors of the embeddings, of what blocks add, of scores and of logits.
#[test]
fn granite() {
    agrees_with("numpy", "granite");
}
