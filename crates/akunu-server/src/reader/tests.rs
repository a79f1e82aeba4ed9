use super::*;

fn tools() -> Arc<[Tool]> {
    let tool = |name: &str| Tool {
        name: name.into(),
        description: None,
        parameters: serde_json::json!({"properties": {"city": {"type": "string"}}}),
        strict: false,
    };
    vec![tool("weather"), tool("time")].into()
}

fn called(name: &str, arguments: &str) -> Part {
    Part::Call(ToolCall {
        name: name.into(),
        arguments: arguments.into(),
        is_whole: true,
        ..ToolCall::default()
    })
}

fn cut(name: &str, arguments: &str) -> Part {
    Part::Call(ToolCall {
        name: name.into(),
        arguments: arguments.into(),
        ..ToolCall::default()
    })
}

fn reader() -> Reader {
    Reader::new(tools(), usize::MAX, None)
}

/// The parts of an answer that comes in pieces of `size` bytes, with neighbours of one kind joined.
fn read_in(text: &str, size: usize, mut reader: Reader) -> Vec<Part> {
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let mut parts: Vec<Part> = Vec::new();
    let pieces: Vec<String> = chars.chunks(size).map(|piece| piece.concat()).collect();
    let mut all: Vec<Part> = pieces.iter().flat_map(|piece| reader.push(piece)).collect();
    all.extend(reader.finish());
    let mut told: Option<ToolCall> = None;
    for part in all {
        match (parts.last_mut(), part) {
            (_, Part::Begun(call)) => assert_eq!(told.replace(call), None, "one call at a time"),
            (_, Part::Arguments(more)) => told.as_mut().expect("a call").arguments.push_str(&more),
            (_, Part::Call(call)) => {
                let told = told.take().expect("a call has begun");
                let key =
                    |call: &ToolCall| [&call.id, &call.name, &call.arguments].map(String::clone);
                assert_eq!(key(&told), key(&call), "the parts are the whole");
                parts.push(Part::Call(call));
            }
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
        let tools = if with_tools { tools() } else { Arc::from([]) };
        let found = read_in(text, size, Reader::new(tools, usize::MAX, None));
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
    let in_thought = read_in(
        "so far</think>Yes",
        2,
        Reader::new(Arc::from([]), 0, Some("</think>")),
    );
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
        "```python\nprint(1)\n```\nThat is it.",
        "```json\n{\"city\": \"Rome\"}\n```",
        r#"{"name": "weather""#,
        "`time` is a tool, and so is [weather]",
    ] {
        expect(answer, true, &[text(answer)]);
    }
}

/// Breaks when an answer that looks like a call is held back, or read again and again, without end.
#[test]
fn what_is_no_call_is_not_held() {
    let mut reader = reader();
    let mut shown = 0;
    for piece in std::iter::once("{\"a\": [").chain(std::iter::repeat_n("[1],", 40_000)) {
        for part in reader.push(piece) {
            let Part::Text(text) = part else {
                panic!("no call");
            };
            shown += text.len();
        }
        assert!(reader.held.len() <= 100);
    }
    assert!(shown > 100_000);
}

/// Breaks when a call without an end is kept as a whole, or told as if it had come to its end.
#[test]
fn a_call_that_is_too_long_is_cut() {
    let mut reader = reader();
    let begin = "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"";
    reader.push(begin);
    let piece = "x".repeat(16 << 10);
    let ended = (0..20)
        .flat_map(|_| reader.push(&piece))
        .find(|part| matches!(part, Part::Call(_)));
    let Some(Part::Call(call)) = ended else {
        panic!("it is cut");
    };
    assert!(!call.is_whole && call.arguments.len() > MAX_CALL_BYTES / 2);
    assert!(reader.held.len() <= MAX_CALL_BYTES);
}

/// What was cut is told as far as it came, with the members that are complete as an object.
#[test]
fn a_cut_call_is_told() {
    let begin = "<tool_call>{\"name\": \"weather\", \"arguments\": {\"days\": 3, \"city\": \"Ro";
    expect(begin, true, &[cut("weather", r#"{"days":3,"city":"Ro"#)]);
    let mut reader = reader();
    let mut parts = reader.push(begin);
    parts.extend(reader.finish());
    let Some(Part::Call(call)) = parts.pop() else {
        panic!("a call");
    };
    assert_eq!(
        serde_json::Value::Object(call.object()),
        serde_json::json!({"days": 3})
    );
    expect("<tool_call>{\"name\": \"time\", ", true, &[cut("time", "")]);
    let name = "<tool_call>{\"name\": \"weat";
    expect(name, true, &[text(name)]);
}

/// Breaks when more calls are told than the request allows.
#[test]
fn only_so_many_calls_are_told() {
    let call = "<tool_call>{\"name\": \"time\", \"arguments\": {}}</tool_call>";
    let found = read_in(&call.repeat(3), 5, Reader::new(tools(), 1, None));
    assert_eq!(found, [called("time", "{}")]);
}

/// The same call in every style. Breaks when a style of the table is not read, or only when it comes in one piece.
#[test]
fn every_style_is_read() {
    let wanted = [called("weather", r#"{"city":"Rome","days":3}"#)];
    let json = r#"{"city": "Rome", "days": 3}"#;
    let usual = format!(r#"{{"name": "weather", "arguments": {json}}}"#);
    let function = "<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>";
    let dsml = "<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Rome</｜DSML｜parameter>\n\
                <｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>";
    let invoke = "<invoke name=\"weather\">\n<parameter name=\"city\">Rome</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>";
    let command =
        format!(r#"{{"tool_call_id": "0", "tool_name": "weather", "parameters": {json}}}"#);
    let python = r#"weather(city="Rome", days=3)"#;
    for written in [
        format!("<tool_call>\n{usual}\n</tool_call>"),
        format!("<tool_call>\n{function}\n</tool_call>"),
        function.to_string(),
        format!("<seed:tool_call>\n{function}\n</seed:tool_call>"),
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n\
         <arg_value>3</arg_value>\n</tool_call>".to_string(),
        format!("[TOOL_CALLS] [{usual}]"),
        format!("[TOOL_CALLS]weather[CALL_ID]abc123def[ARGS]{json}"),
        format!("[TOOL_CALLS]weather[ARGS]{json}"),
        format!("[TOOL_CALLS]weather{json}"),
        format!("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{json}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        format!("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{json}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        format!("<｜DSML｜function_calls>\n{dsml}\n</｜DSML｜function_calls>"),
        format!("<｜DSML｜tool_calls>\n{dsml}\n</｜DSML｜tool_calls>"),
        format!("<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{json}"),
        format!("<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{json}<|call|>"),
        "<|tool_call>call:weather{city:<|\"|>Rome<|\"|>,days:3}<tool_call|>".to_string(),
        "<start_function_call>call:weather{city:<escape>Rome<escape>,days:3}<end_function_call>".to_string(),
        format!("<|tool_call|>[{usual}]<|/tool_call|>"),
        format!("<|tool_call|>[{usual}]"),
        format!("<|tool_call_start|>[{python}]<|tool_call_end|>"),
        format!("<|tool_call_start|>[{usual}]<|tool_call_end|>"),
        format!("<|START_ACTION|>[\n    {command}\n]<|END_ACTION|>"),
        format!("Action:\n```json\n[\n    {command}\n]\n```"),
        format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{json}<|tool_call_end|>\
             <|tool_calls_section_end|>"
        ),
        format!("<minimax:tool_call>\n{invoke}\n</minimax:tool_call>"),
        format!("<TOOLCALL>[{usual}]</TOOLCALL>"),
        format!("<|python_start|>[{python}]<|python_end|>"),
        format!(r#"<|python_tag|>{{"name": "weather", "parameters": {json}}}"#),
        format!("<tools>\n{usual}\n</tools>"),
        format!("<function_call>\n{usual}\n</function_call>"),
        format!("```json\n{usual}\n```"),
        format!("```\n{usual}\n```"),
        format!("```json\n[{usual}]\n```"),
        format!(r#"{{"name": "weather", "parameters": {json}}}"#),
        usual.clone(),
        format!("[{usual}]"),
        format!("[{python}]"),
        "[weather(city='Rome', days=3)]".to_string(),
    ] {
        expect(&written, true, &wanted);
        if !written.starts_with(['[', '<']) || written.contains("tool_call") {
            let after = format!("I look.\n{written}");
            expect(&after, true, &[text("I look."), wanted[0].clone()]);
        }
    }
}

/// What Qwen2.5-Coder writes: a sentence, a fenced call, and a sentence.
#[test]
fn text_around_a_fenced_call_stays() {
    let call = "```json\n{\n  \"name\": \"time\",\n  \"arguments\": {}\n}\n```";
    let wanted = [text("Sure:"), called("time", "{}"), text("Done.")];
    expect(&format!("Sure:\n\n{call}\n\nDone."), true, &wanted);
}

/// Values whose types only the schema knows, and characters that JSON escapes.
#[test]
fn values_in_tags_have_the_types_of_the_schema() {
    let call = |city: &str, other: &str| {
        format!(
            "<function=weather>\n<parameter=city>\n{city}\n</parameter>\n<parameter=x>\n{other}\n</parameter>\n</function>"
        )
    };
    expect(
        &call("12", "[1, {\"a\": null}]"),
        true,
        &[called("weather", r#"{"city":"12","x":[1,{"a":null}]}"#)],
    );
    expect(
        &call("a \"b\"\n\n\\c</par", "no json"),
        true,
        &[called(
            "weather",
            r#"{"city":"a \"b\"\n\n\\c</par","x":"no json"}"#,
        )],
    );
}

#[test]
fn values_of_python_become_json() {
    let python = r#"[weather(city='it\'s "here"', a=[True, None, -1.5], b={'k': {}}), time()]"#;
    let wanted = r#"{"city":"it's \"here\"","a":[true,null,-1.5],"b":{"k":{}}}"#;
    expect(
        python,
        true,
        &[called("weather", wanted), called("time", "{}")],
    );
}

/// The channels of gpt-oss.
#[test]
fn channels_are_thoughts_text_and_calls() {
    let answer = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>\
                  <|start|>assistant<|channel|>commentary to=functions.time <|constrain|>json<|message|>{}";
    expect(
        answer,
        true,
        &[reasoning("Hm."), text("I look."), called("time", "{}")],
    );
    let answer =
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.";
    expect(answer, false, &[reasoning("Hm."), text("Yes.")]);
}
