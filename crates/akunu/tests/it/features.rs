//! The table of features in `docs/library.md`: a test for each row, called as the row. `cargo xtask features` runs them, and those
//! of C and Python, and writes the check marks.

use std::sync::LazyLock;

use akunu::{
    Adapters, CancelFlag, Chat, ChatOptions, CpuOptions, Device, DraftModel, EmbedOptions,
    Embedder, EncodeOptions, Error, ErrorKind, GenerateOptions, Grammar, Lookup, Message, Model,
    Reply, Reranker, Sampling, SessionOptions, Speculation, StopReason, Transcriber,
};
use tokio_stream::StreamExt;

use crate::classifier::minilm_with_labels;
use crate::smollm2;

const QUESTION: &str = "What is the capital of France?";
const BEGINNING: &str = "The capital of France is";

/// One for all.
static MODEL: LazyLock<Model> = LazyLock::new(smollm2);

/// The same every time.
fn fixed() -> ChatOptions {
    ChatOptions {
        context: Some(256),
        max_tokens: Some(24),
        sampling: Sampling::greedy(),
        ..ChatOptions::default()
    }
}

fn chat(options: ChatOptions) -> Chat {
    MODEL.chat_with(options).unwrap()
}

fn read(reply: Result<Reply<'_>, Error>) -> String {
    reply.unwrap().map(Result::unwrap).collect()
}

fn answer_in(grammar: Grammar) -> String {
    let grammar = Some(grammar);
    read(chat(ChatOptions { grammar, ..fixed() }).ask(QUESTION))
}

fn ids(text: &str) -> Vec<u32> {
    MODEL.tokenizer().encode(text, EncodeOptions::default())
}

/// The second question makes sense only with the first.
#[test]
fn a_conversation() {
    let mut chat = chat(fixed());
    assert!(read(chat.ask(QUESTION)).contains("Paris"));
    let rome = read(chat.ask("And of Italy?"));
    assert!(rome.contains("Rome"), "{rome}");
    assert_eq!(chat.messages()[3].content, rome.trim());
}

#[test]
fn an_answer_to_messages() {
    let mut chat = chat(fixed());
    for (role, text) in [
        ("user", QUESTION),
        ("assistant", "Paris."),
        ("user", "And of Italy?"),
    ] {
        chat.say(Message::new(role, text));
    }
    assert!(read(chat.answer()).contains("Rome"));
    assert_eq!(chat.messages().len(), 4);
}

#[test]
fn another_answer() {
    let mut chat = chat(fixed());
    let said = read(chat.ask(QUESTION));
    assert_eq!(read(chat.regenerate()), said, "nothing is drawn");
    assert_eq!(chat.messages().len(), 2);
}

/// Breaks when the messages are read again, or when something of the conversation is lost on the way.
#[test]
fn saved_and_restored_without_reading_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let system = Some("Be brief.".to_string());
    let mut told = chat(ChatOptions { system, ..fixed() });
    read(told.ask(QUESTION));
    told.save(&path).unwrap();
    let rome = read(told.ask("And of Italy?"));
    let wanted = *told.last().unwrap();

    // A model of its own has none of the pages.
    let mut other = smollm2().chat_with(fixed()).unwrap();
    other.restore(&path).unwrap();
    assert_eq!(other.messages(), &told.messages()[..3]);
    assert_eq!(other.options().system.as_deref(), Some("Be brief."));
    assert_eq!(read(other.ask("And of Italy?")), rome);
    assert_eq!(other.last().unwrap().prompt, wanted.prompt);
}

#[tokio::test]
async fn a_stream_for_asynchronous_programs() {
    let (reply, back) = chat(fixed()).ask_stream(QUESTION);
    let read = tokio::spawn(reply.collect::<Result<String, Error>>());
    let said = read.await.unwrap().unwrap();
    assert!(said.contains("Paris"), "{said}");
    assert_eq!(back.await.messages()[1].content, said.trim());
}

#[test]
fn cancelling_from_another_thread() {
    let cancel = CancelFlag::default();
    let flag = cancel.clone();
    let mut chat = chat(ChatOptions { cancel, ..fixed() });
    let mut reply = chat.ask("Count from one to a hundred.").unwrap();
    reply.next().unwrap().unwrap();
    std::thread::spawn(move || flag.cancel()).join().unwrap();
    reply.by_ref().for_each(drop);
    assert_eq!(reply.stop(), Some(StopReason::Cancelled));
}

#[test]
fn a_text_that_goes_on() {
    let mut session = MODEL.session(SessionOptions::default()).unwrap();
    session.feed(&ids(BEGINNING)).unwrap();
    let options = GenerateOptions {
        max_tokens: 5,
        ..GenerateOptions::default()
    };
    let tokens = session.generate(options).unwrap();
    let text: String = tokens.map(|token| token.unwrap().text).collect();
    assert!(text.contains("Paris"), "{text}");
}

/// More texts than places: breaks when one is lost, or gets the answer of another.
#[test]
fn many_texts_together() {
    // Exactly: pieces of prompts of other lengths are rounded otherwise.
    let exact = CpuOptions {
        exact: true,
        ..CpuOptions::default()
    };
    let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let model = Model::open_on(path, Device::Cpu(exact)).unwrap();
    let options = GenerateOptions {
        max_tokens: 6,
        ..GenerateOptions::default()
    };
    let names = ["France", "Italy", "Japan", "Spain", "Egypt", "Peru"];
    let numbered = names.iter().cycle().take(20).enumerate();
    let prompts: Vec<Vec<u32>> = numbered
        .map(|(n, name)| ids(&format!("{n}. The capital of {name} is")))
        .collect();
    let session = SessionOptions {
        context: Some(64),
        ..SessionOptions::default()
    };
    let answers = model.generate_all(&prompts, session, &options).unwrap();
    assert_eq!(answers.len(), 20);
    for at in [0, 7, 19] {
        let mut alone = model.session(session).unwrap();
        alone.feed(&prompts[at]).unwrap();
        let tokens = alone.generate(options.clone()).unwrap();
        let text: String = tokens.map(|token| token.unwrap().text).collect();
        assert_eq!(answers[at].text, text, "text {at}");
        assert_eq!(answers[at].stop, StopReason::MaxTokens);
    }
    let none = model.generate_all(&[], session, &options).unwrap();
    assert!(none.is_empty());
}

#[test]
fn length_of_the_context() {
    let context = Some(16);
    let mut chat = chat(ChatOptions { context, ..fixed() });
    let error = chat.ask("one two three ".repeat(20)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ContextFull);
    assert!(error.to_string().contains("16"), "{error}");
}

#[test]
fn maximum_length_of_an_answer() {
    let max_tokens = Some(3);
    let mut chat = chat(ChatOptions {
        max_tokens,
        ..fixed()
    });
    read(chat.ask("Count from one to a hundred."));
    let last = chat.last().unwrap();
    assert_eq!((last.tokens, last.stop), (3, Some(StopReason::MaxTokens)));
}

#[test]
fn texts_that_end_an_answer() {
    let stop = vec!["Paris".into()];
    let mut chat = chat(ChatOptions { stop, ..fixed() });
    let said = read(chat.ask(QUESTION));
    assert!(!said.contains("Paris"), "{said}");
    assert_eq!(chat.last().unwrap().stop, Some(StopReason::StopText));
}

#[test]
fn json_by_a_schema() {
    let schema = r#"{"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}},
                     "required": ["city"], "additionalProperties": false}"#;
    let said = answer_in(Grammar::json_schema(&*MODEL, schema).unwrap());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["city"].is_string(), "{said}");
    let error = Grammar::json_schema(&*MODEL, "{").err().unwrap();
    assert_eq!(Error::from(error).kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_grammar_gbnf_or_lark() {
    for grammar in [r#"root ::= "Rome" | "Oslo""#, r#"start: "Rome" | "Oslo""#] {
        let said = answer_in(Grammar::context_free(&*MODEL, grammar).unwrap());
        assert!(["Rome", "Oslo"].contains(&said.as_str()), "{said}");
    }
}

#[test]
fn a_regular_expression() {
    let said = answer_in(Grammar::regex(&*MODEL, "[0-9]{3}-[0-9]{2}").unwrap());
    assert!(said.len() == 6 && said.find('-') == Some(3), "{said}");
}

#[test]
fn how_likely_tokens_were() {
    let logprobs = Some(2);
    let mut chat = chat(ChatOptions {
        logprobs,
        ..fixed()
    });
    let mut reply = chat.ask(QUESTION).unwrap();
    reply.by_ref().for_each(|piece| drop(piece.unwrap()));
    assert!(reply.tokens().len() > 3);
    for token in reply.tokens() {
        let logprobs = token.logprobs.as_ref().unwrap();
        // The most likely token is the one that was taken.
        assert_eq!(logprobs.top[0], (token.id, logprobs.chosen));
        assert!(logprobs.top.len() == 2 && logprobs.chosen <= 0.0);
    }
}

/// The adapter makes answers nonsense.
#[test]
fn lora_adapters() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/smollm2-lora.gguf"
    );
    let adapter = MODEL.load_adapter(path).unwrap();
    let with = |scale| {
        let adapters = Adapters::none().with(&adapter, scale);
        read(
            chat(ChatOptions {
                adapters,
                ..fixed()
            })
            .ask(QUESTION),
        )
    };
    assert!(with(0.0).contains("Paris"));
    assert!(!with(1.0).contains("Paris"));
    let missing = MODEL.load_adapter("nowhere.gguf").err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

/// Breaks when nothing is guessed, or a guess changes the answer.
#[test]
fn guesses_of_a_draft_model() {
    let speculation = Speculation {
        lookup: Lookup::Off,
        draft: Some(DraftModel::new(&*MODEL, &smollm2()).unwrap()),
        draft_tokens: Some(3),
        ..Speculation::default()
    };
    let plain = read(chat(fixed()).ask(QUESTION));
    let mut guessed = chat(ChatOptions {
        speculation,
        ..fixed()
    });
    assert_eq!(read(guessed.ask(QUESTION)), plain);
    assert!(guessed.last().unwrap().speculated.n_accepted() > 0);
}

#[test]
fn texts_as_vectors() {
    let folder = akunu_assets::path("minilm", "config.json");
    let embedder = Embedder::open(folder.parent().unwrap()).unwrap();
    let texts = [
        "a cat sleeps",
        "the kitten is napping",
        "stock markets fell",
    ];
    let vectors = embedder.embed_all(&texts).unwrap();
    let dot = |a: usize, b: usize| -> f32 {
        let products = vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b);
        products.sum()
    };
    assert!((dot(0, 0) - 1.0).abs() < 1e-5);
    assert!(dot(0, 1) > dot(0, 2) + 0.2);
    let options = EmbedOptions {
        dimensions: Some(32),
        ..EmbedOptions::default()
    };
    let short = embedder.embed_with(&texts[..1], options).unwrap();
    assert_eq!(short[0].vector.len(), 32);
}

#[test]
fn documents_by_a_question() {
    let folder = minilm_with_labels(1);
    let reranker = Reranker::open(folder.path()).unwrap();
    let scores = reranker.scores("a question", &["an answer", "another"]);
    assert_eq!(scores.unwrap(), [1.0, 1.0]);
}

#[test]
fn speech_as_text() {
    let weights = akunu_assets::path("whisper-tiny.en", "model.bin");
    let mut transcriber = Transcriber::open(weights.parent().unwrap()).unwrap();
    let jfk = akunu_assets::path("jfk", "jfk.wav");
    let segments = transcriber.transcribe(jfk, &akunu::TranscribeOptions::default());
    let text: String = segments.unwrap().map(|part| part.unwrap().text).collect();
    assert!(
        text.contains("ask what you can do for your country"),
        "{text}"
    );
}

/// Breaks when a program has to read sentences to tell errors apart, or when the system's own error is lost on the way.
#[test]
fn kinds_of_errors() {
    let missing = Model::open("nowhere.gguf").err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let mut cause: Option<&dyn std::error::Error> = Some(&missing);
    let system = std::iter::from_fn(|| {
        let error = cause?;
        cause = error.source();
        Some(error.downcast_ref::<std::io::Error>())
    });
    assert!(system.flatten().next().is_some(), "{missing}");
    let missing = Model::open("no-such-folder/").err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");

    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.gguf");
    std::fs::write(&notes, "These are notes.".repeat(100)).unwrap();
    let error = Model::open(&notes).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::UnsupportedModel, "{error}");
    let kind = |context| {
        let context = Some(context);
        let made = MODEL.chat_with(ChatOptions { context, ..fixed() });
        made.err().map(|error| error.kind())
    };
    assert_eq!(kind(0), Some(ErrorKind::InvalidArgument));
    assert_eq!(kind(1 << 23), Some(ErrorKind::OutOfMemory));
}
