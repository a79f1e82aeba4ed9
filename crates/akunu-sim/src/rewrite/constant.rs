//! Function constants, and program-scope constants computed from them.
//!
//! `constant uint FC [[function_constant(3)]];` becomes a function `akunu_constant_FC()` and a macro
//! `FC` that calls it. `constant bool WIDE = FC > 4;` would be computed once when a library is loaded,
//! before the value is known, so it becomes a function and a macro too.

use super::{Edits, Specialisation, Target, begins_statement, statement_end};
use crate::msl::{FunctionConstant, ReadError};

pub fn rewrite(
    edits: &mut Edits<'_>,
    constants: &[FunctionConstant],
    target: Target,
    specialisation: &Specialisation,
) -> Result<(), ReadError> {
    let tokens = edits.tokens;
    let mut late: Vec<String> = constants
        .iter()
        .map(|constant| constant.name.clone())
        .collect();
    for at in 0..tokens.list.len() {
        if !(tokens.is(at, "constant") && begins_statement(tokens, at)) {
            continue;
        }
        let end = statement_end(tokens, at)?;
        let equals = (at..end).find(|&i| tokens.is(i, "="));
        let Some(equals) = equals else {
            let declared = constants
                .iter()
                .enumerate()
                .find(|(_, constant)| (at..end).any(|i| tokens.is(i, &constant.name)));
            if let Some((place, constant)) = declared {
                let slot = match target {
                    Target::Simulator => place,
                    Target::Ptx => constant.index as usize,
                };
                edits.replace_lines(at..end + 1, &definition(slot, constant, specialisation));
            }
            continue;
        };
        let name = equals - 1;
        let plain = tokens.is_word(name) && tokens.is_word(name - 1);
        let is_late = (equals..end).any(|i| late.iter().any(|known| tokens.is(i, known)));
        if plain && is_late {
            let ty = tokens.join((at + 1..name).filter(|&i| !tokens.is(i, "const")));
            let name = tokens.text(name);
            edits.replace(
                at..equals + 1,
                format!("static inline {ty} akunu_constant_{name}() {{ return"),
            );
            edits.replace_lines(
                end..end + 1,
                &format!("; }}\n#define {name} akunu_constant_{name}()"),
            );
            late.push(name.to_owned());
        }
    }
    Ok(())
}

fn definition(slot: usize, constant: &FunctionConstant, specialisation: &Specialisation) -> String {
    let FunctionConstant {
        name, index, ty, ..
    } = constant;
    let given = specialisation.iter().find(|(given, _)| given == index);
    let (value, defined) = match given {
        Some((_, value)) => (format!("({ty}){value}"), "true".to_owned()),
        None => (
            format!("akunu::read_constant<{ty}>({slot}, \"{name}\", __LINE__)"),
            format!("akunu::has_constant({slot})"),
        ),
    };
    format!(
        "static inline {ty} akunu_constant_{name}() {{ return {value}; }} \
         static inline bool akunu_defined_{name}() {{ return {defined}; }}\n\
         #define {name} akunu_constant_{name}()"
    )
}
