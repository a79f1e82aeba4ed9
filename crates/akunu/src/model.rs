//! A model on a device.

use std::ops::Deref;
use std::path::Path;

use akunu_engine::{Loading, ModelOptions, SessionOptions};
use akunu_tokenizer::{Message, RenderOptions};

use crate::chat::{Chat, ChatOptions};
use crate::device::Device;
use crate::error::Error;
use crate::sampling::chat_sampling;
use crate::turns;

/// A model on a device. Clones are cheap and share everything.
///
/// It dereferences to the [engine's model](akunu_engine::Model), and adds conversations and prompts.
#[derive(Clone)]
pub struct Model(akunu_engine::Model);

impl Model {
    /// Opens a GGUF file, or a folder with safetensors, on the best device of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, Error> {
        Model::open_on(path, Device::Auto)
    }

    /// Opens a model on this device.
    pub fn open_on(path: impl AsRef<Path>, device: Device) -> Result<Model, Error> {
        Model::open_with(path, device, ModelOptions::default())
    }

    /// Opens a model on this device with options: keys and values in 8 bits, for example.
    pub fn open_with(
        path: impl AsRef<Path>,
        device: Device,
        options: ModelOptions,
    ) -> Result<Model, Error> {
        Model::open_watched(path, device, options, &Loading::default())
    }

    /// Like [`Model::open_with`], with figures of how far it is, for another thread to show.
    pub fn open_watched(
        path: impl AsRef<Path>,
        device: Device,
        options: ModelOptions,
        loading: &Loading,
    ) -> Result<Model, Error> {
        #[cfg(feature = "fetch")]
        let options = ModelOptions {
            suggested: options
                .suggested
                .or(crate::fetch::recommended_sampling(path.as_ref())),
            ..options
        };
        let model = akunu_engine::Model::load_watched(path, device.open()?, options, loading)?;
        Ok(Model(model))
    }

    /// Starts a conversation with the options of [`Model::chat_options`].
    pub fn chat(&self) -> Result<Chat, Error> {
        self.chat_with(self.chat_options())
    }

    /// Starts a conversation with these options; change those of [`Model::chat_options`], which suit the model.
    pub fn chat_with(&self, options: ChatOptions) -> Result<Chat, Error> {
        let session = self.session(SessionOptions {
            context: options.context,
            ..SessionOptions::default()
        })?;
        Ok(Chat::new(session, options))
    }

    /// The options that suit this model: a default context, sampling as the catalogue (with the feature `fetch`) or its file
    /// recommends, and a random seed.
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

    /// Like [`Model::prompt`], with further variables for the chat template: `tools`, for example. A
    /// model without a template ignores them.
    pub fn prompt_with(
        &self,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, Error> {
        Ok(turns::encode_with(self, messages, options)?)
    }

    /// Texts that end an answer to a prompt of [`Model::prompt`], besides the model's own end tokens.
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
