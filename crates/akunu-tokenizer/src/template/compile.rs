//! Source to instructions, with every operation that can grow replaced by one that pays.
//!
//! Three things are done to what `minijinja` would run:
//!
//! 1. Text between the tags becomes an expression, `{{ "text" }}`: expressions go through the
//!    formatter, where they are paid for.
//! 2. A literal that is multiplied by a literal is refused: `minijinja` would compute it while
//!    compiling, before there is a budget.
//! 3. Operators on values, and the methods of `loop`, call the functions of [`super::operators`].

use super::budget::refused;
use super::operators;
use minijinja::Error;
use minijinja::machinery::{
    CodeGenerator, Instruction, Instructions, Span, Token, parse, tokenize,
};
use minijinja::syntax::SyntaxConfig;
use regex::Regex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Tokens that one tag may have. The longest tag in use has about 250.
const MAX_TOKENS_IN_TAG: usize = 1000;

/// `elif`s that a template may have. The most in use are 20.
const MAX_ELIFS: usize = 200;

/// A template that is ready to run.
pub(super) struct Compiled<'s> {
    pub instructions: Instructions<'s>,
    pub blocks: BTreeMap<&'s str, Instructions<'s>>,
}

/// `{% generation %}` marks the assistant's text for training. It says nothing to us.
static GENERATION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}").ok());

/// Replaces the tags of `transformers`' own extension by an `if` that is always true.
fn without_generation_tags(source: &str) -> Cow<'_, str> {
    let Some(tags) = GENERATION.as_ref() else {
        return source.into();
    };
    tags.replace_all(source, |tag: &regex::Captures<'_>| {
        let word = if tag.get(2).is_some() {
            "endif"
        } else {
            "if true"
        };
        format!("{{%{} {word} {}%}}", &tag[1], &tag[3])
    })
}

/// The template as tags only, with white space taken off as the tags ask for.
pub(super) fn rewrite(source: &str) -> Result<String, Error> {
    let source = without_generation_tags(source);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    let mut tokens = Vec::new();
    for token in tokenize(&source, false, syntax) {
        tokens.push(token?);
    }
    refuse_long_chains(&tokens)?;
    refuse_computed_literals(&tokens)?;
    let mut rewritten = String::with_capacity(source.len() * 2);
    let mut inside = 0;
    for (token, span) in &tokens {
        let mut close = |tag: &str| {
            let code = source.get(inside..span.start_offset as usize);
            rewritten.push_str(code.unwrap_or_default());
            rewritten.push_str(tag);
        };
        match token {
            Token::VariableEnd => close(" }}"),
            Token::BlockEnd => close(" %}"),
            Token::VariableStart => rewritten.push_str("{{ "),
            Token::BlockStart => rewritten.push_str("{% "),
            Token::TemplateData(text) => push_literal(&mut rewritten, text),
            _ => continue,
        }
        inside = span.end_offset as usize;
    }
    Ok(rewritten)
}

/// `{{ "text" }}`
fn push_literal(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    out.push_str("{{ \"");
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push_str("\" }}");
}

/// Compiles a rewritten template.
pub(super) fn compile(rewritten: &str) -> Result<Compiled<'_>, Error> {
    let name = "chat template";
    let tree = parse(rewritten, name, SyntaxConfig::default())?;
    let mut generator = CodeGenerator::new(name, rewritten);
    generator.compile_stmt(&tree);
    let (mut instructions, mut blocks) = generator.finish();
    guard(&mut instructions);
    blocks.values_mut().for_each(guard);
    Ok(Compiled {
        instructions,
        blocks,
    })
}

/// Refuses tags with very many tokens, and very many `elif`s: `minijinja` compiles `1 + 1 + 1 …` and
/// `elif … elif …` by recursion, without a limit.
fn refuse_long_chains(tokens: &[(Token<'_>, Span)]) -> Result<(), Error> {
    let mut n_in_tag = 0;
    let mut n_elifs = 0;
    for (token, _) in tokens {
        match token {
            Token::VariableStart | Token::BlockStart => n_in_tag = 0,
            Token::Ident("elif") => n_elifs += 1,
            _ => n_in_tag += 1,
        }
        if n_in_tag > MAX_TOKENS_IN_TAG || n_elifs > MAX_ELIFS {
            return Err(refused(
                "the template has an expression or an `elif` chain that is too long",
            ));
        }
    }
    Ok(())
}

/// Looks for `'text' * 9`, `[…] * 9` and `9 * (…)`.
fn refuse_computed_literals(tokens: &[(Token<'_>, Span)]) -> Result<(), Error> {
    for window in tokens.windows(3) {
        let [(before, _), (operator, _), (after, _)] = window else {
            continue;
        };
        let is_text = |token: &Token<'_>| matches!(token, Token::Str(_) | Token::String(_));
        let is_number =
            |token: &Token<'_>| matches!(token, Token::Int(_) | Token::Int128(_) | Token::Float(_));
        let closes = matches!(before, Token::BracketClose | Token::ParenClose);
        let opens = matches!(after, Token::BracketOpen | Token::ParenOpen);
        let repeats = (is_text(before) || closes) && (is_number(after) || opens)
            || (is_number(before) || closes) && (is_text(after) || opens);
        if matches!(operator, Token::Mul) && repeats {
            return Err(refused("the template repeats a literal"));
        }
    }
    Ok(())
}

/// Replaces operators by calls. Each takes as many values from the stack as the call has arguments.
fn guard(instructions: &mut Instructions<'_>) {
    for at in 0.. {
        let Some(instruction) = instructions.get_mut(at) else {
            break;
        };
        if let Some((name, n_arguments)) = replacement(instruction) {
            *instruction = Instruction::CallFunction(name, n_arguments);
        }
    }
}

/// The function for an operator, and its number of arguments; `None` counts them on the stack.
///
/// A list literal of more than 65,535 elements stays as it is: it is no larger than the source.
fn replacement(instruction: &Instruction<'_>) -> Option<(&'static str, Option<u16>)> {
    let many = |n: usize| u16::try_from(n).ok().map(Some);
    Some(match instruction {
        Instruction::Add => (operators::ADD, Some(2)),
        Instruction::Mul => (operators::MUL, Some(2)),
        Instruction::StringConcat => (operators::CONCAT, Some(2)),
        Instruction::Eq => (operators::EQ, Some(2)),
        Instruction::Ne => (operators::NE, Some(2)),
        Instruction::In => (operators::IN, Some(2)),
        Instruction::Slice => (operators::SLICE, Some(4)),
        Instruction::BuildList(None) => (operators::LIST, None),
        Instruction::BuildTuple(None) => (operators::TUPLE, None),
        Instruction::BuildList(Some(n)) => (operators::LIST, many(*n)?),
        Instruction::BuildTuple(Some(n)) => (operators::TUPLE, many(*n)?),
        Instruction::BuildMap(n) => (operators::MAP, many(n.checked_mul(2)?)?),
        // What a method is called on is its first argument.
        Instruction::CallMethod("cycle", n) => (operators::CYCLE, *n),
        Instruction::CallMethod("changed", n) => (operators::CHANGED, *n),
        _ => return None,
    })
}
