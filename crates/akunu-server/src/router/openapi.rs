//! `/openapi.json`, from the table of paths.

mod fields;

use axum::extract::State;
use serde_json::{Map, Value, json};

use super::{App, Body, ENDPOINTS, Endpoint};

/// The paths as OpenAPI 3.1 describes them.
pub(crate) async fn document(State(app): State<App>) -> axum::Json<Value> {
    let models = app.models.all().iter().map(|entry| entry.name.as_str());
    axum::Json(describe(&models.collect::<Vec<_>>()))
}

fn describe(models: &[&str]) -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        paths.insert(endpoint.path.into(), operation(endpoint, models));
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Akunu", "version": env!("CARGO_PKG_VERSION")},
        "security": [{}, {"bearer": []}, {"key": []}],
        "components": {"securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        }},
        "paths": paths,
    })
}

fn operation(endpoint: &Endpoint, models: &[&str]) -> Value {
    let mut operation = json!({
        "summary": endpoint.what,
        "responses": {
            "200": {"description": "The answer"},
            "default": {"description": "Why there is none"},
        },
    });
    if endpoint.path.ends_with("{name}") {
        let name =
            json!({"name": "name", "in": "path", "required": true, "schema": {"type": "string"}});
        operation["parameters"] = json!([name]);
    }
    let (kind, needs) = match endpoint.body {
        Body::Nothing => return json!({"get": operation}),
        Body::Json(needs) => ("application/json", needs),
        Body::Form(needs) => ("multipart/form-data", needs),
    };
    let mut properties = Map::new();
    if ["/v1/chat/completions", "/v1/completions"].contains(&endpoint.path)
        && let Value::Object(making) = fields::making()
    {
        properties.extend(making);
    }
    properties.insert("model".into(), fields::schema("model", "string", models));
    for (name, kind) in needs {
        properties.insert((*name).into(), fields::schema(name, kind, models));
    }
    let required: Vec<&str> = needs.iter().map(|(name, _)| *name).collect();
    let schema = json!({"type": "object", "required": required, "properties": properties});
    operation["requestBody"] = json!({"required": true, "content": {kind: {"schema": schema}}});
    json!({"post": operation})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_described_once() {
        let document = describe(&["smollm2"]);
        let paths = document["paths"].as_object().expect("paths");
        assert_eq!(paths.len(), ENDPOINTS.len());
        assert!(paths["/v1/chat/completions"]["post"]["requestBody"].is_object());
        assert!(paths["/health"]["get"]["requestBody"].is_null());
        let form = &paths["/v1/audio/transcriptions"]["post"]["requestBody"]["content"];
        let file = &form["multipart/form-data"]["schema"]["properties"]["file"];
        assert_eq!(file["format"], "binary");
        let chat = &paths["/v1/chat/completions"]["post"]["requestBody"]["content"];
        let fields = &chat["application/json"]["schema"]["properties"];
        assert_eq!(fields["model"]["enum"], json!(["smollm2"]));
        assert!(fields["messages"]["items"].is_object() && fields["top_p"].is_object());
    }
}
