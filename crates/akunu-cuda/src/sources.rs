//! The PTX of every file.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The PTX of each `.metal` file.
#[derive(Debug, Clone, Default)]
pub struct PtxSources {
    texts: BTreeMap<String, Text>,
}

#[derive(Debug, Clone)]
enum Text {
    Plain(String),
    #[cfg(feature = "ptx")]
    Deflated(&'static [u8]),
}

impl PtxSources {
    /// PTX that was made elsewhere: the name of each `.metal` file and its text.
    pub fn new(texts: impl IntoIterator<Item = (String, String)>) -> PtxSources {
        let texts = texts
            .into_iter()
            .map(|(file, text)| (file, Text::Plain(text)));
        PtxSources {
            texts: texts.collect(),
        }
    }

    /// The PTX that was made when this program was built.
    #[cfg(feature = "ptx")]
    pub fn embedded() -> PtxSources {
        const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
        let texts = EMBEDDED
            .iter()
            .map(|&(file, bytes)| (file.to_owned(), Text::Deflated(bytes)));
        PtxSources {
            texts: texts.collect(),
        }
    }

    /// The text of a file, or why there is none.
    pub(crate) fn text(&self, file: &str) -> Result<Cow<'_, str>, String> {
        match self.texts.get(file) {
            Some(Text::Plain(text)) => Ok(text.into()),
            #[cfg(feature = "ptx")]
            Some(Text::Deflated(bytes)) => {
                let mut text = String::new();
                let mut decoder = flate2::read::DeflateDecoder::new(*bytes);
                std::io::Read::read_to_string(&mut decoder, &mut text)
                    .map_err(|error| format!("the embedded PTX of {file}: {error}"))?;
                Ok(text.into())
            }
            None => Err(format!("there is no PTX of {file}")),
        }
    }
}
