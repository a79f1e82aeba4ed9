//! The table of paths as OpenAPI 3.1 describes it. All schemas follow from the types of requests and answers.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::routing::{MethodRouter, get, post};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::reply::{Answer, Content};

/// A path: what it is for, who answers, and what goes in and out.
pub(crate) struct Endpoint {
    pub path: &'static str,
    what: &'static str,
    pub route: MethodRouter<App>,
    request: Option<Describe>,
    answer: Describe,
}

/// Describes the bodies of a type.
type Describe = fn(&mut SchemaGenerator) -> Content;

impl Endpoint {
    /// A path without a body.
    pub fn get<A, F>(
        path: &'static str,
        what: &'static str,
        handler: impl Fn(State<App>) -> F + Clone + Send + Sync + 'static,
    ) -> Endpoint
    where
        A: Answer,
        F: Future<Output = Result<A, ApiError>> + Send + 'static,
    {
        Endpoint::new(path, what, get(handler), None, A::content)
    }

    /// A path that ends with `{name}`.
    pub fn get_named<A, F>(
        path: &'static str,
        what: &'static str,
        handler: impl Fn(State<App>, Path<String>) -> F + Clone + Send + Sync + 'static,
    ) -> Endpoint
    where
        A: Answer,
        F: Future<Output = Result<A, ApiError>> + Send + 'static,
    {
        Endpoint::new(path, what, get(handler), None, A::content)
    }

    /// A path that takes a body.
    pub fn post<B, A, F>(
        path: &'static str,
        what: &'static str,
        handler: impl Fn(State<App>, B) -> F + Clone + Send + Sync + 'static,
    ) -> Endpoint
    where
        B: Body,
        A: Answer,
        F: Future<Output = Result<A, ApiError>> + Send + 'static,
    {
        Endpoint::new(path, what, post(handler), Some(B::content), A::content)
    }

    fn new(
        path: &'static str,
        what: &'static str,
        route: MethodRouter<App>,
        request: Option<Describe>,
        answer: Describe,
    ) -> Endpoint {
        Endpoint {
            path,
            what,
            route,
            request,
            answer,
        }
    }
}

/// The document.
#[derive(Serialize)]
pub(crate) struct Document {
    openapi: &'static str,
    info: Info,
    /// Any of these will do; which one it must be is the owner's choice.
    security: [BTreeMap<&'static str, [(); 0]>; 3],
    components: Components,
    paths: BTreeMap<&'static str, BTreeMap<&'static str, Operation>>,
}

#[derive(Serialize)]
struct Info {
    title: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    security_schemes: SecuritySchemes,
    schemas: Map<String, Value>,
}

#[derive(Serialize)]
struct SecuritySchemes {
    bearer: SecurityScheme,
    key: SecurityScheme,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum SecurityScheme {
    Http {
        scheme: &'static str,
    },
    ApiKey {
        r#in: &'static str,
        name: &'static str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    summary: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<RequestBody>,
    responses: Responses,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    r#in: &'static str,
    required: bool,
    schema: schemars::Schema,
}

#[derive(Serialize)]
struct RequestBody {
    required: bool,
    content: Content,
}

#[derive(Serialize)]
struct Responses {
    #[serde(rename = "200")]
    answer: Response,
    default: Response,
}

#[derive(Serialize)]
struct Response {
    description: &'static str,
    content: Content,
}

/// Describes these paths of a server with these models; `errors` says what a path answers when something is wrong.
pub(crate) fn describe(
    endpoints: &[Endpoint],
    models: &[&str],
    errors: impl Fn(&str, &mut SchemaGenerator) -> Content,
) -> Document {
    let mut schemas = Schemas::new();
    let operations = endpoints.iter().map(|endpoint| {
        let errors = errors(endpoint.path, &mut schemas.answers);
        let method = if endpoint.request.is_some() {
            "post"
        } else {
            "get"
        };
        let operation = schemas.operation(endpoint, errors);
        (endpoint.path, BTreeMap::from([(method, operation)]))
    });
    let paths = operations.collect();
    Document {
        openapi: "3.1.0",
        info: Info {
            title: "Akunu",
            version: env!("CARGO_PKG_VERSION"),
        },
        security: [
            BTreeMap::new(),
            BTreeMap::from([("bearer", [])]),
            BTreeMap::from([("key", [])]),
        ],
        components: Components {
            security_schemes: SecuritySchemes {
                bearer: SecurityScheme::Http { scheme: "bearer" },
                key: SecurityScheme::ApiKey {
                    r#in: "header",
                    name: "X-Api-Key",
                },
            },
            schemas: schemas.all(models),
        },
        paths,
    }
}

/// The types that requests and answers are made of. A field that may be absent from a request may still be in every answer.
struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Schemas {
            requests: settings.clone().into_generator(),
            answers: settings.for_serialize().into_generator(),
        }
    }

    fn operation(&mut self, endpoint: &Endpoint, errors: Content) -> Operation {
        let name = endpoint.path.ends_with("{name}").then(|| Parameter {
            name: "name",
            r#in: "path",
            required: true,
            schema: self.requests.subschema_for::<String>(),
        });
        let request = endpoint.request.map(|content| RequestBody {
            required: true,
            content: content(&mut self.requests),
        });
        Operation {
            summary: endpoint.what,
            parameters: name.into_iter().collect(),
            request_body: request,
            responses: Responses {
                answer: Response {
                    description: "The answer",
                    content: (endpoint.answer)(&mut self.answers),
                },
                default: Response {
                    description: "Why there is none",
                    content: errors,
                },
            },
        }
    }

    /// All named types. The `model` of a request is one of those that are there.
    fn all(mut self, models: &[&str]) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        for schema in all.values_mut() {
            if let Some(Value::Object(model)) = schema.pointer_mut("/properties/model") {
                model.insert("type".into(), "string".into());
                model.insert("enum".into(), models.into());
            }
        }
        for (name, schema) in self.answers.take_definitions(true) {
            debug_assert!(
                all.get(&name).is_none_or(|other| *other == schema),
                "two types are called {name}"
            );
            all.insert(name, schema);
        }
        all
    }
}
