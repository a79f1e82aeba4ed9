//! The kernels of every weight format, written out in the `.metal` files.
//!
//! A kernel that reads weights is a template, and each format has a name of its own. Where a file says
//!
//! ```text
//! // for each format: gemv_<format> is gemv<Format, GEMMParams, 4>
//! …
//! // end of formats
//! ```
//!
//! `cargo xtask header` writes the lines between the two, one for each format for which the kernel table has a kernel of
//! this name. For MLX's types, which have params of their own, `MLXParams` takes the place of the params. So the table alone
//! says which kernels there are, and the files are plain MSL.

use akunu_kernels::KernelId;
use akunu_kernels::flatten;
use akunu_repo::{Failure, workspace};
use akunu_types::DType;
use akunu_types::format::Kind;
use std::collections::HashSet;
use std::path::PathBuf;

const BEGIN: &str = "// for each format: ";
const END: &str = "// end of formats";

/// Params that MLX's types have others for.
const PARAMS: [&str; 2] = ["GEMMParams", "EmbeddingParams"];

/// The `.metal` files of all kernels.
pub fn metal_files() -> Result<Vec<PathBuf>, Failure> {
    let folder = workspace::root().join("kernels");
    let files = flatten::metal_files(&folder);
    let files = files.map_err(|error| Failure::Found(error.to_string()))?;
    Ok(files.iter().map(|file| folder.join(file)).collect())
}

/// The names of all kernels of the table.
pub fn kernel_names() -> HashSet<String> {
    let rows = KernelId::all().into_iter().map(KernelId::row);
    rows.map(|row| row.name()).collect()
}

/// The text of a `.metal` file with its instantiations as they should be.
pub fn generate(text: &str, kernels: &HashSet<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out += line;
        out += "\n";
        let Some(rule) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let (name, template) = rule
            .split_once(" is ")
            .ok_or_else(|| format!("`{rule}` is not `name is template`"))?;
        for dtype in DType::all() {
            let name = name.replace("<format>", dtype.name());
            if kernels.contains(&name) {
                out += &instantiation(&name, template, dtype);
            }
        }
        if !lines.any(|line| line == END) {
            return Err(format!("`{line}` has no `{END}`"));
        }
        out += END;
        out += "\n";
    }
    Ok(out)
}

fn instantiation(name: &str, template: &str, dtype: DType) -> String {
    let mut function = template.replacen("<Format", &format!("<{}", struct_name(dtype)), 1);
    if dtype.mlx_bits().is_some() {
        for params in PARAMS {
            function = function.replace(params, "MLXParams");
        }
    }
    format!("template [[host_name(\"{name}\")]] kernel decltype({function}) {function};\n")
}

/// The stem of the header that reads a format; `None` where no kernel does.
pub fn format_header(dtype: DType) -> Option<&'static str> {
    match dtype.kind() {
        Kind::Numbers => Some("plain"),
        Kind::Blocks(_) => Some(dtype.name()),
        Kind::Mlx(_) => Some("mlx"),
        Kind::Listed => None,
    }
}

/// The struct that reads a format: `FormatQ4_0`, `FormatQ2K`, `FormatIQ4NL`, `FormatMlxQ4`.
fn struct_name(dtype: DType) -> String {
    let name = dtype.name().to_uppercase();
    let name = match name.starts_with("IQ") {
        true => name.replace('_', ""),
        false => name.replace("MLX_", "Mlx").replace("_K", "K"),
    };
    format!("Format{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a kernel is added to the table, or a rule changed, and the files were not written again.
    #[test]
    fn every_file_has_the_kernels_of_the_table() {
        let kernels = kernel_names();
        let mut n_rules = 0;
        for file in metal_files().expect("kernels") {
            let text = std::fs::read_to_string(&file).expect("a kernel");
            n_rules += text.matches(BEGIN).count();
            assert_eq!(
                generate(&text, &kernels).as_ref(),
                Ok(&text),
                "{}",
                file.display()
            );
        }
        assert_eq!(n_rules, 29, "files with kernels that read weights");
    }

    #[test]
    fn rules_are_written_out() {
        let file = "a\n// for each format: f_<format>_x is f<Format, GEMMParams, 4>\nold\n// end of formats\nb\n";
        let kernels = ["f_q2_k_x", "f_mlx_q4_x"].map(str::to_owned).into();
        let text = generate(file, &kernels).expect("a rule");
        for line in [
            "template [[host_name(\"f_q2_k_x\")]] kernel decltype(f<FormatQ2K, GEMMParams, 4>) f<FormatQ2K, GEMMParams, 4>;",
            "template [[host_name(\"f_mlx_q4_x\")]] kernel decltype(f<FormatMlxQ4, MLXParams, 4>) f<FormatMlxQ4, MLXParams, 4>;",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("f_f16_x"), "not in the table");
        assert!(!text.contains("old") && text.ends_with("// end of formats\nb\n"));
        assert_eq!(
            generate(&text, &kernels),
            Ok(text.clone()),
            "once more changes nothing"
        );
        assert!(generate("// for each format: f\n", &kernels).is_err());
        assert!(
            generate("// for each format: f is g\nx\n", &kernels).is_err(),
            "no end"
        );
    }
}
