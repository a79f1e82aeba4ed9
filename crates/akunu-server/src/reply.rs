//! Answers that the OpenAPI document can describe.

use std::collections::BTreeMap;

use axum::response::IntoResponse;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// The media types of a body, each with its schema.
pub(crate) type Content = BTreeMap<&'static str, MediaType>;

/// A body of one media type.
#[derive(Serialize)]
pub(crate) struct MediaType {
    pub schema: Schema,
}

impl MediaType {
    /// The body that `T` describes.
    pub fn of<T: JsonSchema + ?Sized>(schemas: &mut SchemaGenerator) -> MediaType {
        MediaType {
            schema: schemas.subschema_for::<T>(),
        }
    }
}

/// What an endpoint answers.
pub(crate) trait Answer: IntoResponse {
    /// The bodies that it may have.
    fn content(schemas: &mut SchemaGenerator) -> Content;
}

impl<T: Serialize + JsonSchema> Answer for axum::Json<T> {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        Content::from([("application/json", MediaType::of::<T>(schemas))])
    }
}
