use super::*;

fn tools() -> Vec<String> {
    vec!["weather".into(), "time".into()]
}

fn called(name: &str, arguments: &str) -> Part {
    Part::Call(ToolCall {
        id: String::new(),
        name: name.into(),
        arguments: arguments.into(),
    })
}

/// The parts of an answer that comes in pieces of `size` bytes, with neighbours of one kind joined.
fn read_in(text: &str, size: usize, mut reader: Reader) -> Vec<Part> {
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let mut parts: Vec<Part> = Vec::new();
    let pieces: Vec<String> = chars.chunks(size).map(|piece| piece.concat()).collect();
    let mut all: Vec<Part> = pieces.iter().flat_map(|piece| reader.push(piece)).collect();
    all.extend(reader.finish());
    for part in all {
        match (parts.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
            (Some(Part::Reasoning(before)), Part::Reasoning(text)) => before.push_str(&text),
            (_, part) => parts.push(part),
        }
    }
    parts
}

/// Breaks when a mark is missed because it comes in pieces, or when a false start is lost.
#[track_caller]
fn expect(text: &str, with_tools: bool, wanted: &[Part]) {
    for size in [1, 2, 3, 7, 1000] {
        let names = if with_tools { tools() } else { Vec::new() };
        let found = read_in(text, size, Reader::new(names, false));
        assert_eq!(found, wanted, "{text:?} in pieces of {size}");
    }
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

fn reasoning(text: &str) -> Part {
    Part::Reasoning(text.into())
}

#[test]
fn thoughts_are_split_off() {
    expect(
        "<think>\nHm, 2 < 3.\n</think>\n\nYes.",
        false,
        &[reasoning("Hm, 2 < 3."), text("Yes.")],
    );
    expect("<thin ice> is text", false, &[text("<thin ice> is text")]);
    expect("a <think> later", false, &[text("a <think> later")]);
    expect("<think>never ends", false, &[reasoning("never ends")]);
    let in_thought = read_in("so far</think>Yes", 2, Reader::new(Vec::new(), true));
    assert_eq!(in_thought, [reasoning("so far"), text("Yes")]);
}

#[test]
fn calls_of_hermes_and_qwen() {
    let call =
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    let wanted = called("weather", r#"{"city":"Rome"}"#);
    expect(call, true, std::slice::from_ref(&wanted));
    expect(
        &format!("I will look.\n{call}\n{call}"),
        true,
        &[text("I will look."), wanted.clone(), wanted.clone()],
    );
    expect(
        &format!("<think>x</think>\n{call}"),
        true,
        &[reasoning("x"), wanted],
    );
    expect(call, false, &[text(call)]);
    let unknown = "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>";
    expect(unknown, true, &[text(unknown)]);
    expect(
        "<tool_call>{\"name\": \"time\", \"arguments\": {}}",
        true,
        &[called("time", "{}")],
    );
}

#[test]
fn calls_of_llama_mistral_and_others() {
    let wanted = [called("weather", r#"{"city":"Rome"}"#)];
    let json = r#"{"name": "weather", "parameters": {"city": "Rome"}}"#;
    expect(json, true, &wanted);
    expect(&format!("<|python_tag|>{json}"), true, &wanted);
    expect(&format!("[TOOL_CALLS][{json}]"), true, &wanted);
    expect(
        "[TOOL_CALLS]weather[ARGS]{\"city\": \"Rome\"}",
        true,
        &wanted,
    );
    let openai = r#"{"type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"}}"#;
    expect(openai, true, &wanted);
    let time = r#"{"name": "time"}"#;
    expect(
        &format!("{json}; {time}"),
        true,
        &[wanted[0].clone(), called("time", "{}")],
    );
}

#[test]
fn json_that_is_no_call_is_text() {
    for answer in [
        r#"{"name": "Rome", "people": 3000000}"#,
        "[1, 2, 3]",
        "{not json} at all",
        "[see above]",
        r#"{"name": "weather", "arguments": {"city": "#,
    ] {
        expect(answer, true, &[text(answer)]);
    }
}

/// Breaks when an answer that looks like a call is held back, or read again and again, without end.
#[test]
fn what_is_too_long_to_be_a_call_is_text() {
    let mut reader = Reader::new(tools(), false);
    let mut shown = 0;
    for piece in std::iter::once("{\"a\": [").chain(std::iter::repeat_n("[1],", 40_000)) {
        for part in reader.push(piece) {
            let Part::Text(text) = part else {
                panic!("no call");
            };
            shown += text.len();
        }
        assert!(reader.held.len() <= MAX_CALL_BYTES);
    }
    assert!(shown > 100_000);
}
