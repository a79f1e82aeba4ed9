//! Texts as vectors.

use std::ffi::c_char;

use akunu::EmbedOptions;

use crate::border::{self, Room};
use crate::handles::{self, Thing};
use crate::options::{self, AkunuOptions};
use crate::status::{AkunuStatus, call};

/// A model that turns texts into vectors. It can be used from several threads at once.
pub struct AkunuEmbedder(());

struct Embedder {
    own: akunu::Embedder,
    options: EmbedOptions,
}

impl Thing for Embedder {
    type Opaque = AkunuEmbedder;
    const NAME: &'static str = "embedder";
}

impl Embedder {
    /// Numbers of each vector.
    fn dimensions(&self) -> usize {
        let whole = self.own.dimensions();
        self.options.dimensions.unwrap_or(whole)
    }

    /// The vectors, one behind the other.
    fn embed(&self, texts: &[String]) -> Result<Vec<f32>, akunu::Error> {
        let embeddings = self.own.embed_with(texts, self.options)?;
        Ok(embeddings
            .into_iter()
            .flat_map(|made| made.vector)
            .collect())
    }
}

/// Opens a model for embeddings (such as BERT; a model that generates text works too, but less well): a folder with
/// config.json and safetensors, or a GGUF file. akunu_embedder_free frees it. The options may be null; it uses device, threads
/// and dimensions, which keeps only the first numbers of each vector, for models that were trained for it.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_embedder_open(
    path: *const c_char,
    options: *const AkunuOptions,
    out: *mut *mut AkunuEmbedder,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let path = border::text(path, "path")?;
        let values = options::read(options)?;
        let device = values.device();
        let opened = device.and_then(|device| akunu::Embedder::open_on(&path, device));
        let embedder = Embedder {
            own: opened?,
            options: EmbedOptions {
                dimensions: values.dimensions,
                ..EmbedOptions::default()
            },
        };
        // A wrong number of dimensions is told here, and not with the first text.
        embedder.embed(&[])?;
        border::write(out, handles::give(embedder), "out")
    })
}

/// Frees an embedder, after the running calls have ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_embedder_free(embedder: *mut AkunuEmbedder) -> AkunuStatus {
    call(|| handles::take::<Embedder>(embedder))
}

/// Stores the number of floats of a vector.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_embedder_dimensions(
    embedder: *const AkunuEmbedder,
    dimensions: *mut usize,
) -> AkunuStatus {
    call(|| {
        let found = handles::get::<Embedder>(embedder)?.dimensions();
        border::write(dimensions, found, "dimensions")
    })
}

/// Stores the vectors of all texts, one after the other: `n_texts` times akunu_embedder_dimensions floats. Each vector has
/// length 1; texts that mean similar things have a dot product near 1. A text that is longer than the model can read is cut.
/// Many texts in one call are faster than one by one. `length` always gets the number of floats; with `to` null and
/// `capacity` 0 only that is stored, and nothing is computed.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_embed(
    embedder: *const AkunuEmbedder,
    texts: *const *const c_char,
    n_texts: usize,
    to: *mut f32,
    capacity: usize,
    length: *mut usize,
) -> AkunuStatus {
    let room = Room {
        to,
        capacity,
        length,
    };
    call(|| {
        let embedder = handles::get::<Embedder>(embedder)?;
        let texts = border::texts(texts, n_texts, "texts")?;
        let n_floats = texts.len().saturating_mul(embedder.dimensions());
        if room.is_wanted(n_floats, 0)? {
            room.fill(&embedder.embed(&texts)?)?;
        }
        Ok(())
    })
}
