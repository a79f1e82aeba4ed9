//! Images that cannot be read are refused with a sentence, and leave the session as it was.

use std::sync::Arc;

use akunu_engine::{
    EngineError, GenerateOptions, ImageError, ImageFeatures, ImageSpan, Model, Prompt,
};
use akunu_kernels::twin_device::TwinDevice;

use crate::support::files::gguf_of;
use crate::support::pictured::{load, long, open};

fn refused(model: &Model, prompt: Prompt) -> ImageError {
    let mut session = open(model, 32);
    let error = session.feed_prompt(prompt.clone()).expect_err("refused");
    assert!(session.tokens().is_empty(), "nothing was read");
    let EngineError::Image(error) = error else {
        panic!("{error}");
    };
    let mut batch = model.batch(2).expect("memory");
    let joined = batch.join_prompt(session, prompt, GenerateOptions::default());
    assert_eq!(joined.expect_err("refused").to_string(), error.to_string());
    error
}

fn image(start: usize, dim: u32, rows: usize) -> ImageSpan {
    let features = ImageFeatures::new(dim, vec![0.5; rows * dim as usize]).expect("rows");
    ImageSpan {
        start,
        features: Arc::new(features),
    }
}

#[test]
fn a_span_must_lie_among_the_tokens() {
    let model = load("llama", Box::new(TwinDevice::new()));
    let with = |images| Prompt {
        tokens: vec![7; 20],
        images,
    };
    let beyond = refused(&model, with(vec![image(15, 64, 6)]));
    assert_eq!(
        beyond.to_string(),
        "image 0 takes rows 15 to 21 of a prompt of 20 tokens: the prompt needs a placeholder token for each row"
    );
    let beyond = refused(&model, with(vec![image(usize::MAX, 64, 6)]));
    assert!(matches!(beyond, ImageError::Beyond { image: 0, .. }));
    let overlap = refused(&model, with(vec![image(2, 64, 6), image(7, 64, 6)]));
    assert_eq!(overlap, ImageError::Order { image: 1, start: 7 });
}

#[test]
fn features_must_be_for_the_model() {
    let model = load("llama", Box::new(TwinDevice::new()));
    let with = |images| Prompt {
        tokens: vec![7; 20],
        images,
    };
    let narrow = refused(&model, with(vec![image(2, 32, 6)]));
    let (found, wanted) = (32, 64);
    assert_eq!(
        narrow,
        ImageError::Width {
            image: 0,
            found,
            wanted
        }
    );
    let deep = refused(&model, long(0, 2, 40));
    let (found, wanted) = (2, 0);
    assert_eq!(
        deep,
        ImageError::Deep {
            image: 0,
            found,
            wanted
        }
    );
}

/// A model of an architecture that was not made for images.
#[test]
fn a_model_without_images_takes_none() {
    let file = gguf_of("qwen3");
    let model = Model::load(&file.path, Box::new(TwinDevice::new())).expect("a whole model");
    let error = refused(
        &model,
        Prompt {
            tokens: vec![7; 20],
            images: vec![image(2, 64, 6)],
        },
    );
    assert_eq!(error, ImageError::Unsupported { arch: "qwen3" });
}

/// Rows that see all of their image are read in one step, and fit every window.
#[test]
fn an_image_that_is_seen_as_a_whole_must_fit() {
    let model = load("gemma3", Box::new(TwinDevice::new()));
    let with = |rows| Prompt {
        tokens: vec![7; 50],
        images: vec![image(2, 64, rows)],
    };
    let (image, rows, limit) = (0, 33, 32);
    assert_eq!(
        refused(&model, with(33)),
        ImageError::TooLong { image, rows, limit }
    );
    let (rows, window) = (17, 16);
    assert_eq!(
        refused(&model, with(17)),
        ImageError::Window {
            image,
            rows,
            window
        }
    );
    let mut session = open(&model, 32);
    session.feed_prompt(with(16)).expect("it fits");
}

/// Three axes need the places of rows in their image.
#[test]
fn an_image_without_a_grid_is_refused_where_positions_have_three_axes() {
    let model = load("qwen2vl", Box::new(TwinDevice::new()));
    let prompt = Prompt {
        tokens: vec![7; 20],
        images: vec![image(2, 64, 6)],
    };
    let (image, arch) = (0, "qwen2vl");
    assert_eq!(refused(&model, prompt), ImageError::NoGrid { image, arch });
}
