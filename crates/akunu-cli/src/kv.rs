//! How keys and values are stored.

use akunu::{KvFormat, ModelOptions};
use clap::{Args, ValueEnum};

/// What `--kv` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KvName {
    /// 16 bits each
    F16,
    /// 8 bits each and a scale for each 32, in 53 % of the memory of f16
    Q8,
}

/// How keys and values are stored.
#[derive(Args, Clone)]
pub struct KvArgs {
    /// Format of keys and values
    #[arg(long, value_enum, default_value = "f16")]
    kv: KvName,
}

impl KvArgs {
    /// The options that a model is loaded with.
    pub fn options(&self) -> ModelOptions {
        let kv = match self.kv {
            KvName::F16 => KvFormat::F16,
            KvName::Q8 => KvFormat::Q8,
        };
        ModelOptions {
            kv,
            ..ModelOptions::default()
        }
    }
}
