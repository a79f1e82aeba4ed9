//! Finds the declarations of a flat source.

use super::lexer::{TokenKind, Tokens, lex};
use super::parameters::{Substitution, read_parameters};
use super::{FunctionConstant, Kernel, ReadError, Unit};
use std::ops::Range;

/// Reads every kernel entry point and function constant of a flat source.
///
/// # Errors
/// When a kernel's declaration cannot be understood, two kernels share a name, or an instantiation
/// names no kernel template of this source.
pub fn read(text: &str) -> Result<Unit, ReadError> {
    let tokens = lex(text);
    let declarations = declarations(&tokens)?;
    let mut unit = Unit::default();
    for constant in &declarations.constants {
        unit.constants.push(constant.clone());
    }
    for function in &declarations.functions {
        if function.template.is_none() {
            let kernel = entry(&tokens, function, function.name.clone(), &Vec::new())?;
            add(&tokens, &mut unit, kernel, function.at)?;
        }
    }
    for instantiation in &declarations.instantiations {
        let kernel = instantiate(&tokens, &declarations.functions, instantiation)?;
        add(&tokens, &mut unit, kernel, instantiation.range.start)?;
    }
    Ok(unit)
}

fn add(tokens: &Tokens<'_>, unit: &mut Unit, kernel: Kernel, at: usize) -> Result<(), ReadError> {
    match unit.kernels.iter().find(|known| known.name == kernel.name) {
        Some(known) => Err(tokens.error(
            at,
            format!(
                "kernel `{}` is already defined at {}:{}",
                kernel.name, known.file, known.line
            ),
        )),
        None => {
            unit.kernels.push(kernel);
            Ok(())
        }
    }
}

/// A kernel function or kernel template.
pub(crate) struct KernelFunction {
    pub(crate) name: String,
    /// Token range of `typename T, short N` when it is a template.
    pub(crate) template: Option<Range<usize>>,
    /// Token range between the parentheses.
    parameters: Range<usize>,
    /// Token range of the body, braces included.
    pub(crate) body: Range<usize>,
    max_threads: Option<u32>,
    at: usize,
}

/// `template [[host_name("…")]] kernel … f<Args>…;`
pub(crate) struct Instantiation {
    /// The whole statement, semicolon included.
    pub(crate) range: Range<usize>,
    host_name: String,
    function: String,
    arguments: Range<usize>,
}

/// The interface of a source, as token ranges.
#[derive(Default)]
pub(crate) struct Declarations {
    pub(crate) functions: Vec<KernelFunction>,
    pub(crate) instantiations: Vec<Instantiation>,
    pub(crate) constants: Vec<FunctionConstant>,
}

/// Walks the program-scope statements. Bodies of functions, structs and namespaces are entered too:
/// what is looked for (`kernel`, `template [[host_name`, `[[function_constant`) stands nowhere else.
pub(crate) fn declarations(tokens: &Tokens<'_>) -> Result<Declarations, ReadError> {
    let mut found = Declarations::default();
    let mut at = 0;
    let mut statement = 0;
    while at < tokens.list.len() {
        if tokens.list[at].kind == TokenKind::Directive {
            if tokens.text(at).contains("host_name") {
                return Err(tokens.error(
                    at,
                    "write kernel instantiations out, one line each, not in a macro",
                ));
            }
            at += 1;
            if statement + 1 == at {
                statement = at;
            }
            continue;
        }
        if tokens.is(at, "template") && !tokens.is(at + 1, "<") {
            let instantiation = read_instantiation(tokens, at)?;
            at = instantiation.range.end;
            statement = at;
            found.instantiations.push(instantiation);
            continue;
        }
        if let Some(span) = tokens.attribute_at(at)? {
            if let Some(index) = tokens.attribute_argument(span, "function_constant")
                && tokens.is(span.end, ";")
            {
                found
                    .constants
                    .push(read_constant(tokens, statement..at, index)?);
            }
            if !(span.start..span.end).any(|i| tokens.is(i, "kernel")) {
                at = span.end;
                continue;
            }
        }
        if tokens.is(at, "kernel") || tokens.attribute_at(at)?.is_some() {
            let function = read_function(tokens, statement, at)?;
            at = function.body.end;
            statement = at;
            found.functions.push(function);
            continue;
        }
        if matches!(tokens.text(at), ";" | "{" | "}") {
            statement = at + 1;
        }
        at += 1;
    }
    Ok(found)
}

fn read_constant(
    tokens: &Tokens<'_>,
    before: Range<usize>,
    index: &str,
) -> Result<FunctionConstant, ReadError> {
    let at = before.start;
    let words: Vec<_> = before
        .filter(|&i| !matches!(tokens.text(i), "constant" | "const" | "static"))
        .collect();
    let [ty, name] = words[..] else {
        return Err(tokens.error(at, "write `constant TYPE NAME [[function_constant(n)]];`"));
    };
    let index = index.parse().map_err(|_| {
        tokens.error(
            at,
            format!("function_constant({index}): write the index as a plain number"),
        )
    })?;
    let token = &tokens.list[name];
    Ok(FunctionConstant {
        name: token.text.to_owned(),
        index,
        ty: tokens.text(ty).to_owned(),
        file: tokens.files[token.file].clone(),
        line: token.line,
    })
}

/// `statement` is where the statement began (perhaps at `template <`), `at` the `kernel` keyword or
/// attribute.
fn read_function(
    tokens: &Tokens<'_>,
    statement: usize,
    at: usize,
) -> Result<KernelFunction, ReadError> {
    let template = if tokens.is(statement, "template") && tokens.is(statement + 1, "<") {
        let end = tokens.skip_angles(statement + 1).ok_or_else(|| {
            tokens.error(statement, "the template's parameter list is never closed")
        })?;
        Some(statement + 2..end - 1)
    } else {
        None
    };
    let mut max_threads = None;
    let mut next = template.as_ref().map_or(statement, |range| range.end + 1);
    while !tokens.is(next, "void") {
        if let Some(span) = tokens.attribute_at(next)? {
            let given = tokens.attribute_argument(span, "max_total_threads_per_threadgroup");
            max_threads = given.and_then(|text| text.parse().ok()).or(max_threads);
            next = span.end;
        } else if next <= at {
            next += 1;
        } else {
            return Err(tokens.error(at, "a kernel is `kernel void name(…)`"));
        }
    }
    let name = next + 1;
    let open = name + 1;
    if !tokens.is_word(name) || !tokens.is(open, "(") {
        return Err(tokens.error(at, "a kernel is `kernel void name(…)`"));
    }
    let body = tokens.skip_brackets(open)?;
    if !tokens.is(body, "{") {
        return Err(tokens.error(
            name,
            "a kernel needs a body here: declarations alone are not used",
        ));
    }
    Ok(KernelFunction {
        name: tokens.text(name).to_owned(),
        template,
        parameters: open + 1..body - 1,
        body: body..tokens.skip_brackets(body)?,
        max_threads,
        at: name,
    })
}

fn read_instantiation(tokens: &Tokens<'_>, start: usize) -> Result<Instantiation, ReadError> {
    let mut host_name = None;
    let mut at = start + 1;
    loop {
        if let Some(span) = tokens.attribute_at(at)? {
            let name = tokens.attribute_argument(span, "host_name");
            host_name = name
                .map(|text| text.trim_matches('"').to_owned())
                .or(host_name);
            at = span.end;
        } else if tokens.is(at, "kernel") {
            at += 1;
        } else {
            break;
        }
    }
    let host_name = host_name.ok_or_else(|| {
        tokens.error(
            start,
            "an explicit instantiation needs [[host_name(\"…\")]]",
        )
    })?;
    // The type: `void`, `fn_t` or `decltype(f<A>)`.
    at += 1;
    if tokens.is(at, "(") {
        at = tokens.skip_brackets(at)?;
    }
    let arguments = tokens.skip_angles(at + 1);
    let (true, Some(end)) = (tokens.is_word(at) && tokens.is(at + 1, "<"), arguments) else {
        return Err(tokens.error(start, format!("`{host_name}`: write `kernel … f<Args>…;`")));
    };
    let semicolon = (end..tokens.list.len())
        .find(|&i| tokens.is(i, ";"))
        .ok_or_else(|| tokens.error(start, "the instantiation has no semicolon"))?;
    Ok(Instantiation {
        range: start..semicolon + 1,
        host_name,
        function: tokens.text(at).to_owned(),
        arguments: at + 2..end - 1,
    })
}

fn instantiate(
    tokens: &Tokens<'_>,
    functions: &[KernelFunction],
    instantiation: &Instantiation,
) -> Result<Kernel, ReadError> {
    let at = instantiation.range.start;
    let function = functions
        .iter()
        .find(|function| function.name == instantiation.function && function.template.is_some())
        .ok_or_else(|| {
            tokens.error(
                at,
                format!(
                    "no kernel template `{}` in this source",
                    instantiation.function
                ),
            )
        })?;
    let arguments: Vec<String> = tokens
        .split_commas(instantiation.arguments.start, instantiation.arguments.end)
        .into_iter()
        .map(|range| tokens.join(range))
        .collect();
    let substitution = substitution(tokens, function, &arguments);
    let mut kernel = entry(
        tokens,
        function,
        instantiation.host_name.clone(),
        &substitution,
    )?;
    kernel.function = format!("{}<{}>", function.name, arguments.join(", "));
    let token = &tokens.list[at];
    kernel.file = tokens.files[token.file].clone();
    kernel.line = token.line;
    Ok(kernel)
}

/// Pairs each template parameter's name with its argument, or with its default.
fn substitution(
    tokens: &Tokens<'_>,
    function: &KernelFunction,
    arguments: &[String],
) -> Substitution {
    let Some(range) = &function.template else {
        return Vec::new();
    };
    let parameters = tokens.split_commas(range.start, range.end);
    let mut pairs = Vec::new();
    for (position, parameter) in parameters.into_iter().enumerate() {
        let equals = parameter.clone().find(|&at| tokens.is(at, "="));
        let name = equals.unwrap_or(parameter.end).saturating_sub(1);
        let default = equals.map(|at| tokens.join(at + 1..parameter.end));
        if let Some(argument) = arguments.get(position).cloned().or(default) {
            pairs.push((tokens.text(name).to_owned(), argument));
        }
    }
    pairs
}

fn entry(
    tokens: &Tokens<'_>,
    function: &KernelFunction,
    name: String,
    substitution: &Substitution,
) -> Result<Kernel, ReadError> {
    let token = &tokens.list[function.at];
    let range = &function.parameters;
    Ok(Kernel {
        name,
        function: function.name.clone(),
        file: tokens.files[token.file].clone(),
        line: token.line,
        max_threads: function.max_threads,
        parameters: read_parameters(tokens, range.start, range.end, substitution)?,
    })
}
