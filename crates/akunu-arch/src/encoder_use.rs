//! How the vectors of a text's tokens become one, and how long a text may be: what the model's own files say.
//!
//! ```text
//! GGUF       {arch}.pooling_type: 1 mean, 2 first token, 3 last token, 4 a classifier's (for vectors, the first token)
//! folder     modules.json names the folder of the module `Pooling`, whose config.json has
//!            pooling_mode_mean_tokens, pooling_mode_cls_token, pooling_mode_lasttoken (or pooling_mode);
//!            sentence_bert_config.json has max_seq_length, or tokenizer_config.json has model_max_length
//! ```
//!
//! Without any of it, the mean is taken.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use akunu_gguf::{Container, GgufFile, WeightStore};
use serde_json::Value;

use crate::error::ArchError;
use crate::model::{Model, Pooling};

/// These files have a few hundred bytes.
const MAX_BYTES: u64 = 1 << 20;

/// How an encoder is used, as its files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderUse {
    /// How the vectors of a text's tokens become one.
    pub pooling: Pooling,
    /// The maximum number of tokens of a text: the number of positions of the model, or fewer if its files say so.
    pub max_tokens: usize,
    /// Scores that it gives for a pair of texts; 0 for a model that gives none.
    pub n_labels: u32,
}

impl EncoderUse {
    /// What an open model says; `None` where it is no encoder.
    pub fn of(store: &WeightStore, model: &Model) -> Result<Option<EncoderUse>, ArchError> {
        if !model.is_encoder() {
            return Ok(None);
        }
        let (pooling, max_length) = match store.container() {
            Container::Gguf(file) => (of_metadata(file)?, None),
            Container::Folder(folder) => of_folder(folder.path())?,
        };
        let positions = model.context_length as usize;
        Ok(Some(EncoderUse {
            pooling,
            max_tokens: max_length.map_or(positions, |max| max.min(positions)),
            n_labels: model.n_labels(),
        }))
    }
}

fn of_metadata(file: &GgufFile) -> Result<Pooling, ArchError> {
    let metadata = file.metadata();
    let arch = metadata.string("general.architecture")?;
    let key = format!("{}.pooling_type", arch.unwrap_or_default());
    match metadata.u32(&key)? {
        None | Some(0 | 1) => Ok(Pooling::Mean),
        Some(2 | 4) => Ok(Pooling::First),
        Some(3) => Ok(Pooling::Last),
        Some(other) => Err(unsupported(file.path(), format!("`{key}` = {other}"))),
    }
}

/// The pooling, and the longest text, of a folder.
fn of_folder(folder: &Path) -> Result<(Pooling, Option<usize>), ArchError> {
    let length = |file: &str, key: &str| -> Result<Option<usize>, ArchError> {
        let config = read_json(&folder.join(file))?;
        // A tokenizer without a limit has one of 1e30, which is no whole number of 64 bits.
        let found = config.and_then(|config| config.get(key)?.as_u64());
        Ok(found.and_then(|n| usize::try_from(n).ok().filter(|&n| n > 2)))
    };
    let max_length = match length("sentence_bert_config.json", "max_seq_length")? {
        None => length("tokenizer_config.json", "model_max_length")?,
        found => found,
    };
    Ok((pooling_of_modules(folder)?, max_length))
}

/// The modules after the transformer: pooling, and what does not change a direction.
fn pooling_of_modules(folder: &Path) -> Result<Pooling, ArchError> {
    let path = folder.join("modules.json");
    let Some(modules) = read_json(&path)? else {
        return Ok(Pooling::default());
    };
    let mut pooling = Pooling::default();
    for module in modules.as_array().into_iter().flatten() {
        let text = |key: &str| module.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type").rsplit('.').next().unwrap_or_default() {
            "Transformer" | "Normalize" | "Dropout" => {}
            "Pooling" => {
                let name = text("path");
                let is_plain = !name.contains(['/', '\\', ':']) && name != "..";
                if !is_plain {
                    return Err(unsupported(&path, format!("the path `{name}` of a module")));
                }
                pooling = pooling_of(&folder.join(name).join("config.json"))?;
            }
            other => return Err(unsupported(&path, format!("the module `{other}`"))),
        }
    }
    Ok(pooling)
}

fn pooling_of(path: &Path) -> Result<Pooling, ArchError> {
    let Some(config) = read_json(path)? else {
        return Ok(Pooling::default());
    };
    let is_set = |key: &str| config.get(key).and_then(Value::as_bool) == Some(true);
    let modes = [
        ("mean", "pooling_mode_mean_tokens", Some(Pooling::Mean)),
        ("cls", "pooling_mode_cls_token", Some(Pooling::First)),
        ("lasttoken", "pooling_mode_lasttoken", Some(Pooling::Last)),
        ("max", "pooling_mode_max_tokens", None),
        (
            "mean_sqrt_len_tokens",
            "pooling_mode_mean_sqrt_len_tokens",
            None,
        ),
        ("weightedmean", "pooling_mode_weightedmean_tokens", None),
    ];
    let named = config.get("pooling_mode").and_then(Value::as_str);
    let mut found = modes
        .iter()
        .filter(|(name, key, _)| named == Some(name) || is_set(key));
    match (found.next(), found.next()) {
        (None, _) if named.is_none() => Ok(Pooling::default()),
        (Some(&(_, _, Some(pooling))), None) => Ok(pooling),
        (Some((name, ..)), None) => Err(unsupported(path, format!("the pooling mode `{name}`"))),
        (None, _) => {
            let mode = named.unwrap_or_default();
            Err(unsupported(path, format!("the pooling mode `{mode}`")))
        }
        (Some(_), Some(_)) => Err(unsupported(path, "a mixture of pooling modes".into())),
    }
}

fn unsupported(path: &Path, what: String) -> ArchError {
    let path = path.to_path_buf();
    ArchError::Unsupported { path, what }
}

/// A file that need not be there.
fn read_json(path: &Path) -> Result<Option<Value>, ArchError> {
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let unreadable = |why: String| ArchError::File {
        path: PathBuf::from(path),
        why,
    };
    let mut text = String::new();
    let mut limited = file.take(MAX_BYTES);
    limited
        .read_to_string(&mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    let value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MODULES: &str = r#"[
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]"#;

    /// A folder with these modules and this config of the pooling.
    fn described(modules: &str, pooling: &str) -> Result<Pooling, String> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("modules.json"), modules).expect("written");
        fs::create_dir(folder.path().join("1_Pooling")).expect("made");
        fs::write(folder.path().join("1_Pooling/config.json"), pooling).expect("written");
        of_folder(folder.path())
            .map(|(pooling, _)| pooling)
            .map_err(|error| error.to_string())
    }

    /// A model that is pooled otherwise than it was trained gives vectors that look fine and find nothing.
    #[test]
    fn the_models_own_pooling_is_taken() {
        let pooling = |config| described(MODULES, config);
        let cls = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
        assert_eq!(pooling(cls), Ok(Pooling::First));
        let mean = r#"{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}"#;
        assert_eq!(pooling(mean), Ok(Pooling::Mean));
        assert_eq!(
            pooling(r#"{"pooling_mode_lasttoken": true}"#),
            Ok(Pooling::Last)
        );
        assert_eq!(pooling(r#"{"pooling_mode": "cls"}"#), Ok(Pooling::First));
        assert_eq!(pooling("{}"), Ok(Pooling::Mean));
    }

    /// Newer files of sentence-transformers have the length only as that of the tokenizer.
    #[test]
    fn the_longest_text_is_that_of_the_sentences_or_of_the_tokenizer() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        let longest = || of_folder(folder.path()).expect("described").1;
        assert_eq!(longest(), None);
        let without = r#"{"model_max_length": 1000000000000000019884624838656}"#;
        write("tokenizer_config.json", without);
        assert_eq!(longest(), None);
        write("tokenizer_config.json", r#"{"model_max_length": 384}"#);
        assert_eq!(longest(), Some(384));
        write("sentence_bert_config.json", r#"{"max_seq_length": null}"#);
        assert_eq!(longest(), Some(384));
        write("sentence_bert_config.json", r#"{"max_seq_length": 256}"#);
        assert_eq!(longest(), Some(256));
    }

    /// What cannot be done is said, and not done otherwise.
    #[test]
    fn other_poolings_and_modules_are_refused_by_name() {
        let refused = |modules: &str, pooling: &str, name: &str| {
            let error = described(modules, pooling).expect_err("not possible");
            assert!(error.contains(name), "{error}");
        };
        refused(MODULES, r#"{"pooling_mode_max_tokens": true}"#, "`max`");
        let both = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}"#;
        refused(MODULES, both, "mixture");
        refused(MODULES, "{", "config.json");
        let dense = r#"[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]"#;
        refused(dense, "{}", "`Dense`");
        let outside = r#"[{"path": "../x", "type": "a.Pooling"}]"#;
        refused(outside, "{}", "`../x`");
    }
}
