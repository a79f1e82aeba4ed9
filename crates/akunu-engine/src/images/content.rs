//! The content that a sequence is to have, of which all was checked.

use std::ops::Range;

use akunu_arch as arch;

use super::error::ImageError;
use super::features::ImageFeatures;
use super::prompt::Prompt;
use super::span::{Images, Span};

/// Tokens and the images among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub tokens: Vec<u32>,
    pub images: Images,
}

impl From<&[u32]> for Content {
    fn from(tokens: &[u32]) -> Content {
        tokens.to_vec().into()
    }
}

impl From<Vec<u32>> for Content {
    fn from(tokens: Vec<u32>) -> Content {
        Content {
            tokens,
            images: Images::default(),
        }
    }
}

impl Content {
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub fn clear(&mut self) {
        *self = Content::default();
    }

    /// Drops some slots, and all of every image that begins among them; an image that begins before them stays. Returns how many
    /// slots have gone.
    pub fn remove(&mut self, slots: Range<usize>) -> usize {
        let Range { start, end } = self.images.without_parts(slots);
        self.tokens.drain(start..end);
        self.images.remove(start..end);
        end - start
    }

    /// The content that a prompt is for this model, which reads up to `limit` rows in a step.
    pub fn of(prompt: Prompt, model: &arch::Model, limit: usize) -> Result<Content, ImageError> {
        let Prompt { tokens, images } = prompt;
        let mut spans: Vec<Span> = Vec::with_capacity(images.len());
        for (image, given) in images.into_iter().enumerate() {
            check_features(image, &given.features, model)?;
            let (start, rows) = (given.start, given.features.n_rows());
            check_length(image, rows, model, limit)?;
            if start.checked_add(rows).is_none_or(|end| end > tokens.len()) {
                return Err(ImageError::Beyond {
                    image,
                    start,
                    rows,
                    tokens: tokens.len(),
                });
            }
            let before = spans.last();
            if before.is_some_and(|before| start < before.start + before.len) {
                return Err(ImageError::Order { image, start });
            }
            spans.push(Span {
                start,
                len: rows,
                features: given.features,
            });
        }
        Ok(Content {
            tokens,
            images: Images::new(spans),
        })
    }
}

/// Refuses an image whose rows see all of it, if it fits neither a step nor the windows.
fn check_length(
    image: usize,
    rows: usize,
    model: &arch::Model,
    limit: usize,
) -> Result<(), ImageError> {
    if model.images.map(|input| input.sight) != Some(arch::ImageSight::Whole) {
        return Ok(());
    }
    if rows > limit {
        return Err(ImageError::TooLong { image, rows, limit });
    }
    match model.windows().flatten().min() {
        Some(window) if rows > window as usize => Err(ImageError::Window {
            image,
            rows,
            window,
        }),
        _ => Ok(()),
    }
}

/// Refuses features that are not for this model.
pub(crate) fn check_features(
    image: usize,
    features: &ImageFeatures,
    model: &arch::Model,
) -> Result<(), ImageError> {
    let arch = model.arch;
    let Some(input) = model.images else {
        return Err(ImageError::Unsupported { arch });
    };
    let (found, wanted) = (features.dim(), model.dim);
    if found != wanted {
        return Err(ImageError::Width {
            image,
            found,
            wanted,
        });
    }
    let (found, wanted) = (features.deep().len(), input.deep_layers as usize);
    if found != wanted {
        return Err(ImageError::Deep {
            image,
            found,
            wanted,
        });
    }
    if model.has_axes() && features.grid().is_none() {
        return Err(ImageError::NoGrid { image, arch });
    }
    Ok(())
}
