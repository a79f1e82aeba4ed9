//! The table of styles. The order matters where two could read the same text: the first wins.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::style::Element::{Arguments, Id, Mark, Name, Object, OneOf, Space, Text};
use super::style::{Element, Fields, Notation, Place, Style, Tags};

const USUAL: Element = Object(Fields {
    name: "name",
    arguments: "arguments",
    id: None,
});
const LLAMA: Element = Object(Fields {
    name: "name",
    arguments: "parameters",
    id: None,
});
const COMMAND: Element = Object(Fields {
    name: "tool_name",
    arguments: "parameters",
    id: Some(("tool_call_id", "^[0-9]{1,3}$")),
});
const JSON: Element = Arguments(Notation::Json);
const PYTHON: Element = Arguments(Notation::Python);
/// `<function=NAME><parameter=KEY>…</parameter></function>`
const FUNCTION: &[Element] = &[
    Text("<function="),
    Name,
    Text(">\n"),
    Arguments(Notation::Tagged(Tags {
        before_name: "<parameter=",
        after_name: [">"; 2],
        padding: "\n",
        after_value: "</parameter>",
    })),
    Space,
    Text("</function>"),
];
/// `<｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">…</｜DSML｜parameter></｜DSML｜invoke>`
const DSML: &[Element] = &[
    Text("<｜DSML｜invoke name=\""),
    Name,
    Text("\">\n"),
    Arguments(Notation::Tagged(Tags {
        before_name: "<｜DSML｜parameter name=\"",
        after_name: ["\" string=\"true\">", "\" string=\"false\">"],
        padding: "",
        after_value: "</｜DSML｜parameter>",
    })),
    Space,
    Text("</｜DSML｜invoke>"),
];
const COMMA: &[Element] = &[Text(","), Space];
const SPACE: &[Element] = &[Space];
/// What models write between objects that stand by themselves.
const SEPARATOR: &[Element] = &[OneOf(&[&[Text(";")], &[Text(",")], SPACE]), Space];
/// The word after a fence.
const LANGUAGE: Element = OneOf(&[&[Text("json")], &[Text("tool_call")], &[Text("xml")], &[]]);

const STYLE: Style = Style {
    name: "",
    place: Place::Anywhere,
    lead: &[],
    open: &[],
    call: &[],
    between: SPACE,
    close: &[],
};

/// How calls are described to a model whose template knows of none.
pub(crate) static TOLD: &Style = &PLAIN;

const PLAIN: Style = Style {
    name: "plain",
    place: Place::Line,
    call: &[USUAL],
    between: SEPARATOR,
    ..STYLE
};

/// All styles.
pub(crate) static STYLES: &[Style] = &[
    Style {
        name: "hermes",
        call: &[
            Mark("<tool_call>"),
            Space,
            USUAL,
            Space,
            Mark("</tool_call>"),
        ],
        ..STYLE
    },
    Style {
        name: "qwen3-coder",
        call: &[
            Mark("<tool_call>"),
            Space,
            OneOf(&[FUNCTION]),
            Space,
            Mark("</tool_call>"),
        ],
        ..STYLE
    },
    Style {
        name: "seed-oss",
        call: &[
            Mark("<seed:tool_call>"),
            Space,
            OneOf(&[FUNCTION]),
            Space,
            Mark("</seed:tool_call>"),
        ],
        ..STYLE
    },
    Style {
        name: "glm-4",
        call: &[
            Mark("<tool_call>"),
            Name,
            Space,
            Arguments(Notation::Tagged(Tags {
                before_name: "<arg_key>",
                after_name: ["</arg_key>\n<arg_value>"; 2],
                padding: "",
                after_value: "</arg_value>",
            })),
            Space,
            Mark("</tool_call>"),
        ],
        ..STYLE
    },
    Style {
        name: "mistral list",
        open: &[Mark("[TOOL_CALLS]"), Space, Text("[")],
        call: &[Object(Fields {
            name: "name",
            arguments: "arguments",
            id: Some(("id", "^[A-Za-z0-9]{9}$")),
        })],
        between: COMMA,
        close: &[Text("]")],
        ..STYLE
    },
    Style {
        name: "mistral with ids",
        call: &[
            Mark("[TOOL_CALLS]"),
            Name,
            Mark("[CALL_ID]"),
            Id,
            Mark("[ARGS]"),
            JSON,
        ],
        ..STYLE
    },
    Style {
        name: "mistral with arguments",
        call: &[Mark("[TOOL_CALLS]"), Name, Mark("[ARGS]"), JSON],
        ..STYLE
    },
    Style {
        name: "mistral",
        call: &[Mark("[TOOL_CALLS]"), Name, JSON],
        ..STYLE
    },
    Style {
        name: "deepseek-v3",
        open: &[Mark("<｜tool▁calls▁begin｜>")],
        call: &[
            Mark("<｜tool▁call▁begin｜>"),
            Text("function"),
            Mark("<｜tool▁sep｜>"),
            Name,
            Text("\n```json\n"),
            JSON,
            Text("\n```"),
            Mark("<｜tool▁call▁end｜>"),
        ],
        close: &[Mark("<｜tool▁calls▁end｜>")],
        ..STYLE
    },
    Style {
        name: "deepseek-v3.1",
        open: &[Mark("<｜tool▁calls▁begin｜>")],
        call: &[
            Mark("<｜tool▁call▁begin｜>"),
            Name,
            Mark("<｜tool▁sep｜>"),
            JSON,
            Mark("<｜tool▁call▁end｜>"),
        ],
        close: &[Mark("<｜tool▁calls▁end｜>")],
        ..STYLE
    },
    Style {
        name: "deepseek-v3.2",
        open: &[Text("<｜DSML｜function_calls>"), Space],
        call: DSML,
        close: &[Space, Text("</｜DSML｜function_calls>")],
        ..STYLE
    },
    Style {
        name: "deepseek-v4",
        open: &[Text("<｜DSML｜tool_calls>"), Space],
        call: DSML,
        close: &[Space, Text("</｜DSML｜tool_calls>")],
        ..STYLE
    },
    Style {
        name: "gpt-oss",
        lead: &[Mark("<|channel|>"), Text("commentary ")],
        call: &[
            Text("to=functions."),
            Name,
            OneOf(&[
                &[Text(" "), Mark("<|constrain|>"), Text("json")],
                &[Mark("<|channel|>"), Text("commentary json")],
                &[
                    Mark("<|channel|>"),
                    Text("commentary "),
                    Mark("<|constrain|>"),
                    Text("json"),
                ],
                &[Text(" json")],
                &[],
            ]),
            Mark("<|message|>"),
            JSON,
            Mark("<|call|>"),
        ],
        ..STYLE
    },
    Style {
        name: "gemma-4",
        call: &[
            Mark("<|tool_call>"),
            Text("call:"),
            Name,
            Arguments(Notation::Quoted("<|\"|>")),
            Mark("<tool_call|>"),
        ],
        ..STYLE
    },
    Style {
        name: "function-gemma",
        call: &[
            Mark("<start_function_call>"),
            Text("call:"),
            Name,
            Arguments(Notation::Quoted("<escape>")),
            Mark("<end_function_call>"),
        ],
        ..STYLE
    },
    Style {
        name: "phi-4, granite-3",
        open: &[Mark("<|tool_call|>"), Space, Text("[")],
        call: &[USUAL],
        between: COMMA,
        close: &[Text("]"), OneOf(&[&[Mark("<|/tool_call|>")], &[]])],
        ..STYLE
    },
    Style {
        name: "lfm2",
        open: &[Mark("<|tool_call_start|>"), Text("[")],
        call: &[Name, PYTHON],
        between: COMMA,
        close: &[Text("]"), Mark("<|tool_call_end|>")],
        ..STYLE
    },
    Style {
        name: "lfm2 as JSON",
        open: &[Mark("<|tool_call_start|>"), Text("[")],
        call: &[USUAL],
        between: COMMA,
        close: &[Text("]"), Mark("<|tool_call_end|>")],
        ..STYLE
    },
    Style {
        name: "command-r7b",
        open: &[Mark("<|START_ACTION|>"), Space, Text("["), Space],
        call: &[COMMAND],
        between: COMMA,
        close: &[Space, Text("]"), Mark("<|END_ACTION|>")],
        ..STYLE
    },
    Style {
        name: "command-r",
        open: &[
            Text("Action:"),
            Space,
            Text("```json"),
            Space,
            Text("["),
            Space,
        ],
        call: &[COMMAND],
        between: COMMA,
        close: &[Space, Text("]"), Space, Text("```")],
        ..STYLE
    },
    Style {
        name: "kimi-k2",
        open: &[Mark("<|tool_calls_section_begin|>")],
        call: &[
            Mark("<|tool_call_begin|>"),
            Text("functions."),
            Name,
            Text(":"),
            Id,
            Mark("<|tool_call_argument_begin|>"),
            JSON,
            Mark("<|tool_call_end|>"),
        ],
        close: &[Mark("<|tool_calls_section_end|>")],
        ..STYLE
    },
    Style {
        name: "minimax-m2",
        open: &[Mark("<minimax:tool_call>"), Space],
        call: &[
            Text("<invoke name=\""),
            Name,
            Text("\">\n"),
            Arguments(Notation::Tagged(Tags {
                before_name: "<parameter name=\"",
                after_name: ["\">"; 2],
                padding: "",
                after_value: "</parameter>",
            })),
            Space,
            Text("</invoke>"),
        ],
        close: &[Space, Mark("</minimax:tool_call>")],
        ..STYLE
    },
    Style {
        name: "nemotron",
        open: &[Mark("<TOOLCALL>"), Space, Text("[")],
        call: &[USUAL],
        between: COMMA,
        close: &[Text("]"), Mark("</TOOLCALL>")],
        ..STYLE
    },
    Style {
        name: "llama-4",
        open: &[Mark("<|python_start|>"), Text("[")],
        call: &[Name, PYTHON],
        between: COMMA,
        close: &[Text("]"), Mark("<|python_end|>")],
        ..STYLE
    },
    Style {
        name: "llama-3 after a mark",
        open: &[Mark("<|python_tag|>")],
        call: &[LLAMA],
        between: SEPARATOR,
        ..STYLE
    },
    Style {
        name: "qwen3-coder without a mark",
        place: Place::Line,
        call: FUNCTION,
        ..STYLE
    },
    Style {
        name: "a list in tags",
        place: Place::Line,
        open: &[Text("<tools>"), Space],
        call: &[USUAL],
        between: SEPARATOR,
        close: &[Space, Text("</tools>")],
        ..STYLE
    },
    Style {
        name: "a call in tags",
        place: Place::Line,
        call: &[
            Text("<function_call>"),
            Space,
            USUAL,
            Space,
            Text("</function_call>"),
        ],
        ..STYLE
    },
    Style {
        name: "fenced",
        place: Place::Line,
        open: &[Text("```"), LANGUAGE, Space],
        call: &[USUAL],
        between: SEPARATOR,
        close: &[Space, Text("```")],
        ..STYLE
    },
    Style {
        name: "fenced list",
        place: Place::Line,
        open: &[Text("```"), LANGUAGE, Space, Text("[")],
        call: &[USUAL],
        between: COMMA,
        close: &[Text("]"), Space, Text("```")],
        ..STYLE
    },
    Style {
        name: "llama-3",
        place: Place::Line,
        call: &[LLAMA],
        between: SEPARATOR,
        ..STYLE
    },
    PLAIN,
    Style {
        name: "plain list",
        place: Place::Line,
        open: &[Text("["), Space],
        call: &[USUAL],
        between: COMMA,
        close: &[Space, Text("]")],
        ..STYLE
    },
    Style {
        name: "python",
        place: Place::Start,
        open: &[Text("[")],
        call: &[Name, PYTHON],
        between: COMMA,
        close: &[Text("]")],
        ..STYLE
    },
];

/// What surrounds a thought: the text that begins it, and the one that ends it.
pub(crate) const THOUGHTS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|channel>thought", "<channel|>"),
];

/// What stands between the parts of an answer, and is none of it; longer ones first.
pub(crate) const SILENT: [&str; 9] = [
    "<|channel|>commentary<|message|>",
    "<|channel|>final<|message|>",
    "<|channel|>commentary",
    "<|start|>assistant",
    "<|end|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|START_TEXT|>",
    "<|END_TEXT|>",
];

/// The texts of control tokens that mean something in an answer. The engine leaves control tokens out of the text.
pub(crate) fn marks() -> &'static BTreeSet<&'static str> {
    static MARKS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
        let mut marks: BTreeSet<&str> = STYLES.iter().flat_map(Style::marks).collect();
        marks.extend(THOUGHTS.iter().flat_map(|(begin, end)| [*begin, *end]));
        marks.extend(SILENT);
        // Those that are several tokens in the texts above.
        marks.extend(["<|start|>", "<|channel>", "<|message|>", "<|constrain|>"]);
        marks
    });
    &MARKS
}
