//! One name for each weight, whatever the container calls it.
//!
//! A name is a module and a suffix, `.weight` or `.bias`; the table maps modules, `{}` standing for
//! the number of the layer, or of an expert. Hugging Face names are compared without the prefixes that say in which
//! wrapper the model sits (`model.`, `language_model.`, `text_model.`, `backbone.`, `bert.`, `mpnet.`, `roberta.`, `transformer.`).

mod attention;
mod ends;
mod experts;
mod ffn;
mod module;
mod mtp;
mod norms;
mod states;
mod vision;

use module::Module;
pub(super) use mtp::{apart, in_layers};

/// Names without their suffix.
const MODULES: [&[Module]; 8] = [
    ends::MODULES,
    attention::MODULES,
    norms::MODULES,
    ffn::MODULES,
    experts::MODULES,
    states::MODULES,
    vision::MODULES,
    mtp::MODULES,
];

/// Names whose suffix differs in some container, or is missing there.
const WHOLE_NAMES: [&[Module]; 5] = [
    ends::WHOLE,
    attention::WHOLE,
    experts::WHOLE,
    states::WHOLE,
    vision::WHOLE,
];

/// What wrappers put before a Hugging Face name.
const HF_PREFIXES: [&str; 8] = [
    "model.",
    "language_model.",
    "text_model.",
    "backbone.",
    "bert.",
    "mpnet.",
    "roberta.",
    "transformer.",
];

/// The canonical name of a GGUF tensor; `None` when the table does not have it.
pub fn canonical_from_gguf(name: &str) -> Option<String> {
    translate(name, |module, pattern| pattern == module.gguf)
}

/// The canonical name of a Hugging Face tensor; `None` when the table does not have it. `sandwich`:
/// whether the model has a norm after each block, see [`has_sandwich_norms`].
pub fn canonical_from_hugging_face(name: &str, sandwich: bool) -> Option<String> {
    let name = without_prefixes(name);
    let tower = vision::without_wrapper(name);
    translate(tower.as_deref().unwrap_or(name), |module, pattern| {
        let mut names = module.hugging_face.iter();
        names.any(|name| name.holds(sandwich) == Some(pattern))
    })
}

/// The name that a GGUF file has for a canonical name; none when the table does not have it.
pub fn gguf_names(canonical: &str) -> Vec<String> {
    names(canonical, |module| vec![module.gguf])
}

/// The names that Hugging Face models have for a canonical name, without prefixes. `sandwich` as above.
pub fn hugging_face_names(canonical: &str, sandwich: bool) -> Vec<String> {
    names(canonical, |module| {
        let names = module.hugging_face.iter();
        names.filter_map(|name| name.holds(sandwich)).collect()
    })
}

/// Whether this Hugging Face name only occurs in models that normalise what their blocks give. There,
/// `post_attention_layernorm` follows attention; elsewhere it comes before the feed-forward network.
pub fn has_sandwich_norms(name: &str) -> bool {
    let suffixes = [
        ".post_feedforward_layernorm.weight",
        ".pre_mlp_layernorm.weight",
    ];
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

fn without_prefixes(mut name: &str) -> &str {
    while let Some(rest) = HF_PREFIXES
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
    {
        name = rest;
    }
    name
}

/// The canonical name of what a container calls so.
fn translate(name: &str, is_named: impl Fn(&Module, &str) -> bool) -> Option<String> {
    let names = in_module(name, is_named, |module| vec![module.canonical]);
    names.into_iter().next()
}

/// What a container calls a canonical name.
fn names(canonical: &str, of: impl Fn(&Module) -> Vec<&'static str>) -> Vec<String> {
    in_module(canonical, |module, name| module.canonical == name, of)
}

/// Takes a name apart, finds its module, and puts other names of the module together.
fn in_module(
    name: &str,
    is_named: impl Fn(&Module, &str) -> bool,
    others: impl Fn(&Module) -> Vec<&'static str>,
) -> Vec<String> {
    let (pattern, numbers) = pattern(name);
    let mut whole = WHOLE_NAMES.into_iter().flatten();
    let whole = whole.find(|module| is_named(module, &pattern));
    let whole = whole.map_or(Vec::new(), &others).into_iter();
    let mut names: Vec<String> = whole.map(|name| numbered(name, &numbers)).collect();
    let Some((pattern, suffix @ ("weight" | "bias"))) = pattern.rsplit_once('.') else {
        return names;
    };
    let mut modules = MODULES.into_iter().flatten();
    if let Some(module) = modules.find(|module| is_named(module, pattern)) {
        let with_suffix = |name: &str| numbered(name, &numbers) + "." + suffix;
        names.extend(others(module).into_iter().map(with_suffix));
        names.dedup();
    }
    names
}

/// Replaces the components that are numbers by `{}`: `blk.3.attn_q` gives `blk.{}.attn_q` and 3.
fn pattern(name: &str) -> (String, Vec<&str>) {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (mut parts, mut numbers) = (Vec::new(), Vec::new());
    for part in name.split('.') {
        if is_number(part) {
            numbers.push(part);
        }
        parts.push(if is_number(part) { "{}" } else { part });
    }
    (parts.join("."), numbers)
}

/// The name with numbers in the place of each `{}`.
fn numbered(name: &str, numbers: &[&str]) -> String {
    let fill = |name: String, number: &&str| name.replacen("{}", number, 1);
    numbers.iter().fold(name.to_string(), fill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_containers_meet_in_one_name() {
        let name = Some("layers.3.attention.q.weight".to_string());
        assert_eq!(canonical_from_gguf("blk.3.attn_q.weight"), name);
        let hf = "model.layers.3.self_attn.q_proj.weight";
        assert_eq!(canonical_from_hugging_face(hf, false), name);
        let wrapped = "language_model.model.layers.3.self_attn.q_proj.weight";
        assert_eq!(canonical_from_hugging_face(wrapped, false), name);
    }

    /// Fails if the weights of a tower get the names of the language model's in the same folder.
    #[test]
    fn a_vision_tower_has_names_of_its_own() {
        let name = Some("vision.layers.3.attention.q.weight".to_string());
        assert_eq!(canonical_from_gguf("v.blk.3.attn_q.weight"), name);
        for wrapper in [
            "model.vision_model.",
            "vision_tower.vision_model.",
            "model.vision_tower.",
            "vision_model.",
        ] {
            let tensor = format!("{wrapper}encoder.layers.3.self_attn.q_proj.weight");
            assert_eq!(
                canonical_from_hugging_face(&tensor, false),
                name,
                "{tensor}"
            );
        }
        let second = canonical_from_gguf("v.patch_embd.weight.1");
        assert_eq!(second.as_deref(), Some("vision.patches.weight.1"));
    }

    #[test]
    fn post_attention_layernorm_means_two_things() {
        let name = "model.layers.0.post_attention_layernorm.weight";
        let llama = canonical_from_hugging_face(name, false);
        let gemma = canonical_from_hugging_face(name, true);
        assert_eq!(llama.as_deref(), Some("layers.0.ffn_norm.weight"));
        assert_eq!(
            gemma.as_deref(),
            Some("layers.0.post_attention_norm.weight")
        );
    }

    /// What an error says of a weight that is missing: all names under which it was looked for.
    #[test]
    fn a_canonical_name_is_found_under_each_of_its_names() {
        let name = "layers.7.ffn_norm.weight";
        assert_eq!(gguf_names(name), ["blk.7.ffn_norm.weight"]);
        for (sandwich, n_names) in [(false, 7), (true, 6)] {
            let names = hugging_face_names(name, sandwich);
            assert_eq!(names.len(), n_names);
            for found in names {
                let canonical = canonical_from_hugging_face(&found, sandwich);
                assert_eq!(canonical.as_deref(), Some(name), "{found}");
            }
        }
        assert_eq!(gguf_names("rope_freqs"), ["rope_freqs.weight"]);
        let expert = "layers.7.ffn.experts.12.up.weight";
        assert_eq!(gguf_names(expert), ["blk.7.ffn_up.12.weight"]);
        let mixtral = "model.layers.7.block_sparse_moe.experts.12.w3.weight";
        let found = canonical_from_hugging_face(mixtral, false);
        assert_eq!(found.as_deref(), Some(expert));
        assert_eq!(gguf_names("unknown.weight"), [""; 0]);
    }

    #[test]
    fn what_is_not_in_the_table_is_not_guessed() {
        assert_eq!(canonical_from_gguf("blk.0.attn_q.scales"), None);
        assert_eq!(canonical_from_gguf("blk.x.attn_q.weight"), None);
        assert_eq!(canonical_from_gguf("a.blk.0.attn_q.weight"), None);
        assert_eq!(
            canonical_from_gguf("rope_freqs.weight").as_deref(),
            Some("rope_freqs")
        );
    }

    /// A name that stood in two rows would find only the first.
    #[test]
    fn no_name_stands_twice_in_the_table() {
        let all = || MODULES.into_iter().flatten();
        let mut names: Vec<&str> = all().map(|module| module.gguf).collect();
        names.extend(all().map(|module| module.canonical));
        let in_total = names.len();
        names.sort_unstable();
        names.dedup();
        // `output`, `output_norm` and `token_types` are called so in GGUF too.
        assert_eq!(names.len(), in_total - 3);
    }
}
