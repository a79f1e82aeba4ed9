//! From an open file to a model whose numbers make sense.

use std::path::Path;

use akunu_gguf::{Container, WeightStore};

use crate::arch;
use crate::architecture::{Architecture, Read};
use crate::error::ArchError;
use crate::ffn::Ffn;
use crate::file::{ModelFile, Said, Section};
use crate::layer::{Attention, MAX_DECODER_HEAD_LENGTH, MAX_HEAD_LENGTH, Temperature};
use crate::long_rope::LongRope;
use crate::model::Model;
use crate::rope::Pairing;
use crate::vision::CLIP;

/// What a position is divided by, at least, before a pair of a head turns by it; real models have some 1.
const MIN_DIVISOR: f32 = 1e-6;

impl Model {
    /// Reads the description of an open model and checks that its numbers make sense.
    pub fn from_store(store: &WeightStore) -> Result<Model, ArchError> {
        let architecture = match store.container() {
            Container::Gguf(file) => {
                let metadata = file.metadata();
                let key = "general.architecture";
                let name = metadata.string(key)?;
                let name = name.ok_or_else(|| metadata.missing(key))?;
                if name == CLIP {
                    let path = file.path().to_path_buf();
                    return Err(ArchError::OnlyTower { path });
                }
                arch::by_gguf_name(name).ok_or_else(|| arch::unknown(file.path(), name))?
            }
            Container::Folder(folder) => {
                let path = folder.path().join("config.json");
                let whole = Section {
                    path: &path,
                    object: folder.config(),
                };
                let name = whole.string("model_type")?;
                let name = name.ok_or_else(|| whole.missing("model_type"))?;
                arch::by_model_type(name).ok_or_else(|| arch::unknown(&path, name))?
            }
        };
        Model::from_store_as(store, architecture)
    }

    /// Like [`Model::from_store`], as a model of this architecture, whatever the file calls it. The keys of a GGUF file must
    /// begin with the architecture's name.
    pub fn from_store_as(
        store: &WeightStore,
        architecture: &'static Architecture,
    ) -> Result<Model, ArchError> {
        match store.container() {
            Container::Gguf(file) => Model::read(store, architecture, Said::Metadata(file)),
            Container::Folder(folder) => {
                let path = folder.path().join("config.json");
                let whole = Section {
                    path: &path,
                    object: folder.config(),
                };
                let text = whole.section("text_config").unwrap_or(whole);
                Model::read(store, architecture, Said::Config(text))
            }
        }
    }

    fn read(
        store: &WeightStore,
        arch: &'static Architecture,
        said: Said,
    ) -> Result<Model, ArchError> {
        let file = ModelFile {
            store,
            arch: arch.name,
            pairing: arch.pairing,
            said,
        };
        let Read::Text(read) = arch.read else {
            return Err(arch::unknown(file.path(), arch.name));
        };
        let model = read(&file)?;
        model.check(&file)?;
        Ok(model)
    }

    /// Checks that no pair of a head turns so fast that its angle is no number any more. `weight` is the weight
    /// `rope_freqs`, if the model has one.
    pub fn check_rope(&self, weight: &[f32], path: &Path) -> Result<(), ArchError> {
        let divisors = self.attention().filter_map(|attention| {
            let rope = attention.rope?;
            let divisors = rope.divisors(attention.head_dim, weight);
            Some(
                divisors
                    .into_iter()
                    .take(attention.turned_dim() as usize / 2),
            )
        });
        let mut divisors = divisors.flatten();
        match divisors.find(|divisor| !(MIN_DIVISOR..f32::INFINITY).contains(divisor)) {
            None => Ok(()),
            Some(found) => Err(ArchError::Invalid {
                path: path.to_path_buf(),
                key: "RoPE".to_string(),
                found: format!("scaled so that a position is divided by {found:e}"),
                wanted: "of a base and factors that a model can have",
            }),
        }
    }

    /// Refuses layers that read keys and values of others which are not there, or whose heads or windows differ.
    fn check_shared_keys(&self, file: &ModelFile) -> Result<(), ArchError> {
        for (at, layer) in self.layers.iter().enumerate() {
            let attention = layer.mixer.attention();
            let Some((own, source)) = attention.and_then(|own| Some((own, own.keys_of?))) else {
                continue;
            };
            let earlier = self.layers[..at].get(source);
            let read = earlier.and_then(|layer| layer.mixer.attention());
            let shape = |attention: &Attention| {
                let Attention {
                    kv_heads,
                    head_dim,
                    window,
                    ..
                } = *attention;
                (kv_heads, head_dim, window)
            };
            let turns_first = own.qk_norm.as_ref().is_some_and(|norms| norms.turn_first);
            if own.has_gate || own.gate.is_some() || own.row_norm.is_some() || turns_first {
                let what = "a gate or a norm of whole rows in layers that read keys of others";
                return Err(file.unsupported(what.to_string()));
            }
            let is_there = |read: &Attention| read.keys_of.is_none() && shape(read) == shape(own);
            if !read.is_some_and(is_there) {
                let found = format!("those of layer {source} in layer {at}");
                let wanted = "of an earlier layer with the same heads and window";
                return Err(file.invalid("keys and values", found, wanted));
            }
        }
        Ok(())
    }

    /// Numbers that no kernel takes, or that are beyond any real model.
    fn check(&self, file: &ModelFile) -> Result<(), ArchError> {
        let has_rope = self.attention().any(|attention| attention.rope.is_some());
        if self.is_encoder() && !has_rope {
            // Positions beyond the table would all look alike.
            let positions = self.embedding.positions.as_ref();
            let (found, needed) = (
                positions.map_or(0, |table| table.entries),
                self.context_length,
            );
            if found < needed {
                let found = format!("{needed}, and there are {found} learned positions");
                return Err(file.invalid("context length", found, "at most as many"));
            }
        }
        // What the kernels of attention take. Half of an encoder's window is how far its rows see.
        let (unit, most, wanted) = match self.is_encoder() {
            true => (4, MAX_HEAD_LENGTH, "a multiple of 4, at most 256"),
            false => (8, MAX_DECODER_HEAD_LENGTH, "a multiple of 8, at most 576"),
        };
        let (narrowest, wide_enough) = match self.is_encoder() {
            true => (2, "at least 2"),
            false => (1, "at least 1"),
        };
        for layer in &self.layers {
            match &layer.ffn {
                Ffn::None | Ffn::Experts(_) => {}
                ffn @ (Ffn::Dense(_) | Ffn::Gated(_)) => {
                    file.check_size("feed-forward length", ffn.width(), 1 << 22)?;
                }
            }
        }
        for attention in self.attention() {
            let has_gate = attention.has_gate || attention.gate.is_some();
            let has_norm = attention.qk_norm.is_some() || attention.row_norm.is_some();
            let is_interleaved = attention
                .rope
                .is_some_and(|rope| rope.pairing == Pairing::Interleaved);
            let turns_first = attention
                .qk_norm
                .as_ref()
                .is_some_and(|norms| norms.turn_first);
            if is_interleaved && turns_first {
                let what = "a norm after the turn of heads that turn by neighbours";
                return Err(file.unsupported(what.to_string()));
            }
            if attention.latent.is_some() && (has_gate || has_norm || attention.value_eps.is_some())
            {
                let what = "a gate or norms of heads in latent attention";
                return Err(file.unsupported(what.to_string()));
            }
            file.check_heads(attention.heads, attention.kv_heads)?;
            let head_dim = attention.head_dim;
            if !head_dim.is_multiple_of(unit) || head_dim > most {
                return Err(file.invalid("head length", head_dim.to_string(), wanted));
            }
            file.check_positive("attention scale", attention.scale)?;
            if let Some(Temperature { scale, period }) = attention.temperature {
                file.check_positive("temperature of attention", scale)?;
                file.check_size("positions of a temperature of attention", period, 1 << 30)?;
            }
            file.check_positive("attention soft cap", attention.softcap.unwrap_or(1.0))?;
            if let Some(rope) = attention.rope {
                file.check_positive("RoPE base", rope.theta)?;
                file.check_positive("RoPE scale", rope.freq_scale)?;
                let turned = attention.turned_dim();
                if !(2..=head_dim).contains(&turned) || !turned.is_multiple_of(2) {
                    let found = format!("{turned} of {head_dim}");
                    let wanted = "an even number, from 2 to those of a head";
                    return Err(file.invalid("elements of a head that turn", found, wanted));
                }
            }
            if let Some(window) = attention.window.filter(|&window| window < narrowest) {
                return Err(file.invalid("sliding window", window.to_string(), wide_enough));
            }
        }
        self.check_shared_keys(file)?;
        self.check_rope(&[], file.path())?;
        let Some(LongRope { short, long, .. }) = &self.long_rope else {
            return Ok(());
        };
        self.check_rope(short, file.path())?;
        self.check_rope(long, file.path())
    }
}

impl ModelFile<'_> {
    /// The error of a value that no model can have.
    pub fn invalid(&self, key: &str, found: String, wanted: &'static str) -> ArchError {
        ArchError::Invalid {
            path: self.path().to_path_buf(),
            key: key.to_string(),
            found,
            wanted,
        }
    }

    /// Refuses a size that is zero or beyond any real model.
    pub fn check_size(&self, key: &str, found: u32, most: u32) -> Result<(), ArchError> {
        match (1..=most).contains(&found) {
            true => Ok(()),
            false => Err(self.invalid(key, found.to_string(), "a size that a model can have")),
        }
    }

    /// Refuses heads that do not share key and value heads evenly.
    pub fn check_heads(&self, heads: u32, kv_heads: u32) -> Result<(), ArchError> {
        self.check_size("heads", heads, 1 << 12)?;
        self.check_size("key/value heads", kv_heads, heads)?;
        match heads.is_multiple_of(kv_heads) {
            true => Ok(()),
            false => {
                let found = format!("{heads} for {kv_heads} key/value heads");
                Err(self.invalid("heads", found, "a multiple of the key/value heads"))
            }
        }
    }

    /// Refuses a factor that is not a positive number.
    pub fn check_positive(&self, key: &str, found: f32) -> Result<(), ArchError> {
        match found.is_finite() && found > 0.0 {
            true => Ok(()),
            false => Err(self.invalid(key, found.to_string(), "a positive number")),
        }
    }
}
