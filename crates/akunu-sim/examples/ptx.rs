//! Compiles every `.metal` file of a folder to PTX: `ptx FOLDER OUTPUT`.
#![allow(clippy::print_stdout, reason = "an example: printing is its work")]

use akunu_sim::{Toolchain, ptx};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, output] = &arguments[..] else {
        return Err("ptx FOLDER OUTPUT".into());
    };
    for row in ptx::compile_folder(&Toolchain::find()?, folder, output)? {
        let path = row.result?;
        println!(
            "{}: {} kernels in {}",
            row.file,
            row.kernels,
            path.display()
        );
    }
    Ok(())
}
