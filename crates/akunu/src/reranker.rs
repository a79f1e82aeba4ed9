//! Scores of how well documents answer a question.

use std::path::Path;

use akunu_engine::{Encoder, EngineError};

use crate::device::Device;
use crate::embedder::{name_empty, refuse_cut};
use crate::error::Error;

/// A cross-encoder: a model that reads a question and a document together and scores how well the document answers.
///
/// ```no_run
/// let reranker = akunu::Reranker::open("ms-marco-MiniLM-L6-v2")?;
/// let scores = reranker.scores("What is the capital of France?", &["Paris is.", "A cat."])?;
/// assert!(scores[0] > scores[1]);
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone)]
pub struct Reranker {
    encoder: Encoder,
}

/// How well a document answers a question.
///
/// ```no_run
/// # let reranker = akunu::Reranker::open("reranker")?;
/// let documents = ["Paris is the capital.", "A cat."];
/// let rankings = reranker.rank("What is the capital of France?", &documents, false)?;
/// let best = rankings.iter().max_by(|a, b| a.score.total_cmp(&b.score));
/// println!("{best:?}");
/// # Ok::<(), akunu::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Ranking {
    /// The output of the model's classifier, any number; larger is better.
    pub score: f32,
    /// Tokens that the model has read.
    pub n_tokens: usize,
    /// Tokens that were cut off, because there were too many.
    pub n_cut: usize,
}

impl Reranker {
    /// Opens a GGUF file, or a folder with safetensors, on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Reranker, Error> {
        Reranker::open_on(path, Device::Auto)
    }

    /// Opens a model on this device.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Reranker, Error> {
        Encoder::load(path, device.open()?)?.try_into()
    }

    /// The score of each document. A document that is too long is cut.
    pub fn scores<T: AsRef<str>>(&self, query: &str, documents: &[T]) -> Result<Vec<f32>, Error> {
        let rankings = self.rank(query, documents, false)?;
        Ok(rankings.into_iter().map(|ranking| ranking.score).collect())
    }

    /// Like [`Reranker::scores`], with the numbers of tokens. `strict` makes a document that is too long an error.
    pub fn rank<T: AsRef<str>>(
        &self,
        query: &str,
        documents: &[T],
        strict: bool,
    ) -> Result<Vec<Ranking>, Error> {
        // An empty question is an error without a number: it is none of the documents.
        self.encoder.text(query)?;
        let mut pairs = Vec::with_capacity(documents.len());
        let mut rankings = Vec::with_capacity(documents.len());
        for (index, document) in documents.iter().enumerate() {
            let cut = self.encoder.pair(query, document.as_ref());
            let cut = cut.map_err(|error| name_empty(index, error))?;
            if strict {
                refuse_cut(index, &cut)?;
            }
            rankings.push(Ranking {
                score: 0.0,
                n_tokens: cut.text.tokens.len(),
                n_cut: cut.n_cut,
            });
            pairs.push(cut.text);
        }
        let scores = self.encoder.score(&pairs)?;
        for (ranking, scores) in rankings.iter_mut().zip(scores) {
            ranking.score = scores.first().copied().unwrap_or_default();
        }
        Ok(rankings)
    }

    /// The maximum number of tokens of a question and a document together.
    pub fn max_tokens(&self) -> usize {
        self.encoder.max_tokens()
    }
}

impl TryFrom<Encoder> for Reranker {
    type Error = Error;

    fn try_from(encoder: Encoder) -> Result<Reranker, Error> {
        let path = encoder.path().to_path_buf();
        match encoder.config().n_labels() {
            0 => Err(EngineError::NoClassifier { path }.into()),
            1 => Ok(Reranker { encoder }),
            n_labels => Err(Error::ManyLabels { path, n_labels }),
        }
    }
}
