//! One kernel of a PTX file, with its constants written in.
//!
//! A file has many kernels, and reads function constants from an array:
//!
//! ```text
//! ld.global.u64  %rd11, [akunu_constants+8];     whether constant 0 is defined
//! ld.global.u32  %r7, [akunu_constants];         its bits
//! ```
//!
//! Here a text is made that has one kernel, what it refers to, and values in place of these loads:
//!
//! ```text
//! mov.u64  %rd11, 1;
//! mov.u32  %r7, 64;
//! ```
//!
//! so that the driver compiles one kernel rather than dozens, folds the values and drops the branches that they decide.
//!
//! GPUs of compute capability 9.0 and above can begin a kernel while the one before it ends. A kernel then lets the
//! next one begin, and waits for the one before it, before it does anything else: what is left of the distance between
//! two kernels is the time in which the last threads of one stop. A kernel that says where it begins to read what others
//! write (`inputs_are_ready` in the products) waits there, with its first weights under way.

use std::fmt::Write as _;

use akunu_kernels::Constants;

/// The array that function constants are read from: (bits, whether defined), 64 bits each.
const ARRAY: &str = "akunu_constants";

/// Where a kernel that has read weights begins to read what others have written.
const INPUTS: &str = "// akunu_inputs_are_ready";
/// Waits until the kernel before has ended.
const WAIT: &str = "\tgriddepcontrol.wait;";

/// Where a kernel says that the next one may begin.
const NEXT: &str = "// akunu_next_may_begin";
/// Lets the next kernel begin.
const LAUNCH: &str = "\tgriddepcontrol.launch_dependents;";

/// What is put before the body of a kernel that says where it begins to read, so that the driver's compiler does not take more
/// registers than its threadgroups leave each other: it has 256 threads at most and waits for memory, so that a multiprocessor is
/// to hold two of them.
const LIMITS: &str = ".maxntid 256, 1, 1\n.minnctapersm 2\n";
/// What a kernel of smaller threadgroups says in place of that: behind it is how many a multiprocessor is to hold.
const SMALL: &str = "// akunu_small_threadgroups ";

/// PTX that is not what our compiler writes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecialiseError {
    /// The file does not have the kernel.
    NoEntry {
        /// Its name.
        entry: String,
    },
    /// A constant is read in a way that we do not know.
    Constant {
        /// The line.
        line: String,
    },
}

impl std::fmt::Display for SpecialiseError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpecialiseError::NoEntry { entry } => write!(out, "its PTX has no entry point {entry}"),
            SpecialiseError::Constant { line } => {
                write!(
                    out,
                    "its PTX reads a function constant in an unknown way: {line}"
                )
            }
        }
    }
}

/// What a kernel is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// Ten times the compute capability.
    pub(crate) capability: u32,
    /// Whether a kernel begins while the one before it ends.
    pub(crate) overlaps: bool,
}

/// A text with one kernel, and what the kernel is launched with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Specialised {
    /// The PTX.
    pub(crate) text: String,
    /// Buffers.
    pub(crate) n_pointers: usize,
    /// Offsets into dynamic shared memory, behind the params.
    pub(crate) n_offsets: usize,
}

/// A piece of PTX on the outermost level.
struct Item<'t> {
    text: &'t str,
    /// What it declares; empty for the header.
    name: &'t str,
}

/// The kernel `entry` of a file, with these constants, for a target.
pub(crate) fn specialise(
    text: &str,
    entry: &str,
    constants: &Constants,
    target: Target,
) -> Result<Specialised, SpecialiseError> {
    let items = items(text);
    let is_entry = |item: &&Item<'_>| item.name == entry && item.text.contains(".entry ");
    let kernel = items
        .iter()
        .find(is_entry)
        .ok_or(SpecialiseError::NoEntry {
            entry: entry.to_owned(),
        })?;
    let mut out = String::new();
    for item in referenced(&items, kernel) {
        let begin = out.len();
        for line in item.text.lines() {
            if item.name.is_empty() && line.starts_with(".target ") {
                let _ = writeln!(
                    out,
                    ".target sm_{}",
                    known_target(target.capability, kernel.text)
                );
                continue;
            }
            if line.contains(ARRAY) && item.name != ARRAY {
                out.push_str(&value(line, constants)?);
            } else if line.contains(INPUTS) && target.overlaps {
                out.push_str(WAIT);
            } else if line.contains(NEXT) && target.overlaps {
                out.push_str(LAUNCH);
            } else {
                out.push_str(line);
            }
            out.push('\n');
        }
        if std::ptr::eq(item, kernel) && kernel.text.contains(INPUTS) {
            let body = out[begin..].find("\n{").map(|at| begin + at + 1);
            out.insert_str(body.unwrap_or(begin), &limits(kernel.text));
        }
        if std::ptr::eq(item, kernel) && target.overlaps {
            let body = first_instruction(&out[begin..]) + begin;
            let wait = if kernel.text.contains(INPUTS) {
                String::new()
            } else {
                format!("{WAIT}\n")
            };
            let launch = if kernel.text.contains(NEXT) {
                String::new()
            } else {
                format!("{LAUNCH}\n")
            };
            out.insert_str(body, &format!("{launch}{wait}"));
        }
    }
    let head = kernel.text.split("\n{").next().unwrap_or_default();
    Ok(Specialised {
        n_pointers: head.matches(".param .u64").count(),
        n_offsets: head.matches(".param .u32").count(),
        text: out,
    })
}

/// The limits of a kernel that says where it begins to read.
fn limits(kernel: &str) -> String {
    match kernel.split_once(SMALL) {
        Some((_, rest)) => {
            let at_once = rest.lines().next().unwrap_or_default().trim();
            format!(".maxntid 128, 1, 1\n.minnctapersm {at_once}\n")
        }
        None => LIMITS.into(),
    }
}

/// The largest target of this version of PTX that the GPU can run; the driver compiles for the GPU itself. Asynchronous products
/// are for Hopper alone.
fn known_target(capability: u32, kernel: &str) -> &'static str {
    match capability {
        90 if kernel.contains("wgmma.") => "90a",
        90.. => "90",
        80.. => "80",
        _ => "75",
    }
}

/// The header, the variables and the functions of a text.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let (mut begin, mut at) = (0, 0);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let start = at;
        at += line.len();
        let code = line.split("//").next().unwrap_or_default().trim();
        let is_function = code.contains(".entry ") || code.contains(".func ");
        let is_variable = [".global ", ".shared ", ".const "]
            .iter()
            .any(|space| code.contains(space));
        if !code.starts_with('.') || !(is_function || is_variable) {
            continue;
        }
        if is_function {
            // A declaration ends with `;` before any body begins.
            let mut has_body = false;
            let mut last = code;
            while !(last == "}" || (!has_body && last.ends_with(';'))) {
                let Some(next) = lines.next() else { break };
                at += next.len();
                last = next.trim_end();
                has_body |= last == "{";
            }
        }
        if start > begin {
            items.push(Item {
                text: &text[begin..start],
                name: "",
            });
        }
        items.push(Item {
            text: &text[start..at],
            name: name(code),
        });
        begin = at;
    }
    items.push(Item {
        text: &text[begin..],
        name: "",
    });
    items
}

/// What a line declares: `.visible .entry NAME(`, `.shared .align 16 .b8 NAME[64];`
fn name(code: &str) -> &str {
    let end = code.find(['(', '[', ';']).unwrap_or(code.len());
    let head = code[..end].trim_end();
    head.rsplit([' ', '\t']).next().unwrap_or_default()
}

/// The header, the kernel, and what it refers to, in the order of the text.
fn referenced<'i, 't>(items: &'i [Item<'t>], kernel: &'i Item<'t>) -> Vec<&'i Item<'t>> {
    let mut wanted: Vec<bool> = items
        .iter()
        .map(|item| std::ptr::eq(item, kernel))
        .collect();
    let mut open = vec![kernel.text];
    while let Some(text) = open.pop() {
        for (item, wanted) in items.iter().zip(&mut wanted) {
            let is_named = !item.name.is_empty() && mentions(text, item.name);
            let is_other_kernel = item.text.contains(".entry ");
            if !*wanted && is_named && !is_other_kernel && item.name != ARRAY {
                *wanted = true;
                open.push(item.text);
            }
        }
    }
    let chosen = items.iter().zip(wanted);
    let chosen = chosen.filter(|(item, wanted)| *wanted || item.name.is_empty());
    chosen.map(|(item, _)| item).collect()
}

/// Whether a text has this name as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

/// Where the first instruction of a function's text begins, behind its declarations.
fn first_instruction(text: &str) -> usize {
    let mut at = text.find("\n{\n").map_or(0, |at| at + 3);
    for line in text[at..].split_inclusive('\n') {
        if !line.starts_with("\t.") && !line.trim().is_empty() {
            break;
        }
        at += line.len();
    }
    at
}

/// The load of a constant as a move of its value.
fn value(line: &str, constants: &Constants) -> Result<String, SpecialiseError> {
    let unknown = || SpecialiseError::Constant {
        line: line.trim().to_owned(),
    };
    let (load, rest) = line.split_once("ld.global.").ok_or_else(unknown)?;
    let (ty, rest) = rest.split_once(char::is_whitespace).ok_or_else(unknown)?;
    let (register, address) = rest.trim().split_once(',').ok_or_else(unknown)?;
    let address = address
        .trim()
        .trim_end_matches(';')
        .trim_matches(['[', ']']);
    let offset = match address.strip_prefix(ARRAY).ok_or_else(unknown)? {
        "" => 0,
        behind => behind
            .trim_start_matches('+')
            .parse::<usize>()
            .map_err(|_| unknown())?,
    };
    let given = constants
        .iter()
        .find(|(constant, _)| usize::from(constant.spec().index) == offset / 16);
    let bits = given.map(|(_, value)| u64::from(value.bits()));
    let (word, byte) = (offset % 16 / 8, offset % 8);
    let whole = match word {
        0 => bits.unwrap_or(0),
        _ => u64::from(bits.is_some()),
    };
    let part = whole >> (8 * byte);
    let read = match ty {
        "u64" | "b64" => part,
        "f32" | "u32" | "b32" => u64::from(part as u32),
        "u16" | "b16" => u64::from(part as u16),
        "u8" | "b8" => u64::from(part as u8),
        _ => return Err(unknown()),
    };
    // A register may be wider than what is loaded into it.
    let moved = if register.starts_with("%rd") {
        format!("mov.u64 \t{register}, {read};")
    } else if register.starts_with("%rs") {
        format!("mov.u16 \t{register}, {read};")
    } else if register.starts_with("%r") {
        format!("mov.u32 \t{register}, {read};")
    } else if register.starts_with("%f") {
        format!("mov.f32 \t{register}, 0f{read:08X};")
    } else {
        return Err(unknown());
    };
    Ok(format!("{load}{moved}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_kernels::Constant;

    const TEXT: &str = "\
//
.version 8.0
.target sm_75
.address_size 64

\t// .globl\tfirst
.visible .global .align 8 .b8 akunu_constants[32];
.weak .shared .align 16 .b8 tile[1024];
.shared .align 16 .b8 other[1024];
.visible .entry first(
\t.param .u64 first_param_0,
\t.param .align 8 .b8 first_param_1[64],
\t.param .u32 first_param_2
)
{
\t.reg .b32 \t%r<3>;

// %bb.0:
\tld.global.u64 \t%rd1, [akunu_constants+8];
\tld.global.u32 \t%r1, [akunu_constants];
\tst.shared.u32 \t[tile], %r1;
\tcall.uni \tadd, ();
\tret;
}
.func add(
)
{
\tret;
}
.visible .entry second(
\t.param .u64 second_param_0
)
{
\tst.shared.u32 \t[other], 1;
\tret;
}
";

    fn make(entry: &str, constants: &Constants, overlaps: bool) -> Specialised {
        let target = Target {
            capability: 103,
            overlaps,
        };
        specialise(TEXT, entry, constants, target).expect("it is our PTX")
    }

    /// Breaks when another kernel, its memory or the array of constants is compiled too, or when what the kernel calls
    /// is missing.
    #[test]
    fn only_the_kernel_and_what_it_uses_are_left() {
        let first = make("first", &Constants::none(), false);
        assert_eq!((first.n_pointers, first.n_offsets), (1, 1));
        for there in [
            "first(",
            "tile[1024]",
            ".func add",
            ".version 8.0",
            ".target sm_90",
        ] {
            assert!(first.text.contains(there), "{there}: {}", first.text);
        }
        for gone in ["second", "other", ARRAY, "griddepcontrol", "sm_75"] {
            assert!(!first.text.contains(gone), "{gone}: {}", first.text);
        }
        let second = make("second", &Constants::none(), false);
        assert!(second.text.contains("other[1024]") && !second.text.contains("tile"));
        let missing = specialise(
            TEXT,
            "third",
            &Constants::none(),
            Target {
                capability: 75,
                overlaps: false,
            },
        );
        assert_eq!(
            missing,
            Err(SpecialiseError::NoEntry {
                entry: "third".into()
            })
        );
    }

    /// Head dim has index 0 here: a value, or the word that it is not defined.
    #[test]
    fn loads_of_constants_become_values() {
        let index = Constant::HeadDim.spec().index;
        let at = |line: &str| {
            line.replace(
                "[akunu_constants",
                &format!("[akunu_constants+{}", 16 * index),
            )
        };
        let set = Constants::none().with_u32(Constant::HeadDim, 96);
        let load = at("\tld.global.u32 \t%r1, [akunu_constants];");
        assert_eq!(value(&load, &set).unwrap(), "\tmov.u32 \t%r1, 96;");
        assert_eq!(
            value(&load, &Constants::none()).unwrap(),
            "\tmov.u32 \t%r1, 0;"
        );
        let widened = load.replace("%r1", "%rd1");
        assert_eq!(value(&widened, &set).unwrap(), "\tmov.u64 \t%rd1, 96;");
        let defined = format!(
            "\tld.global.u64 \t%rd1, [akunu_constants+{}];",
            16 * index + 8
        );
        assert_eq!(value(&defined, &set).unwrap(), "\tmov.u64 \t%rd1, 1;");
        assert_eq!(
            value(&defined, &Constants::none()).unwrap(),
            "\tmov.u64 \t%rd1, 0;"
        );
        let cap = Constants::none().with_f32(Constant::Softcap, 1.5);
        let float = format!(
            "\tld.global.f32 \t%f1, [akunu_constants+{}];",
            16 * Constant::Softcap.spec().index
        );
        assert_eq!(value(&float, &cap).unwrap(), "\tmov.f32 \t%f1, 0f3FC00000;");
        let address = "\tmov.u64 \t%rd3, akunu_constants;";
        assert!(matches!(
            value(address, &cap),
            Err(SpecialiseError::Constant { .. })
        ));
    }

    /// A kernel that did something before it waited would read what the one before it has not written yet.
    #[test]
    fn a_kernel_that_overlaps_waits_before_anything_else() {
        let text = make("first", &Constants::none(), true).text;
        let body: Vec<&str> = text.lines().skip_while(|line| *line != "{").collect();
        let code = body
            .iter()
            .filter(|line| line.starts_with('\t') && !line.starts_with("\t."));
        let first: Vec<&str> = code.take(2).map(|line| line.trim()).collect();
        assert_eq!(
            first,
            ["griddepcontrol.launch_dependents;", "griddepcontrol.wait;"]
        );
        assert_eq!(text.matches("griddepcontrol.wait").count(), 1);
    }

    /// Breaks when a kernel that marks the place waits elsewhere too, or not at all: it would read its inputs too early.
    #[test]
    fn a_kernel_that_says_where_waits_there() {
        let marked = TEXT.replacen(
            "\tst.shared.u32 \t[tile], %r1;",
            "\t// begin inline asm\n\t// akunu_inputs_are_ready\n\t// end inline asm\n\tst.shared.u32 \t[tile], %r1;",
            1,
        );
        let made = |overlaps| {
            let target = Target {
                capability: 90,
                overlaps,
            };
            let made = specialise(&marked, "first", &Constants::none(), target);
            made.expect("it is our PTX").text
        };
        let text = made(true);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("launch_dependents") < at("mov.u32"));
        assert!(
            at("mov.u32") < at("griddepcontrol.wait")
                && at("griddepcontrol.wait") < at("st.shared")
        );
        assert_eq!(text.matches("griddepcontrol.wait").count(), 1);
        assert!(!made(false).contains("griddepcontrol"));
    }

    /// Breaks when the next kernel begins before a kernel has said that it may, or never.
    #[test]
    fn the_next_kernel_begins_where_a_kernel_says_so() {
        let marked = TEXT.replacen(
            "\tst.shared.u32",
            "\t// akunu_next_may_begin\n\tst.shared.u32",
            1,
        );
        let target = Target {
            capability: 90,
            overlaps: true,
        };
        let made = |text: &str| {
            let made = specialise(text, "first", &Constants::none(), target);
            made.expect("it is our PTX").text
        };
        for (text, is_first) in [(made(TEXT), true), (made(&marked), false)] {
            let at = |part: &str| text.find(part).expect("it is there");
            assert_eq!(text.matches(LAUNCH).count(), 1, "{text}");
            assert_eq!(at(LAUNCH) < at("griddepcontrol.wait"), is_first, "{text}");
            assert!(at(LAUNCH) < at("st.shared"), "{text}");
        }
    }

    /// Breaks when Hopper's own instructions are compiled for any GPU, which refuses them, or kernels without them for Hopper alone.
    #[test]
    fn asynchronous_products_are_compiled_for_hopper_alone() {
        let target_of = |text: &str, capability| {
            let target = Target {
                capability,
                overlaps: false,
            };
            let made = specialise(text, "first", &Constants::none(), target);
            let text = made.expect("it is our PTX").text;
            let line = text.lines().find(|line| line.starts_with(".target "));
            line.expect("it has a target").to_owned()
        };
        let product = "\twgmma.wait_group.sync.aligned 0;\n\tst.shared.u32";
        let with_products = TEXT.replacen("\tst.shared.u32", product, 1);
        assert_eq!(target_of(&with_products, 90), ".target sm_90a");
        assert_eq!(target_of(TEXT, 90), ".target sm_90");
        assert_eq!(target_of(TEXT, 120), ".target sm_90");
        assert_eq!(target_of(TEXT, 86), ".target sm_80");
    }

    /// Breaks when a kernel that waits for memory may take registers for which a multiprocessor holds only one threadgroup, or when
    /// kernels that are not made for it must do with few.
    #[test]
    fn kernels_that_begin_early_are_limited_in_registers() {
        let target = Target {
            capability: 75,
            overlaps: false,
        };
        let made = |text: &str| {
            let made = specialise(text, "first", &Constants::none(), target);
            made.expect("it is our PTX").text
        };
        let marked = "\t// akunu_inputs_are_ready\n\tst.shared.u32";
        let text = made(&TEXT.replacen("\tst.shared.u32", marked, 1));
        let head = text.split("\n{").next().unwrap_or_default();
        assert!(
            head.ends_with(".maxntid 256, 1, 1\n.minnctapersm 2"),
            "{head}"
        );
        let small = text.replacen(
            "\t// akunu_inputs_are_ready",
            "\t// akunu_small_threadgroups 3\n\t// akunu_inputs_are_ready",
            1,
        );
        let small = made(&small.replace(LIMITS, ""));
        let head = small.split("\n{").next().unwrap_or_default();
        assert!(
            head.ends_with(".maxntid 128, 1, 1\n.minnctapersm 3"),
            "{head}"
        );
        let plain = made(TEXT);
        assert!(!plain.contains("maxntid") && !plain.contains("minnctapersm"));
    }
}
