//! A model that is ready to be asked.

use std::ops::Deref;
use std::path::Path;

use akunu_engine::{ModelOptions, SessionOptions};
use akunu_tokenizer::{Message, RenderOptions};

use crate::chat::{Chat, ChatOptions, chat_sampling};
use crate::device::Device;
use crate::error::Error;
use crate::turns;

/// A model on a device. Clones are cheap and share everything.
///
/// It is an [engine's model](akunu_engine::Model), whose functions it has, and what most programs do with one.
#[derive(Clone)]
pub struct Model(akunu_engine::Model);

impl Model {
    /// Opens a GGUF file, or a folder with safetensors, on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, Error> {
        Model::open_on(path, Device::Auto)
    }

    /// The same on a device of choice.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Model, Error> {
        Model::open_with(path, device, ModelOptions::default())
    }

    /// The same with options of choice: keys and values in 8 bits, for example.
    pub fn open_with(
        path: impl AsRef<Path>,
        device: Device,
        options: ModelOptions,
    ) -> Result<Model, Error> {
        let model = akunu_engine::Model::load_with(path, device.open()?, options)?;
        Ok(Model(model))
    }

    /// A conversation with a context of the default size, which draws tokens as the model's file suggests.
    pub fn chat(&self) -> Result<Chat, Error> {
        self.chat_with(self.chat_options())
    }

    /// Begins a conversation with these options: [`Model::chat_options`] has those that suit the model.
    pub fn chat_with(&self, options: ChatOptions) -> Result<Chat, Error> {
        let session = self.session(SessionOptions {
            context: options.context,
            ..SessionOptions::default()
        })?;
        Ok(Chat::new(session, options))
    }

    /// What [`Model::chat`] begins with, with a seed that was not used before.
    pub fn chat_options(&self) -> ChatOptions {
        ChatOptions {
            sampling: chat_sampling(self.suggested_sampling()),
            ..ChatOptions::default()
        }
    }

    /// The ids of a conversation up to where the model's answer begins. No text of a message becomes a control token.
    pub fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, Error> {
        Ok(turns::encode(self, messages)?)
    }

    /// Like [`Model::prompt`], with what the chat template gets to know besides the messages: `tools`, for example. A
    /// model without a template has no use for it.
    pub fn prompt_with(
        &self,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, Error> {
        Ok(turns::encode_with(self, messages, options)?)
    }

    /// Texts that end an answer to such a prompt, besides the model's own end.
    pub fn prompt_stops(&self) -> Vec<String> {
        turns::stops(self)
    }
}

impl Deref for Model {
    type Target = akunu_engine::Model;

    fn deref(&self) -> &akunu_engine::Model {
        &self.0
    }
}

impl From<akunu_engine::Model> for Model {
    fn from(model: akunu_engine::Model) -> Model {
        Model(model)
    }
}
