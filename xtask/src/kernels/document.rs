//! `docs/kernels.md`: the kernel table for people, made from the rows.

use akunu_kernels::KernelId;
use akunu_kernels::table::{Access, Element, Family, KernelRow};
use akunu_repo::{Failure, workspace};
use std::fmt::Write;
use std::path::PathBuf;

fn path() -> PathBuf {
    workspace::root().join("docs/kernels.md")
}

/// Writes the document.
pub fn write() -> Result<(), Failure> {
    let written = std::fs::create_dir_all(workspace::root().join("docs"));
    let written = written.and_then(|()| std::fs::write(path(), text()));
    written.map_err(|error| Failure::io(&path(), error))
}

/// Fails when the committed document is not what the table says.
pub fn check() -> Result<(), Failure> {
    let found = std::fs::read_to_string(path()).map_err(|error| Failure::io(&path(), error))?;
    if found == text() {
        return Ok(());
    }
    Err(Failure::Found(
        "docs/kernels.md is not current: run `cargo xtask kernels`".into(),
    ))
}

/// The bindings of a kernel: index, name, element type, and an arrow for what is written.
pub fn bindings(row: &KernelRow) -> Vec<String> {
    let element = |element| match element {
        Element::F32 => "float",
        Element::F16 => "half",
        Element::U32 => "uint",
        Element::U16 => "ushort",
        Element::Weight => "weight",
        Element::Row => "Row",
        Element::Rule => "SamplingRule",
    };
    let arrow = |access| match access {
        Access::Read => "",
        Access::Write => "→",
        Access::ReadWrite => "↔",
    };
    let one = |b: &akunu_kernels::table::Binding| {
        format!(
            "{}{} {}: {}",
            arrow(b.access),
            b.index,
            b.name,
            element(b.element)
        )
    };
    row.bindings.iter().map(one).collect()
}

fn text() -> String {
    let rows: Vec<KernelRow> = KernelId::all().into_iter().map(KernelId::row).collect();
    let mut families: Vec<Family> = rows.iter().map(|row| row.family).collect();
    families.sort_unstable();
    families.dedup();
    let mut text = format!(
        "# Kernels\n\nWritten by `cargo xtask kernels`, which also runs every case of every kernel in the \
         simulator\nagainst its twin and compiles each file to PTX.\n\n{} kernels in {} families. → is \
         written, ↔ is read and written.\n",
        rows.len(),
        families.len()
    );
    for family in families {
        let _ = writeln!(text, "\n## {}\n", family.folder());
        text.push_str(
            "| kernel | bindings | params | constants | cases |\n|---|---|---|---|---|\n",
        );
        for row in rows.iter().filter(|row| row.family == family) {
            let constants: Vec<&str> = row.constants.iter().map(|c| c.spec().name).collect();
            let _ = writeln!(
                text,
                "| `{}` | {} | {} `{}` | {} | {} |",
                row.name(),
                bindings(row).join(", "),
                row.params_index,
                row.params.name,
                constants.join(", "),
                (row.cases)(row.dtype).len(),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_document_is_current() {
        super::check().expect("docs/kernels.md is current");
    }
}
