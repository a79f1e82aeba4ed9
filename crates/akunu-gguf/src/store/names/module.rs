//! A row of the tables.

/// A module of a model under its three names.
pub(super) struct Module {
    /// In Akunu.
    pub canonical: &'static str,
    /// In GGUF files.
    pub gguf: &'static str,
    /// In folders, without prefixes.
    pub hugging_face: &'static [HfName],
}

/// A name in a Hugging Face model, and when it holds.
pub(super) enum HfName {
    /// In every model.
    Always(&'static str),
    /// In models that normalise the output of attention and of the feed-forward network: Gemma 2 and 3, OLMo 2, EXAONE 4, AFMoE.
    Sandwich(&'static str),
    /// In all other models.
    NoSandwich(&'static str),
}

impl HfName {
    /// The name, if it holds in this model.
    pub fn holds(&self, sandwich: bool) -> Option<&'static str> {
        match *self {
            HfName::Always(name) => Some(name),
            HfName::Sandwich(name) => sandwich.then_some(name),
            HfName::NoSandwich(name) => (!sandwich).then_some(name),
        }
    }
}

/// A row of a table.
pub(super) const fn module(
    canonical: &'static str,
    gguf: &'static str,
    hugging_face: &'static [HfName],
) -> Module {
    Module {
        canonical,
        gguf,
        hugging_face,
    }
}
