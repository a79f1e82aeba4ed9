//! The models of a server: those of `-m`, and those of a file.

use super::config::{Config, Entry};
use crate::adapters::{AdapterArgs, Asked};
use crate::device::DeviceArgs;
use crate::failure::Failure;
use crate::kept::KeptArgs;
use crate::kv::KvArgs;
use crate::models;
use akunu::{EngineError, Model};
use akunu_arch::{ArchError, Speech};
use akunu_gguf::SpeechFolder;
use akunu_server::{ModelSettings, OpenModel, Source};
use clap::Args;
use std::path::{Path, PathBuf};

/// Which models are served, by which names, and how.
#[derive(Args)]
pub struct ServedArgs {
    /// A GGUF file, a folder with config.json and safetensors, a name from `pull --list`, or
    /// hf:owner/repository/file.gguf; may be given several times [default: qwen2.5-coder-0.5b]
    #[arg(short, long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// A TOML file with models: their names, context, system prompts, sampling, adapters and draft models
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Another name for a model, as in gpt-4o=smollm2; may be given several times
    #[arg(long, value_name = "NAME=MODEL", value_parser = alias)]
    alias: Vec<(String, String)>,
    /// The model for requests that name none, or one that is not served [default: the first, for those that name none]
    #[arg(long, value_name = "NAME")]
    default_model: Option<String>,
    /// Keep the model of this name once it is loaded, whatever --keep says; may be given several times
    #[arg(long, value_name = "NAME")]
    pin: Vec<String>,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Let a smaller model with the same vocabulary guess tokens: a file, or a name from `pull --list`
    #[arg(long, value_name = "MODEL")]
    draft: Option<String>,
    /// Guess this many tokens with the draft model in every step, 1 to 31 [default: as many as save time]
    #[arg(long, value_name = "N", requires = "draft",
        value_parser = clap::value_parser!(u32).range(1..=akunu::MAX_DRAFT as i64))]
    draft_tokens: Option<u32>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    kv: KvArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Threads of the CPU device, at most one for each core [default: one for each core]
    #[arg(short, long, value_name = "N")]
    threads: Option<usize>,
}

/// The models that are served.
pub struct Served {
    pub sources: Vec<Source>,
    /// The model that answers where none of these is named.
    pub default_model: Option<String>,
    /// Whether it is only the model that is served when none is named.
    pub is_small: bool,
}

/// `NAME=MODEL`.
fn alias(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    match pair.filter(|(name, model)| !name.is_empty() && !model.is_empty()) {
        Some((name, model)) => Ok((name.to_string(), model.to_string())),
        None => Err("it must be a name, = and the name of a model, as in gpt-4o=smollm2".into()),
    }
}

impl Served {
    /// The names that clients use.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.sources.iter().map(|source| &*source.name).collect();
        names.join(", ")
    }

    fn named(&mut self, option: &'static str, name: &str) -> Result<&mut Source, Failure> {
        match self.sources.iter().position(|source| source.name == name) {
            Some(at) => Ok(&mut self.sources[at]),
            None => Err(self.not_served(option, name)),
        }
    }

    fn not_served(&self, option: &'static str, name: &str) -> Failure {
        Failure::NotServed {
            option,
            name: name.to_string(),
            known: self.names(),
        }
    }

    /// The name, if a model has it, or is also called so.
    fn default_model(&self, option: &'static str, name: &str) -> Result<Option<String>, Failure> {
        let names =
            |source: &Source| source.name == name || source.aliases.iter().any(|it| it == name);
        match self.sources.iter().any(names) {
            true => Ok(Some(name.to_string())),
            false => Err(self.not_served(option, name)),
        }
    }
}

impl ServedArgs {
    /// The models by name. Models that are not here yet are fetched now, before a client waits for them, and files that cannot be
    /// read are reported now.
    pub fn read(&self) -> Result<Served, Failure> {
        let config = self.config.as_deref().map(Config::read).transpose()?;
        let usual = [models::DEFAULT.to_string()];
        let models = match self.models.is_empty() && config.is_none() {
            true => &usual[..],
            false => &self.models,
        };
        let mut served = Served {
            sources: self.listed(models)?,
            default_model: None,
            is_small: *models == usual,
        };
        if let Some(config) = &config {
            for entry in &config.models {
                served.sources.push(self.written(config, entry)?);
            }
        }
        for (alias, of) in &self.alias {
            served.named("--alias", of)?.aliases.push(alias.clone());
        }
        for pin in &self.pin {
            served.named("--pin", pin)?.pinned = true;
        }
        let written = config.and_then(|it| Some((it.default_model.clone()?, it)));
        served.default_model = match (&self.default_model, written) {
            (Some(name), _) => served.default_model("--default-model", name)?,
            (None, Some((name, config))) => {
                let found = served.default_model("default-model", name.get_ref());
                found.map_err(|failure| config.wrong(&name, failure))?
            }
            (None, None) => None,
        };
        Ok(served)
    }

    /// The models of the command line.
    fn listed(&self, models: &[String]) -> Result<Vec<Source>, Failure> {
        let (lora, n) = (&self.adapters.lora, models.len());
        let for_one = [
            ("--lora", !lora.is_empty()),
            ("--draft", self.draft.is_some()),
        ];
        if let Some((option, _)) = for_one.into_iter().find(|(_, is_set)| *is_set && n != 1) {
            return Err(Failure::OneModelOnly { option, n });
        }
        let source = |model: &String| {
            let settings = ModelSettings {
                adapters: files(lora),
                draft: self.draft.as_ref().map(|it| self.draft(it)).transpose()?,
                draft_tokens: self.draft_tokens.map(|n| n as usize),
                ..ModelSettings::default()
            };
            self.source(model, None, settings)
        };
        models.iter().map(source).collect()
    }

    /// A model of a file.
    fn written(&self, config: &Config, entry: &Entry) -> Result<Source, Failure> {
        let draft = entry.draft.as_ref().map(|name| {
            let opened = self.draft(name.get_ref());
            opened.map_err(|failure| config.wrong(name, failure))
        });
        let settings = ModelSettings {
            context: config.context(entry)?,
            system: entry.system.clone(),
            sampling: config.sampling(entry)?,
            adapters: files(&config.adapters(entry)?),
            draft: draft.transpose()?,
            draft_tokens: config.draft_tokens(entry)?,
            ..ModelSettings::default()
        };
        let name = entry.name.as_ref().map(|name| name.get_ref().clone());
        let source = self.source(entry.model.get_ref(), name, settings);
        let source = source.map_err(|failure| config.wrong(&entry.model, failure))?;
        Ok(Source {
            aliases: entry.alias.iter().map(|it| it.get_ref().clone()).collect(),
            pinned: entry.pin,
            ..source
        })
    }

    /// A model that is opened when it is needed, by this name or its own.
    fn source(
        &self,
        model: &str,
        name: Option<String>,
        settings: ModelSettings,
    ) -> Result<Source, Failure> {
        let path = models::resolve(model)?;
        check(&path)?;
        let name = name.unwrap_or_else(|| name_of(model, &path));
        let (device, kv, threads) = (self.device.clone(), self.kv.options(), self.threads);
        let kept = self.kept.clone();
        let open = move || {
            let device = akunu::Device::Custom(device.open(threads)?);
            let served = akunu_server::Served::open(&path, device, kv)?;
            if let akunu_server::Served::Model(model) = &served {
                kept.keep(model);
            }
            Ok(served)
        };
        Ok(Source {
            settings,
            ..Source::new(name, open)
        })
    }

    /// A draft model, on the same kind of device.
    fn draft(&self, model: &str) -> Result<OpenModel, Failure> {
        let path = models::resolve(model)?;
        check(&path)?;
        let (device, threads) = (self.device.clone(), self.threads);
        Ok(Box::new(move || {
            let device = akunu::Device::Custom(device.open(threads)?);
            Ok(Model::open_on(&path, device)?)
        }))
    }
}

fn files(asked: &[Asked]) -> Vec<(PathBuf, f32)> {
    let files = asked.iter().map(|asked| (asked.path.clone(), asked.scale));
    files.collect()
}

/// Reads what a model says of itself, but not its weights: a file that is missing or cut off is noticed.
fn check(path: &Path) -> Result<(), Failure> {
    if SpeechFolder::is_at(path) {
        let folder = SpeechFolder::open(path);
        let folder = folder.map_err(|error| EngineError::from(ArchError::from(error)))?;
        Speech::from_folder(&folder).map_err(EngineError::from)?;
    } else {
        akunu::is_encoder(path)?;
    }
    Ok(())
}

/// The name of a model for clients: that of the catalogue, of its folder, or of its file without the extension.
fn name_of(model: &str, path: &Path) -> String {
    let is_path = Path::new(model) == path || model.starts_with("hf:");
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    name.filter(|_| is_path).map_or_else(
        || model.to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_have_a_model() {
        let pair = |name: &str, model: &str| Ok((name.to_string(), model.to_string()));
        assert_eq!(alias("gpt-4o=smollm2"), pair("gpt-4o", "smollm2"));
        assert_eq!(alias("a=b=c"), pair("a", "b=c"));
        for wrong in ["", "gpt-4o", "=smollm2", "gpt-4o="] {
            assert!(alias(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn models_are_called_by_their_names() {
        let named = |model: &str, path: &str| name_of(model, Path::new(path));
        assert_eq!(named("smollm2", "/c/smollm2/X.Q4_1.gguf"), "smollm2");
        assert_eq!(named("a/My-Model.gguf", "a/My-Model.gguf"), "My-Model");
        assert_eq!(named("hf:me/some/b.gguf", "/c/hub/me/some/b.gguf"), "b");
        let folder = tempfile::tempdir().expect("a folder");
        let whisper = folder.path().join("whisper-tiny.en");
        std::fs::create_dir(&whisper).expect("a folder");
        let path = whisper.to_str().expect("UTF-8");
        assert_eq!(named(path, path), "whisper-tiny.en");
    }
}
