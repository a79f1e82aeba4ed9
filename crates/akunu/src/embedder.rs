//! Texts as vectors, many at a time.

use std::path::Path;

use akunu_engine::{
    CutText, Encoder, EncoderText, EngineError, ModelOptions, SessionOptions, is_encoder,
};
use akunu_tokenizer::{EncodeOptions, Tokenizer};

use crate::device::Device;
use crate::error::Error;
use crate::model::Model;

/// A model that turns texts into vectors: texts that mean similar things have a dot product near 1.
///
/// ```no_run
/// let embedder = akunu::Embedder::open("all-MiniLM-L6-v2")?;
/// let vectors = embedder.embed_all(&["a cat", "a kitten", "a bridge"])?;
/// let similarity = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
/// assert!(similarity(&vectors[0], &vectors[1]) > similarity(&vectors[0], &vectors[2]));
/// # Ok::<(), akunu::Error>(())
/// ```
///
/// Encoders (such as BERT) pool the vectors of a text's tokens as their own files say. A model that generates text
/// gives the hidden state of the last token; such vectors are worse, because the model was not trained for them.
///
/// `Embedder::from(model)` shares a [`Model`] that is open already. [`Session::embed`](akunu_engine::Session::embed) has the
/// hidden state of a list of tokens without scaling it to length 1.
#[derive(Clone)]
pub struct Embedder {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Encoder(Encoder),
    Decoder(Model),
}

/// How texts become vectors.
///
/// ```no_run
/// # let embedder = akunu::Embedder::open("embedding-model")?;
/// let options = akunu::EmbedOptions {
///     strict: true,
///     ..akunu::EmbedOptions::default()
/// };
/// let embedding = &embedder.embed_with(&["a cat"], options)?[0];
/// assert_eq!(embedding.n_cut, 0);
/// # Ok::<(), akunu::Error>(())
/// ```
///
/// Later versions may have further fields: end a value with `..EmbedOptions::default()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbedOptions {
    /// Keep only this many numbers of each vector, the first ones, for models that were trained for it.
    pub dimensions: Option<usize>,
    /// Return an error for a text that is longer than the model can read, instead of cutting it.
    pub strict: bool,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// The vector of a text, from [`Embedder::embed_with`].
///
/// ```
/// let embedding = akunu::Embedding::default();
/// println!("{} numbers from {} tokens", embedding.vector.len(), embedding.n_tokens);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Embedding {
    /// Its numbers; the vector has length 1.
    pub vector: Vec<f32>,
    /// Tokens of the text that the model has read.
    pub n_tokens: usize,
    /// Tokens at the end of the text that were cut off, because there were too many.
    pub n_cut: usize,
}

impl Embedder {
    /// Opens a GGUF file, or a folder with safetensors, on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Embedder, Error> {
        Embedder::open_on(path, Device::Auto)
    }

    /// Opens a model on this device.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Embedder, Error> {
        let path = path.as_ref();
        let kind = if is_encoder(path)? {
            Kind::Encoder(Encoder::load(path, device.open()?)?)
        } else {
            Kind::Decoder(Model::open_with(path, device, ModelOptions::default())?)
        };
        Ok(Embedder { kind })
    }

    /// The vector of a text, of length 1. A text that is too long is cut.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, Error> {
        let mut vectors = self.embed_all(&[text])?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// The vector of each text, of length 1. A text that is too long is cut.
    pub fn embed_all<T: AsRef<str>>(&self, texts: &[T]) -> Result<Vec<Vec<f32>>, Error> {
        let embeddings = self.embed_with(texts, EmbedOptions::default())?;
        Ok(embeddings.into_iter().map(|made| made.vector).collect())
    }

    /// Like [`Embedder::embed_all`], with options; says how many tokens were read and cut.
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: &[T],
        options: EmbedOptions,
    ) -> Result<Vec<Embedding>, Error> {
        self.check_dimensions(options)?;
        let mut embeddings = match &self.kind {
            Kind::Encoder(encoder) => encode(encoder, texts, options)?,
            Kind::Decoder(model) => hidden_states(model, texts, options)?,
        };
        for embedding in &mut embeddings {
            let kept = options.dimensions.unwrap_or(embedding.vector.len());
            embedding.vector.truncate(kept);
            to_unit_length(&mut embedding.vector);
        }
        Ok(embeddings)
    }

    /// Numbers of a vector.
    pub fn dimensions(&self) -> usize {
        let config = match &self.kind {
            Kind::Encoder(encoder) => encoder.config(),
            Kind::Decoder(model) => model.config(),
        };
        config.dim as usize
    }

    /// The maximum number of tokens of a text.
    pub fn max_tokens(&self) -> usize {
        match &self.kind {
            Kind::Encoder(encoder) => encoder.max_tokens(),
            Kind::Decoder(model) => model.config().context_length as usize,
        }
    }

    /// The tokenizer of the model, to count tokens beforehand.
    pub fn tokenizer(&self) -> &Tokenizer {
        match &self.kind {
            Kind::Encoder(encoder) => encoder.tokenizer(),
            Kind::Decoder(model) => model.tokenizer(),
        }
    }

    /// The file or folder of the model.
    pub fn path(&self) -> &Path {
        match &self.kind {
            Kind::Encoder(encoder) => encoder.path(),
            Kind::Decoder(model) => model.path(),
        }
    }

    /// How the vectors of a text's tokens become one: `mean`, `cls` or `last`.
    pub fn pooling(&self) -> &'static str {
        match &self.kind {
            Kind::Encoder(encoder) => encoder.pooling().name(),
            Kind::Decoder(_) => "last",
        }
    }

    /// Refuses a number of dimensions that there cannot be.
    fn check_dimensions(&self, options: EmbedOptions) -> Result<(), Error> {
        match options.dimensions {
            Some(found) if !(1..=self.dimensions()).contains(&found) => Err(Error::Dimensions {
                found,
                max: self.dimensions(),
            }),
            _ => Ok(()),
        }
    }
}

impl From<Encoder> for Embedder {
    fn from(encoder: Encoder) -> Embedder {
        let kind = Kind::Encoder(encoder);
        Embedder { kind }
    }
}

impl From<Model> for Embedder {
    fn from(model: Model) -> Embedder {
        let kind = Kind::Decoder(model);
        Embedder { kind }
    }
}

/// Makes the length 1; a vector of zeros stays one.
fn to_unit_length(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

/// Says which text is empty.
pub(crate) fn name_empty(index: usize, error: EngineError) -> Error {
    match error {
        EngineError::EmptyText => Error::EmptyText { index },
        other => other.into(),
    }
}

/// Refuses a text that was cut.
pub(crate) fn refuse_cut(index: usize, cut: &CutText) -> Result<(), Error> {
    let max = cut.text.tokens.len();
    match cut.n_cut {
        0 => Ok(()),
        n_cut => Err(Error::TextTooLong {
            index,
            found: max + n_cut,
            max,
        }),
    }
}

fn encode<T: AsRef<str>>(
    encoder: &Encoder,
    texts: &[T],
    options: EmbedOptions,
) -> Result<Vec<Embedding>, Error> {
    let mut cuts = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let cut = encoder.text(text.as_ref());
        let cut = cut.map_err(|error| name_empty(index, error))?;
        if options.strict {
            refuse_cut(index, &cut)?;
        }
        cuts.push(cut);
    }
    let counts: Vec<(usize, usize)> = cuts
        .iter()
        .map(|cut| (cut.text.tokens.len(), cut.n_cut))
        .collect();
    let texts: Vec<EncoderText> = cuts.into_iter().map(|cut| cut.text).collect();
    let vectors = encoder.encode(&texts)?.into_iter();
    let embedding = |(vector, (n_tokens, n_cut))| Embedding {
        vector,
        n_tokens,
        n_cut,
    };
    Ok(vectors.zip(counts).map(embedding).collect())
}

fn hidden_states<T: AsRef<str>>(
    model: &Model,
    texts: &[T],
    options: EmbedOptions,
) -> Result<Vec<Embedding>, Error> {
    let max = model.config().context_length as usize;
    let add_special = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let mut embeddings = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let mut ids = model.tokenizer().encode(text.as_ref(), add_special);
        if ids.is_empty() {
            return Err(Error::EmptyText { index });
        }
        let n_cut = ids.len().saturating_sub(max);
        if options.strict && n_cut > 0 {
            let found = ids.len();
            return Err(Error::TextTooLong { index, found, max });
        }
        ids.truncate(max);
        embeddings.push(Embedding {
            vector: hidden_state(model, &ids)?,
            n_tokens: ids.len(),
            n_cut,
        });
    }
    Ok(embeddings)
}

/// The hidden state of the last token, in a session that is as long as the text.
fn hidden_state(model: &Model, ids: &[u32]) -> Result<Vec<f32>, Error> {
    let context = u32::try_from(ids.len().max(1)).unwrap_or(u32::MAX);
    let mut session = model.session(SessionOptions {
        context: Some(context),
        ..SessionOptions::default()
    })?;
    Ok(session.embed(ids)?)
}

#[cfg(test)]
mod tests {
    use super::to_unit_length;

    #[test]
    fn vectors_get_length_one() {
        let mut vector = [3.0, 4.0];
        to_unit_length(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
        let mut zero = [0.0; 2];
        to_unit_length(&mut zero);
        assert_eq!(zero, [0.0; 2]);
    }
}
