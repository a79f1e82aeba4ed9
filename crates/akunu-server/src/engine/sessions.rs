//! The sessions of a model: each with its adapters.

use akunu::{Adapters, Model, Session, SessionOptions};

use crate::source::ModelSettings;

pub(super) struct Sessions {
    pub model: Model,
    options: SessionOptions,
    adapters: Adapters,
}

impl Sessions {
    /// Loads the adapters.
    pub fn new(
        model: &Model,
        context: Option<u32>,
        settings: &ModelSettings,
    ) -> Result<Sessions, akunu::Error> {
        let mut adapters = Adapters::none();
        for (path, scale) in &settings.adapters {
            adapters = adapters.with(&model.load_adapter(path)?, *scale);
        }
        Ok(Sessions {
            model: model.clone(),
            options: SessionOptions {
                context: settings.context.or(context),
                ..SessionOptions::default()
            },
            adapters,
        })
    }

    /// An empty session.
    pub fn open(&self) -> Result<Session, akunu::Error> {
        let mut session = self.model.session(self.options)?;
        session.set_adapters(&self.adapters)?;
        Ok(session)
    }
}
