//! A prompt of tokens and images.

use std::sync::Arc;

use super::features::ImageFeatures;

/// An image in a prompt: its features stand in the place of the embeddings of the tokens from `start` on.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSpan {
    /// The number of the token of its first row.
    pub start: usize,
    /// Its features.
    pub features: Arc<ImageFeatures>,
}

/// What a sequence is to hold: tokens, and images among them. Tokens alone become one by `Prompt::from`.
///
/// ```
/// use std::sync::Arc;
/// use akunu_engine::{ImageFeatures, ImageSpan, Prompt};
///
/// // Token 9 stands for the rows of images.
/// let features = Arc::new(ImageFeatures::new(64, vec![0.5; 2 * 64])?);
/// let prompt = Prompt {
///     tokens: vec![1, 9, 9, 5],
///     images: vec![ImageSpan { start: 1, features }],
/// };
/// assert!(Prompt::from(&[1, 5]).images.is_empty());
/// # drop(prompt);
/// # Ok::<(), akunu_engine::ImageError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// All tokens, with one for each row of an image: the model's placeholder.
    pub tokens: Vec<u32>,
    /// The images, in their order.
    pub images: Vec<ImageSpan>,
}

impl From<Vec<u32>> for Prompt {
    fn from(tokens: Vec<u32>) -> Prompt {
        Prompt {
            tokens,
            images: Vec::new(),
        }
    }
}

impl From<&[u32]> for Prompt {
    fn from(tokens: &[u32]) -> Prompt {
        tokens.to_vec().into()
    }
}

impl From<&Vec<u32>> for Prompt {
    fn from(tokens: &Vec<u32>) -> Prompt {
        tokens.clone().into()
    }
}

impl From<&Arc<[u32]>> for Prompt {
    fn from(tokens: &Arc<[u32]>) -> Prompt {
        tokens.to_vec().into()
    }
}

impl<const N: usize> From<&[u32; N]> for Prompt {
    fn from(tokens: &[u32; N]) -> Prompt {
        tokens.to_vec().into()
    }
}
