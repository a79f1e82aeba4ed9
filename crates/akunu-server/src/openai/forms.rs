//! The forms that requests ask for besides `response_format`, as vLLM and llama.cpp name them. Each is enforced or refused.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::format::ResponseFormat;
use crate::error::ApiError;
use crate::question::{Form, Format};

/// Fields that say what an answer must look like; at most one of them.
#[derive(Default, Deserialize, JsonSchema)]
pub(crate) struct Forms {
    response_format: Option<ResponseFormat>,
    /// A schema that the answer must be valid by, as llama.cpp has it.
    json_schema: Option<Value>,
    /// A grammar, in GBNF or Lark.
    grammar: Option<String>,
    /// A schema, or one as text.
    guided_json: Option<Value>,
    guided_regex: Option<String>,
    guided_choice: Option<Vec<String>>,
    guided_grammar: Option<String>,
    structured_outputs: Option<StructuredOutputs>,
}

/// vLLM's newer way to say the same.
#[derive(Deserialize, JsonSchema)]
struct StructuredOutputs {
    json: Option<Value>,
    regex: Option<String>,
    choice: Option<Vec<String>>,
    grammar: Option<String>,
    json_object: Option<bool>,
    structural_tag: Option<Value>,
}

impl Forms {
    /// The form that is asked for.
    pub fn format(self) -> Result<Format, ApiError> {
        let mut forms = Vec::new();
        let mut add = |field, form: Option<Form>| {
            forms.extend(form.map(|form| Format::Form(field, form)));
        };
        add("json_schema", schema("json_schema", self.json_schema)?);
        add("grammar", text(self.grammar).map(Form::Grammar));
        add("guided_json", schema("guided_json", self.guided_json)?);
        add("guided_regex", text(self.guided_regex).map(Form::Regex));
        add("guided_choice", self.guided_choice.map(Form::Choice));
        add(
            "guided_grammar",
            text(self.guided_grammar).map(Form::Grammar),
        );
        if let Some(given) = self.structured_outputs {
            let field = "structured_outputs";
            if given.structural_tag.is_some_and(|tag| !tag.is_null()) {
                let message = "structured_outputs.structural_tag is not supported; use json, regex, choice or grammar";
                return Err(ApiError::bad_field(field, message));
            }
            add(field, schema(field, given.json)?);
            add(field, text(given.regex).map(Form::Regex));
            add(field, given.choice.map(Form::Choice));
            add(field, text(given.grammar).map(Form::Grammar));
            if given.json_object == Some(true) {
                forms.push(Format::any_object(field));
            }
        }
        if let Some(format) = self.response_format {
            let format = format.format("response_format")?;
            forms.extend((format != Format::Free).then_some(format));
        }
        let last = forms.pop().unwrap_or_default();
        match (&last, forms.first()) {
            (Format::Form(one, _), Some(Format::Form(other, _))) => {
                let message =
                    format!("{other} and {one} exclude each other: an answer has one form");
                Err(ApiError::bad_field(*one, message))
            }
            _ => Ok(last),
        }
    }
}

/// A text that says something: some clients always send an empty one.
fn text(given: Option<String>) -> Option<String> {
    given.filter(|text| !text.is_empty())
}

/// A schema, which may be given as a text.
fn schema(field: &'static str, given: Option<Value>) -> Result<Option<Form>, ApiError> {
    let schema = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => {
            let parsed = serde_json::from_str(&text);
            parsed.map_err(|why| {
                let message = format!("{field}: the schema is not valid JSON: {why}");
                ApiError::bad_field(field, message)
            })?
        }
        Some(schema) => schema,
    };
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(Some(Form::Schema(schema))),
        _ => {
            let message = format!("{field}: a JSON schema is an object");
            Err(ApiError::bad_field(field, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn format(given: Value) -> Result<Format, ApiError> {
        let forms: Forms = serde_json::from_value(given).expect("fields of their types");
        forms.format()
    }

    /// Breaks when a form that a client writes is taken for free text.
    #[test]
    fn every_form_is_understood() {
        let schema = json!({"type": "integer"});
        let json = || Form::Schema(schema.clone());
        let texts = || Form::Choice(vec!["a".into(), "b".into()]);
        let regex = || Form::Regex("a+".into());
        let grammar = || Form::Grammar("root ::= \"a\"".into());
        for (given, form) in [
            (json!({"json_schema": schema}), json()),
            (json!({"guided_json": schema}), json()),
            (json!({"guided_json": schema.to_string()}), json()),
            (json!({"structured_outputs": {"json": schema}}), json()),
            (json!({"guided_choice": ["a", "b"]}), texts()),
            (
                json!({"structured_outputs": {"choice": ["a", "b"]}}),
                texts(),
            ),
            (json!({"guided_regex": "a+", "grammar": ""}), regex()),
            (
                json!({"structured_outputs": {"regex": "a+"}, "response_format": {"type": "text"}}),
                regex(),
            ),
            (json!({"grammar": "root ::= \"a\""}), grammar()),
            (json!({"guided_grammar": "root ::= \"a\""}), grammar()),
            (
                json!({"structured_outputs": {"grammar": "root ::= \"a\""}}),
                grammar(),
            ),
        ] {
            let Ok(Format::Form(_, found)) = format(given.clone()) else {
                panic!("{given} is a form");
            };
            assert_eq!(found, form, "{given}");
        }
        assert_eq!(
            format(json!({"guided_json": null})).ok(),
            Some(Format::Free)
        );
    }

    /// Breaks when one of two forms is dropped without a word, or what is no form becomes free text.
    #[test]
    fn what_is_no_form_is_refused() {
        for (given, field) in [
            (
                json!({"guided_regex": "a", "guided_choice": ["a"]}),
                "guided_choice",
            ),
            (
                json!({"grammar": "a", "response_format": {"type": "json_object"}}),
                "response_format",
            ),
            (
                json!({"structured_outputs": {"structural_tag": {}}}),
                "structured_outputs",
            ),
            (json!({"guided_json": "{"}), "guided_json"),
            (json!({"json_schema": 7}), "json_schema"),
        ] {
            let refused = format(given.clone()).expect_err("no form");
            assert_eq!(refused.param.as_deref(), Some(field), "{given}");
        }
    }
}
