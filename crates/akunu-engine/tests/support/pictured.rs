//! Prompts with images: those that `fixtures/make_image_fixtures.py` recorded, and longer ones for the same models.

use std::sync::Arc;

use akunu_engine::{ImageFeatures, ImageGrid, ImageSpan, Model, Prompt, Session, SessionOptions};
use akunu_program::Device;

use super::files::write_gguf;
use super::fixture::{Fixture, Image, uniform};

/// The placeholder token of the rows of images.
pub const PLACEHOLDER: u32 = 7;

/// The fixture of this name, which may be one without images.
pub fn read(name: &str) -> Fixture {
    let folder = match name {
        "lfm2" => "transformers",
        _ => "images",
    };
    Fixture::read(folder, name)
}

/// A model of the fixture of this name, from a GGUF file.
pub fn load(name: &str, device: Box<dyn Device>) -> Model {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_gguf(&read(name), folder.path());
    Model::load(&path, device).unwrap_or_else(|error| panic!("{error}"))
}

/// An empty session.
pub fn open(model: &Model, chunk: u32) -> Session {
    let options = SessionOptions {
        context: Some(128),
        chunk,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

/// The first `n` tokens of a fixture, with their images.
pub fn beginning(fixture: &Fixture, n: usize) -> Prompt {
    let images = fixture.images.iter().enumerate();
    let whole = images.filter(|(_, image)| image.start < n);
    Prompt {
        tokens: fixture.tokens[..n].to_vec(),
        images: whole
            .map(|(number, image)| span(number, image, fixture.deep))
            .collect(),
    }
}

/// An image whose features are those of this number.
pub fn span(number: usize, image: &Image, deep: usize) -> ImageSpan {
    let &Image {
        start,
        height,
        width,
        ..
    } = image;
    let rows = |prefix: &str| {
        let name = format!("{prefix} {number}");
        let n = u64::from(height * width * DIM);
        (1..=n).map(|i| uniform(&name, i)).collect::<Vec<f32>>()
    };
    let features = ImageFeatures::new(DIM, rows("image")).expect("whole rows");
    let features = features.with_grid(ImageGrid { height, width });
    let maps = (0..deep).map(|layer| rows(&format!("map {layer}")));
    let features = features.expect("it fits").with_deep(maps.collect());
    ImageSpan {
        start,
        features: Arc::new(features.expect("whole maps")),
    }
}

/// A prompt of `len` tokens: 5 of text, an image of 12 rows, and text.
pub fn long(number: usize, deep: usize, len: usize) -> Prompt {
    let image = Image {
        start: 5,
        height: 3,
        width: 4,
        ..Image::default()
    };
    let mut tokens: Vec<u32> = (0..len as u32).map(|i| i * 11 % 256).collect();
    tokens[5..17].fill(PLACEHOLDER);
    Prompt {
        tokens,
        images: vec![span(number, &image, deep)],
    }
}

/// Elements of a row of all models of the fixtures.
const DIM: u32 = 64;
