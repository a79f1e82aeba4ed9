//! Grammars as llama.cpp writes them: which texts they take, character by character.

use akunu_engine::{EngineError, Grammar, Model};

use super::talk::tiny;

/// Whether a grammar takes a text as a whole; the tokens of the small model are bytes.
fn takes(grammar: &Grammar, text: &str) -> bool {
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let mut walk = grammar.walk();
    let taken = walk.take(&tokens).expect("within limits");
    taken == tokens.len() && walk.is_complete().expect("within limits")
}

fn check(model: &Model, grammar: &str, right: &[&str], wrong: &[&str]) {
    let compiled = Grammar::context_free(model, grammar).expect(grammar);
    for text in right {
        assert!(takes(&compiled, text), "{text:?} is by {grammar}");
    }
    for text in wrong {
        assert!(!takes(&compiled, text), "{text:?} is not by {grammar}");
    }
}

/// Fails when a part of the syntax is read wrongly. Without recursion every text counts character by character: also
/// where a piece of one alternative begins like another.
#[test]
fn grammars_without_recursion() {
    let model = tiny();
    check(
        &model,
        "root ::= \"yes\" | \"no\"",
        &["yes", "no"],
        &["", "ye", "yesno", "Yes"],
    );
    check(
        &model,
        "# a list\nroot ::= (\"- \" item \"\\n\")+ # of items\nitem ::=\n  [^\\r\\n\\x0b]{1,5}\n",
        &["- a\n", "- milk\n- eggs\n"],
        &["", "- \n", "- aaaaaa\n", "- a"],
    );
    check(
        &model,
        "root ::= \"ab\" | [a-z] \"bx\"",
        &["ab", "abx", "zbx"],
        &["a", "abb"],
    );
    check(
        &model,
        "root ::= [a-] [^a-z] [\\]\\\\] \"\\\"\\u0041\" .?",
        &["aA]\"A", "-0\\\"Az"],
        &["bA]\"A", "aa]\"A", "aA]\"A\n"],
    );
    check(
        &model,
        "root ::= a{2} b{1,} c{0,2} ( | \"d\") e{,1}\na::=\"a\"\nb ::= \"b\"\n\nc ::= \"c\"\ne ::= \"/\"",
        &["aab", "aabbbccd/", "aabc/"],
        &["ab", "aa", "aabccc", "aabdd"],
    );
    check(
        &model,
        "root ::= first |\n  \"b\"\n  | \"c\"\nfirst ::= (\n  \"a\"\n)\n",
        &["a", "b", "c"],
        &["ab"],
    );
}

/// Rules that lead back to themselves: nesting, and what is written around it.
#[test]
fn grammars_with_recursion() {
    let model = tiny();
    check(
        &model,
        r#"root   ::= (expr "=" ws term "\n")+
expr   ::= term ([-+*/] ws term)*
term   ::= number | "(" ws expr ")" ws
number ::= [0-9]+ ws
ws     ::= [ \t]*
"#,
        &["1 + 2 = 3\n", "(1+(2*3))=7\n", "4=4\n5 = 5\n"],
        &["1 + = 3\n", "1 + 2\n", "(1=1\n"],
    );
    check(
        &model,
        r#"root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"#,
        &[
            "{}",
            r#"{"a": [1, -2.5e3, "x\n"], "b": {"c": null}}"#,
            "{ \"a\":true\n}",
        ],
        &["[]", "{\"a\"}", "{\"a\": 01}", "{\"a\": nul}"],
    );
}

/// A grammar with a mistake is an error that says where; the other syntax is still read.
#[test]
fn what_is_wrong_is_told_with_its_line() {
    let model = tiny();
    let error = Grammar::context_free(&model, "root ::= item\nitem ::= [a-").expect_err("no end");
    let told = EngineError::from(error).to_string();
    assert_eq!(
        told,
        "the GBNF grammar cannot be used: line 2: the class of characters has no end"
    );
    check(&model, "start: \"a\" /[0-9]+/", &["a1", "a12"], &["a"]);
}
