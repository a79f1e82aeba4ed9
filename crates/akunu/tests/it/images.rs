//! Conversations about images, with a small random model and its tower.

use akunu::{
    Chat, ChatOptions, Device, EncodeOptions, Error, Image, Model, Picture, Sampling, Size, Vision,
};

use crate::pictured::{Pair, fitting, pair};

/// A square picture whose colours depend on `seed`.
fn picture(seed: u8) -> Picture {
    striped(Size::square(42), seed)
}

fn striped(size: Size, seed: u8) -> Picture {
    let byte = |at: u64| (at as u8).wrapping_mul(seed).wrapping_add(seed);
    let rgb = (0..3 * size.n_pixels()).map(byte).collect();
    Picture::from_rgb(size, rgb).unwrap()
}

fn chat(model: &Model) -> Chat {
    let options = ChatOptions {
        context: Some(1024),
        max_tokens: Some(12),
        sampling: Sampling::greedy(),
        ..ChatOptions::default()
    };
    model.chat_with(options).unwrap()
}

fn open(pair: &Pair) -> (Model, Vision) {
    let model = Model::open_on(&pair.model, Device::Twin).unwrap();
    let vision = Vision::open_on(&pair.tower, Device::Twin).unwrap();
    (model, vision)
}

fn ask(chat: &mut Chat, question: &str, images: &[Image]) -> String {
    let reply = chat.ask_with(question, images).unwrap();
    reply.map(Result::unwrap).collect()
}

/// The id of a control token.
fn id(model: &Model, name: &str) -> u32 {
    let options = EncodeOptions {
        parse_special: true,
        ..EncodeOptions::default()
    };
    model.tokenizer().encode(name, options)[0]
}

fn count(chat: &Chat, id: u32) -> usize {
    chat.session()
        .tokens()
        .iter()
        .filter(|token| **token == id)
        .count()
}

/// Fails if a tile is left out, if features take other places than the image's tokens, or if the model does not see them.
#[test]
fn a_question_is_about_its_images() {
    let pair = fitting();
    let (model, vision) = open(&pair);
    // A square of 168 pixels is 4 x 4 tiles of 42, and an overview; a tile has 9 rows.
    let one = vision.look(&picture(3)).unwrap();
    assert_eq!(one.n_tokens(), 17 * 9);
    let mut answers = Vec::new();
    for seed in [3, 7, 40] {
        let mut chat = chat(&model);
        let image = vision.look(&picture(seed)).unwrap();
        answers.push(ask(
            &mut chat,
            "What is this?",
            std::slice::from_ref(&image),
        ));
        assert_eq!(count(&chat, id(&model, "<image>")), 17 * 9);
        assert_eq!(count(&chat, id(&model, "<row_4_col_4>")), 1);
        assert_eq!(count(&chat, id(&model, "<fake_token_around_image>")), 18);
    }
    answers.dedup();
    assert!(answers.len() > 1, "the answers do not depend on the image");
}

/// A wide picture has fewer tiles; two images of one question stand one after the other.
#[test]
fn several_images_are_shown_together() {
    let pair = fitting();
    let (model, vision) = open(&pair);
    let wide = striped(
        Size {
            width: 80,
            height: 20,
        },
        5,
    );
    let images = [
        vision.look(&wide).unwrap(),
        vision.look(&picture(9)).unwrap(),
    ];
    assert_eq!(images[0].n_tokens(), 5 * 9);
    let mut chat = chat(&model);
    ask(&mut chat, "Compare them", &images);
    assert_eq!(count(&chat, id(&model, "<image>")), (5 + 17) * 9);
}

/// The rows of an image that was shown before are not computed again.
#[test]
fn the_next_question_goes_on_from_the_image() {
    let pair = fitting();
    let (model, vision) = open(&pair);
    let image = vision.look(&picture(3)).unwrap();
    let mut chat = chat(&model);
    ask(&mut chat, "What is this?", std::slice::from_ref(&image));
    ask(&mut chat, "And its colour?", &[]);
    let fed = chat.last().unwrap().prompt;
    assert!(fed.reused > image.n_tokens(), "{fed:?}");
    let mut other = self::chat(&model);
    let again = [image];
    ask(&mut other, "What is this?", &again);
    assert!(
        other.last().unwrap().prompt.reused > 128,
        "pages are shared"
    );
}

/// A placeholder that a person types is text.
#[test]
fn a_typed_placeholder_is_no_image() {
    let pair = fitting();
    let (model, vision) = open(&pair);
    let image = vision.look(&picture(3)).unwrap();
    let mut chat = chat(&model);
    ask(&mut chat, "What does <image> mean?", &[image]);
    assert_eq!(count(&chat, id(&model, "<image>")), 17 * 9);
}

#[test]
fn what_cannot_be_shown_is_told_and_forgotten() {
    let wrong = pair(crate::pictured::TEMPLATE, 48);
    let (model, vision) = open(&wrong);
    let image = vision.look(&picture(3)).unwrap();
    let mut talk = chat(&model);
    let error = talk
        .ask_with("What?", std::slice::from_ref(&image))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("another model's vision tower"),
        "{error}"
    );
    assert!(talk.messages().is_empty(), "the question is not kept");

    let blind = pair(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}",
        40,
    );
    let (model, vision) = open(&blind);
    let image = vision.look(&picture(3)).unwrap();
    let error = chat(&model).ask_with("What?", &[image]).err().unwrap();
    assert!(matches!(error, Error::NoPlaceForImages), "{error}");

    let error = Vision::open(&blind.model).err().unwrap();
    assert!(error.to_string().contains("tiny-vl.gguf"), "{error}");
}

/// The file beside a model is found by its name, and by the model's if there are several.
#[test]
fn the_tower_beside_a_model_is_found() {
    let pair = fitting();
    assert_eq!(Vision::beside(&pair.model).as_ref(), Some(&pair.tower));
    let folder = pair.folder.path();
    std::fs::write(folder.join("mmproj-other-f16.gguf"), "").unwrap();
    assert_eq!(Vision::beside(&pair.model).as_ref(), Some(&pair.tower));
    assert_eq!(Vision::beside(folder.join("third.gguf")), None);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(Vision::beside(empty.path().join("model.gguf")), None);
}
