//! What all dialects ask for: a prompt, and how its answers are made.

mod fill;
mod format;
mod further;
mod messages;
mod prompt;
mod sampling;
mod unique;

use std::sync::Arc;

use akunu::{EncodeOptions, GenerateOptions, Grammar, Model, RenderOptions};
use serde_json::{Map, Value, json};

use crate::answers::Answers;
use crate::blocking::elsewhere;
use crate::calls::{self, Answering, PROBE, Style, THOUGHTS, TOLD, Tool, grammar};
use crate::clock::now;
use crate::engine::{Engine, Work};
use crate::error::ApiError;
use crate::reader::Reader;
use crate::transcript::Transcript;

pub(crate) use self::fill::Gap;
pub(crate) use self::format::{Form, Format};
pub(crate) use self::further::FurtherSampling;
use self::messages::tell_tools;
pub(crate) use self::messages::{calling, check_role, template_call, tool_name, tool_result};
pub(crate) use self::prompt::Prompt;
pub(crate) use self::sampling::Draw;
pub(crate) use self::unique::Unique;

/// A conversation, and how it is answered.
#[derive(Default)]
pub(crate) struct Conversation {
    pub messages: Vec<akunu::Message>,
    pub tools: Vec<Tool>,
    /// Whether it may be answered with one call at most.
    pub one_call: bool,
    /// What the template gets to know besides: `enable_thinking`.
    pub variables: Map<String, Value>,
    /// What the answer must look like.
    pub format: Format,
    /// What the prompt ends with.
    pub ending: Ending,
}

/// What a prompt ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The beginning of an answer.
    #[default]
    Answer,
    /// The last message, which is the assistant's: the answer goes on with it.
    LastMessage,
    /// The last message, and its end.
    Nothing,
}

/// How answers are made.
pub(crate) struct Wish {
    /// How many answers.
    pub n: usize,
    /// At most this many tokens; `None` for what the context holds.
    pub max_tokens: Option<usize>,
    pub draw: Draw,
    pub stop: Vec<String>,
    /// Tokens that end an answer.
    pub stop_ids: Vec<u32>,
    /// Texts at which a repetition ends, where they are not the usual ones.
    pub dry_breakers: Option<Vec<String>>,
    /// Go on at the model's own end.
    pub ignore_end: bool,
    /// Tokens, and what is added to their logits.
    pub logit_bias: Vec<(u32, f32)>,
    /// Log probabilities of each token, and of this many of the best.
    pub logprobs: Option<u32>,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            n: 1,
            max_tokens: None,
            draw: Draw::default(),
            stop: Vec::new(),
            stop_ids: Vec::new(),
            dry_breakers: None,
            ignore_end: false,
            logit_bias: Vec::new(),
            logprobs: None,
        }
    }
}

impl Conversation {
    /// The conversation as tokens, up to where the answer begins.
    pub async fn prompt(self, engine: &Arc<Engine>) -> Result<Prompt, ApiError> {
        let engine = Arc::clone(engine);
        elsewhere(move || self.encode(&engine)).await
    }

    fn encode(mut self, engine: &Engine) -> Result<Prompt, ApiError> {
        self.tell_system(engine.system.as_deref());
        let model = &engine.model;
        let (messages, begun) = self.split()?;
        let mut options = RenderOptions {
            add_generation_prompt: self.ending != Ending::Nothing,
            variables: self.variables.clone(),
            now: i64::try_from(now()).ok(),
            ..RenderOptions::default()
        };
        let mut ids = model.prompt_with(messages, &options)?;
        let mut knows_tools = false;
        if !self.tools.is_empty() {
            let tools = self.tools.iter().map(Tool::for_template).collect();
            options
                .variables
                .insert("tools".into(), Value::Array(tools));
            let with_tools = model.prompt_with(messages, &options)?;
            // A template that does not write them has never heard of tools.
            knows_tools = with_tools != ids;
            ids = if knows_tools {
                with_tools
            } else {
                let told = tell_tools(messages, &self.tools);
                model.prompt_with(&told, &options)?
            };
        }
        if !begun.is_empty() {
            let plain = EncodeOptions::default();
            ids.extend(model.tokenizer().encode(begun, plain));
        }
        let thought = open_thought(engine, &ids);
        let template = knows_tools.then_some(&options);
        let grammar = match self.format {
            _ if self.tools.is_empty() => self.format.grammar(model, thought)?,
            Format::Form(..) => self.format.grammar(model, thought)?,
            Format::Free | Format::Call => self.call_grammar(model, template, thought)?,
        };
        Ok(Prompt {
            tools: self.tools.clone().into(),
            max_calls: if self.one_call { 1 } else { usize::MAX },
            grammar,
            unique: self.format.unique(),
            thought,
            stop: model.prompt_stops(),
            is_read: true,
            ids,
        })
    }

    /// Puts the server's system prompt first, unless the conversation has a system prompt.
    fn tell_system(&mut self, system: Option<&str>) {
        let begins = |role| self.messages.first().is_some_and(|it| it.role == role);
        let has_own = self.messages.is_empty() || begins("system") || begins("developer");
        if let Some(system) = system.filter(|_| !has_own) {
            self.messages
                .insert(0, akunu::Message::new("system", system));
        }
    }

    /// The grammar of calls, as the model's template writes them, or as it was told where it has none that knows of tools. Where
    /// the template writes them in a way that is not known here, only a call that has to be made is enforced, as it would be told.
    fn call_grammar(
        &self,
        model: &Model,
        template: Option<&RenderOptions>,
        thought: Option<&'static str>,
    ) -> Result<Option<Grammar>, ApiError> {
        let must_call = self.format == Format::Call;
        let style = match template {
            Some(options) => style_of(model, options).or(must_call.then_some(TOLD)),
            None => Some(TOLD),
        };
        // What was begun as text does not begin as a call any more.
        let is_possible = |style: &&Style| self.ending == Ending::Answer || style.has_mark();
        let Some(style) = style.filter(is_possible) else {
            return Ok(None);
        };
        let answering = Answering {
            model,
            tools: &self.tools,
            must_call,
            many: !self.one_call,
            thought,
        };
        grammar(style, &answering)
    }
}

/// How a model writes calls, by what its template makes of one. `None` for a way that is not known here.
fn style_of(model: &Model, options: &RenderOptions) -> Option<&'static Style> {
    let call = template_call(Some("call00001"), PROBE, json!({"a": 1}));
    let options = RenderOptions {
        add_generation_prompt: false,
        ..options.clone()
    };
    let asked = akunu::Message::new("user", "Hi");
    let ids = model.prompt_with(&[asked, calling(vec![call])], &options);
    let bytes: Vec<u8> = ids
        .unwrap_or_default()
        .iter()
        .filter_map(|id| model.tokenizer().token_bytes(*id))
        .flatten()
        .collect();
    calls::of_text(&String::from_utf8_lossy(&bytes), model.tokenizer())
}

impl Conversation {
    /// The messages, and the beginning of the answer where the last message is that.
    fn split(&self) -> Result<(&[akunu::Message], &str), ApiError> {
        let wrong = |message: &str| Err(ApiError::bad_field("messages", message));
        match &self.messages[..] {
            [] => wrong("messages is empty"),
            all if self.ending != Ending::LastMessage => Ok((all, "")),
            [before @ .., last] if last.role == "assistant" && !before.is_empty() => {
                if self.format != Format::Free {
                    return wrong(
                        "an answer that goes on with the last message cannot be forced into a form",
                    );
                }
                Ok((before, last.content.as_str().unwrap_or_default()))
            }
            _ => wrong("to be continued, the last of several messages must be the assistant's"),
        }
    }
}

/// The end of the thought that the last tokens of a prompt open.
fn open_thought(engine: &Engine, ids: &[u32]) -> Option<&'static str> {
    let last = engine.text_of(&ids[ids.len().saturating_sub(8)..]);
    let last = last.trim_end();
    let open = THOUGHTS.iter().find(|(begin, _)| last.ends_with(begin));
    open.map(|(_, end)| *end)
}

/// Asks an engine.
pub(crate) fn ask(engine: &Arc<Engine>, prompt: Prompt, wish: Wish) -> Result<Answers, ApiError> {
    ask_all(engine, vec![prompt], wish)
}

/// Asks an engine for answers to several prompts, which are the same but for their tokens.
pub(crate) fn ask_all(
    engine: &Arc<Engine>,
    prompts: Vec<Prompt>,
    wish: Wish,
) -> Result<Answers, ApiError> {
    let n_prompt = prompts.iter().map(|prompt| prompt.ids.len()).sum();
    let n_answers = prompts.len() * wish.n;
    let (ids, mut rest): (Vec<Vec<u32>>, Vec<Prompt>) = (prompts.into_iter())
        .map(|mut prompt| (std::mem::take(&mut prompt.ids), prompt))
        .unzip();
    let Some(prompt) = rest.pop() else {
        return Err(ApiError::bad_field("prompt", "there is no prompt"));
    };
    let reader = || Reader::new(Arc::clone(&prompt.tools), prompt.max_calls, prompt.thought);
    let readers = (0..n_answers).map(|_| prompt.is_read.then(reader));
    let readers = readers.collect();
    let transcript = engine.log_texts.then(|| {
        let texts: Vec<String> = ids.iter().map(|ids| engine.text_of(ids)).collect();
        Transcript::begin(&texts.join("\n"), n_answers)
    });
    let choices = choices(engine, &prompt, &wish)?;
    let events = engine.ask(Work {
        prompts: ids,
        choices,
    })?;
    let mut answers = Answers::new(Arc::clone(engine), Some(events), readers, n_prompt);
    answers.n_choices = wish.n;
    answers.transcript = transcript;
    answers.stop_ids = wish.stop_ids;
    answers.unique = prompt.unique;
    Ok(answers)
}

/// How each answer to a prompt is made.
fn choices(
    engine: &Engine,
    prompt: &Prompt,
    wish: &Wish,
) -> Result<Vec<GenerateOptions>, ApiError> {
    let sampling = wish.draw.sampling(&engine.sampling)?;
    engine.check_ids("logit_bias", wish.logit_bias.iter().map(|(id, _)| *id))?;
    engine.check_ids("stop_token_ids", wish.stop_ids.iter().copied())?;
    let stop = [&wish.stop[..], &prompt.stop].concat();
    let choice = |n: usize| {
        let mut sampling = sampling;
        sampling.seed = sampling.seed.wrapping_add(n as u64);
        let usual = GenerateOptions::default();
        GenerateOptions {
            dry_breakers: wish.dry_breakers.clone().unwrap_or(usual.dry_breakers),
            max_tokens: wish.max_tokens.unwrap_or(usize::MAX),
            sampling,
            stop: stop.clone(),
            ignore_end: wish.ignore_end,
            grammar: prompt.grammar.clone(),
            logit_bias: wish.logit_bias.clone(),
            logprobs: wish.logprobs,
            speculation: engine.speculation.clone(),
            ..GenerateOptions::default()
        }
    };
    Ok((0..wish.n).map(choice).collect())
}
