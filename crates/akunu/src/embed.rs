//! Texts as vectors.

use akunu_engine::SessionOptions;
use akunu_tokenizer::EncodeOptions;

use crate::error::Error;
use crate::model::Model;

impl Model {
    /// The meaning of a text as a vector of length 1: texts that mean similar things have a dot product near 1.
    ///
    /// It is the last hidden state of the text's last token. Models that were not trained for embeddings tell texts
    /// apart this way too, but less well.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, Error> {
        let mut vector = self.hidden_state(text)?;
        to_unit_length(&mut vector);
        Ok(vector)
    }

    /// The same vector as the output layer sees it, of any length.
    pub fn hidden_state(&self, text: &str) -> Result<Vec<f32>, Error> {
        let options = EncodeOptions {
            add_special: true,
            parse_special: false,
        };
        let ids = self.tokenizer().encode(text, options)?;
        self.hidden_state_of(&ids)
    }

    /// The same of some tokens.
    pub(crate) fn hidden_state_of(&self, ids: &[u32]) -> Result<Vec<f32>, Error> {
        let context = u32::try_from(ids.len().max(1)).unwrap_or(u32::MAX);
        let mut session = self.session(SessionOptions {
            context: Some(context),
            ..SessionOptions::default()
        })?;
        Ok(session.embed(ids)?)
    }
}

/// Zero stays zero.
pub(crate) fn to_unit_length(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
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
