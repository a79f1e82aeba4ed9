//! The steps of `cargo xtask test`, in the order in which they run.

use super::programs::{self, Needs};
use crate::tools::{CLANG, CXX};
use crate::{check_macos, debian, header, install, neon, parity, shaders};
use akunu_repo::{Failure, assets, process, workspace};

/// One step.
pub struct Step {
    /// What `--only` calls it.
    pub name: &'static str,
    /// What holds when it passes.
    pub what: &'static str,
    /// Does it.
    pub run: fn() -> Result<(), Failure>,
}

/// Everything.
pub const STEPS: &[Step] = &[
    Step {
        name: "build",
        what: "every test program compiles",
        run: || programs::build().map(drop),
    },
    Step {
        name: INSTALL,
        what: "install the tools that are missing or too old",
        run: install::run,
    },
    Step {
        name: "fmt",
        what: "rustfmt finds nothing to change",
        run: || cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: CLIPPY,
        what: "clippy has no warning",
        run: clippy,
    },
    Step {
        name: "shaders",
        what: "every kernel compiles, for the simulator or on a Mac for Metal",
        run: shaders::run_step,
    },
    Step {
        name: "assets",
        what: "fetch the models that tests run",
        run: || assets::ensure(TEST_ASSETS),
    },
    Step {
        name: "test",
        what: "every test that needs no clang, and the examples in the documentation",
        run: test,
    },
    Step {
        name: "simulator",
        what: "every test that runs kernels in the simulator",
        run: || {
            debian::ensure(&[CLANG])?;
            programs::run(Needs::Simulator)
        },
    },
    Step {
        name: "ptx",
        what: "every kernel compiles to PTX, with real address spaces",
        run: || {
            shaders::run_ptx()?;
            programs::run(Needs::Ptx)
        },
    },
    Step {
        name: "header",
        what: "kernels/ShaderTypes.h is current",
        run: || header::run(&header::Args { check: true }),
    },
    Step {
        name: "parity",
        what: "Rust and C++ agree on every layout",
        run: || {
            debian::ensure(&[CXX])?;
            parity::run()
        },
    },
    Step {
        name: "doc",
        what: "rustdoc has no warning",
        run: doc,
    },
    Step {
        name: "macos",
        what: "the workspace type-checks for macOS",
        run: check_macos::run,
    },
    Step {
        name: "neon",
        what: "products on 64-bit ARM, real or emulated, agree with their twins",
        run: neon::run_products,
    },
];

/// The step that runs beside the first one, which needs none of the tools: it mostly waits for the network.
pub const INSTALL: &str = "install";
/// The step after which the test programs are there, and cargo is needed only for the examples and rustdoc.
const CLIPPY: &str = "clippy";

/// The steps that may run beside the others once this one has ended, with their commands. One waits for the network. Two have cargo
/// compile for other machines, with the macros of this one: cargo lets one command at a time into a target folder, and while test
/// programs run the folder is free.
pub fn beside_after(step: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    match step {
        INSTALL => vec![("assets", [&["assets"], TEST_ASSETS].concat())],
        CLIPPY => vec![
            ("neon", vec!["neon", "--products"]),
            ("macos", vec!["check-macos"]),
        ],
        _ => Vec::new(),
    }
}

/// The tests of the Metal device.
pub const METAL_STEPS: &[Step] = &[
    Step {
        name: "kernels",
        what: "every kernel on this Mac's GPU against its twin",
        run: || {
            cargo(&[
                "test",
                "--package",
                "akunu-kernels",
                "--test",
                "it",
                "metal::",
                // Hundreds of pipelines take minutes: the test prints how far it is.
                "--",
                "--nocapture",
            ])
        },
    },
    Step {
        name: "model",
        what: "a small model on this Mac's GPU gives the tokens of the twins",
        run: || {
            cargo(&[
                "test",
                "--package",
                "akunu-engine",
                "--test",
                "it",
                "metal::",
                // Hundreds of pipelines take minutes: the test prints how far it is.
                "--",
                "--nocapture",
            ])
        },
    },
];

/// The assets that tests open.
const TEST_ASSETS: &[&str] = &[
    "smollm2",
    "gemma3-270m",
    "minilm",
    "llama-cpp-vocabs",
    "tokenizer-llama3_2",
    "tokenizer-qwen2_5",
    "tokenizer-qwen3",
    "tokenizer-gemma2",
    "tokenizer-gemma3",
    "tokenizer-mistral_nemo",
    "whisper-tiny.en",
    "whisper-base",
    "jfk",
];

fn clippy() -> Result<(), Failure> {
    const NO_WARNING: [&str; 3] = ["--", "-D", "warnings"];
    // With the feature `ptx` a build script compiles kernels; the crates that it is made of wait for clang, and need no optimising.
    const UNOPTIMISED: [&str; 4] = [
        "--config=profile.dev.package.akunu-kernels.opt-level=0",
        "--config=profile.dev.package.akunu-program.opt-level=0",
        "--config=profile.dev.package.akunu-sim.opt-level=0",
        "--config=profile.dev.package.akunu-types.opt-level=0",
    ];
    let everything = ["clippy", "--workspace", "--all-targets", "--all-features"];
    cargo(&[&everything[..], &UNOPTIMISED, &NO_WARNING].concat())?;
    // Alone, without the cases of its kernels: what only they use is not shipped.
    cargo(&[&["clippy", "--package", "akunu-kernels"][..], &NO_WARNING].concat())
}

fn test() -> Result<(), Failure> {
    let programs = programs::run(Needs::Nothing);
    let examples = cargo(&["test", "--workspace", "--doc", "--quiet"]);
    programs.and(examples)
}

fn doc() -> Result<(), Failure> {
    let mut command = process::cargo();
    command
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    Ok(process::run(command.current_dir(workspace::root()))?)
}

fn cargo(arguments: &[&str]) -> Result<(), Failure> {
    Ok(process::run(
        process::cargo()
            .args(arguments)
            .current_dir(workspace::root()),
    )?)
}
