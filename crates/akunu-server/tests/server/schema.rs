//! Whether a value is what a JSON schema says, by the keywords that `/openapi.json` has.

use std::collections::BTreeSet;

use serde_json::Value;

/// Refuses a value that does not fit, or that has a property of which the schema says nothing.
pub fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let described = fit(document, schema, value, at)?;
    for name in value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        if !described.contains(name) {
            return Err(format!("{at}.{name} is not described"));
        }
    }
    Ok(())
}

/// The properties of a value that the schema speaks of.
fn fit(doc: &Value, schema: &Value, value: &Value, at: &str) -> Result<BTreeSet<String>, String> {
    let names = || {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
    };
    let Some(keywords) = schema.as_object() else {
        assert_eq!(schema, true, "{at}");
        return Ok(names().collect());
    };
    let mut described = BTreeSet::new();
    if keywords.is_empty() {
        described.extend(names());
    }
    for (keyword, wanted) in keywords {
        let is_right = match keyword.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                let target = doc
                    .pointer(pointer)
                    .unwrap_or_else(|| panic!("no {pointer}"));
                described.extend(fit(doc, target, value, at)?);
                true
            }
            "allOf" => {
                for schema in wanted.as_array().unwrap() {
                    described.extend(fit(doc, schema, value, at)?);
                }
                true
            }
            "anyOf" | "oneOf" => {
                let all = wanted.as_array().unwrap().iter();
                let fits: Vec<_> = all.map(|schema| fit(doc, schema, value, at)).collect();
                let n_fits = fits.iter().filter(|fit| fit.is_ok()).count();
                if n_fits == 0 {
                    return Err(format!("{at}: {fits:?}"));
                }
                described.extend(fits.into_iter().flatten().flatten());
                keyword == "anyOf" || n_fits == 1
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        described.insert(name.clone());
                        check(doc, schema, value, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" if wanted == false => continue,
            "additionalProperties" => {
                let known = &schema["properties"];
                for (name, value) in value.as_object().into_iter().flatten() {
                    if known.get(name).is_none() {
                        described.insert(name.clone());
                        check(doc, wanted, value, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "items" => {
                for (n, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(doc, wanted, value, &format!("{at}[{n}]"))?;
                }
                true
            }
            "required" => {
                let names = wanted.as_array().unwrap().iter();
                let mut names = names.map(|name| name.as_str().unwrap());
                names.all(|name| value.get(name).is_some())
            }
            "type" => {
                let kinds = wanted
                    .as_array()
                    .map_or(std::slice::from_ref(wanted), |all| all);
                kinds
                    .iter()
                    .any(|kind| is_of(value, kind.as_str().unwrap()))
            }
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => value == wanted,
            "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|n| n <= wanted.as_f64().unwrap()),
            "maxItems" => value.as_array().map_or(0, Vec::len) as u64 <= wanted.as_u64().unwrap(),
            "minItems" => value.as_array().map_or(0, Vec::len) as u64 >= wanted.as_u64().unwrap(),
            "description" | "title" | "format" | "default" => continue,
            other => panic!("{at}: nobody has told this test what {other} means"),
        };
        if !is_right {
            return Err(format!("{at}: {value} is against {keyword}: {wanted}"));
        }
    }
    Ok(described)
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

/// Breaks when a value that is wrong in one place passes.
#[test]
fn wrong_values_are_found() {
    use serde_json::json;
    let document = json!({"of": {"named": {
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"], "minimum": 0}, "kind": {"enum": ["a"]}},
        "required": ["n"],
    }}});
    let schema = json!({"anyOf": [
        {"$ref": "#/of/named"},
        {"type": "array", "items": {"$ref": "#/of/named"}},
    ]});
    let is_right = |value: Value| check(&document, &schema, &value, "it").is_ok();
    assert!(is_right(json!({"n": 1, "kind": "a"})));
    assert!(is_right(json!([{"n": null}])));
    for wrong in [
        json!({"kind": "a"}),
        json!({"n": -1}),
        json!({"n": 0.5}),
        json!({"n": 1, "kind": "b"}),
        json!({"n": 1, "more": 1}),
        json!([{"n": 1, "more": 1}]),
        json!("n"),
    ] {
        assert!(!is_right(wrong.clone()), "{wrong}");
    }
}
