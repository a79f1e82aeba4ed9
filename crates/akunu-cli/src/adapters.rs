//! The option that loads adapters beside a model.

use crate::failure::Failure;
use akunu::{Adapters, Model};
use clap::Args;
use std::path::{Path, PathBuf};

/// Adapters beside a model.
#[derive(Args, Clone)]
pub struct AdapterArgs {
    /// Add a LoRA adapter to the model, with this scale [default: 1]: a GGUF file, or a folder with
    /// adapter_config.json and safetensors; may be given several times
    #[arg(long, value_name = "FILE[:SCALE]", value_parser = asked)]
    pub lora: Vec<Asked>,
}

/// An adapter that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub path: PathBuf,
    pub scale: f32,
}

/// A file and, after the last colon, a scale. A file whose own name ends so is taken as it is.
pub fn asked(text: &str) -> Result<Asked, String> {
    if text.is_empty() || text.starts_with(':') && !Path::new(text).exists() {
        return Err("there is no file: give one, as in adapter.gguf:0.5".into());
    }
    let whole = Asked {
        path: text.into(),
        scale: 1.0,
    };
    let Some((path, scale)) = text.rsplit_once(':').filter(|_| !Path::new(text).exists()) else {
        return Ok(whole);
    };
    // A colon in a path, as after the letter of a drive.
    if scale.contains(['/', '\\']) {
        return Ok(whole);
    }
    match scale.parse::<f32>() {
        Ok(scale) if scale.is_finite() => Ok(Asked {
            path: path.into(),
            scale,
        }),
        _ => Err(format!(
            "`{scale}` after the last colon is not a scale: give a number, such as 0.5"
        )),
    }
}

impl AdapterArgs {
    /// Loads the adapters that were asked for.
    pub fn adapters(&self, model: &Model) -> Result<Adapters, Failure> {
        let mut adapters = Adapters::none();
        for asked in &self.lora {
            let adapter = model.load_adapter(&asked.path)?;
            adapters = adapters.with(&adapter, asked.scale);
        }
        Ok(adapters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_follows_the_last_colon() {
        let parts = |text: &str| asked(text).map(|asked| (asked.path, asked.scale));
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(parts("a.gguf"), Ok((path("a.gguf"), 1.0)));
        assert_eq!(parts("a.gguf:0.5"), Ok((path("a.gguf"), 0.5)));
        assert_eq!(parts("C:\\a.gguf"), Ok((path("C:\\a.gguf"), 1.0)));
        assert_eq!(parts("a:b.gguf:-2"), Ok((path("a:b.gguf"), -2.0)));
        assert!(parts("a.gguf:much").is_err());
        assert!(parts("a.gguf:inf").is_err());
        for none in ["", ":0.5"] {
            let wrong = parts(none).expect_err("no file");
            assert!(wrong.starts_with("there is no file"), "{wrong}");
        }
    }
}
