//! A text, or a list of parts: what messages hold in all dialects.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// A text, or a list of parts.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "TextOrListOf_{P}")]
pub(crate) enum Content<P> {
    Text(String),
    Parts(Vec<P>),
}

/// Reads it without looking ahead, so that an error names the part and its field: serde's `untagged` would name none.
impl<'de, P: Deserialize<'de>> Deserialize<'de> for Content<P> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Content<P>, D::Error> {
        from.deserialize_any(Either(PhantomData))
    }
}

struct Either<P>(PhantomData<P>);

impl<'de, P: Deserialize<'de>> Visitor<'de> for Either<P> {
    type Value = Content<P>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a string or a list")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<P>, E> {
        Ok(Content::Text(text.to_string()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content<P>, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Content<P>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(parts)).map(Content::Parts)
    }
}
