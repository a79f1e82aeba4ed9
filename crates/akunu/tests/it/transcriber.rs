//! Whisper, from a file of sound to text.

use std::path::{Path, PathBuf};

use akunu::{Device, Error, Segment, TranscribeOptions, Transcriber};

use crate::random_whisper;

const JFK: &str = "And so my fellow Americans ask not what your country can do for you, ask what you can do for your \
                   country.";

fn open(model: &str) -> Transcriber {
    let weights = akunu_assets::path(model, "model.bin");
    Transcriber::open(weights.parent().unwrap()).unwrap()
}

fn listen(transcriber: &mut Transcriber, file: &Path, options: &TranscribeOptions) -> Vec<Segment> {
    let segments = transcriber.transcribe(file, options).unwrap();
    segments.map(|segment| segment.unwrap()).collect()
}

/// Fails when any number between the file and the tokens is wrong: these are the ids that openai's model gives.
#[test]
fn tiny_en_gives_the_golden_ids() {
    let options = TranscribeOptions {
        times: false,
        ..TranscribeOptions::default()
    };
    let jfk = akunu_assets::path("jfk", "jfk.wav");
    let mut transcriber = open("whisper-tiny.en");
    let segments = listen(&mut transcriber, &jfk, &options);
    let golden = [
        843, 523, 616, 5891, 3399, 1265, 407, 644, 534, 1499, 460, 466, 329, 345, 11, 1265, 644,
        345, 460, 466, 329, 534, 1499, 13,
    ];
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].tokens, golden);
    assert_eq!(segments[0].text, JFK);

    let translated = TranscribeOptions {
        translate: true,
        ..TranscribeOptions::default()
    };
    let refused = transcriber.transcribe(&jfk, &translated);
    assert!(matches!(refused, Err(Error::OnlyEnglish { .. })));
}

/// Fails when the language is not found, when segments or words have other times than the sound, or when a language
/// that does not exist is taken.
#[test]
fn base_finds_the_language_and_the_times() {
    let jfk = akunu_assets::path("jfk", "jfk.wav");
    let mut transcriber = open("whisper-base");
    let options = TranscribeOptions {
        words: true,
        ..TranscribeOptions::default()
    };
    let mut transcription = transcriber.transcribe(&jfk, &options).unwrap();
    let segments: Vec<Segment> = transcription.by_ref().map(|s| s.unwrap()).collect();
    assert_eq!(transcription.language(), Some("en"));
    let text: Vec<&str> = segments.iter().map(|s| s.text.as_str()).collect();
    let text = text.join(" ").to_lowercase();
    for part in [
        "fellow americans",
        "ask not what your country",
        "do for your country",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let words: Vec<_> = segments.iter().flat_map(|s| &s.words).collect();
    let when = |word: &str| {
        let found = words.iter().find(|w| w.text.to_lowercase().contains(word));
        found.map(|w| (w.start, w.end)).unwrap()
    };
    // "Americans" is spoken from 1.7 to 2.3 s; the recording ends after 11 s.
    let (start, end) = when("americans");
    assert!(
        (1.3..2.1).contains(&start) && (1.9..2.9).contains(&end),
        "{start} {end}"
    );
    assert!(words.windows(2).all(|pair| pair[0].start <= pair[1].start));
    assert!(segments.iter().all(|s| s.start < s.end && s.end <= 11.0));

    let unknown = TranscribeOptions {
        language: Some("xx".into()),
        ..TranscribeOptions::default()
    };
    let refused = transcriber.transcribe(&jfk, &unknown);
    assert!(matches!(refused, Err(Error::Language { .. })));
}

/// A WAV file of 16 kHz mono.
fn write_wav(path: &Path, samples: impl Iterator<Item = f32>) {
    let data: Vec<u8> = samples
        .flat_map(|sample| ((sample * 32767.0) as i16).to_le_bytes())
        .collect();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(16_000u32.to_le_bytes());
    file.extend(32_000u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    std::fs::write(path, file).unwrap();
}

fn noise() -> impl FnMut() -> f32 {
    let mut state = 9u32;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    }
}

/// Fails when words are heard where nobody speaks.
#[test]
fn silence_and_noise_give_no_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.wav");
    let mut transcriber = open("whisper-tiny.en");
    let options = TranscribeOptions::default();
    let n_samples = 60 * 16_000;
    write_wav(&path, (0..n_samples).map(|_| 0.0));
    assert_eq!(listen(&mut transcriber, &path, &options), []);
    let mut noise = noise();
    write_wav(&path, (0..n_samples).map(|_| 0.3 * noise()));
    assert_eq!(listen(&mut transcriber, &path, &options), []);
}

/// Six times the same sentence of 11 s, and a second of silence after each: fails when a window that is decoded with others
/// is cut within a word, has the times of another window, or is left out. The model must hear each sentence in the first
/// two thirds of a window or be cut between two of them.
#[test]
fn windows_that_are_decoded_together_give_the_same_words() {
    let sound = std::fs::read(akunu_assets::path("jfk", "jfk.wav")).unwrap();
    let at = sound.windows(4).position(|four| four == b"data").unwrap() + 8;
    let samples: Vec<f32> = sound[at..]
        .chunks_exact(2)
        .map(|two| f32::from(i16::from_le_bytes([two[0], two[1]])) / 32768.0)
        .collect();
    let sentence = samples.into_iter().chain((0..16_000).map(|_| 0.0));
    let sentence: Vec<f32> = sentence.collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("six.wav");
    write_wav(&path, (0..6).flat_map(|_| sentence.clone()));
    let mut transcriber = open("whisper-tiny.en");
    let options = TranscribeOptions {
        batch: 4,
        words: true,
        // A sentence that is said twice compresses so well that it would be decoded again, by chance.
        temperature: Some(0.0),
        ..TranscribeOptions::default()
    };
    let segments = listen(&mut transcriber, &path, &options);
    let words: Vec<_> = segments.iter().flat_map(|segment| &segment.words).collect();
    let starts: Vec<f64> = words
        .iter()
        .filter(|word| word.text.contains("Americans"))
        .map(|word| word.start)
        .collect();
    let every = sentence.len() as f64 / 16_000.0;
    assert_eq!(starts.len(), 6, "{segments:?}");
    for (start, n) in starts.iter().zip(0..) {
        let wanted = 1.7 + f64::from(n) * every;
        assert!((start - wanted).abs() < 0.5, "{start} instead of {wanted}");
    }
    assert!(
        segments
            .windows(2)
            .all(|two| two[0].end <= two[1].start + 0.1)
    );
    for batch in [0, 17] {
        let refused = transcriber.transcribe(
            &path,
            &TranscribeOptions {
                batch,
                ..options.clone()
            },
        );
        assert!(matches!(refused, Err(Error::WindowBatch { found }) if found == batch));
    }
}

/// Three seconds of syllables.
fn write_syllables(folder: &Path) -> PathBuf {
    let path = folder.join("syllables.wav");
    let sample = |i: usize| {
        let t = i as f32 / 16_000.0;
        let is_loud = f32::from((t * 2.5).fract() < 0.5);
        is_loud * 0.3 * (std::f32::consts::TAU * (200.0 + 90.0 * t) * t).sin()
    };
    write_wav(&path, (0..48_000).map(sample));
    path
}

/// Fails when a container is read differently from the other, or when the CPU computes something else than the
/// reference does: a model of random weights says the same in all three.
#[test]
fn both_containers_and_both_devices_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (ct2, hugging_face) = (folder.path().join("ct2"), folder.path().join("hf"));
    std::fs::create_dir(&ct2).unwrap();
    std::fs::create_dir(&hugging_face).unwrap();
    random_whisper::write_ctranslate2(&ct2);
    random_whisper::write_hugging_face(&hugging_face);
    let sound = write_syllables(folder.path());
    let options = TranscribeOptions {
        words: true,
        ..TranscribeOptions::default()
    };
    let said = |path: &Path, device: Device| {
        let mut transcriber = Transcriber::open_on(path, device).unwrap();
        let segments = listen(&mut transcriber, &sound, &options);
        let told = segments.into_iter().map(|s| (s.tokens, s.words));
        told.collect::<Vec<_>>()
    };
    let reference = said(&ct2, Device::Twin);
    assert!(!reference.is_empty(), "random weights say something");
    assert_eq!(said(&hugging_face, Device::Twin), reference);
    assert_eq!(said(&ct2, Device::Cpu(Default::default())), reference);
}

/// A folder of the model of random weights, in whose `config.json` something else is said.
fn with_config(said: &str, instead: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    random_whisper::write_hugging_face(folder.path());
    let config = folder.path().join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains(said), "{text}");
    std::fs::write(&config, text.replace(said, instead)).unwrap();
    folder
}

/// Fails when a Whisper runs with heads that no kernel takes.
#[test]
fn heads_that_nothing_computes_are_refused() {
    let heads = r#""encoder_attention_heads":2"#;
    let folder = with_config(heads, &heads.replace('2', "16"));
    let opened = Transcriber::open_on(folder.path(), Device::Twin);
    let error = opened.err().expect("it is refused").to_string();
    assert!(error.contains("a multiple of 8"), "{error}");
}

/// Fails when a distilled model, which has the list of heads of a larger one, is refused, or gives words the times of any head.
#[test]
fn heads_of_another_model_give_no_times() {
    let folder = with_config("[1,1]", "[9,1]");
    let sound = write_syllables(folder.path());
    let options = TranscribeOptions {
        words: true,
        ..TranscribeOptions::default()
    };
    let mut transcriber = Transcriber::open_on(folder.path(), Device::Twin).unwrap();
    let segments = listen(&mut transcriber, &sound, &options);
    assert!(!segments.is_empty(), "random weights say something");
    assert!(segments.iter().all(|segment| segment.words.is_empty()));
}
