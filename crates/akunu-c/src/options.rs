//! Options, set by name: new ones do not change the interface.
//!
//! | number | text |
//! |---|---|
//! | `threads` | `device` |
//! | `context`, `max_tokens`, `loop_window`, `loop_stop` | `kv` |
//! | how tokens are chosen: the names of [`SamplingOptions`] | `system`, `stop` |
//! | `logprobs` | `json_schema`, `grammar`, `regex` |
//! | `lora_scale` | `lora` |
//! | `dimensions`, `translate`, `words` | `language`, `prompt` |

use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use akunu::{
    Adapters, CpuOptions, Device, DraftModel, EngineError, Error, Grammar, KvFormat, Model,
    SamplingOptions, Speculation, TranscribeOptions,
};

use crate::border;
use crate::handles::{self, Thing};
use crate::status::{AkunuStatus, Failure, call};

/// Options of a model, a session, a chat, an embedder or a transcription.
pub struct AkunuOptions(());

/// What was set.
#[derive(Clone, Default)]
pub struct Values {
    device: Option<String>,
    threads: Option<usize>,
    kv: KvFormat,
    pub system: Option<String>,
    pub context: Option<u32>,
    pub max_tokens: Option<usize>,
    loop_window: Option<u32>,
    loop_stop: Option<bool>,
    pub stop: Vec<String>,
    pub sampling: SamplingOptions,
    pub dimensions: Option<usize>,
    language: Option<String>,
    prompt: Option<String>,
    translate: bool,
    words: bool,
    batch: Option<usize>,
    logprobs: Option<u32>,
    form: Option<Form>,
    /// Files of adapters and their scales.
    lora: Vec<(String, f32)>,
    draft: Option<Arc<Model>>,
}

/// The form that an answer must have.
#[derive(Clone)]
enum Form {
    JsonSchema(String),
    Grammar(String),
    Regex(String),
}

#[derive(Default)]
struct Options(Mutex<Values>);

impl Thing for Options {
    type Opaque = AkunuOptions;
    const NAME: &'static str = "options";
}

impl Options {
    fn values(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a handle of options says; null says nothing.
pub fn read(options: *const AkunuOptions) -> Result<Values, Failure> {
    if options.is_null() {
        return Ok(Values::default());
    }
    Ok(handles::get::<Options>(options)?.values().clone())
}

/// Sets the model that guesses, or none.
pub fn set_draft(options: *mut AkunuOptions, draft: Option<Arc<Model>>) -> Result<(), Failure> {
    handles::get::<Options>(options)?.values().draft = draft;
    Ok(())
}

impl Values {
    /// The device that the options name.
    pub fn device(&self) -> Result<Device, akunu::Error> {
        let cpu = CpuOptions {
            threads: self.threads,
            isa: None,
            ..CpuOptions::default()
        };
        Device::named(self.device.as_deref().unwrap_or("auto"), cpu)
    }

    /// How the model is loaded.
    pub fn model(&self) -> akunu::ModelOptions {
        akunu::ModelOptions {
            kv: self.kv,
            ..akunu::ModelOptions::default()
        }
    }

    /// How likely each token was, if that is wanted.
    pub fn logprobs(&self) -> Option<u32> {
        self.logprobs
    }

    /// The form that answers of this model must have.
    pub fn grammar(&self, model: &Model) -> Result<Option<Grammar>, Failure> {
        let grammar = match &self.form {
            None => return Ok(None),
            Some(Form::JsonSchema(text)) => Grammar::json_schema(model, text),
            Some(Form::Grammar(text)) => Grammar::context_free(model, text),
            Some(Form::Regex(text)) => Grammar::regex(model, text),
        };
        grammar
            .map(Some)
            .map_err(|error| Failure::from(Error::from(error)))
    }

    /// How tokens are guessed for this model.
    pub fn speculation(&self, model: &Model) -> Result<Speculation, Failure> {
        let draft = self.draft.as_ref();
        let draft = draft
            .map(|draft| DraftModel::new(model, draft.as_ref()))
            .transpose()?;
        Ok(Speculation {
            draft,
            ..Speculation::default()
        })
    }

    /// The adapters, loaded for this model.
    pub fn adapters(&self, model: &Model) -> Result<Adapters, Failure> {
        let mut adapters = Adapters::none();
        for (path, scale) in &self.lora {
            adapters = adapters.with(&model.load_adapter(path)?, *scale);
        }
        Ok(adapters)
    }

    /// After how many repeated tokens an answer ends, over what holds by default.
    pub fn loop_window(&self, default: Option<u32>) -> Option<u32> {
        match self.loop_stop {
            Some(false) => None,
            Some(true) => Some(self.loop_window.or(default).unwrap_or(akunu::LOOP_WINDOW)),
            None => self.loop_window.or(default),
        }
    }

    /// How a recording is turned into text.
    pub fn transcription(self) -> TranscribeOptions {
        let usual = TranscribeOptions::default();
        TranscribeOptions {
            language: self.language,
            prompt: self.prompt,
            translate: self.translate,
            words: self.words,
            batch: self.batch.unwrap_or(usual.batch),
            ..usual
        }
    }

    fn set_number(&mut self, name: &str, value: f64) -> Result<(), Failure> {
        match name {
            "threads" => self.threads = Some(count(name, value)? as usize),
            "context" => self.context = Some(small_count(name, value)?),
            "max_tokens" => self.max_tokens = Some(count(name, value)? as usize),
            "loop_window" => self.loop_window = Some(small_count(name, value)?),
            "loop_stop" => self.loop_stop = Some(value != 0.0),
            "dimensions" => self.dimensions = Some(count(name, value)? as usize),
            "translate" => self.translate = value != 0.0,
            "words" => self.words = value != 0.0,
            "batch" => self.batch = Some(count(name, value)? as usize),
            "logprobs" => self.logprobs = Some(small_count(name, value)?),
            "lora_scale" => match self.lora.last_mut() {
                Some((_, scale)) => *scale = value as f32,
                None => {
                    return Err(Failure::argument("`lora_scale` comes after the text `lora`"));
                }
            },
            _ => self.sampling.set(name, value).map_err(|error| {
                let others = match error {
                    EngineError::UnknownSampling { .. } => {
                        "; other numbers are threads, context, max_tokens, loop_window, loop_stop, dimensions, translate, words, batch, logprobs and lora_scale"
                    }
                    _ => "",
                };
                Failure::argument(format!("{error}{others}"))
            })?,
        }
        Ok(())
    }

    fn set_text(&mut self, name: &str, value: String) -> Result<(), Failure> {
        match name {
            "device" => self.device = Some(value),
            "system" => self.system = Some(value),
            "stop" => self.stop.push(value),
            "json_schema" => self.form = Some(Form::JsonSchema(value)),
            "grammar" => self.form = Some(Form::Grammar(value)),
            "regex" => self.form = Some(Form::Regex(value)),
            "lora" => self.lora.push((value, 1.0)),
            "language" => self.language = Some(value),
            "prompt" => self.prompt = Some(value),
            "kv" => {
                self.kv = match value.as_str() {
                    "f16" => KvFormat::F16,
                    "q8" => KvFormat::Q8,
                    _ => return Err(Failure::argument("`kv` is f16 or q8")),
                }
            }
            _ => {
                return Err(Failure::argument(format!(
                    "there is no text `{name}` to set; there are device, kv, system, stop, json_schema, grammar, regex, lora, language and prompt"
                )));
            }
        }
        Ok(())
    }
}

/// A number that counts something, as far as a double is exact.
fn count(name: &str, value: f64) -> Result<u64, Failure> {
    if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value) {
        return Ok(value as u64);
    }
    let text = format!("`{name}` is {value}, and must be a whole number from 0 to 2^53");
    Err(Failure::argument(text))
}

fn small_count(name: &str, value: f64) -> Result<u32, Failure> {
    u32::try_from(count(name, value)?)
        .map_err(|_| Failure::argument(format!("`{name}` is {value}, which is too large")))
}

/// Makes options without any value; akunu_options_free frees them.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_options_new(out: *mut *mut AkunuOptions) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        border::write(out, handles::give(Options::default()), "out")
    })
}

/// Sets a number: threads (of the CPU device), context (length in tokens of a session or chat), max_tokens (of an answer;
/// without it, what is left of the context), loop_stop (whether an answer that only repeats itself ends: 1 in a chat, 0
/// otherwise, unless set), loop_window (after how many repeated tokens, 64 unless set), or a sampling option: temperature (0
/// always takes the best token), top_k, top_p, min_p, repetition_penalty, seed, and the rarer ones, which the error for a wrong
/// name lists. logprobs (0 or more) asks how likely the tokens of a chat's replies were (akunu_chat_logprobs); lora_scale is the
/// scale of the adapter that was set last. For embeddings there is dimensions (numbers of a vector that are kept),
/// for recordings translate (1 writes English, whatever is spoken), words (1 adds the times of words) and batch (windows that
/// are decoded together, 1 to 16: more are faster for long recordings, and each is decoded without the text before).
#[unsafe(no_mangle)]
pub extern "C" fn akunu_options_set_number(
    options: *mut AkunuOptions,
    name: *const c_char,
    value: f64,
) -> AkunuStatus {
    call(|| {
        let name = border::text(name, "name")?;
        handles::get::<Options>(options)?
            .values()
            .set_number(&name, value)
    })
}

/// Sets a text: device (auto, cpu, metal, cuda, cuda:1 for the second GPU, or twin), kv (f16 or q8: how keys and values are
/// stored), system (the system prompt of a chat), stop (a text that ends an answer; it can be set several
/// times), json_schema, grammar (GBNF or Lark) or regex (the form that answers must have), lora (the file of an adapter; it can be
/// set several times), language (the language of a recording, such as "en"), prompt (what a recording is about, or how names in it are
/// spelled).
#[unsafe(no_mangle)]
pub extern "C" fn akunu_options_set_text(
    options: *mut AkunuOptions,
    name: *const c_char,
    value: *const c_char,
) -> AkunuStatus {
    call(|| {
        let name = border::text(name, "name")?;
        let value = border::text(value, "value")?;
        handles::get::<Options>(options)?
            .values()
            .set_text(&name, value)
    })
}

/// Frees options; it does not affect what was made with them. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_options_free(options: *mut AkunuOptions) -> AkunuStatus {
    call(|| handles::take::<Options>(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a wrong value is rounded or cut instead of refused.
    #[test]
    fn values_are_checked_and_unknown_names_are_told() {
        let mut values = Values::default();
        assert!(values.set_number("top_k", 40.0).is_ok());
        for (name, value) in [
            ("top_k", 0.5),
            ("top_k", 5e9),
            ("top_p", 1.5),
            ("seed", -1.0),
            ("max_tokens", f64::NAN),
            ("top_x", 1.0),
        ] {
            let failed = values.set_number(name, value).expect_err("refused");
            assert!(failed.text.contains(name), "{}", failed.text);
        }
        assert!(values.set_text("kv", "q4".into()).is_err());
        assert!(values.set_text("devise", "cpu".into()).is_err());
        assert!(values.set_text("device", "toaster".into()).is_ok());
        assert!(values.device().is_err(), "the device is looked for later");
        let unknown = values.set_number("top_x", 1.0).expect_err("refused").text;
        assert!(unknown.contains("typical_p") && unknown.contains("threads"));
        assert_eq!(values.sampling.over(akunu::Sampling::greedy()).top_k, 40);
    }
}
