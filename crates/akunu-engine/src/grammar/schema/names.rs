//! Rewrites keywords that the compiler does not know, where they say something simple.
//!
//! ```text
//! propertyNames  {type: string}   nothing: all names are texts
//!                {enum: [a, b]}   properties a and b, and no others        what Pydantic writes for a dict[Literal, …]
//!                {pattern: p}     patternProperties p, and no others
//!                {maxLength: n}   likewise
//! uniqueItems    false, or for one item at most: nothing
//! ```

use serde_json::{Map, Value, json};

use super::each::each;

/// Keywords that say nothing about what is valid.
const ANNOTATIONS: [&str; 5] = ["title", "description", "$schema", "$comment", "type"];

/// Rewrites the keywords above; what is not simple stays, and the compiler refuses it.
pub(super) fn rewrite(schema: &mut Value) {
    let root = schema.clone();
    each(schema, |members| {
        property_names(members, &root);
        let at_most_one = members
            .get("maxItems")
            .and_then(Value::as_u64)
            .is_some_and(|n| n <= 1);
        match members.get("uniqueItems") {
            Some(Value::Bool(is_unique)) if at_most_one || !is_unique => {
                members.remove("uniqueItems");
            }
            _ => {}
        }
    });
}

fn property_names(members: &mut Map<String, Value>, root: &Value) {
    let Some(names) = members.get("propertyNames") else {
        return;
    };
    let reference = names.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|path| root.pointer(path.strip_prefix('#')?));
    let names = target.unwrap_or(names);
    let has_properties = ["properties", "patternProperties"]
        .iter()
        .any(|key| members.contains_key(*key));
    let value = members
        .get("additionalProperties")
        .cloned()
        .unwrap_or(Value::Bool(true));
    let rewritten = match Names::of(names) {
        Some(Names::All) => None,
        Some(Names::Some(names)) if !has_properties => {
            let properties = names.into_iter().map(|name| (name, value.clone()));
            Some(("properties", Value::Object(properties.collect())))
        }
        Some(Names::Like(pattern)) if !has_properties => {
            Some(("patternProperties", json!({ pattern: value })))
        }
        _ => return,
    };
    members.remove("propertyNames");
    if let Some((keyword, schemas)) = rewritten {
        members.insert(keyword.into(), schemas);
        members.insert("additionalProperties".into(), Value::Bool(false));
    }
}

/// Which names a schema allows, where that is simple.
enum Names {
    All,
    Some(Vec<String>),
    /// A regular expression.
    Like(String),
}

impl Names {
    fn of(schema: &Value) -> Option<Names> {
        let members = match schema {
            Value::Bool(true) => return Some(Names::All),
            Value::Object(members) => members,
            _ => return None,
        };
        if members.get("type").is_some_and(|kind| kind != "string") {
            return None;
        }
        let words = members
            .keys()
            .filter(|key| !ANNOTATIONS.contains(&&key[..]));
        let mut words: Vec<&str> = words.map(String::as_str).collect();
        words.sort_unstable();
        match words[..] {
            [] => Some(Names::All),
            ["enum"] => {
                let names = members.get("enum")?.as_array()?.iter();
                let names = names.map(|name| name.as_str().map(String::from));
                names.collect::<Option<Vec<String>>>().map(Names::Some)
            }
            ["const"] => Some(Names::Some(vec![
                members.get("const")?.as_str()?.to_string(),
            ])),
            ["pattern"] => Some(Names::Like(members.get("pattern")?.as_str()?.to_string())),
            ["maxLength"] | ["minLength"] | ["maxLength", "minLength"] => {
                let bound = |key| members.get(key).map(Value::as_u64);
                let least = bound("minLength").unwrap_or(Some(0))?;
                let most = match bound("maxLength") {
                    Some(most) => most?.to_string(),
                    None => String::new(),
                };
                Some(Names::Like(format!("^.{{{least},{most}}}$")))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(mut schema: Value) -> Value {
        rewrite(&mut schema);
        schema
    }

    /// Breaks when a trivial form is an error, when names that are not allowed become possible, or when what is not simple is dropped.
    #[test]
    fn names_of_properties_are_rewritten() {
        for trivial in [
            json!(true),
            json!({}),
            json!({"type": "string", "title": "Key"}),
        ] {
            assert_eq!(rewritten(json!({"propertyNames": trivial})), json!({}));
        }
        let integers = json!({"type": "integer"});
        let closed =
            json!({"properties": {"a": integers, "b": integers}, "additionalProperties": false});
        let named =
            json!({"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": integers});
        assert_eq!(rewritten(named), closed);
        let referred = json!({"$defs": {"K": {"enum": ["a"]}}, "items": {"propertyNames": {"$ref": "#/$defs/K"}}});
        assert_eq!(
            rewritten(referred)["items"],
            json!({"properties": {"a": true}, "additionalProperties": false})
        );
        let short = json!({"propertyNames": {"maxLength": 3, "minLength": 1}});
        let wanted =
            json!({"patternProperties": {"^.{1,3}$": true}, "additionalProperties": false});
        assert_eq!(rewritten(short), wanted);
        for other in [
            json!({"propertyNames": {"pattern": "a", "maxLength": 2}}),
            json!({"propertyNames": {"enum": ["a"]}, "properties": {"b": true}}),
            json!({"propertyNames": {"type": "integer"}}),
            json!({"uniqueItems": true, "maxItems": 2}),
            json!({"properties": {"propertyNames": {}, "uniqueItems": false}}),
        ] {
            assert_eq!(rewritten(other.clone()), other);
        }
        assert_eq!(rewritten(json!({"uniqueItems": false})), json!({}));
        assert_eq!(
            rewritten(json!({"uniqueItems": true, "maxItems": 1})),
            json!({"maxItems": 1})
        );
    }
}
