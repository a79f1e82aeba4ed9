//! `/openapi.json`, from the table of paths.

use serde_json::{Map, Value, json};

use super::{Body, ENDPOINTS, Endpoint};

/// The paths as OpenAPI 3.1 describes them.
pub(crate) async fn document() -> axum::Json<Value> {
    axum::Json(describe())
}

fn describe() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        paths.insert(endpoint.path.into(), operation(endpoint));
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

fn operation(endpoint: &Endpoint) -> Value {
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
    for (name, kind) in needs {
        let schema = match *kind {
            "" => json!({}),
            "file" => json!({"type": "string", "format": "binary"}),
            kind => json!({"type": kind}),
        };
        properties.insert((*name).into(), schema);
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
        let document = describe();
        let paths = document["paths"].as_object().expect("paths");
        assert_eq!(paths.len(), ENDPOINTS.len());
        assert!(paths["/v1/chat/completions"]["post"]["requestBody"].is_object());
        assert!(paths["/health"]["get"]["requestBody"].is_null());
    }
}
