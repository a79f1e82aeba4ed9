//! The description of a model folder, from `config.json` and the tokenizer's files.

use super::attention::Attention;
use super::report::{Description, Tokenizer};
use akunu_gguf::ModelFolder;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A tokenizer's configuration beyond this size is not read; real ones are far below.
const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// What the folder says.
pub fn describe(folder: &ModelFolder) -> Description {
    let config = Config::of(folder.config());
    let name = config
        .string("_name_or_path")
        .filter(|name| !name.is_empty());
    let folder_name = || Some(folder.path().file_name()?.to_str()?.to_string());
    Description {
        architecture: config.architecture(),
        name: name.map(str::to_string).or_else(folder_name),
        context_length: config.number("max_position_embeddings"),
        layers: config.number("num_hidden_layers"),
        embedding_length: config.number("hidden_size"),
        feed_forward_length: config.number("intermediate_size"),
        attention: attention(&config),
        tokenizer: tokenizer(folder.path(), &config),
    }
}

/// `config.json`; a model with images keeps the language model in `text_config`.
struct Config<'a> {
    sections: [&'a Value; 2],
}

impl<'a> Config<'a> {
    fn of(config: &'a Value) -> Config<'a> {
        Config {
            sections: [config.get("text_config").unwrap_or(config), config],
        }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        let found = self.sections.iter().find_map(|section| section.get(key));
        found.filter(|value| !value.is_null())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    fn string(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    fn architecture(&self) -> Option<String> {
        self.string("model_type").map(str::to_string)
    }
}

fn attention(config: &Config<'_>) -> Option<Attention> {
    let heads = config.number("num_attention_heads")?;
    let even_share = config
        .number("hidden_size")
        .and_then(|dim| dim.checked_div(heads));
    let head_dim = config.number("head_dim").or(even_share)?;
    Some(Attention {
        heads,
        kv_heads: config.number("num_key_value_heads").unwrap_or(heads),
        key_length: head_dim,
        value_length: head_dim,
        window: config.number("sliding_window").filter(|&window| window > 0),
        windowed_layers: None,
        bias_distance: None,
    })
}

fn tokenizer(folder: &Path, config: &Config<'_>) -> Option<Tokenizer> {
    let tokenizer = "tokenizer.json";
    folder.join(tokenizer).is_file().then(|| Tokenizer {
        model: Some(tokenizer.to_string()),
        pre: None,
        vocab_size: config.number("vocab_size"),
        chat_template: has_chat_template(folder),
    })
}

/// A template stands in a file of its own, or in the tokenizer's configuration.
fn has_chat_template(folder: &Path) -> bool {
    let in_config = || {
        let mut text = String::new();
        let file = File::open(folder.join("tokenizer_config.json")).ok()?;
        file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
        let config: Value = serde_json::from_str(&text).ok()?;
        Some(
            config
                .get("chat_template")
                .is_some_and(|template| !template.is_null()),
        )
    };
    folder.join("chat_template.jinja").is_file() || in_config().unwrap_or(false)
}
