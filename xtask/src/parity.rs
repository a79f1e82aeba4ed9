//! `cargo xtask parity`: Rust's layouts against those of a C++ compiler that reads the header.
//!
//! The last line is the result for the parameter structs, such as
//! `18 structs, 120 fields, 0 mismatches`.

mod probe;

use akunu_repo::{Failure, process, workspace};
use akunu_types::layout::{FieldLayout, StructLayout};
use akunu_types::{format, params};
use std::path::Path;
use std::process::Command;

const COMPILERS: [&str; 4] = ["c++", "g++", "clang++", "clang++-19"];
/// MSL 3.1 is based on C++14, so the header keeps to it.
const STANDARD: &str = "-std=c++14";
/// An empty source file, for a compiler that is only to read the header.
const NOTHING: &str = "/dev/null";

/// Runs the command.
pub fn run() -> Result<(), Failure> {
    let header = workspace::shader_types();
    let blocks = compare(&header, &format::layouts())?;
    let structs = compare(&header, params::ALL)?;
    let mismatches: Vec<&String> = structs
        .mismatches
        .iter()
        .chain(&blocks.mismatches)
        .collect();
    if mismatches.is_empty() {
        compile_alone(&header)?;
        compile_as_msl(&header)?;
    }
    for line in structs.lines.iter().chain(&blocks.lines) {
        println!("{line}");
    }
    for mismatch in &mismatches {
        println!("MISMATCH {mismatch}");
    }
    println!("{}", blocks.summary("blocks"));
    println!("{}", structs.summary("structs"));
    if mismatches.is_empty() {
        return Ok(());
    }
    Err(Failure::Found(format!(
        "kernels/ShaderTypes.h and akunu-types disagree in {} places; run `cargo xtask header`",
        mismatches.len()
    )))
}

/// What a comparison found.
#[derive(Debug)]
pub struct Report {
    /// A line a struct.
    lines: Vec<String>,
    /// One sentence a difference, with the struct, the field and both offsets.
    mismatches: Vec<String>,
    n_fields: usize,
}

impl Report {
    fn summary(&self, noun: &str) -> String {
        let (n_structs, n_mismatches) = (self.lines.len(), self.mismatches.len());
        format!(
            "{n_structs} {noun}, {} fields, {n_mismatches} mismatches",
            self.n_fields
        )
    }
}

/// Compares these structs with what the header at this path declares.
pub fn compare(header: &Path, structs: &[StructLayout]) -> Result<Report, Failure> {
    let printed = run_probe(header, structs)?;
    let mut printed = printed.lines();
    let mut report = Report {
        lines: Vec::new(),
        mismatches: Vec::new(),
        n_fields: 0,
    };
    for layout in structs {
        let (size, align) = (layout.size, layout.align);
        let found = next_answer(&mut printed, "struct", layout.name)?;
        if found != format!("{size} {align}") {
            report.mismatches.push(format!(
                "{}: size and alignment in Rust {size} {align}, in C++ {found}",
                layout.name
            ));
        }
        for field in layout.fields {
            let found = next_answer(&mut printed, "field", field.name)?;
            report
                .mismatches
                .extend(field_mismatch(layout, field, &found));
        }
        report.n_fields += layout.fields.len();
        report.lines.push(format!(
            "{:<24} {:>3} bytes, align {}, {:>2} fields",
            layout.name,
            size,
            align,
            layout.fields.len()
        ));
    }
    Ok(report)
}

fn field_mismatch(layout: &StructLayout, field: &FieldLayout, found: &str) -> Option<String> {
    let array = field.array_len.map_or(String::new(), |n| format!("[{n}]"));
    let expected = format!("{} {}{array}", field.offset, field.scalar.msl_name());
    (found != expected).then(|| {
        format!(
            "{}.{}: offset and type in Rust {expected}, in C++ {found}",
            layout.name, field.name
        )
    })
}

/// The rest of the next line, which must begin with these words.
fn next_answer<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
    kind: &str,
    name: &str,
) -> Result<String, Failure> {
    let line = lines.next().unwrap_or_default();
    let rest = line.strip_prefix(&format!("{kind} {name} "));
    rest.map(str::to_string).ok_or_else(|| {
        Failure::Found(format!(
            "the C++ program printed `{line}` instead of {kind} {name}"
        ))
    })
}

/// Compiles and runs the C++ program against the header.
fn run_probe(header: &Path, structs: &[StructLayout]) -> Result<String, Failure> {
    let folder = tempfile::tempdir().map_err(|e| Failure::io(Path::new("temporary folder"), e))?;
    let source = folder.path().join("probe.cpp");
    let program = folder.path().join("probe");
    let header_name = header.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(&source, probe::source(&header_name, structs))
        .map_err(|e| Failure::io(&source, e))?;
    process::output(
        Command::new(compiler()?)
            .args([STANDARD, "-Wno-invalid-offsetof", "-I"])
            .arg(header.parent().unwrap_or(header))
            .arg(&source)
            .arg("-o")
            .arg(&program),
    )?;
    Ok(process::output(&mut Command::new(&program))?)
}

/// Compiles the header by itself with every C++ compiler there is, its asserts on and warnings as
/// errors.
fn compile_alone(header: &Path) -> Result<(), Failure> {
    let strict = [
        STANDARD,
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
    ];
    for compiler in compilers() {
        let mut command = Command::new(compiler);
        command
            .args(strict)
            .args(["-x", "c++", "-include"])
            .arg(header)
            .arg(NOTHING);
        process::output(&mut command)?;
    }
    Ok(())
}

/// On a Mac, compiles the header as MSL too. The Metal compiler is a separate download of Xcode.
fn compile_as_msl(header: &Path) -> Result<(), Failure> {
    if !cfg!(target_os = "macos") {
        return Ok(());
    }
    let metal = ["-sdk", "macosx", "metal"];
    if process::output(Command::new("xcrun").args(metal).arg("--version")).is_err() {
        println!("the Metal compiler is not installed: the header was not compiled as MSL");
        return Ok(());
    }
    let strict = [
        "-std=metal3.1",
        "-fsyntax-only",
        "-Werror",
        "-x",
        "metal",
        "-include",
    ];
    process::output(
        Command::new("xcrun")
            .args(metal)
            .args(strict)
            .arg(header)
            .arg(NOTHING),
    )?;
    Ok(())
}

fn compilers() -> impl Iterator<Item = &'static str> {
    COMPILERS
        .into_iter()
        .filter(|program| process::exists(program))
}

fn compiler() -> Result<&'static str, Failure> {
    compilers().next().ok_or_else(|| {
        Failure::Found(format!(
            "no C++ compiler was found (tried {})",
            COMPILERS.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header;

    /// Compares the parameter structs with a header that was edited.
    fn mismatches_after(edit: impl Fn(String) -> String) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ShaderTypes.h");
        let edited = edit(header::generate());
        assert_ne!(edited, header::generate(), "the edit does something");
        std::fs::write(&path, edited).expect("written");
        compare(&path, params::ALL)
            .expect("the program compiles and runs")
            .mismatches
    }

    #[test]
    fn the_committed_header_agrees_with_rust() {
        for structs in [params::ALL, &format::layouts()] {
            let report = compare(&workspace::shader_types(), structs).expect("a C++ compiler");
            assert_eq!(report.mismatches, Vec::<String>::new());
            assert_eq!(report.lines.len(), structs.len());
        }
        compile_alone(&workspace::shader_types()).expect("no warnings, every assert holds");
    }

    #[test]
    fn a_moved_field_is_named_with_both_offsets() {
        let moved = mismatches_after(|text| {
            let (head, norm) = text.split_at(text.find("struct RMSNormParams").expect("declared"));
            let norm = norm.replacen("uint32_t dim;", "uint32_t SWAP;", 1);
            let norm = norm.replacen("float eps;", "uint32_t dim;", 1);
            head.to_string() + &norm.replacen("uint32_t SWAP;", "float eps;", 1)
        });
        assert!(
            moved.contains(
                &"RMSNormParams.dim: offset and type in Rust 0 uint32_t, in C++ 4 uint32_t"
                    .to_string()
            ),
            "{moved:?}"
        );
        assert!(
            moved.contains(
                &"RMSNormParams.eps: offset and type in Rust 4 float, in C++ 0 float".to_string()
            ),
            "{moved:?}"
        );
    }

    /// Same size and offset, other meaning of the bits.
    #[test]
    fn a_changed_type_is_named() {
        let changed = mismatches_after(|text| text.replacen("float eps;", "uint32_t eps;", 1));
        assert_eq!(
            changed,
            ["DecodeAttentionParams.eps: offset and type in Rust 40 float, in C++ 40 uint32_t"]
        );
    }

    #[test]
    fn a_missing_field_is_named() {
        let missing = mismatches_after(|text| text.replacen("uint32_t first_row;", "", 1));
        assert!(
            missing.contains(
                &"AttentionParams.first_row: offset and type in Rust 4 uint32_t, in C++ -1 missing"
                    .to_string()
            ),
            "{missing:?}"
        );
        assert!(
            missing
                .iter()
                .any(|m| m.starts_with("AttentionParams: size")),
            "{missing:?}"
        );
    }

    #[test]
    fn a_missing_struct_is_named() {
        let missing =
            mismatches_after(|text| text.replace("struct LogitSoftcapParams {", "struct X {"));
        let named = "LogitSoftcapParams: size and alignment in Rust 16 4, in C++ -1 -1".to_string();
        assert!(missing.contains(&named), "{missing:?}");
    }
}
