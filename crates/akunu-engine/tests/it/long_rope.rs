//! Long-rope: sessions beyond the original context turn heads otherwise than those within it.

use akunu_engine::{Model, Session, SessionOptions};

use crate::support::exact_cpu::cpu;
use crate::support::files::gguf_of;
use crate::support::fixture::Fixture;

/// The original context of the fixture is 32.
fn session(model: &Model, context: u32) -> Result<Session, String> {
    let options = SessionOptions {
        context: Some(context),
        ..SessionOptions::default()
    };
    model.session(options).map_err(|error| error.to_string())
}

fn logits(session: &mut Session, tokens: &[u32]) -> Vec<f32> {
    session.feed(tokens).expect("fits");
    session.logits().expect("there are some")
}

#[test]
fn a_long_session_waits_until_no_short_one_has_keys() {
    let file = gguf_of("phi3-long");
    let model = Model::load(&file.path, cpu()).expect("a model");
    let tokens = Fixture::read("transformers", "phi3-long").tokens[..20].to_vec();

    let mut short = session(&model, 32).expect("short");
    let by_short = logits(&mut short, &tokens);
    let saved = tempfile::tempdir().expect("a temporary folder");
    let saved = saved.path().join("short.session");
    short.save(&saved).expect("saved");
    let error = session(&model, 33).err().expect("the short one has keys");
    assert!(
        error.contains("33 tokens needs other RoPE factors"),
        "{error}"
    );
    drop(short);

    let mut long = session(&model, 33).expect("no session has keys");
    let by_long = logits(&mut long, &tokens);
    let far = |a: &[f32], b: &[f32]| a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-2);
    assert!(
        far(&by_short, &by_long),
        "kept keys of the short session were used"
    );
    let mut short = session(&model, 32).expect("it turns as the long one");
    assert!(!far(&logits(&mut short, &tokens), &by_long));
    let error = short
        .restore(&saved)
        .expect_err("its keys turned otherwise");
    assert!(error.to_string().contains("another model"), "{error}");
}
